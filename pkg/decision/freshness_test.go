package decision

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// Whatever is unknown, nothing goes that full knowledge would call needed.
func TestMissingDataNeverRemovesWhatIsNeeded(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	lowered, held := 0, 0
	for range 3000 {
		w := newWorld(60 * random.Float64())
		w.setReplicas(0, 1+random.IntN(6))
		w.setReplicas(1, random.IntN(6))
		w.now = w.now.Add(time.Hour)
		w.gateway = random.IntN(2) == 0
		policy := demoPolicy()
		_, memory := Decide(w.snapshot(), policy, Memory{}, RoundFull)
		w.now = w.now.Add(time.Minute)
		full, _ := Decide(w.snapshot(), policy, memory, RoundFull)
		broken := w.snapshot()
		breakSamples(random, &broken)
		plan, _ := Decide(broken, policy, memory, RoundFull)
		before := w.serves()
		w.apply(plan)
		switch {
		case w.serves() < before:
			lowered++
			require.Greater(t, w.serves(), w.arrival, "%+v", broken)
		case *full.Models[0].Variants[0].Desired < full.Models[0].Variants[0].Current:
			held++
		}
	}
	assert.Greater(t, lowered, 100, "the test must see scale-downs")
	assert.Greater(t, held, 100, "and scale-downs that the missing data prevent")
}

// breakSamples makes samples of up to all replicas old, absent or both.
func breakSamples(random *rand.Rand, s *Snapshot) {
	share := random.Float64()
	for i := range s.Models[0].Variants {
		for j := range s.Models[0].Variants[i].Replicas {
			p := &s.Models[0].Variants[i].Replicas[j]
			for _, sample := range []*Sample{&p.KVUse, &p.Waiting, &p.Running, &p.Served, &p.InFlightGrowth, &p.Input, &p.Output} {
				if random.Float64() >= share {
					continue
				}
				switch random.IntN(3) {
				case 0:
					*sample = Sample{}
				case 1:
					sample.Time = s.Time.Add(-90 * time.Second)
				default:
					sample.Time = s.Time.Add(-time.Hour)
				}
			}
		}
	}
}

func TestNothingIsKnownHoldsEverything(t *testing.T) {
	for name, breakAll := range map[string]func(*Sample){
		"absent": func(s *Sample) { *s = Sample{} },
		"stale":  func(s *Sample) { s.Time = s.Time.Add(-3 * time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(100)
			w.setReplicas(1, 3)
			w.now = w.now.Add(time.Hour)
			s := w.snapshot()
			for i := range s.Models[0].Variants {
				for j := range s.Models[0].Variants[i].Replicas {
					p := reflect.ValueOf(&s.Models[0].Variants[i].Replicas[j]).Elem()
					for k := range p.NumField() {
						if sample, ok := p.Field(k).Addr().Interface().(*Sample); ok {
							breakAll(sample)
						}
					}
				}
			}
			// Their first scrape is overdue.
			plan, _ := Decide(s, demoPolicy(), Memory{}, RoundFull)
			assert.Equal(t, 1, *plan.Models[0].Variants[0].Desired)
			assert.Equal(t, 3, *plan.Models[0].Variants[1].Desired)
			want := map[string]Reason{"absent": ReasonMetricsMissing, "stale": ReasonMetricsStale}[name]
			assert.Equal(t, want, plan.Models[0].Variants[0].Reason)
		})
	}
}

func TestFreshnessClasses(t *testing.T) {
	policy := DefaultPolicy()
	r := &limit.Round{Round: signal.Round{Snapshot: &Snapshot{Time: epoch}, Policy: &policy}}
	for _, tc := range []struct {
		old  time.Duration
		want signal.Age
	}{
		{-time.Second, signal.AgeFresh}, {0, signal.AgeFresh}, {59 * time.Second, signal.AgeFresh}, {time.Minute, signal.AgeAgeing},
		{119 * time.Second, signal.AgeAgeing}, {2 * time.Minute, signal.AgeStale}, {5 * time.Minute, signal.AgeAbsent},
	} {
		assert.Equal(t, tc.want, r.Age(Sample{Time: epoch.Add(-tc.old), Present: true}), tc.old)
	}
	for ahead, want := range map[time.Duration]signal.Age{29 * time.Second: signal.AgeFresh, 30 * time.Second: signal.AgeAgeing, time.Minute: signal.AgeStale, 150 * time.Second: signal.AgeAbsent} {
		assert.Equal(t, want, r.Age(Sample{Time: epoch.Add(ahead), Present: true}), "%s ahead", ahead)
	}
	assert.Equal(t, signal.AgeAbsent, r.Age(Sample{Time: epoch}), "a zero sample is absent, not zero")
}

// Between old data and none there is no minute of grace.
func TestOldDataThatVanishAreMissingAtOnce(t *testing.T) {
	w, policy := newWorld(10), demoPolicy()
	policy.Freshness = Freshness{Fresh: 8 * time.Second, Ageing: 10 * time.Second, Stale: 12 * time.Second}
	_, memory := Decide(w.snapshot(), policy, Memory{}, RoundFull)
	seen := w.snapshot()
	for _, passed := range []time.Duration{8 * time.Second, 12 * time.Second} {
		seen.Time = w.now.Add(passed)
		var plan Plan
		plan, memory = Decide(seen, policy, memory, RoundFast)
		assert.NotNil(t, plan.Models[0].Variants[0].Fallback, "%s later", passed)
	}
}

// A metric that nobody shows keeps counts from falling, and from rising only where no other one
// says how loaded the replicas are.
func TestOneMetricThatIsMissing(t *testing.T) {
	now := Sample{Value: 0.1, Time: epoch, Present: true}
	old := Sample{Value: 0.1, Time: epoch.Add(-3 * time.Minute), Present: true}
	for name, c := range map[string]struct {
		kv, waiting, running Sample
		batch                int
		want                 signal.Evidence
	}{
		"all are there":                    {now, now, now, 100, signal.EvidenceFull},
		"who runs is not asked for":        {now, now, Sample{}, 0, signal.EvidenceFull},
		"no cache":                         {Sample{}, now, now, 100, signal.EvidencePartial},
		"no queue":                         {now, Sample{}, now, 100, signal.EvidencePartial},
		"nothing of what runs":             {now, now, Sample{}, 100, signal.EvidencePartial},
		"the cache alone":                  {now, Sample{}, Sample{}, 0, signal.EvidencePartial},
		"what runs, without a batch limit": {Sample{}, Sample{}, now, 0, signal.EvidenceMissing},
		"one is old, and no other there":   {old, Sample{}, Sample{}, 100, signal.EvidenceStale},
		"nothing":                          {want: signal.EvidenceMissing},
	} {
		in := &Variant{Name: "v", Ready: 1, Current: 1, BatchLimit: c.batch, BatchSource: serving.BatchStated, Replicas: []Replica{{Name: "p", Since: epoch.Add(-time.Hour), KVUse: c.kv, Waiting: c.waiting, Running: c.running}}}
		r, m, v := bare(DefaultPolicy(), Memory{}, in)
		v.Load = within(r, v).LoadOf(&within(r, m).Model.Model.Model.Model)
		m.Load = m.LoadOfAll()
		assert.Equal(t, c.want, within(r, m).Freshness(), name)
	}
}
