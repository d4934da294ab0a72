package decision

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// A server that never shows how full its KV cache is follows its load all the same, by its queue and by
// what it has in service.
func TestAServerWithoutAKVMetric(t *testing.T) {
	const begin, end = 90 * time.Minute, 150 * time.Minute
	for _, direct := range []bool{true, false} {
		for _, stated := range []bool{true, false} {
			t.Run(fmt.Sprintf("gateway %v, batch limit stated %v", !direct, stated), func(t *testing.T) {
				web := vesselOf("web", 3)
				web.unstated = true
				m := &flow{id: "m", direct: direct, variants: []*vessel{web}, arrivals: func(d time.Duration) float64 {
					if d >= begin && d < end {
						return 20
					}
					return 3
				}}
				f := newFluid(machines(8), DefaultPolicy(), m)
				f.change = func(s *Snapshot) {
					v := &s.Models[0].Variants[0]
					v.KVTokens = 0
					if !stated {
						v.BatchLimit = 0
					}
					for i := range v.Replicas {
						v.Replicas[i].KVUse, v.Replicas[i].KVTokens = Sample{}, Sample{}
					}
				}
				least, served, most := 3, time.Duration(0), 0
				for f.elapsed() < 5*time.Hour {
					f.step()
					if f.elapsed() < begin {
						least = min(least, web.replicas)
					}
					most = max(most, web.replicas)
					if served == 0 && f.elapsed() > begin && web.count(serves) >= 8 {
						served = f.elapsed() - begin
					}
				}
				t.Logf("least before %d, 8 serve after %s, most %d, at the end %d; %v", least, served, most, web.replicas, f.writes)
				assert.NotZero(t, served)
				assert.LessOrEqual(t, served, 10*time.Minute)
				assert.LessOrEqual(t, most, 22, "as with a cache, and a batch limit that nobody stated")
				assert.LessOrEqual(t, web.replicas, 4)
			})
		}
	}
}

// A cache that was shown once, or of which nobody knows, is missing while it is not shown. That of a server
// which never shows one is not missed after an hour.
func TestWhichCachesAreMissed(t *testing.T) {
	type look struct {
		at             time.Duration
		shown, unheard bool
		rolling        bool
	}
	for name, c := range map[string]struct {
		looks []look
		want  bool
	}{
		"for a while":                       {[]look{{at: 0}, {at: 59 * time.Minute}}, false},
		"for an hour":                       {[]look{{at: 0}, {at: 30 * time.Minute}, {at: time.Hour}}, true},
		"since it was not shown any more":   {[]look{{at: 0, shown: true}, {at: time.Minute}, {at: 5 * time.Hour}}, false},
		"it was shown in between":           {[]look{{at: 0}, {at: time.Minute, shown: true}, {at: 2 * time.Minute}, {at: 5 * time.Hour}}, false},
		"nothing else was shown either":     {[]look{{at: 0, unheard: true}, {at: 2 * time.Hour}}, false},
		"another version does not show it":  {[]look{{at: 0, shown: true}, {at: time.Minute, shown: true, rolling: true}, {at: 2 * time.Minute}, {at: 63 * time.Minute}}, true},
		"another version for a while":       {[]look{{at: 0}, {at: time.Hour}, {at: 61 * time.Minute, rolling: true}, {at: 62 * time.Minute}}, false},
		"shown again after it was not":      {[]look{{at: 0}, {at: time.Hour}, {at: 61 * time.Minute, shown: true}}, false},
		"a replica that begins says little": {[]look{{at: 0}, {at: time.Hour}, {at: 61 * time.Minute, unheard: true}}, true},
	} {
		memory := Memory{}
		for _, l := range c.looks {
			now := epoch.Add(l.at)
			s := func(v float64) Sample { return Sample{Value: v, Time: now, Present: true} }
			p := Replica{Name: "p", Since: epoch.Add(-time.Hour), Running: s(2), Waiting: s(0)}
			if l.unheard {
				p = Replica{Name: "p", Since: epoch.Add(-time.Hour)}
			}
			if l.shown {
				p.KVUse = s(0.1)
			}
			v := Variant{Name: "v", Ready: 1, Current: 1, Rolling: l.rolling, Request: request("H100", 1), Replicas: []Replica{p}}
			_, memory = Decide(Snapshot{Time: now, Models: []Model{{Namespace: "ns", ID: "m", Variants: []Variant{v}}}}, DefaultPolicy(), memory, RoundFull)
		}
		last := epoch.Add(c.looks[len(c.looks)-1].at)
		r, policy := &limit.Round{Round: signal.Round{Snapshot: &Snapshot{Time: last}}}, DefaultPolicy()
		r.Policy = &policy
		assert.Equal(t, c.want, uncached(r, memory.Variants[Key{Namespace: "ns", Name: "v"}]), name)
	}
}

// uncached reports whether a variant with such a memory has no use of a cache to show.
func uncached(r *limit.Round, next *VariantMemory) bool {
	v := within(r, variantOf(nil))
	v.Next = next
	return v.Uncached()
}
