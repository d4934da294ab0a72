package adopt

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// What is written is a class of the model in its namespace alone, which makes it no more important. A
// model that has an SLO keeps it.
func TestTheSLOOfAModel(t *testing.T) {
	t.Parallel()
	there, _, err := config.ParseServiceClasses("classes", map[string]string{"a": "{name: Premium, priority: 1, data: [{model: has-one, slo-ttft: 500}, {model: has-none}]}"})
	require.NoError(t, err)
	at := types.NamespacedName{Namespace: "wva", Name: "classes"}
	both := slo{ttft: 1500 * time.Millisecond, itl: 12500 * time.Microsecond}
	for name, c := range map[string]struct {
		model string
		wish  slo
		want  capacity.SLO
		says  string
	}{
		"both":              {model: "llama", wish: both, want: capacity.SLO{TTFT: 1500, ITL: 12.5}},
		"one alone":         {model: "llama", wish: slo{itl: time.Second}, want: capacity.SLO{ITL: 1000}},
		"a name with signs": {model: `a: "b"/{c}`, wish: both, want: capacity.SLO{TTFT: 1500, ITL: 12.5}},
		"none":              {model: "llama", says: "model llama has no SLO, so saturation alone sizes it and nothing keeps its latency low: --slo-ttft and --slo-itl give it one"},
		"it has one":        {model: "has-one"},
		"it keeps its own":  {model: "has-one", wish: both, says: "model has-one has an SLO already, of service class Premium: change it in ConfigMap wva/classes"},
		"an empty class":    {model: "has-none", wish: both, says: "service class Premium lists model has-none without an SLO, so saturation alone sizes it: set slo-ttft, slo-tpot or both in ConfigMap wva/classes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, model := newClasses(there, at, c.wish), decision.ModelKey{Namespace: "chat", ID: c.model}
			note, err := all.add(model, "server")
			require.NoError(t, err)
			assert.Equal(t, c.says, note)
			if c.want == (capacity.SLO{}) {
				assert.Empty(t, all.of.Data)
				return
			}
			note, err = all.add(model, "another")
			require.NoError(t, err)
			assert.Empty(t, note)
			require.Len(t, all.of.Data, 1, "one for a model")
			require.Contains(t, all.of.Data, "chat-server.yaml")
			read, warnings, err := config.ParseServiceClasses("classes", all.of.Data)
			require.NoError(t, err)
			assert.Empty(t, warnings)
			settings := config.Dynamic{ServiceClasses: read}
			assert.Equal(t, decision.Promise{Class: "chat-server", Priority: decision.LeastPriority, SLO: c.want}, settings.Promise(model, nil))
			assert.Equal(t, capacity.SLO{}, settings.Promise(decision.ModelKey{Namespace: "other", ID: c.model}, nil).SLO, "in its namespace alone")
		})
	}
}
