package round

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

var (
	m = decision.ModelKey{Namespace: "n", ID: "m"}
	o = decision.ModelKey{Namespace: "n", ID: "o"}
)

func TestWhoSleeps(t *testing.T) {
	for _, c := range []struct {
		name    string
		targets []Target
		want    bool
	}{
		{"none of its targets is there", nil, false},
		{"it serves", []Target{{1, true}}, false},
		{"it sleeps", []Target{{0, true}, {0, true}}, true},
		{"one of two serves", []Target{{0, true}, {1, true}}, false},
		{"one that is not ours serves", []Target{{0, true}, {1, false}}, false},
		{"one of two may be woken", []Target{{0, false}, {0, true}}, true},
		{"nobody may wake it", []Target{{0, false}, {0, false}}, false},
	} {
		t.Run(c.name, func(t *testing.T) { assert.Equal(t, c.want, Asleep(c.targets)) })
	}
}

func TestLooks(t *testing.T) {
	var s Sleepers
	next := func(second int) any {
		wait, ok := s.Next(after(second))
		if !ok {
			return "none"
		}
		return wait
	}
	assert.Equal(t, "none", next(0), "nobody sleeps")
	s.Settle([]decision.ModelKey{m})
	assert.Equal(t, time.Duration(0), next(0), "who just fell asleep is looked after at once")
	s.Begin(after(0))
	assert.Equal(t, "none", next(0), "one look at a time")
	assert.False(t, s.End(after(0), LookAnswered))
	assert.Equal(t, time.Second, next(0))
	assert.Equal(t, time.Duration(0), next(1))
	s.Begin(after(1))
	assert.True(t, s.End(after(4), LookInPart), "it begins to fail")
	assert.Equal(t, time.Duration(0), next(4), "who answers is looked at as often as ever")
	for i, pause := range []time.Duration{time.Second, LookSeldom, LookSeldom} {
		s.Begin(after(4 + 4*i))
		assert.False(t, s.End(after(5+4*i), LookFailed), "that is known")
		assert.Equal(t, pause, next(5+4*i), "after %d looks that nobody answered", i+1)
	}
	s.Begin(after(20))
	assert.True(t, s.End(after(20), LookAnswered), "it fails no more")
	assert.Equal(t, time.Second, next(20))
	s.Settle(nil)
	assert.Equal(t, "none", next(21))
}

func TestCalls(t *testing.T) {
	for _, c := range []struct {
		name  string
		heard map[int]Heard // from that second on
		want  map[int]bool  // the calls by second, and whether requests begin to wait
	}{
		{"nothing is known", nil, map[int]bool{}},
		{"nothing waits", map[int]Heard{0: HeardSilence}, map[int]bool{}},
		{"the first request", map[int]Heard{0: HeardSilence, 3: HeardRequests, 4: HeardSilence}, map[int]bool{3: true}},
		{"who sleeps on is called once in a while", map[int]Heard{0: HeardRequests}, map[int]bool{0: true, 5: false, 10: false}},
		{"silence ends a wait, but not the pause", map[int]Heard{0: HeardRequests, 1: HeardSilence, 2: HeardRequests}, map[int]bool{0: true, 5: true, 10: false}},
		{"what is not known ends no wait", map[int]Heard{0: HeardRequests, 1: HeardNothing, 6: HeardRequests}, map[int]bool{0: true, 6: false, 11: false}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s Sleepers
			s.Settle([]decision.ModelKey{m})
			got, heard := map[int]bool{}, HeardNothing
			for second := range 12 {
				if next, changes := c.heard[second]; changes {
					heard = next
				}
				for _, call := range s.Calls(after(second), func(decision.ModelKey) Heard { return heard }) {
					got[second] = call.Begins
				}
			}
			assert.Equal(t, c.want, got)
		})
	}
}

func TestCallsOfSeveral(t *testing.T) {
	var s Sleepers
	heard := map[decision.ModelKey]Heard{m: HeardRequests, o: HeardRequests}
	calls := func(second int) (models []decision.ModelKey) {
		for _, call := range s.Calls(after(second), func(key decision.ModelKey) Heard { return heard[key] }) {
			models = append(models, call.Model)
		}
		return models
	}
	assert.Empty(t, calls(0), "nobody sleeps")
	s.Settle([]decision.ModelKey{o, m})
	assert.Equal(t, []decision.ModelKey{m, o}, calls(0), "in the order of names")
	s.Settle([]decision.ModelKey{o, m})
	assert.Empty(t, calls(4), "a round that changes nothing forgets nothing")
	s.Settle([]decision.ModelKey{o})
	s.Settle([]decision.ModelKey{o, m})
	assert.Equal(t, []decision.ModelKey{m}, calls(4), "what woke in between begins anew")
}
