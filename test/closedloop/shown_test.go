package closedloop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// wide holds long prompts.
var wide = serving.Profile{Base: 40, PerRequest: 1, PerResidentToken: 1e-6, PerPrefillToken: 0.02, KVTokens: 4_000_000, BatchLimit: 32}

// firstPrompts is a load of ordinary chats, what one replica serves, whose first requests of all,
// one in a minute for six minutes, were so many times as long. From a time on it is ten times as much.
func firstPrompts(times float64, hybrid bool, up, until time.Duration) *world {
	s := constant(0, variant("a", wide, 10, 2))
	s.Models[0].Shape = capacity.TokenShape{Input: 300, Output: 300}
	if hybrid {
		s.hybrid(capacity.SLO{TTFT: 3000, ITL: 90})
	}
	s.Models[0].Gateway = true
	each := s.each(0)
	s.Models[0].Load = []Point{{Rate: 0.02}, {5 * time.Minute, 0.02}, {10 * time.Minute, each}, {up, each}, {up + step, 10 * each}}
	if times != 1 {
		s.Faults = []Fault{{Kind: FaultPrompts, From: step, To: 6 * time.Minute, Factor: times}}
	}
	return watched(s, until)
}

// The lengths of a model's very first requests, long ago, say nothing of how much the arrivals of
// today scatter by chance.
func TestTheFirstRequestsSayNothingOfTodaysScatter(t *testing.T) {
	for _, times := range []float64{1, 50, 200} {
		w := firstPrompts(times, true, 9*time.Hour, 6*time.Hour)
		assert.LessOrEqual(t, writesAfter(w, 2*time.Hour), 2, "%v times: a constant load for six hours, and the replicas go up and down: %s", times, w.tell())
		assert.LessOrEqual(t, w.models[0].variants[0].target, 3, "%v times: two replicas suffice, and did where the first requests were as all others", times)
	}
}

// Nor do they keep a step of the load from being answered as soon as it is seen.
func TestTheFirstRequestsDelayNoStep(t *testing.T) {
	const up = 40 * time.Minute
	for _, hybrid := range []bool{false, true} {
		for _, times := range []float64{1, 50, 200} {
			w, asked := firstPrompts(times, hybrid, up, up+10*time.Minute), time.Duration(0)
			for _, x := range w.models[0].variants[0].writes {
				if x.at >= up && x.to >= 12 && asked == 0 {
					asked = x.at - up
				}
			}
			assert.Positive(t, asked)
			assert.LessOrEqual(t, asked, 30*time.Second, "hybrid %v, %v times: docs/limits.md: with a scrape interval of 15 s replicas are asked for within 30 s. %s", hybrid, times, w.tell())
		}
	}
}

// edited plays a scenario of whose snapshots something is changed.
func edited(s *Scenario, until time.Duration, edit func(time.Duration, *decision.Snapshot)) *world {
	w := newWorld(s, func(s decision.Snapshot, p decision.Policy, m decision.Memory, k decision.Round) (decision.Plan, decision.Memory) {
		edit(s.Time.Sub(epoch), &s)
		return decision.Decide(s, p, m, k)
	})
	for w.now < until {
		w.advance()
		if kind, ok := w.round(); ok {
			w.decideRound(kind)
		}
	}
	return w
}

// A constant load. From a time on the servers show no lengths any more, as after an update of theirs
// or of the rules by which they are scraped. The first requests of all, long ago, were pings, or
// long. What is unknown lowers nothing, and makes no demand.
func TestLengthsThatAreMissingChangeNothing(t *testing.T) {
	const gone = 60 * time.Minute
	for _, hybrid := range []bool{false, true} {
		for _, times := range []float64{1, 0.02, 8} {
			s := constant(0, variant("a", fast, 10, 3))
			rate := 2.5 * s.each(0)
			if hybrid {
				s.hybrid(capacity.SLO{TTFT: 2000, ITL: 9})
				rate = 4 * newTruth(&s.Models[0], &s.Models[0].Variants[0], s, 0).promise.least
			}
			s.Models[0].Gateway = true
			s.Models[0].Load = []Point{{Rate: 0.05}, {5 * time.Minute, 0.05}, {10 * time.Minute, rate}}
			if times != 1 {
				s.Faults = []Fault{{Kind: FaultPrompts, From: step, To: 6 * time.Minute, Factor: times}}
			}
			w := edited(s, gone+30*time.Minute, func(at time.Duration, s *decision.Snapshot) {
				if at < gone {
					return
				}
				for i := range s.Models[0].Variants[0].Replicas {
					r := &s.Models[0].Variants[0].Replicas[i]
					r.Input, r.Output = decision.Sample{}, decision.Sample{}
				}
			})
			assert.Zero(t, writesAfter(w, gone), "hybrid %v, %v times: the load is the same, the lengths are unknown, and replicas go or come. %s", hybrid, times, w.tell())
		}
	}
}

// A constant load of 3.2 replicas on four. A KV cache that is fuller than full, of one replica for
// half a minute or of all for hours, as where a server counts in percent, is unknown: the requests in
// service and the queues say how loaded the replicas are.
func TestACacheFullerThanFullAddsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		replicas int
		until    time.Duration
	}{"one for half a minute": {1, 20*time.Minute + 30*time.Second}, "all from then on": {1000, time.Hour}} {
		t.Run(name, func(t *testing.T) {
			s := constant(0, variant("a", fast, 10, 4))
			s.Models[0].Variants[0].Told = false
			s.Models[0].Gateway = true
			s.Models[0].Load = []Point{{Rate: 3.2 * s.each(0)}}
			w := edited(s, time.Hour, func(at time.Duration, in *decision.Snapshot) {
				for i := range in.Models[0].Variants[0].Replicas {
					if at >= 20*time.Minute && at <= c.until && i < c.replicas {
						in.Models[0].Variants[0].Replicas[i].KVUse.Value *= 100
					}
				}
			})
			assert.LessOrEqual(t, w.models[0].variants[0].highest, 5, w.tell())
		})
	}
}

// For an hour a few requests are very long; then they are as always, and more come. For a moment what
// a replica serves is told wrong by far, as what completes then began before, and just then replicas
// go. That they were too few for it is no reason to keep ten of them for a day that are 1 % full,
// where two suffice.
func TestAShortageThatWasNoneIsForgotten(t *testing.T) {
	s := constant(0, variant("a", fast, 10, 5)).hybrid(capacity.SLO{TTFT: 2000, ITL: 9})
	s.Models[0].Gateway = true
	rate := 1.5 * newTruth(&s.Models[0], &s.Models[0].Variants[0], s, 0).promise.least
	s.Models[0].Load = []Point{{Rate: 0.3}, {time.Hour, 0.3}, {70 * time.Minute, rate}}
	s.Faults = []Fault{{Kind: FaultPrompts, From: step, To: 61 * time.Minute, Factor: 20}}
	w := watched(s, 8*time.Hour)
	assert.LessOrEqual(t, w.models[0].variants[0].target, 4, w.tell())
}

// For an hour requests are longer or shorter than ever after, and few replicas have any in service. What
// was seen of these says nothing of those that come then, and replicas that are hardly asked show little
// of them: it is enough to know better. Nobody keeps a fleet that is empty for what one served of others.
func TestWhatOtherRequestsShowedIsForgottenWhileHardlyAnyCome(t *testing.T) {
	for _, hybrid := range []bool{false, true} {
		for _, told := range []bool{false, true} {
			for _, times := range []float64{0.05, 0.3, 5, 20} {
				s := constant(0, variant("a", fast, 10, 8))
				s.Models[0].Variants[0].Told = told
				if hybrid {
					s.hybrid(capacity.SLO{TTFT: 2000, ITL: 9})
				}
				s.Models[0].Gateway = true
				each := newTruth(&s.Models[0], &s.Models[0].Variants[0], s, 0).promise.least
				if !hybrid {
					each = s.each(0)
				}
				s.Models[0].Load = []Point{{Rate: 0.3}, {time.Hour, 0.3}, {70 * time.Minute, 1.5 * each}}
				s.Faults = []Fault{{Kind: FaultPrompts, From: step, To: 61 * time.Minute, Factor: times}}
				w := watched(s, 4*time.Hour)
				assert.LessOrEqual(t, w.models[0].variants[0].target, 5, "hybrid %v, told %v, %v times: %s", hybrid, told, times, w.tell())
			}
		}
	}
}
