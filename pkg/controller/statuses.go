package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// statusPatience is how long a round waits for its statuses. A status costs the API
// server several milliseconds of a processor: those of thousands of variants take longer
// than the next load does to come.
const statusPatience = time.Second

// statuses writes statuses beside the loop. Those of a round are begun at its end, and what
// of them is not begun when the next round writes scales stays owed: that round asks for it
// anew, as it is by then. So there is one status of an object at a time, and none is written
// while scales are. All of it but the writing belongs to the goroutine of the loop.
type statuses struct {
	client client.Client
	// owed are the statuses that were asked for, by object, and are not known to be written.
	owed map[types.UID]*v1alpha1.VariantAutoscalingStatus
	// changes are those under way, until they are collected; rest is closed when nobody
	// writes any more, and nil where nothing is under way.
	changes []*statusChange
	rest    chan struct{}
	// stop begins no further one, and cancel ends those that were begun.
	stop, cancel context.CancelFunc
}

// statusChange is a status that is not what the plan shows.
type statusChange struct {
	// base is the object as it stands.
	base   *v1alpha1.VariantAutoscaling
	status v1alpha1.VariantAutoscalingStatus
	// written is the object since; nil when it is gone or could not be written.
	written *v1alpha1.VariantAutoscaling
	err     error
}

func newStatuses(c client.Client) *statuses {
	return &statuses{client: c, owed: map[types.UID]*v1alpha1.VariantAutoscalingStatus{}}
}

// begin has statuses written, in turns between their namespaces, and within one those first that are owed.
// Those before are collected.
func (s *statuses) begin(ctx context.Context, changes []*statusChange) {
	waits := func(c *statusChange) bool { return s.owed[c.base.UID] == nil }
	sorted := slices.Concat(only(changes, func(c *statusChange) bool { return !waits(c) }), only(changes, waits))
	inTurns(sorted, func(c *statusChange) string { return c.base.Namespace })
	clear(s.owed)
	writing, cancel := context.WithCancel(ctx)
	going, stop := context.WithCancel(ctx)
	rest := make(chan struct{})
	s.changes, s.rest, s.stop, s.cancel = sorted, rest, stop, cancel
	go func() {
		defer close(rest)
		workqueue.ParallelizeUntil(going, requests, len(sorted), func(i int) {
			c := sorted[i]
			c.written, c.err = s.patch(writing, c.base, &c.status)
		})
	}()
}

// patch writes a status. An object that is gone needs none, and one that was changed since
// it was seen, or made anew under its name, waits for a round that sees it as it is.
func (s *statuses) patch(ctx context.Context, base *v1alpha1.VariantAutoscaling, status *v1alpha1.VariantAutoscalingStatus) (*v1alpha1.VariantAutoscaling, error) {
	changed := base.DeepCopy()
	changed.Status = *status.DeepCopy()
	err := s.client.Status().Patch(ctx, changed, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
	switch {
	case err == nil:
		return changed, nil
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err) || ctx.Err() != nil:
		return nil, nil //nolint:nilnil,nilerr // what is gone, was changed or has no time left is neither written nor wrong
	default:
		err = fmt.Errorf("writing the status of VariantAutoscaling %s/%s: %w", base.Namespace, base.Name, err)
		klog.FromContext(ctx).Error(err, "The status is written again in the next round")
		return nil, err
	}
}

// done waits a while for everything to be written, and reports whether it is.
func (s *statuses) done(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, statusPatience)
	defer cancel()
	select {
	case <-s.rest:
		return true
	case <-ctx.Done():
		return false
	}
}

// end begins no further status, and waits for those that were begun: not for long, for a
// scale must not wait for a status that hangs.
func (s *statuses) end() {
	if s.rest == nil {
		return
	}
	s.stop()
	defer s.cancel()
	defer time.AfterFunc(statusPatience, s.cancel).Stop()
	<-s.rest
}

// collect ends what is under way, and is what became of it.
func (s *statuses) collect() []*statusChange {
	s.end()
	changes := s.changes
	s.changes, s.rest = nil, nil
	for _, c := range changes {
		if c.written == nil {
			s.owed[c.base.UID] = &c.status
		}
	}
	return changes
}
