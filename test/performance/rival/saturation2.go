package rival

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// The published defaults of the token-based policy.
const (
	scaleUpThreshold   = 0.85
	scaleDownBoundary  = 0.70
	lengthWindow       = 5 * time.Minute
	capacityHistory    = 10
	shortOutput        = 100
	mediumOutput       = 500
	defaultMaxNumSeqs  = 256
	charactersPerToken = 4
)

// saturationV2 is the published analyser of tokens with its cost-aware optimiser: it
// holds the demand between two shares of the supply, in as many steps at once as that
// takes. Variants without replicas do not take part.
//
// Where a variant has no replica that reports, the published code takes its cost for 0,
// and adds every new replica there. That is an accident and no rule; here it has its cost.
type saturationV2 struct {
	scenario   *replay.Scenario
	thresholds decision.Saturation
	band       tokenBand
	// live is the last capacity of a replica that was seen, by model and variant; 0
	// before the first.
	live [][]int
	// history are the last observed capacities where computing was the limit.
	history map[capacityKey]*rolling
}

// capacityKey says for which replicas an observed capacity holds.
type capacityKey struct {
	model       int
	accelerator capacity.Accelerator
	bucket      string
}

// outputBucket sorts the mean number of generated tokens.
func outputBucket(tokens float64) string {
	switch {
	case tokens < shortOutput:
		return "short"
	case tokens < mediumOutput:
		return "medium"
	default:
		return "long"
	}
}

// rolling is the mean of the last values.
type rolling struct{ values []float64 }

func (r *rolling) add(value float64) {
	r.values = append(r.values, value)
	r.values = r.values[max(0, len(r.values)-capacityHistory):]
}

func (r *rolling) mean() float64 {
	if r == nil || len(r.values) == 0 {
		return 0
	}
	sum := 0.0
	for _, v := range r.values {
		sum += v
	}
	return sum / float64(len(r.values))
}

func newSaturationV2(s *replay.Scenario, spec replay.Spec) *saturationV2 {
	p := &saturationV2{
		scenario: s, thresholds: thresholdsOf(spec), history: map[capacityKey]*rolling{}, live: make([][]int, len(s.Models)),
		band: tokenBand{spec.Float("scaleUpThreshold", scaleUpThreshold), spec.Float("scaleDownBoundary", scaleDownBoundary)},
	}
	for m := range s.Models {
		p.live[m] = make([]int, len(s.Models[m].Variants))
	}
	return p
}

// wish implements saturationRule.
func (p *saturationV2) wish(view *replay.View, wanted [][]int) {
	for m := range view.Models {
		if supplies, demand, ok := p.analyze(view, m); ok {
			for i, n := range optimizeTokens(supplies, p.band.balance(supplies, demand)) {
				if supplies[i].current > 0 {
					wanted[m][i] = n
				}
			}
		}
		keepOne(p.scenario.Models[m].Variants, wanted[m])
	}
}

// tokenSample is what a replica said of itself.
type tokenSample struct {
	saturationSample
	// total is the size of its KV cache in tokens.
	total int
	// input and output are the mean tokens of a request; 0 where none has ended.
	input, output float64
}

// engineLimits are the server's arguments that the rule reads.
type engineLimits struct {
	// batchedTokens are the most tokens in one iteration, sequences the most requests.
	batchedTokens, sequences int
}

func limitsOf(v *replay.Variant) engineLimits {
	return engineLimits{
		batchedTokens: cmp.Or(v.TokenBudget, simulation.DefaultTokenBudget),
		sequences:     cmp.Or(v.Profile.BatchLimit, defaultMaxNumSeqs),
	}
}

// inUse is the tokens in the KV cache.
func (s tokenSample) inUse() int { return int(math.Round(s.kv * float64(s.total))) }

// demand is the tokens in the cache and those of the prompts that wait.
func (s tokenSample) demand() float64 {
	return float64(s.inUse()) + s.queue*float64(int(s.input))
}

// memoryBound is k1: what the KV cache may hold.
func memoryBound(total int, t decision.Saturation) int {
	return int(float64(total) * t.KVCacheThreshold)
}

// derivedBound is k2 from the server's arguments: with B batched tokens and S sequences,
// N = min(B*O/(I+O), S) requests are in service, and each holds I + O/2 tokens. 0 means
// that the outputs are not known.
func derivedBound(l engineLimits, input, output float64) int {
	if output <= 0 {
		return 0
	}
	n := math.Min(float64(l.batchedTokens)*output/(input+output), float64(l.sequences))
	return int(n * (input + output/2))
}

// computeBound is k2: the tokens that a replica holds when computing limits it. It is what
// it holds now if it has a queue, else the mean of such observations, else what follows
// from its arguments, else k1.
func computeBound(s tokenSample, t decision.Saturation, history *rolling, l engineLimits) int {
	if s.queue >= t.QueueLengthThreshold && s.inUse() > 0 {
		history.add(float64(s.inUse()))
		return s.inUse()
	}
	if mean := history.mean(); mean > 0 {
		return int(mean)
	}
	if derived := derivedBound(l, s.input, s.output); derived > 0 {
		return derived
	}
	return memoryBound(s.total, t)
}

// tokenSupply is what one cycle knows of a variant.
type tokenSupply struct {
	name string
	cost float64
	// current replicas exist, pending ones of them are not ready.
	current, pending int
	// perReplica is what one replica holds, in tokens; 0 where that is not known.
	perReplica int
}

// analyze is what a model's variants hold and what is asked of them; false when no replica
// reports, so that nothing is decided.
func (p *saturationV2) analyze(view *replay.View, m int) ([]tokenSupply, float64, bool) {
	var samples []tokenSample
	supplies := make([]tokenSupply, len(view.Models[m].Variants))
	for i := range supplies {
		seen, in := &view.Models[m].Variants[i], &p.scenario.Models[m].Variants[i]
		supplies[i] = tokenSupply{name: in.Name, cost: float64(in.Cost)}
		supplies[i].current, supplies[i].pending = currentOf(seen)
		var effective []int
		for _, pod := range seen.Pods {
			sample, ok := tokensOf(pod, view.Now)
			if !ok {
				continue
			}
			samples = append(samples, sample)
			effective = append(effective, min(memoryBound(sample.total, p.thresholds), p.bound(m, in, sample)))
			p.live[m][i] = effective[len(effective)-1]
		}
		supplies[i].perReplica = median(effective)
	}
	if len(samples) == 0 {
		return nil, 0, false
	}
	var demand, input, output float64
	for _, s := range samples {
		demand += s.demand()
		input += s.input / float64(len(samples))
		output += s.output / float64(len(samples))
	}
	for i := range supplies {
		if supplies[i].perReplica == 0 && supplies[i].current > 0 {
			supplies[i].perReplica = p.stored(m, i, input, output)
		}
	}
	if n := len(view.Models[m].Gateway); n > 0 {
		demand += queueDemand(float64(view.Models[m].Gateway[n-1].Queue), 0, input, output, 0)
	}
	return supplies, demand, true
}

// bound is k2 of a replica.
func (p *saturationV2) bound(m int, v *replay.Variant, s tokenSample) int {
	key := capacityKey{m, v.Request.Shape.Accelerator, outputBucket(s.output)}
	if p.history[key] == nil {
		p.history[key] = &rolling{}
	}
	return computeBound(s, p.thresholds, p.history[key], limitsOf(v))
}

// stored is what a replica of a variant holds of which none reports: what was seen of it
// before; else what follows from its arguments at the mean lengths of the model, but no
// more than what was seen of a variant that is the same in all that matters; else the
// batched tokens.
func (p *saturationV2) stored(m, i int, input, output float64) int {
	if p.live[m][i] > 0 {
		return p.live[m][i]
	}
	variants := p.scenario.Models[m].Variants
	limits := limitsOf(&variants[i])
	derived := derivedBound(limits, input, output)
	for j := range variants {
		same := variants[j].Request.Shape == variants[i].Request.Shape && limitsOf(&variants[j]).batchedTokens == limits.batchedTokens
		if same && derived > 0 && p.live[m][j] > 0 {
			return min(derived, p.live[m][j])
		}
	}
	return cmp.Or(derived, limits.batchedTokens)
}

// tokensOf is what a replica says; false when it was not scraped within the window or the
// size of its cache is not known.
func tokensOf(pod replay.Pod, now time.Duration) (tokenSample, bool) {
	largest, ok := maxima(pod, now)
	if !ok {
		return tokenSample{}, false
	}
	w := replay.WindowOf(pod.Scrapes, now, lengthWindow)
	out := tokenSample{
		saturationSample: largest, total: w.Last().KVCapacity,
		input:  w.Ratio(func(s replay.Scrape) float64 { return float64(s.Input) }, replay.Scrape.Ended).Value,
		output: w.Ratio(func(s replay.Scrape) float64 { return float64(s.Output) }, replay.Scrape.Ended).Value,
	}
	return out, out.total > 0
}

// median of some capacities, whole tokens; 0 of none.
func median(values []int) int {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

// queueDemand is the tokens of requests that wait in front of all replicas: so many, of so
// many bytes together, of which a share is in the prefix caches.
func queueDemand(size, bytes, input, output, hit float64) float64 {
	return math.Max(bytes/charactersPerToken, size*input)*(1-hit) + size*output
}

// tokenBalance is what a model lacks or has too much of, in tokens.
type tokenBalance struct{ required, spare float64 }

// tokenBand are the shares of the supply between which the demand is held.
type tokenBand struct{ up, down float64 }

// balance is the published rule:
//
//	required = demand/up - capacity of ready and pending replicas
//	spare    = capacity of ready replicas - demand/down
func (b tokenBand) balance(supplies []tokenSupply, demand float64) tokenBalance {
	var ready, anticipated float64
	for _, s := range supplies {
		ready += float64(max(0, s.current-s.pending) * s.perReplica)
		anticipated += float64(s.current * s.perReplica)
	}
	return tokenBalance{
		required: math.Max(0, demand/b.up-anticipated),
		spare:    math.Max(0, ready-demand/b.down),
	}
}

// optimizeTokens is the published optimiser without limits. What is required goes to the
// variant whose capacity costs least. What is spare is taken from the dearest replicas
// first, in whole ones; the cheapest variant keeps one if no other has any. Variants
// without replicas stay so.
func optimizeTokens(supplies []tokenSupply, balance tokenBalance) []int {
	targets, order := make([]int, len(supplies)), []int(nil)
	for i, s := range supplies {
		targets[i] = s.current
		if s.current > 0 && s.perReplica > 0 {
			order = append(order, i)
		}
	}
	if len(order) == 0 {
		return targets
	}
	by := func(value func(tokenSupply) float64) func(a, b int) int {
		return func(a, b int) int {
			return cmp.Or(cmp.Compare(value(supplies[a]), value(supplies[b])), strings.Compare(supplies[a].name, supplies[b].name))
		}
	}
	if balance.required > 0 {
		best := slices.MinFunc(order, by(func(s tokenSupply) float64 { return s.cost / float64(s.perReplica) }))
		targets[best] += int(math.Ceil(balance.required / float64(supplies[best].perReplica)))
		return targets
	}
	slices.SortFunc(order, by(func(s tokenSupply) float64 { return -s.cost }))
	for _, i := range order {
		take := min(targets[i], int(balance.spare/float64(supplies[i].perReplica)))
		if i == order[len(order)-1] && total(targets) == take {
			take--
		}
		targets[i] -= max(0, take)
		balance.spare -= float64(max(0, take) * supplies[i].perReplica)
	}
	return targets
}

// total is the sum of the replicas of a model.
func total(replicas []int) int {
	sum := 0
	for _, n := range replicas {
		sum += n
	}
	return sum
}

// parameters implements saturationRule.
func (p *saturationV2) parameters() []replay.Parameter {
	return []replay.Parameter{
		{Name: "scaleUpThreshold", Value: fmt.Sprint(p.band.up)},
		{Name: "scaleDownBoundary", Value: fmt.Sprint(p.band.down)},
		{Name: "lengthWindow", Value: lengthWindow.String()},
		{Name: "capacityHistory", Value: fmt.Sprint(capacityHistory)},
		{Name: "optimizer", Value: "cost-aware, unlimited"},
	}
}
