package past

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
)

// Variant is a variant of the model that has no profile.
type Variant struct {
	Name  string
	Shape capacity.Shape
	// Owns says whether a pod is one of its replicas.
	Owns func(pod string) bool
	// Arguments are those of its servers, as far as they are known.
	Arguments serving.Arguments
}

// Found is a profile and where it is from.
type Found struct {
	Profile serving.Profile
	// Source says it for people.
	Source string
}

// fitEvery is how often a profile is made of what was learned until then.
const fitEvery = time.Hour

// Profiles are those of the variants: what their own servers showed, else what those of
// another variant showed, scaled to its devices, else what follows from the published figures
// of the model and of the devices. A variant of which nothing is known has none.
func (p *Past) Profiles(variants []Variant) map[string]Found {
	found := map[string]Found{}
	learned := make([]serving.Estimate, len(variants))
	var lenders []serving.Lender
	for i := range variants {
		v := &variants[i]
		e, seen := p.learn(v)
		if learned[i] = e; !e.Usable() {
			continue
		}
		lenders = append(lenders, serving.Lender{Name: v.Name, Shape: v.Shape, Profile: e.Profile, Confidence: e.Confidence})
		found[v.Name] = p.limited(v, e.Profile, fmt.Sprintf("learned from the metrics of its replicas, as the manager learns it (%s)", describe(e, seen)))
	}
	for i := range variants {
		v := &variants[i]
		if _, has := found[v.Name]; has {
			continue
		}
		model := serving.FiguresOf(p.Model, v.Arguments)
		if loan, ok := serving.Borrow(v.Shape, lenders); ok && loan.Usable() {
			found[v.Name] = p.limited(v, loan.Profile, loan.Reason)
		} else if profile, ok := serving.Reckoned(model, v.Shape); ok {
			found[v.Name] = p.limited(v, profile, fmt.Sprintf("estimated from the published figures of %s and %s; nothing of it was measured", p.Model, v.Shape))
		} else if e := learned[i]; e.Profile.Known() {
			found[v.Name] = p.limited(v, e.Profile, fmt.Sprintf("learned from the metrics of its replicas, which showed too little to rely on it (%s)", describe(e, -1)))
		}
	}
	return found
}

func describe(e serving.Estimate, seen int) string {
	text := fmt.Sprintf("confidence %.2f, median error %.0f %%, up to %.0f requests in service", e.Confidence, 100*e.Error, e.Reach)
	if seen >= 0 {
		text = fmt.Sprintf("%d readings, %s", seen, text)
	}
	return text
}

// learn is what the manager would have learned of the variant in that time: the last
// estimate that can be used, else the last one.
func (p *Past) learn(v *Variant) (best serving.Estimate, seen int) {
	var learned serving.Learned
	var fitted time.Time
	fit := func(at time.Time) {
		fitted = at
		if e := learned.Estimate(serving.Profile{}); e.Usable() || !best.Usable() {
			best = e
		}
	}
	begin := map[int]int{}
	for i := range p.steps() {
		at := p.began().Add(time.Duration(i+1) * p.Step)
		for k := range p.history.Pods {
			pod := &p.history.Pods[k]
			if !v.Owns(pod.Pod.Name) {
				continue
			}
			s := &pod.Steps[i]
			if _, known := begin[k]; !known && s.Seen {
				begin[k] = i
			}
			o, ok := observation(s, at, p.Step)
			if !ok {
				continue
			}
			// One that came within the window is warming up. Those that were there before
			// anybody looked are not.
			o.Starting = begin[k] == i && i > 0
			learned = learned.Observe(o)
			seen++
		}
		if len(learned.Seen) > 0 && at.Sub(fitted) >= fitEvery {
			fit(at)
		}
	}
	if seen > 0 {
		fit(p.Now)
	}
	return best, seen
}

// began is the beginning of the first step of the pods.
func (p *Past) began() time.Time {
	return p.Now.Truncate(p.Step).Add(-time.Duration(p.steps()) * p.Step)
}

// observation is what one pod showed in one step, if it showed all that is needed.
func observation(s *PodStep, at time.Time, step time.Duration) (serving.Observation, bool) {
	itl, ttft := s.InterToken.Value(), s.FirstToken.Value()
	shape := capacity.TokenShape{Input: capacity.Tokens(s.Input.Value()), Output: capacity.Tokens(s.Output.Value())}
	for _, x := range []float64{itl, s.Running, s.Waiting, float64(shape.Input), float64(shape.Output)} {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return serving.Observation{}, false
		}
	}
	o := serving.Observation{Time: at, Waiting: s.Waiting, Point: serving.Point{
		Shape: shape, Rate: capacity.Rate(s.Completed / step.Seconds()), Batch: s.Running, ITL: capacity.Milliseconds(1000 * itl),
	}}
	if ttft > 0 && !math.IsInf(ttft, 1) {
		o.Point.TTFT = capacity.Milliseconds(1000 * ttft)
	}
	return o, s.Seen && s.Completed > 0
}

// limited gives a profile the limits of the variant's servers: those that they tell, else
// what follows from their arguments and the memory of their devices, else the usual ones.
func (p *Past) limited(v *Variant, profile serving.Profile, source string) Found {
	profile.BatchLimit = v.Arguments.Engines() * cmp.Or(v.Arguments.MaxSequences, modelserver.VLLM.BatchLimit(v.Shape.Device()))
	var told []float64
	for k := range p.history.Pods {
		if pod := &p.history.Pods[k]; pod.KVTokens > 0 && v.Owns(pod.Pod.Name) {
			told = append(told, pod.KVTokens)
		}
	}
	cache := serving.CacheConfig{}
	if len(told) > 0 {
		cache.Tokens = capacity.Tokens(slices.Min(told))
	}
	arguments := v.Arguments
	arguments.TensorParallel = cmp.Or(arguments.TensorParallel, v.Shape.Devices)
	memory := serving.MemoryOf(serving.FiguresOf(p.Model, arguments), arguments, serving.DeviceGiB(v.Shape.Device()), v.Shape.Devices*max(1, v.Shape.Pods))
	tokens, from := serving.KVCapacity(cache, arguments, memory)
	profile.KVTokens = tokens
	if from == serving.CacheUnknown {
		source += "; the size of its KV cache is not known, and none is taken"
	} else {
		source += fmt.Sprintf("; KV cache of %.0f tokens (%s)", float64(tokens), from)
	}
	return Found{Profile: profile, Source: source}
}
