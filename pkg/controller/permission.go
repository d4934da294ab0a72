package controller

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

const (
	// askEvery is the time between two looks at what is permitted.
	askEvery = 30 * time.Second
	// settledAfter is how many answers in a row must grant again what was lost, so that
	// the watches, which pause for up to a minute after a refusal, are back by then.
	settledAfter = 4
)

// What a condition says while a permission is there and its objects are not.
const (
	grantedSince = "the permission that was missing when the manager started is granted now: restart the manager"
	grantedAgain = "the permission that was lost is granted again: nodes and pods are counted in about two minutes, when their watches are back"
)

// permissions follow what is permitted while the manager runs. What is taken away is
// not used any more; without that the cache would show for ever what it saw last.
type permissions struct {
	// atStart says what the cache was made for.
	atStart Access
	ask     func(context.Context) (Access, error)
	trigger *trigger
	current atomic.Pointer[Access]

	// What follows belongs to the goroutine of Start.

	// blind is set while nodes and pods may not be used although the cache was made for them,
	// and unread are the kinds that may not be. Granted is how many answers in a row have
	// granted all that was lost.
	blind   bool
	unread  inventory.Unread
	granted int
}

func newPermissions(atStart Access, ask func(context.Context) (Access, error), t *trigger) *permissions {
	p := &permissions{atStart: atStart, ask: ask, trigger: t, unread: atStart.Unread}
	p.current.Store(&atStart)
	return p
}

// NeedLeaderElection lets every replica follow, so that a new leader knows.
func (p *permissions) NeedLeaderElection() bool { return false }

// Start asks until the context ends.
func (p *permissions) Start(ctx context.Context) error {
	_ = wait.PollUntilContextCancel(ctx, askEvery, false, func(ctx context.Context) (bool, error) {
		p.look(ctx)
		return false, nil
	})
	return nil
}

// look asks once. Without an answer what was known stays.
func (p *permissions) look(ctx context.Context) {
	answer, err := p.ask(ctx)
	if err != nil {
		klog.FromContext(ctx).Error(err, "The manager's permissions could not be checked; those of the last check are assumed")
		return
	}
	next, was := p.next(answer), p.current.Load()
	if next == *was {
		return
	}
	p.current.Store(&next)
	p.trigger.poke(soon)
	klog.FromContext(ctx).Info("The manager's permissions changed", "capacity", next.Capacity, "missing", next.Missing, "victims", next.Victims, "namespaceConfig", next.Local)
}

// next is what is in force after an answer. The kinds that are watched are those of
// the start; what was lost is not used until its watches are back.
func (p *permissions) next(answer Access) Access {
	next := p.atStart
	next.Victims, next.Local, next.Capacity, next.Missing = answer.Victims, answer.Local, answer.Capacity, answer.Missing
	blind, unread := p.atStart.Capacity && !answer.Capacity, answer.Unread.Or(p.atStart.Unread)
	if blind || unread != p.atStart.Unread {
		p.blind, p.unread, p.granted = p.blind || blind, p.unread.Or(unread), 0
	} else if p.granted++; p.granted >= settledAfter {
		p.blind, p.unread = false, unread
	}
	next.Unread = p.unread
	switch {
	case !answer.Capacity:
	case !p.atStart.Capacity:
		next.Capacity, next.Missing = false, grantedSince
	case p.blind:
		next.Capacity, next.Missing = false, grantedAgain
	}
	return next
}
