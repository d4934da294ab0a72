package modelserver

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

func TestTheTable(t *testing.T) {
	seen := map[string]Quantity{}
	rows := slices.Concat(OfServer(), []Metric{Of(MeanInterToken)}, OfGateway())
	assert.Len(t, rows, int(quantities), "every quantity has a row, once")
	for q, m := range rows {
		assert.Equal(t, Quantity(q), m.Quantity)
		assert.NotEmpty(t, m.Names)
		assert.Equal(t, m.Label == "", m.Value == "")
		for _, name := range m.Names {
			assert.True(t, model.LegacyValidation.IsValidMetricName(name), name)
			assert.NotContains(t, seen, name, "a name means one thing")
			seen[name] = m.Quantity
		}
	}
	Of(KVUse).Names[0] = "changed"
	assert.Equal(t, "vllm:kv_cache_usage_perc", Of(KVUse).Names[0], "nobody can change the table")
}

func TestSizesOfACache(t *testing.T) {
	cases := []struct {
		blocks, size string
		want         float64
		ok           bool
	}{
		{"1000", "16", 16000, true},
		{"None", "16", 0, false},
		{"1000", "", 0, false},
		{"0", "16", 0, false},
		{"-5", "-16", 0, false},
		{"NaN", "16", 0, false},
		{"Inf", "16", 0, false},
	}
	for _, c := range cases {
		got, ok := Tokens(c.blocks, c.size)
		assert.Equal(t, c.ok, ok, c.blocks)
		assert.Equal(t, c.want, got, c.blocks)
	}
}

func TestRecent(t *testing.T) {
	at := time.Unix(1000, 0)
	known := func(v float64) decision.Sample { return decision.Sample{Value: v, Time: at, Present: true} }
	cases := []struct {
		name            string
		leaving, change decision.Sample
		span            time.Duration
		want            decision.Sample
	}{
		{"leaving and growing", known(2), known(30), 15 * time.Second, known(4)},
		{"shrinking faster than leaving", known(2), known(-60), 15 * time.Second, known(0)},
		{"what left is unknown", decision.Sample{}, known(30), 15 * time.Second, decision.Sample{}},
		{"the change is unknown", known(2), decision.Sample{}, 15 * time.Second, decision.Sample{}},
		{"no time between", known(2), known(3), 0, decision.Sample{}},
		{"beyond all numbers", known(math.MaxFloat64), known(math.MaxFloat64), time.Nanosecond, decision.Sample{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, span := Recent(c.leaving, c.change, c.span, at)
			assert.Equal(t, c.want, got)
			assert.Equal(t, got.Present, span > 0)
		})
	}
}
