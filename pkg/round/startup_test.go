package round

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

var variant = decision.Key{Namespace: "n", Name: "v"}

// look is one at the replicas of a variant.
func (s *Startups) look(now time.Time, replicas ...Replica) time.Duration {
	s.Begin(now)
	took := s.Of(variant, replicas, 10*time.Minute)
	s.End(func(key decision.Key) bool { return key == variant })
	return took
}

// started is a replica that was made so many seconds ago and was ready so many after that.
func started(id string, ago, took int) Replica {
	return Replica{ID: id, Created: after(-ago), Ready: after(took - ago)}
}

func TestStartups(t *testing.T) {
	var many []Replica
	for i := range 20 {
		// The older half started slowly.
		many = append(many, started(fmt.Sprint(i), 1000-50*i, map[bool]int{true: 60, false: 20}[i < 10]))
	}
	again, ends := started("b", 9000, 8000), started("a", 90, 30)
	again.Restarted, ends.Ends = true, true
	long := noon.Add(-24 * time.Hour)
	cases := []struct {
		name     string
		since    time.Time
		replicas []Replica
		want     int
	}{
		{"none is ready", long, []Replica{{ID: "a", Created: after(-90)}}, 0},
		{"one", long, []Replica{started("a", 90, 30)}, 30},
		{"the median", long, []Replica{started("a", 90, 30), started("b", 90, 31), started("c", 90, 80)}, 31},
		{"of two the longer one", long, []Replica{started("a", 90, 30), started("b", 90, 31)}, 31},
		{"one that was restarted shows another readiness", long, []Replica{started("a", 90, 30), again}, 30},
		{"one that was there from the beginning shows none", long, []Replica{started("a", 90, 0)}, 0},
		{"the clock was set back", long, []Replica{started("a", 90, -3)}, 0},
		{"the latest nine count", long, many, 20},
		{"a long start that was watched", long, []Replica{started("a", 9000, 8000)}, 8000},
		{"a long one that nobody watched is none", noon, []Replica{started("a", 9000, 8000)}, 0},
		{"a plausible one that nobody watched", noon, []Replica{started("a", 9000, 1700)}, 1700},
		{"what was watched beats what was not", after(-100), []Replica{started("a", 9000, 1700), started("b", 9000, 1600), started("c", 90, 30)}, 30},
		{"one that ends teaches nothing", long, []Replica{ends}, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var s Startups
			s.look(c.since)
			assert.Equal(t, time.Duration(c.want)*time.Second, s.look(noon, c.replicas...))
		})
	}
}

func TestTheFirstReadinessCounts(t *testing.T) {
	var s Startups
	s.look(noon.Add(-time.Hour))
	once := started("a", 600, 30)
	unready, later, restarted := once, started("a", 600, 590), once
	unready.Ready, restarted.Restarted = time.Time{}, true
	assert.Equal(t, 30*time.Second, s.look(noon, once))
	assert.Equal(t, 30*time.Second, s.look(noon, unready), "not ready for a while")
	assert.Equal(t, 30*time.Second, s.look(noon, later), "its first readiness counts")
	assert.Equal(t, 30*time.Second, s.look(noon, restarted), "what was seen before its restart stays")
	assert.Equal(t, 80*time.Second, s.look(noon, started("b", 100, 80)), "only those that are there count")
	assert.Equal(t, 80*time.Second, s.look(noon), "without any the last one seen stays")
	assert.Empty(t, s.first, "and nothing is kept of replicas that are gone")
	s.Begin(noon)
	assert.Zero(t, s.Of(decision.Key{Namespace: "n", Name: "other"}, nil, time.Minute), "each variant has its own")
	s.End(func(decision.Key) bool { return false })
	assert.Empty(t, s.last, "nor of variants that are gone")
}
