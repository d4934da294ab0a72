package decision

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
)

// keeping is a model whose two replicas serve 8 req/s within the promise of 99 %, and at
// which arrive 6. Ten times as many miss it at 1.25 times the rate.
func keeping(met Kept, old Attained) (*limit.Round, *limit.Model, *limit.Variant) {
	policy := DefaultPolicy()
	policy.Share = 0.99
	r, m, v := bare(policy, Memory{}, &Variant{Name: "v", Cost: 1, Ready: 2, Current: 2})
	old.Share = r.Policy.Share
	m.Sized, m.Demand.Now, m.In.Met, m.Old.Attained = true, 6, met, old
	v.Rate = rate.Rate{Trigger: 8, Max: 9, Promised: 4, Bound: true}
	v.Next.Sizing = Sizing{Share: 0.99, PeakShare: 0.9, Rate: 4, PeakRate: 5}
	return r, m, v
}

func metAt(share float64, t time.Time) Kept {
	return Exactly(Sample{Value: share, Time: t, Present: true})
}

func TestWhatCountsAsAttained(t *testing.T) {
	before := Attained{Sampled: epoch.Add(-time.Minute), Span: time.Hour, Requests: 3600 * 6, Missed: 36 * 6}
	for name, c := range map[string]struct {
		met     Kept
		change  func(m *limit.Model, v *limit.Variant)
		counted bool
		// short is set where the fleet is found to be less than what was sized.
		short bool
	}{
		"a minute of a fleet that is what was sized":   {met: metAt(0.95, epoch), counted: true},
		"all of what arrives is what it is sized for":  {met: metAt(0.95, epoch), change: func(m *limit.Model, _ *limit.Variant) { m.Demand.Now = 8 }, counted: true},
		"it was less a window ago":                     {met: metAt(0.95, epoch), counted: true, change: func(m *limit.Model, _ *limit.Variant) { m.Old.Attained.Short = epoch.Add(-time.Minute) }},
		"it was less within the window":                {met: metAt(0.95, epoch), change: func(m *limit.Model, _ *limit.Variant) { m.Old.Attained.Short = epoch.Add(-59 * time.Second) }},
		"nobody tells":                                 {},
		"the same sample again":                        {met: metAt(0.95, epoch.Add(-time.Minute))},
		"a sample that is old":                         {met: metAt(0.95, epoch.Add(-10*time.Minute))},
		"no share":                                     {met: metAt(1.01, epoch)},
		"no number":                                    {met: metAt(math.NaN(), epoch)},
		"a replica starts":                             {met: metAt(0.95, epoch), change: func(_ *limit.Model, v *limit.Variant) { v.In.Starting = []Starting{{}} }, short: true},
		"more arrives than what serves is counted for": {met: metAt(0.95, epoch), change: func(m *limit.Model, _ *limit.Variant) { m.Demand.Now = 8.1 }, short: true},
		"one serves that cannot keep the promise": {met: metAt(0.95, epoch), short: true, change: func(m *limit.Model, _ *limit.Variant) {
			m.Variants = append(m.Variants, variantOf(func(it *limit.Variant) {
				it.In, it.Rate = &Variant{Name: "misfit", Ready: 1}, rate.Rate{Trigger: 9, Bound: true}
			}))
			m.Stack()
		}},
		"one that cannot does not serve": {met: metAt(0.95, epoch), counted: true, change: func(m *limit.Model, _ *limit.Variant) {
			m.Variants = append(m.Variants, variantOf(func(it *limit.Variant) { it.In, it.Rate = &Variant{Name: "misfit"}, rate.Rate{Trigger: 9, Bound: true} }))
			m.Stack()
		}},
		"nothing arrives":             {met: metAt(0.95, epoch), change: func(m *limit.Model, _ *limit.Variant) { m.Demand.Now = 0 }, short: true},
		"the promise does not decide": {met: metAt(0.95, epoch), change: func(_ *limit.Model, v *limit.Variant) { v.Rate.Bound = false }, short: true},
	} {
		t.Run(name, func(t *testing.T) {
			r, m, v := keeping(c.met, before)
			if c.change != nil {
				c.change(m, v)
			}
			got := within(r, m).Attained()
			if !c.counted {
				before := m.Old.Attained
				before.Sampled = got.Sampled
				if c.short {
					before.Short = epoch
				}
				assert.Equal(t, before, got)
				return
			}
			assert.InDelta(t, 36*6+60*float64(m.Demand.Now)*0.05, got.Missed, 1, "a day's memory forgets a thousandth in a minute")
			assert.InDelta(t, 3600*6+60*float64(m.Demand.Now), got.Requests, 20)
			assert.InDelta(t, 3600*math.Exp(-1.0/(24*60))+60, got.Span.Seconds(), 0.1)
			assert.Positive(t, got.Caution)
			assert.Equal(t, epoch, got.Sampled)
		})
	}
}

// A sample speaks of the metrics window, however long the one before is ago: of the first,
// and of the time between two, nobody knows more.
func TestASampleSpeaksOfItsWindow(t *testing.T) {
	for _, before := range []time.Time{{}, epoch.Add(-time.Hour)} {
		r, m, _ := keeping(metAt(0.9, epoch), Attained{Sampled: before})
		got := within(r, m).Attained()
		assert.Equal(t, r.Policy.Window, got.Span)
		assert.InDelta(t, 6*r.Policy.Window.Seconds(), got.Requests, 1e-9)
	}
	r, m, _ := keeping(metAt(0.9, epoch), Attained{Sampled: epoch.Add(-15 * time.Second)})
	assert.Equal(t, 15*time.Second, within(r, m).Attained().Span)
}

// A latency model says that a replica serves within the promise what is too much by some
// share, so that misses are so many times those that may be. From some hours on just the
// promised share misses it, and on the way the replicas are never counted for less than that.
func TestWhatMissesThePromiseIsCorrected(t *testing.T) {
	growth := math.Log(10) / 0.25
	for name, c := range map[string]struct{ wrong, want float64 }{
		"a model that is right":                             {0, 0},
		"one that is wrong by a twentieth":                  {0.05, 0.05},
		"one that is wrong by an eighth":                    {0.125, 0.125},
		"one that is more careful than need be":             {-0.1, 0},
		"one that is wrong by more than is to be corrected": {0.4, -math.Log(rate.LeastCounted)},
	} {
		t.Run(name, func(t *testing.T) {
			a, most := Attained{}, 0.0
			for now := epoch; now.Before(epoch.Add(24 * time.Hour)); now = now.Add(time.Minute) {
				met := 1 - min(1, 0.01*math.Exp(growth*(c.wrong-a.Caution)))
				r, m, _ := keeping(metAt(met, now), a)
				r.Snapshot.Time = now
				a = within(r, m).Attained()
				most = max(most, a.Caution)
				if now.Equal(epoch.Add(10 * time.Minute)) {
					assert.LessOrEqual(t, a.Caution, max(0.03, c.want), "ten minutes say little")
				}
			}
			assert.InDelta(t, c.want, a.Caution, 0.015)
			assert.LessOrEqual(t, most, c.want+0.01, "and no more on the way")
		})
	}
}

// What was corrected is taken back when fewer miss the promise, within days.
func TestCautionEnds(t *testing.T) {
	a := Attained{Sampled: epoch, Span: 24 * time.Hour, Requests: 24 * 3600 * 6, Missed: 0.01 * 24 * 3600 * 6, Counted: 0.1 * 24 * 3600 * 6, Caution: 0.1}
	for now := epoch; a.Caution > 0.01; now = now.Add(time.Minute) {
		require.Less(t, now.Sub(epoch), 4*24*time.Hour)
		r, m, _ := keeping(metAt(1-0.01*math.Exp(-math.Log(10)/0.25*a.Caution), now), a)
		r.Snapshot.Time = now
		a = within(r, m).Attained()
	}
}

// What was attained changes what each replica is counted for, and says so. Which variants
// keep the promise, and which is cheaper, it does not change.
func TestAReplicaIsCountedByWhatWasAttained(t *testing.T) {
	w := newWorld(5)
	w.variants = w.variants[:1]
	policy, key := hybrid(demoPolicy(), capacity.SLO{ITL: 15}), Key{Namespace: "ns", Name: "a-h100"}
	told := func(caution float64) VariantPlan {
		s := w.shows()
		s.Models[0].Variants[0].Profile = onH100
		memory := Memory{Models: map[ModelKey]*ModelMemory{{Namespace: s.Models[0].Namespace, ID: s.Models[0].ID}: {Attained: Attained{Requests: 100, Missed: 3, Caution: caution}}}}
		plan, next := Decide(s, policy, memory, RoundFull)
		require.True(t, plan.Models[0].Sized)
		assert.True(t, next.Variants[key].Sizing.Keeps)
		return plan.Models[0].Variants[0]
	}
	plain, careful := told(0), told(0.1)
	assert.InEpsilon(t, math.Exp(-0.1)*float64(plain.ServesEach), float64(careful.ServesEach), 1e-9)
	const why = "counted at 90% of what its latency model says: 97.0% of the requests met the SLO"
	details := func(p VariantPlan) (all []string) {
		for _, s := range p.Steps {
			all = append(all, textOf(s.Detail))
		}
		return all
	}
	assert.Contains(t, details(careful), why)
	assert.NotContains(t, details(plain), why)
}

// Without a sample what was attained stays, also through rounds in which saturation decides,
// and a clock that ran ahead and came back does not make it wait.
func TestWhatWasAttainedStays(t *testing.T) {
	a := Attained{Sampled: epoch, Span: time.Hour, Requests: 100, Missed: 3, Caution: 0.1}
	key := ModelKey{Namespace: "ns", ID: "m"}
	_, next := Decide(Snapshot{Time: epoch, Models: []Model{{Namespace: "ns", ID: "m"}}}, DefaultPolicy(), Memory{Models: map[ModelKey]*ModelMemory{key: {Attained: a}}}, RoundFull)
	assert.Equal(t, a, next.Models[key].Attained)
	a.Short = epoch
	ahead := Memory{Time: epoch.Add(time.Hour), Models: map[ModelKey]*ModelMemory{key: {Attained: a}}}
	back := ahead.UpTo(epoch.Add(-time.Minute)).Models[key].Attained
	assert.Equal(t, epoch.Add(-time.Minute), back.Sampled)
	assert.Equal(t, epoch.Add(-time.Minute), back.Short)
	assert.Equal(t, 0.1, back.Caution)
}

// What was missed of another promise says nothing of this one.
func TestAnotherPromiseBeginsAnew(t *testing.T) {
	for name, change := range map[string]func(*limit.Round, *limit.Model){
		"another latency": func(_ *limit.Round, m *limit.Model) { m.Promise.SLO.ITL = 30 },
		"another share":   func(r *limit.Round, _ *limit.Model) { r.Policy.Share = 0.9 },
	} {
		r, m, _ := keeping(metAt(1, epoch), Attained{Sampled: epoch.Add(-time.Minute), Span: time.Hour, Requests: 100, Missed: 30, Counted: 15, Caution: 0.15})
		assert.Positive(t, within(r, m).Attained().Caution)
		change(r, m)
		got := within(r, m).Attained()
		assert.Zero(t, got.Caution, name)
		assert.Equal(t, m.Promise.SLO, got.SLO)
		assert.Equal(t, r.Policy.Share, got.Share)
	}
}

// A target within a bucket that holds all requests can never be seen to be met. Nothing is
// bought for that: only what surely missed the promise counts as missed.
func TestATargetWithinABucketBuysNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(45, 11))
	for range 50 {
		a := Attained{}
		for now := epoch; now.Before(epoch.Add(6 * time.Hour)); now = now.Add(time.Minute) {
			kept := metAt(1-0.01*random.Float64(), now)
			kept.Sure *= random.Float64()
			r, m, _ := keeping(kept, a)
			r.Snapshot.Time = now
			a = within(r, m).Attained()
		}
		require.Zero(t, a.Caution, "as many as may miss the promise at most")
		require.Equal(t, 1.0, float64(rate.Factor(&a)))
		require.Positive(t, a.Unsure)
	}
	a := Attained{Requests: 200, Missed: 6, Unsure: 154}
	assert.Equal(t, "20.0% to 97.0% of the requests met the SLO", textOf(rate.AttainedShare(&a)))
}

// Where buckets do not tell, it is said, with the targets of which they would.
func TestWhatTheBucketsDoNotTellIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		sure      float64
		ttft, itl Bucket
		want      []string
	}{
		"all in the first bucket": {sure: 0, itl: Bucket{UpTo: 10}, want: []string{
			"0.0% to 99.5% of the requests met the SLO: slo-tpot 15 ms lies within a bucket of the servers' histogram, from 0 to 10 ms, which does not tell how many: set it to 10",
		}},
		"both": {sure: 0.5, ttft: Bucket{Above: 2560000}, itl: Bucket{Above: 10, UpTo: 25}, want: []string{
			"50.0% to 99.5% of the requests met the SLO: slo-ttft 500 ms lies within a bucket of the servers' histogram, the last one, above 2560000 ms, which does not tell how many: set it to 2560000",
			"50.0% to 99.5% of the requests met the SLO: slo-tpot 15 ms lies within a bucket of the servers' histogram, from 10 to 25 ms, which does not tell how many: set it to 10 or 25",
		}},
		"fewer in it than may miss the promise": {sure: 0.99, itl: Bucket{Above: 10, UpTo: 25}},
		"at the end of a bucket":                {sure: 0.995},
	} {
		kept := metAt(0.995, epoch)
		kept.Sure, kept.TTFT, kept.ITL = c.sure, c.ttft, c.itl
		r, m, v := keeping(kept, Attained{})
		m.Promise.SLO = capacity.SLO{TTFT: 500, ITL: 15}
		v.Managed = true
		within(r, m).TellBuckets()
		var got []string
		for _, s := range v.Plan.Steps {
			got = append(got, textOf(s.Detail))
		}
		assert.Equal(t, c.want, got, name)
	}
}
