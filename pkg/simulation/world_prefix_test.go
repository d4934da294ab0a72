package simulation_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// Every replica has a cache of its own, and the variant says whether it has one.
func TestReplicasOfAWorldCachePrompts(t *testing.T) {
	prompt := &workload.Prompt{Block: 512, Numbers: []uint64{1, 2}}
	for name, c := range map[string]struct {
		cache    bool
		hits     float64
		replicas int
		prompt   *workload.Prompt
		want     []time.Duration
	}{
		// 10 ms and 0.1 ms per token of 1,000.
		"no cache":                   {replicas: 1, prompt: prompt, want: []time.Duration{110 * ms, 110 * ms, 110 * ms}},
		"a cache":                    {cache: true, replicas: 1, prompt: prompt, want: []time.Duration{110 * ms, 10*ms + 100*time.Microsecond, 10*ms + 100*time.Microsecond}},
		"nobody knows the prompt":    {cache: true, replicas: 1, want: []time.Duration{110 * ms, 110 * ms, 110 * ms}},
		"a share of hits":            {hits: 0.5, replicas: 1, want: []time.Duration{60 * ms, 60 * ms, 60 * ms}},
		"a cache in each of several": {cache: true, replicas: 3, prompt: prompt, want: []time.Duration{110 * ms, 110 * ms, 110 * ms}},
	} {
		t.Run(name, func(t *testing.T) {
			w := world(t, simulation.WorldOptions{}, simulation.ServedVariant{
				Name: "v", Profile: serving.Profile{Base: 10, PerPrefillToken: 0.1}, Request: of(1), Max: -1, Initial: c.replicas,
				PrefixCache: c.cache, PrefixHits: c.hits,
			})
			for i := range 3 {
				// With several replicas they come at a time, so that each gets another.
				at := time.Duration(i) * s
				if c.replicas > 1 {
					at = s
				}
				require.NoError(t, w.Arrive(simulation.Arrival{Request: workload.Request{Arrival: at, Input: 1000, Output: 1, Prompt: c.prompt}}))
			}
			w.Finish(time.Minute)
			require.Len(t, w.done, 3)
			for i, d := range w.done {
				assert.Equal(t, c.want[i], d.FirstToken-d.Arrived, i)
			}
		})
	}
	cluster := nodes(8)
	_, err := simulation.NewWorld(simulation.WorldOptions{Cluster: cluster, Models: []simulation.ServedModel{{Variants: []simulation.ServedVariant{{
		Name: "v", Profile: serving.Profile{Base: 10}, Request: of(1), PrefixHits: 1,
	}}}}})
	assert.ErrorContains(t, err, "of each prompt is found in the prefix cache")
}
