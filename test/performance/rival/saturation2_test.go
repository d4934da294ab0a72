package rival

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

func TestPublishedTokenBounds(t *testing.T) {
	thresholds := decision.DefaultSaturation()
	assert.Equal(t, 12800, memoryBound(16000, thresholds))

	for _, c := range []struct {
		name          string
		limits        engineLimits
		input, output float64
		want          int
	}{
		{"published: limited by the sequences", engineLimits{8192, 256}, 500, 100, 140800},
		{"published: 64 sequences", engineLimits{8192, 64}, 100, 200, 12800},
		{"limited by the batched tokens", engineLimits{1200, 256}, 500, 100, 200 * 550},
		{"without outputs nothing follows", engineLimits{8192, 256}, 500, 0, 0},
	} {
		assert.Equal(t, c.want, derivedBound(c.limits, c.input, c.output), c.name)
	}
}

func TestPublishedComputeBound(t *testing.T) {
	limits := engineLimits{8192, 64}
	full := tokenSample{saturationSample{kv: 0.5, queue: 6}, 16000, 100, 200}
	calm := tokenSample{saturationSample{kv: 0.25, queue: 4}, 16000, 100, 200}
	young := tokenSample{saturationSample{kv: 0.25, queue: 4}, 16000, 0, 0}
	bound := func(s tokenSample, history *rolling) int {
		return computeBound(s, decision.DefaultSaturation(), history, limits)
	}

	history := &rolling{}
	assert.Equal(t, 12800, bound(calm, history), "derived, before anything was observed")
	assert.Equal(t, 12800, bound(young, history), "k1, without any lengths")
	assert.Equal(t, 8000, bound(full, history), "published: observed, a queue of 6 with 8000 tokens in use")
	assert.Equal(t, 8000, bound(calm, history), "history")
	full.kv = 0.25
	assert.Equal(t, 4000, bound(full, history), "observed again")
	assert.Equal(t, 6000, bound(young, history), "the mean of what was observed")
	full.kv = 0
	assert.Equal(t, 6000, bound(full, history), "a queue with an empty cache is no observation")
	full.kv = 0.5
	for range capacityHistory {
		bound(full, history)
	}
	assert.Equal(t, 8000, bound(calm, history), "only the last ten count")
	full.queue = 5
	assert.Equal(t, 8000, bound(full, history), "a queue at the threshold is long enough")
}

func TestPublishedTokenDemand(t *testing.T) {
	assert.InDelta(t, 6000, 5000+queueDemand(10, 4000, 100, 50, 0.5), 1e-9, "published: half of it is cached")
	assert.InDelta(t, 10500, 5000+queueDemand(10, 20000, 100, 50, 0), 1e-9, "published: by the bytes")
	assert.InDelta(t, 0, queueDemand(0, 0, 100, 50, 0), 0)

	s := tokenSample{saturationSample{kv: 0.50003, queue: 3}, 16000, 100.9, 50}
	assert.InDelta(t, 8000+3*100, s.demand(), 1e-9, "whole tokens in the cache, and whole prompts' lengths")
}

func TestOutputBuckets(t *testing.T) {
	for tokens, want := range map[float64]string{0: "short", 99.9: "short", 100: "medium", 499.9: "medium", 500: "long"} {
		assert.Equal(t, want, outputBucket(tokens), tokens)
	}
}

func TestMedian(t *testing.T) {
	assert.Equal(t, 0, median(nil))
	assert.Equal(t, 3, median([]int{9, 3, 1}))
	assert.Equal(t, 4, median([]int{9, 3, 6, 1}), "the mean of the middle two, whole")
}

func TestPublishedTokenBalance(t *testing.T) {
	one := func(current, pending int) []tokenSupply { return []tokenSupply{{"a", 1, current, pending, 1000}} }
	for _, c := range []struct {
		name            string
		supplies        []tokenSupply
		demand          float64
		required, spare float64
	}{
		{"published: a utilisation of 0.78 asks for nothing", one(10, 0), 7800, 0, 0},
		{"at the upper end of the band", one(20, 0), 17000, 0, 0},
		{"above it", one(20, 0), 17850, 1000, 0},
		{"at the lower end", one(10, 0), 7000, 0, 0},
		{"below it", one(10, 0), 6300, 0, 1000},
		{"pending replicas count as capacity to come, not as spare", one(10, 3), 5600, 0, 0},
		{"published: one replica at 0.86 of its capacity", one(1, 0), 860, 860/0.85 - 1000, 0},
		{"published: its second one is not taken back", one(2, 0), 860, 0, 2000 - 860/0.70},
		{"published: six replicas become seven, and stay", one(7, 0), 5110, 0, 0},
	} {
		got := tokenBand{0.85, 0.70}.balance(c.supplies, c.demand)
		assert.InDelta(t, c.required, got.required, 1e-6, c.name)
		assert.InDelta(t, c.spare, got.spare, 1e-6, c.name)
	}
}

func TestPublishedOptimizer(t *testing.T) {
	expensive := func(n int) tokenSupply { return tokenSupply{"expensive", 15, n, 0, 20000} }
	mid := func(n int) tokenSupply { return tokenSupply{"mid", 10, n, 0, 15000} }
	cheap := func(n int) tokenSupply { return tokenSupply{"cheap", 5, n, 0, 10000} }
	for _, c := range []struct {
		name            string
		supplies        []tokenSupply
		required, spare float64
		want            []int
	}{
		{"published: half a replica is one", []tokenSupply{cheap(2)}, 5000, 0, []int{3}},
		{"published: two and a half are three", []tokenSupply{cheap(2)}, 25000, 0, []int{5}},
		{"published: less than the dearest, so the cheapest goes", []tokenSupply{expensive(2), cheap(3)}, 0, 15000, []int{2, 2}},
		{"published: the cheapest keeps the last one", []tokenSupply{expensive(1), cheap(1)}, 0, 30000, []int{0, 1}},
		{"published: the dearest goes, the next is too large", []tokenSupply{expensive(2), mid(2), cheap(2)}, 0, 50000, []int{0, 2, 1}},
		{"the cheapest for its capacity grows", []tokenSupply{cheap(2), {"large", 15, 1, 0, 40000}}, 5000, 0, []int{2, 2}},
		{"of equals the first name grows", []tokenSupply{{"b", 5, 1, 0, 1000}, {"a", 5, 1, 0, 1000}}, 1, 0, []int{1, 2}},
		{"the cheapest goes when others stay", []tokenSupply{expensive(1), cheap(1)}, 0, 19999, []int{1, 0}},
		{"pending ones hinder nothing", []tokenSupply{{"cheap", 5, 3, 2, 10000}}, 5000, 0, []int{4}},
		{"a variant without replicas stays without", []tokenSupply{cheap(0), expensive(1)}, 5000, 0, []int{0, 2}},
		{"what is not known is left alone", []tokenSupply{{"unknown", 1, 2, 2, 0}, expensive(3)}, 0, 40000, []int{2, 1}},
		{"nothing to do", []tokenSupply{expensive(1), cheap(1)}, 0, 0, []int{1, 1}},
		{"no replicas", []tokenSupply{cheap(0)}, 5000, 0, []int{0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, optimizeTokens(c.supplies, tokenBalance{c.required, c.spare}))
		})
	}
}
