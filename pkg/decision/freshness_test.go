package decision

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
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
	r := &round{snapshot: &Snapshot{Time: epoch}, policy: &policy}
	for _, tc := range []struct {
		old  time.Duration
		want age
	}{
		{-time.Second, ageFresh}, {0, ageFresh}, {59 * time.Second, ageFresh}, {time.Minute, ageAgeing},
		{119 * time.Second, ageAgeing}, {2 * time.Minute, ageStale}, {5 * time.Minute, ageAbsent},
	} {
		assert.Equal(t, tc.want, r.age(Sample{Time: epoch.Add(-tc.old), Present: true}), tc.old)
	}
	for ahead, want := range map[time.Duration]age{29 * time.Second: ageFresh, 30 * time.Second: ageAgeing, time.Minute: ageStale, 150 * time.Second: ageAbsent} {
		assert.Equal(t, want, r.age(Sample{Time: epoch.Add(ahead), Present: true}), "%s ahead", ahead)
	}
	assert.Equal(t, ageAbsent, r.age(Sample{Time: epoch}), "a zero sample is absent, not zero")
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
		want                 evidence
	}{
		"all are there":                    {now, now, now, 100, evidenceFull},
		"who runs is not asked for":        {now, now, Sample{}, 0, evidenceFull},
		"no cache":                         {Sample{}, now, now, 100, evidencePartial},
		"no queue":                         {now, Sample{}, now, 100, evidencePartial},
		"nothing of what runs":             {now, now, Sample{}, 100, evidencePartial},
		"the cache alone":                  {now, Sample{}, Sample{}, 0, evidencePartial},
		"what runs, without a batch limit": {Sample{}, Sample{}, now, 0, evidenceMissing},
		"one is old, and no other there":   {old, Sample{}, Sample{}, 100, evidenceStale},
		"nothing":                          {want: evidenceMissing},
	} {
		in := &Variant{Name: "v", Ready: 1, Current: 1, BatchLimit: c.batch, BatchSource: serving.BatchStated, Replicas: []Replica{{Name: "p", Since: epoch.Add(-time.Hour), KVUse: c.kv, Waiting: c.waiting, Running: c.running}}}
		r, m, v := bare(DefaultPolicy(), Memory{}, in)
		v.load = r.loadOf(m, v)
		m.load = m.loadOfAll()
		assert.Equal(t, c.want, r.freshness(m), name)
	}
}
