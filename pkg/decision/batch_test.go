package decision

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
)

func TestALimitIsBorneOutByWhatIsSeen(t *testing.T) {
	const stated, assumed = serving.BatchStated, serving.BatchAssumed
	for name, c := range map[string]struct {
		in   Variant
		seen Batch
		want int
	}{
		"stated":                               {Variant{BatchLimit: 128, BatchSource: stated}, Batch{Most: 128}, 128},
		"stated, and one more runs":            {Variant{BatchLimit: 128, BatchSource: stated}, Batch{Most: 129, Waited: 129}, 128},
		"stated, and more run":                 {Variant{BatchLimit: 128, BatchSource: stated}, Batch{Most: 130, Waited: 130}, 0},
		"stated, and the profile is right":     {Variant{BatchLimit: 128, BatchSource: stated, Profile: serving.Profile{BatchLimit: 1024}}, Batch{Most: 130}, 1024},
		"that of the profile, and more run":    {Variant{Profile: serving.Profile{BatchLimit: 128}}, Batch{Most: 130}, 0},
		"assumed":                              {Variant{BatchLimit: 256, BatchSource: assumed}, Batch{Most: 200}, 0},
		"assumed, before the profile":          {Variant{BatchLimit: 256, Profile: serving.Profile{BatchLimit: 64}}, Batch{}, 64},
		"assumed, and requests waited far off": {Variant{BatchLimit: 256, BatchSource: assumed}, Batch{Most: 250, Waited: 100}, 0},
		"assumed, and requests waited at it":   {Variant{BatchLimit: 256, BatchSource: assumed}, Batch{Most: 250, Waited: 250}, 256},
		"assumed, and more run":                {Variant{BatchLimit: 256, BatchSource: assumed}, Batch{Most: 300, Waited: 300}, 0},
		"nothing is known":                     {Variant{}, Batch{Most: 300, Waited: 300}, 0},
		"below zero":                           {Variant{BatchLimit: -1, BatchSource: stated}, Batch{}, 0},
	} {
		v := variantOf(func(it *limit.Variant) { it.In = &c.in })
		v.Next.Batch = c.seen
		assert.Equal(t, c.want, v.BatchLimit(), name)
	}
}

func TestWhatIsSeenOfABatch(t *testing.T) {
	at := func(value float64, ago time.Duration) Sample {
		return Sample{Value: value, Time: epoch.Add(-ago), Present: true}
	}
	in := &Variant{Name: "v", Replicas: []Replica{
		{Running: at(90, 0), Waiting: at(0, 0)}, {Running: at(40, 0), Waiting: at(2, 0)}, {Running: at(70, 0)}, {Running: at(500, time.Hour), Waiting: at(9, 0)},
	}}
	r, _, v := bare(DefaultPolicy(), Memory{}, in)
	assert.Equal(t, Batch{Most: 70, Waited: 40}, within(r, v).BatchOf(), "of what is fresh, and not shown by one of three alone")
	v.Old.Batch = Batch{Most: 100, Waited: 95}
	assert.Equal(t, Batch{Most: 100, Waited: 95}, within(r, v).BatchOf(), "it stands")
	in.Rolling = true
	assert.Equal(t, Batch{Most: 70, Waited: 40}, within(r, v).BatchOf(), "another version may take another number")
	in.Replicas = in.Replicas[:2]
	assert.Equal(t, Batch{Most: 90, Waited: 40}, within(r, v).BatchOf(), "of two nobody knows which is wrong")
}

// Nothing waits: then a limit that nobody stated moves no plan, whatever it is, in neither mode.
// Those that were read wrong do not either, once more runs.
func TestALimitThatNobodyStatedNeverBuys(t *testing.T) {
	random := rand.New(rand.NewPCG(45, 2))
	for n := range 60 {
		running, replicas := 20+random.Float64()*400, 1+random.IntN(6)
		policy := DefaultPolicy()
		if random.IntN(2) == 0 {
			policy = hybrid(policy, capacity.SLO{TTFT: 500, ITL: 50})
		}
		course := func(limit int, source serving.BatchSource) (wanted []int) {
			memory, now := Memory{}, epoch
			for range 6 {
				v := Variant{Name: "web", Current: replicas, Ready: replicas, Request: request("H100", 1), Cost: 6.88, KVTokens: 447936, Startup: 2 * time.Minute, ChoosesVictims: true, BatchLimit: limit, BatchSource: source}
				s := func(x float64) Sample { return Sample{Value: x, Time: now.Add(-3 * time.Second), Present: true} }
				for i := range replicas {
					v.Replicas = append(v.Replicas, Replica{Name: fmt.Sprint("web-", i), Node: "H100-0", Since: epoch.Add(-time.Hour), KVUse: s(running * 375 / 447936), Waiting: s(0), Running: s(running),
						Served: s(running / 6), InService: s(6), InFlightGrowth: s(0), Recent: s(running / 6), RecentSpan: 15 * time.Second, Input: s(300), Output: s(150), KVTokens: s(447936), TTFT: s(0.1), ITL: s(0.039)})
				}
				var plan Plan
				plan, memory = Decide(Snapshot{Time: now, Cluster: &placement.Cluster{Nodes: nodes(4, "H100", 8)}, Models: []Model{{Namespace: "ns", ID: "m", Variants: []Variant{v}}}}, policy, memory, RoundFull)
				require.NotNil(t, plan.Models[0].Variants[0].Desired)
				wanted, now = append(wanted, *plan.Models[0].Variants[0].Desired), now.Add(time.Minute)
			}
			return wanted
		}
		unknown := course(0, serving.BatchAssumed)
		assert.Equal(t, unknown, course(1+random.IntN(1024), serving.BatchAssumed), "%d: %d replicas with %.0f in service", n, replicas, running)
		assert.Equal(t, unknown, course(1+random.IntN(int(running)-2), serving.BatchStated), "%d: more run than is stated", n)
	}
}
