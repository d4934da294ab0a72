package rival

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// The modes of the planner, its targets and its predictors.
const (
	plannerThroughput = "throughput"
	plannerLoad       = "load"
	plannerBoth       = "both"
	plannerSLA        = "sla"
	plannerLatency    = "latency"
	predictConstant   = "constant"
	predictKalman     = "kalman"
)

// The published defaults.
const (
	plannerInterval    = 180 * time.Second
	plannerReaction    = 5 * time.Second
	plannerSensitivity = 80
	plannerInput       = 3000
	plannerOutput      = 150
	kalmanLevel        = 1
	kalmanTrend        = 0.1
	kalmanNoise        = 10
	kalmanPoints       = 5
)

// plannerSettings have the meaning of the planner's configuration.
var plannerSettings = []replay.Setting{
	{Key: "mode", Form: replay.OneOf(plannerThroughput, plannerLoad, plannerBoth)},
	{Key: "target", Form: replay.OneOf(plannerSLA, plannerThroughput, plannerLatency)},
	{Key: "predictor", Form: replay.OneOf(predictConstant, predictKalman)},
	{Key: "interval", Form: replay.SpanOf(2*plannerReaction, longestWindow, "throughput_adjustment_interval in whole seconds, from 10s to 3600s, such as 180s")},
	{Key: "reaction", Form: replay.SpanOf(time.Second, time.Minute, "load_adjustment_interval in whole seconds, from 1s to 60s, such as 5s")},
	{Key: "sensitivity", Form: replay.NumberOf(0, 100, "load_scaling_down_sensitivity, above 0 and up to 100, such as 80")},
	{Key: "ttft", Form: replay.NumberOf(0, mostTarget, "the target of the time to first token in milliseconds, above 0; without it the model's"+perModelHelp).OfEach()},
	{Key: "itl", Form: replay.NumberOf(0, mostTarget, "the target of the time per further token in milliseconds, above 0; without it the model's"+perModelHelp).OfEach()},
	{Key: "isl", Form: replay.NumberOf(0, mostTarget, "the mean input tokens that engines are profiled with, above 0, such as 3000"+perModelHelp).OfEach()},
	{Key: "osl", Form: replay.NumberOf(0, mostTarget, "the mean output tokens that engines are profiled with, above 0, such as 150"+perModelHelp).OfEach()},
	{Key: "level", Form: replay.NumberOf(0, mostTarget, "kalman_q_level, above 0, such as 1")},
	{Key: "trend", Form: replay.NumberOf(0, mostTarget, "kalman_q_trend, above 0, such as 0.1")},
	{Key: "noise", Form: replay.NumberOf(0, mostTarget, "kalman_r, above 0, such as 10")},
	{Key: "points", Form: replay.CountOf(1, 1000, "kalman_min_points, from 1, such as 5")},
}

// planner is the published rule of the SLA planner of Dynamo for engines that both prefill
// and decode (mode "agg"), as its design page and its guide (docs.nvidia.com/dynamo, planner
// design and planner guide) and the code of ai-dynamo/dynamo have it.
//
// Throughput mode forecasts the requests of the next interval and their mean lengths, and
// divides them by what one engine serves within the targets. Load mode looks at each engine
// every few seconds and takes one step at a time; with both, the first is a lower bound for
// the second. A target other than sla makes load mode compare the use of the KV cache with
// fixed thresholds.
//
// What is published and differs here: the predictors ARIMA (the default) and Prophet are
// left out; the budget of 8 devices is lifted to the variant's bound, else to what empty
// nodes hold; engines tell of every pass, and here of the mean since the last look, every
// five seconds; requests are counted when they come and not when they have ended.
type planner struct {
	replay.Driven
	mode, target       string
	interval, reaction time.Duration
	sensitivity        float64
	ttft, itl          []float64
	// profiled are the input and output tokens that engines were profiled with.
	profiled [2][]float64
	// predicts says how it forecasts.
	predicts string
	models   []plannedModel
}

// plannedModel is what the planner knows of one model.
type plannedModel struct {
	engine                  engineModel
	requests, input, output predictor
	// lastInput and lastOutput are the last mean lengths; 0 before the first.
	lastInput, lastOutput float64
	bounds                engineBounds
	// floor is the lower bound of load mode.
	floor int
}

func newPlanner(s *replay.Scenario, spec replay.Spec, choice []int) (*planner, error) {
	p := &planner{
		mode: spec.Word("mode", plannerThroughput), target: spec.Word("target", plannerSLA), predicts: spec.Word("predictor", predictConstant),
		interval: spec.Span("interval", plannerInterval), reaction: spec.Span("reaction", plannerReaction),
		sensitivity: spec.Float("sensitivity", plannerSensitivity) / 100,
	}
	if err := p.idle(spec); err != nil {
		return nil, err
	}
	var err error
	if p.Driven, err = replay.NewDriven(s, spec, choice, 0); err != nil {
		return nil, err
	}
	for _, of := range []struct {
		key       string
		otherwise float64
		to        *[]float64
	}{
		{"ttft", unset, &p.ttft}, {"itl", unset, &p.itl}, {"isl", plannerInput, &p.profiled[0]}, {"osl", plannerOutput, &p.profiled[1]},
	} {
		if *of.to, err = spec.ForEach(s, of.key, of.otherwise); err != nil {
			return nil, err
		}
	}
	for m := range s.Models {
		p.ttft[m] = promised(p.ttft[m], s.Models[m].SLO.TTFT)
		p.itl[m] = promised(p.itl[m], s.Models[m].SLO.ITL)
		p.models = append(p.models, p.model(m))
	}
	return p, nil
}

// idle reports a setting that has no effect beside the others.
func (p *planner) idle(spec replay.Spec) error {
	for _, rule := range []struct {
		keys   []string
		has    bool
		expect string
	}{
		{[]string{"target"}, p.mode == plannerLoad, "mode=load"},
		{[]string{"ttft", "itl", "isl", "osl"}, p.target == plannerSLA, "target=sla"},
		{[]string{"sensitivity"}, p.mode != plannerThroughput && p.target == plannerSLA, "mode=load or mode=both, and target=sla"},
		{[]string{"predictor", "interval"}, p.mode != plannerLoad, "mode=throughput or mode=both"},
		{[]string{"level", "trend", "noise", "points"}, p.mode != plannerLoad && p.predicts == predictKalman, "predictor=kalman"},
	} {
		for _, key := range rule.keys {
			if value, given := spec.Value(key); given && !rule.has && value != plannerSLA {
				return fmt.Errorf("policy %q: %s has no effect; expected it with %s", spec, key, rule.expect)
			}
		}
	}
	return nil
}

// promised is a target: the given one, else the model's, else none.
func promised(given float64, slo capacity.Milliseconds) float64 {
	switch {
	case given != unset:
		return given
	case slo > 0:
		return float64(slo)
	}
	return math.Inf(1)
}

// model is what is known of a model at the start: passes of its variant's engine over a
// grid, unless the autoscalers are to learn how fast it is.
func (p *planner) model(m int) plannedModel {
	v := &p.Scenario.Models[m].Variants[p.Choice[m]]
	limits := limitsOf(v)
	k := plannedModel{floor: 1, bounds: engineBounds{limits.batchedTokens, limits.sequences, float64(v.Profile.KVTokens)}}
	for _, to := range []*predictor{&k.requests, &k.input, &k.output} {
		*to = &constantPredictor{}
		if p.predicts == predictKalman {
			*to = &kalmanPredictor{
				level: p.Spec.Float("level", kalmanLevel), trend: p.Spec.Float("trend", kalmanTrend),
				noise: p.Spec.Float("noise", kalmanNoise), least: p.Spec.Count("points", kalmanPoints),
			}
		}
	}
	if !v.Given.Known() {
		return k
	}
	context := p.profiled[0][m] + p.profiled[1][m]/2
	most := k.bounds.most(p.profiled[0][m], p.profiled[1][m])
	for i := range passBuckets {
		n := float64(max(1, most*(i+1)/passBuckets))
		for j := range passBuckets {
			prefill := float64(k.bounds.budget) * float64(j) / (passBuckets - 1)
			seconds := v.Profile.Iteration(int(n), capacity.Tokens(n*context), capacity.Tokens(prefill)) / 1000
			k.engine.add(enginePass{prefill, n * context, float64(seconds)})
		}
	}
	k.engine.input.add(p.profiled[0][m])
	k.engine.decoded.add(context)
	return k
}

// Next implements replay.Policy.
func (p *planner) Next(now time.Duration) time.Duration {
	if now < 0 {
		return p.reaction
	}
	return min(after(now, p.reaction), after(now, p.interval))
}

// Looks implements replay.Looker.
func (p *planner) Looks() (every, back time.Duration) {
	return min(p.reaction, p.Scenario.Collection.Scrape), p.interval
}

// Decide implements replay.Policy.
func (p *planner) Decide(view *replay.View) replay.Answer {
	return p.Answer(view, func(m int, model *replay.ModelView, variant *replay.VariantView) int {
		wanted, decided := variant.Replicas, false
		if view.Now%p.reaction == 0 {
			reports := p.watch(view.Now, m, variant)
			if p.mode != plannerThroughput {
				wanted, decided = p.react(m, variant, reports)
			}
		}
		if view.Now%p.interval == 0 && p.mode != plannerLoad {
			enough, known := p.plan(view.Now, m, model)
			switch {
			case known && p.mode == plannerBoth:
				p.models[m].floor = enough
			case known && !decided:
				wanted, decided = enough, true
			}
		}
		if !decided {
			wanted = variant.Replicas
		}
		return max(p.Least[m], min(wanted, p.Most[m]))
	})
}

// plan is throughput mode: how many engines serve the requests that are forecast.
func (p *planner) plan(now time.Duration, m int, model *replay.ModelView) (int, bool) {
	k := &p.models[m]
	rate, known := model.Arrivals(now, p.interval)
	if !known {
		return 0, false
	}
	rate *= p.Share(m, model, now, p.interval)
	// A window without requests has no lengths: the last ones stay.
	if input, output, some := model.MeanLengths(now, p.interval); some {
		k.lastInput, k.lastOutput = input, output
	}
	k.requests.add(rate * p.interval.Seconds())
	if k.lastInput > 0 {
		k.input.add(k.lastInput)
		k.output.add(k.lastOutput)
	}
	each := k.engine.rate(k.input.next(), k.output.next(), k.bounds, p.ttft[m], p.itl[m])
	if each <= 0 {
		return 0, false
	}
	return int(math.Ceil(k.requests.next() / p.interval.Seconds() / each)), true
}

// engineReport is what one engine has now.
type engineReport struct {
	// queued are the prompt tokens that wait, and cached the tokens in the KV cache.
	queued, cached float64
}

// watch takes what the engines of a variant did since the last look into the model, and
// says what each has now.
func (p *planner) watch(now time.Duration, m int, variant *replay.VariantView) []engineReport {
	var out []engineReport
	e := &p.models[m].engine
	for _, pod := range variant.Pods {
		w := replay.WindowOf(pod.Scrapes, now, max(p.reaction, 2*p.scrape()))
		if pod.Stage != simulation.Serving || len(w) == 0 {
			continue
		}
		if len(w) > 1 {
			e.observe(w[0], w.Last(), &p.Scenario.Models[m].Variants[p.Choice[m]].Profile)
		}
		out = append(out, engineReport{float64(w.Last().Waiting) * e.input.mean(), float64(w.Last().KVUsed)})
	}
	return out
}

// scrape is the time between two looks at an engine.
func (p *planner) scrape() time.Duration {
	every, _ := p.Looks()
	return cmp.Or(every, p.Scenario.Collection.Scrape)
}

// observe adds the mean pass of an engine between two looks: what it decoded, and beside it
// the prompts of the requests that got their first token, each of the mean length of those
// that ended. Real engines tell how long a pass took to the microsecond; here their profile
// does. While an engine decodes nothing there is no pass.
func (e *engineModel) observe(before, after replay.Scrape, profile *serving.Profile) {
	tokens, requests := float64(after.Tokens-before.Tokens), after.Ended()-before.Ended()
	if tokens == 0 {
		return
	}
	between := (after.BetweenTokens - before.BetweenTokens).Seconds() / tokens
	running, cached := float64(before.Running+after.Running)/2, float64(before.KVUsed+after.KVUsed)/2
	passes := min(tokens/max(1, running), (after.At-before.At).Seconds()/between)
	if requests > 0 {
		e.input.add(float64(after.Input-before.Input) / requests)
	}
	if running > 0 {
		e.decoded.add(cached / running)
	}
	prefill := float64(after.FirstTokens-before.FirstTokens) * e.input.mean() / passes
	e.prefill.add(prefill)
	took := profile.Iteration(int(math.Round(running)), capacity.Tokens(cached), capacity.Tokens(prefill))
	e.add(enginePass{prefill, cached, float64(took) / 1000})
}

// Parameters implements replay.Policy.
func (p *planner) Parameters() []replay.Parameter {
	bounds := p.Bounds("minEndpoint", "maxReplicas")
	if !p.MostGiven {
		bounds[1].Value += " (instead of a budget of devices: the variant's bound, else what empty nodes hold)"
	}
	out := []replay.Parameter{{Name: "mode", Value: p.mode}, {Name: "target", Value: p.target}}
	if p.target == plannerSLA {
		out = append(out, replay.Parameter{Name: "ttftMs", Value: p.PerModel(p.ttft)}, replay.Parameter{Name: "itlMs", Value: p.PerModel(p.itl)},
			replay.Parameter{Name: "isl", Value: p.PerModel(p.profiled[0])}, replay.Parameter{Name: "osl", Value: p.PerModel(p.profiled[1])})
	}
	if p.mode != plannerLoad {
		out = append(out, replay.Parameter{Name: "predictor", Value: p.predictorText()}, replay.Parameter{Name: "throughputAdjustmentInterval", Value: p.interval.String()})
	}
	out = append(out, replay.Parameter{Name: "loadAdjustmentInterval", Value: p.reaction.String()})
	if p.mode != plannerThroughput && p.target == plannerSLA {
		out = append(out, replay.Parameter{Name: "loadScalingDownSensitivity", Value: number(100 * p.sensitivity)})
	}
	return slices.Concat(out, bounds, p.Driven.Parameters())
}

// predictorText is the predictor with its settings.
func (p *planner) predictorText() string {
	if k, ok := p.models[0].requests.(*kalmanPredictor); ok {
		return fmt.Sprintf("%s: level %v, trend %v, noise %v, from %d points on", p.predicts, k.level, k.trend, k.noise, k.least)
	}
	return p.predicts
}
