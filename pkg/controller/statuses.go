package controller

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// statusPatience is how long a round waits for its statuses. A status costs the API
// server several milliseconds of a processor: those of thousands of variants take longer
// than the next load does to come. What is left is written beside the next rounds.
const statusPatience = time.Second

// statuses writes statuses beside the loop, which asks for them and collects what became
// of them. Of each object only the newest status is written, and no two of one object at
// once. While scales are written, no status is.
type statuses struct {
	client client.Client

	lock sync.Mutex
	// paused is set while scales are written.
	paused bool
	// queue are the objects whose status is asked for, in their order.
	queue []types.UID
	// wanted are their newest statuses, busy those that are being written, and done what
	// was written and not collected.
	wanted, busy map[types.UID]*statusChange
	done         []*statusChange
	writers      int
	// rest is closed when nobody writes.
	rest chan struct{}
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
	rest := make(chan struct{})
	close(rest)
	return &statuses{client: c, wanted: map[types.UID]*statusChange{}, busy: map[types.UID]*statusChange{}, rest: rest}
}

// asked is the status that an object will have when all that was asked for is written, or
// has since a moment ago; nil where nothing is under way that was not collected.
func (s *statuses) asked(uid types.UID) *v1alpha1.VariantAutoscalingStatus {
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, of := range []map[types.UID]*statusChange{s.wanted, s.busy} {
		if c := of[uid]; c != nil {
			return &c.status
		}
	}
	for _, c := range slices.Backward(s.done) {
		if c.written != nil && c.written.UID == uid {
			return &c.written.Status
		}
	}
	return nil
}

// ask has statuses written. One that was asked for before and is not begun is replaced.
func (s *statuses) ask(ctx context.Context, changes []*statusChange) {
	s.lock.Lock()
	defer s.lock.Unlock()
	newest := make(map[types.UID]*v1alpha1.VariantAutoscaling, len(s.done))
	for _, c := range s.done {
		if c.written != nil {
			newest[c.written.UID] = c.written
		}
	}
	for _, c := range changes {
		uid := c.base.UID
		if written := newest[uid]; written != nil {
			c.base = written
		}
		if s.wanted[uid] == nil {
			s.queue = append(s.queue, uid)
		} else {
			c.base = s.wanted[uid].base
		}
		s.wanted[uid] = c
	}
	s.start(ctx)
}

// start begins as many writers as there is work for.
func (s *statuses) start(ctx context.Context) {
	if s.paused {
		return
	}
	for range min(requests-s.writers, len(s.queue)) {
		if s.writers++; s.writers == 1 {
			s.rest = make(chan struct{})
		}
		go s.run(ctx)
	}
}

// run writes until nothing is left that nobody else writes.
func (s *statuses) run(ctx context.Context) {
	for c := s.next(nil); c != nil; c = s.next(c) {
		c.written, c.err = s.patch(ctx, c.base, &c.status)
	}
}

// next notes what was written and is what is to be written next; nil ends the writer.
func (s *statuses) next(written *statusChange) *statusChange {
	s.lock.Lock()
	defer s.lock.Unlock()
	if written != nil {
		uid := written.base.UID
		delete(s.busy, uid)
		s.done = append(s.done, written)
		if later := s.wanted[uid]; later != nil && written.written != nil {
			later.base = written.written
		}
	}
	i := slices.IndexFunc(s.queue, func(uid types.UID) bool { return s.busy[uid] == nil })
	if i < 0 || s.paused {
		if s.writers--; s.writers == 0 {
			close(s.rest)
		}
		return nil
	}
	uid := s.queue[i]
	s.queue = slices.Delete(s.queue, i, i+1)
	c := s.wanted[uid]
	delete(s.wanted, uid)
	s.busy[uid] = c
	return c
}

// patch writes a status. An object that is gone needs none, and one that was changed since
// it was seen, or made anew under its name, waits for a round that sees it as it is.
func (s *statuses) patch(ctx context.Context, base *v1alpha1.VariantAutoscaling, status *v1alpha1.VariantAutoscalingStatus) (*v1alpha1.VariantAutoscaling, error) {
	changed := base.DeepCopy()
	changed.Status = *status.DeepCopy()
	err := s.client.Status().Patch(ctx, changed, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil, nil //nolint:nilnil // what is gone, or was changed, is neither written nor wrong
	}
	if err != nil {
		err = fmt.Errorf("writing the status of VariantAutoscaling %s/%s: %w", base.Namespace, base.Name, err)
		if ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "The status is written again in the next round")
		}
		return nil, err
	}
	return changed, nil
}

// wait returns when everything is written, or after a while.
func (s *statuses) wait(ctx context.Context, atMost time.Duration) {
	s.lock.Lock()
	rest := s.rest
	s.lock.Unlock()
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-rest:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// pause begins no status until resume, and waits for those that were begun: not for long,
// for a scale must not wait for a status that hangs.
func (s *statuses) pause(ctx context.Context) {
	s.lock.Lock()
	s.paused = true
	s.lock.Unlock()
	s.wait(ctx, statusPatience)
}

// resume goes on with what is left.
func (s *statuses) resume(ctx context.Context) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.paused = false
	s.start(ctx)
}

// collect is what was written since it was last asked, and how much is left.
func (s *statuses) collect() (done []*statusChange, left int) {
	s.lock.Lock()
	defer s.lock.Unlock()
	done, s.done = s.done, nil
	return done, len(s.queue) + len(s.busy)
}
