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

// source lists and watches objects that the API server may not serve, or not to us.
// While it does not, the source asks again at short intervals and returns nothing,
// so that the informer behind it neither backs off nor complains.
type source struct {
	from  cache.ListerWatcherWithContext
	every time.Duration
	// refused is set while the objects are not to be had.
	refused atomic.Bool
	// changed is called with the answer that set or cleared refused; nil is success.
	changed func(ctx context.Context, err error)
	plain   bool
}

func newSource(from cache.ListerWatcher, every time.Duration, changed func(context.Context, error)) *source {
	return &source{
		from: cache.ToListerWatcherWithContext(from), every: every, changed: changed,
		plain: watchlist.DoesClientNotSupportWatchListSemantics(from),
	}
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
	return patiently(ctx, s, func() (runtime.Object, error) { return s.from.ListWithContext(ctx, options) })
}

// WatchWithContext watches the objects once they are served.
func (s *source) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return patiently(ctx, s, func() (watch.Interface, error) { return s.from.WatchWithContext(ctx, options) })
}

// patiently asks until the answer is another one than that there are no such
// objects.
func patiently[T any](ctx context.Context, s *source, ask func() (T, error)) (T, error) {
	for {
		answer, err := ask()
		refused := apierrors.IsNotFound(err) || apierrors.IsForbidden(err)
		if (refused || err == nil) && s.refused.Swap(refused) != refused {
			s.changed(ctx, err)
		}
		if !refused {
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
