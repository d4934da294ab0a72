package sweep

import (
	"errors"
	"fmt"
	"sync"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
)

// memo knows the runs that were made, so that none is made twice.
type memo struct {
	mutex sync.Mutex
	known map[run]*ran
}

// run is one policy with one seed on one case.
type run struct {
	of     *Case
	seed   int
	policy string
}

// ran is what came of a run. The first who asks makes it, and others wait.
type ran struct {
	mutex  sync.Mutex
	done   bool
	limit  replay.Limit
	result replay.Result
	err    error
}

// answers reports whether what came of the run says enough to somebody with a limit: a
// run that was given up says nothing to who would have been content with less, or paid
// more.
func (r *ran) answers(limit replay.Limit) bool {
	switch {
	case !r.done:
		return false
	case errors.Is(r.err, replay.ErrTooPoor):
		return limit.Attainment >= r.limit.Attainment
	case errors.Is(r.err, replay.ErrTooDear):
		return limit.Cost > 0 && limit.Cost <= r.limit.Cost
	}
	return true
}

// play is one run of a policy with one seed, made now or before.
func (p *pool) play(c *Case, seed int, policy string, limit replay.Limit) (replay.Result, error) {
	p.memo.mutex.Lock()
	key := run{c, seed, policy}
	r := p.memo.known[key]
	if r == nil {
		r = new(ran)
		p.memo.known[key] = r
	}
	p.memo.mutex.Unlock()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !r.answers(limit) {
		p.run(func() {
			r.result, _, r.err = c.Trials[seed].Play(replay.Play{
				Policy: policy, Startup: c.Startup, Limit: limit,
				Tell: func(float64) bool { return !p.stopped() },
			})
		})
		r.done, r.limit = true, limit
		if r.err != nil && !hopeless(r.err) {
			r.err = fmt.Errorf("%s: %w", c.Name, r.err)
		}
		if one, ended := keptOf(key, r); ended && p.keep != nil {
			p.keep(one)
		}
	}
	return r.result, r.err
}

// hopeless reports whether a run was given up for what it would keep or cost.
func hopeless(err error) bool {
	return errors.Is(err, replay.ErrTooPoor) || errors.Is(err, replay.ErrTooDear)
}
