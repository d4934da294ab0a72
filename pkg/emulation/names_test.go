package emulation_test

import (
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/emulation"
	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
)

// What reads metrics finds all that it looks for.
func TestEverythingThatIsReadIsServed(t *testing.T) {
	_, server := serve(t, emulation.ServerOptions{Model: "llama", Profile: quick})
	_, router := route(t, "llama")
	for of, rows := range map[string][]modelserver.Metric{server: modelserver.OfServer(), router: modelserver.OfGateway()} {
		families := scrape(t, of)
		for _, row := range rows {
			if row.Quantity == modelserver.CacheTokens || row.Quantity == modelserver.Adapters {
				continue // SGLang's way to say what vLLM says in blocks, and what it has none of
			}
			found := 0
			for _, name := range row.Names {
				family, ok := families[name]
				if !ok {
					continue
				}
				found++
				assert.Equal(t, row.Series == modelserver.Histogram, family.GetType() == dto.MetricType_HISTOGRAM, name)
				assert.Equal(t, row.Series == modelserver.Counter, family.GetType() == dto.MetricType_COUNTER, name)
			}
			if row.Quantity == modelserver.InterToken {
				assert.Equal(t, 2, found, "vLLM's name and its earlier one")
				continue
			}
			assert.Equal(t, 1, found, "%v", row.Names)
		}
	}
}
