package acceleratorplacement

import (
	"context"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"
)

// askAgain is how long objects that the API server does not serve are left alone. An
// informer's own back-off would let a CRD that comes late wait for half a minute.
const askAgain = 3 * time.Second

// access is what came of asking for the objects last.
type access int32

const (
	// served: they can be read, or were not asked for yet.
	served access = iota
	// kept: they were read and may not be any more. What is known of them stays.
	kept
	// absent: the API server has no such objects.
	absent
	// denied: they may not be read and nothing is known of them.
	denied
)

// source lists and watches objects that the API server may not serve, or not to us.
// While it does not, the source asks again at short intervals and returns nothing,
// so that the informer behind it neither backs off nor complains.
type source struct {
	from  cache.ListerWatcherWithContext
	every time.Duration
	// access is an access.
	access atomic.Int32
	// read is set once the objects were listed.
	read atomic.Bool
	// changed is called when the access changes, with the answer that changed it; nil
	// is success.
	changed func(ctx context.Context, now access, err error)
	plain   bool
}

func newSource(from cache.ListerWatcher, every time.Duration, changed func(context.Context, access, error)) *source {
	return &source{
		from: cache.ToListerWatcherWithContext(from), every: every, changed: changed,
		plain: watchlist.DoesClientNotSupportWatchListSemantics(from),
	}
}

// now is the access as it is now.
func (s *source) now() access { return access(s.access.Load()) }

// none reports whether there are no objects to be had, so that none counts.
func (s *source) none() bool {
	now := s.now()
	return now == absent || now == denied
}

// IsWatchListSemanticsUnSupported passes on what the source below says of itself.
func (s *source) IsWatchListSemanticsUnSupported() bool { return s.plain }

// List implements cache.ListerWatcher.
func (s *source) List(options metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), options)
}

// Watch implements cache.ListerWatcher.
func (s *source) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), options)
}

// ListWithContext lists the objects once they are served.
func (s *source) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	listed, err := patiently(ctx, s, func() (runtime.Object, error) { return s.from.ListWithContext(ctx, options) })
	if err == nil {
		s.read.Store(true)
	}
	return listed, err
}

// WatchWithContext watches the objects once they are served. A watch that begins with
// the objects is a list too.
func (s *source) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	begun, err := patiently(ctx, s, func() (watch.Interface, error) { return s.from.WatchWithContext(ctx, options) })
	if err == nil {
		s.read.Store(true)
	}
	return begun, err
}

// patiently asks until the objects are served, or something else is wrong.
func patiently[T any](ctx context.Context, s *source, ask func() (T, error)) (T, error) {
	for {
		answer, err := ask()
		if !s.answered(ctx, err) {
			return answer, err
		}
		timer := time.NewTimer(s.every)
		select {
		case <-ctx.Done():
			timer.Stop()
			return answer, err
		case <-timer.C:
		}
	}
}

// answered takes note of an answer, and reports whether to ask again. One that
// forbids may be a mistake of a moment, such as a role that is being replaced: it
// says nothing about objects that were read before.
func (s *source) answered(ctx context.Context, err error) (again bool) {
	now := served
	switch {
	case err == nil:
	case apierrors.IsNotFound(err):
		now = absent
	case apierrors.IsForbidden(err) && s.read.Load() && !s.none():
		now = kept
	case apierrors.IsForbidden(err):
		now = denied
	default:
		return false
	}
	if access(s.access.Swap(int32(now))) != now {
		s.changed(ctx, now, err)
	}
	return now != served
}
