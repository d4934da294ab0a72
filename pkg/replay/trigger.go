package replay

import (
	"time"
)

// The names of triggers.
const (
	triggerRPS      = "rps"
	triggerIntok    = "intok"
	triggerInflight = "inflight"
	triggerKV       = "kv"
	triggerQueue    = "queue"
)

// Trigger is a metric by which a policy scales.
type Trigger struct {
	Name string
	// Unit says what a target is, and Example is one.
	Unit, Example string
	// Published is the target that is commonly written; 0 where every service has its own.
	Published float64
	// Metric is the name of a gauge of one replica, which Gauge reads; empty for flows.
	Metric string
	Gauge  func(Scrape) float64
	// Query is what Prometheus is asked for, a sum over the model, and Flow computes it
	// where it is no sum of gauges; false while too little is known.
	Query string
	Flow  func(model *ModelView, now, window time.Duration) (float64, bool)
}

// triggers are all that there are.
var triggers = []*Trigger{
	{
		Name: triggerRPS, Unit: "requests per second of one replica", Example: "4.5",
		Query: "sum(rate(requests that arrived))", Flow: (*ModelView).Arrivals,
	},
	{
		Name: triggerIntok, Unit: "input tokens per second of one replica", Example: "5000",
		Query: "sum(rate(requests that arrived)) * mean prompt tokens of those that ended", Flow: inputTokens,
	},
	{
		Name: triggerInflight, Unit: "running and waiting requests of one replica", Example: "30",
		Metric: "vllm:num_requests_running + vllm:num_requests_waiting", Gauge: Scrape.InFlight,
		Query: "sum(vllm:num_requests_running + vllm:num_requests_waiting)",
	},
	{
		Name: triggerQueue, Unit: "waiting requests of one replica", Example: "5", Published: 5,
		Metric: "vllm:num_requests_waiting", Gauge: func(s Scrape) float64 { return float64(s.Waiting) },
		Query: "sum(vllm:num_requests_waiting)",
	},
	{
		Name: triggerKV, Unit: "the used share of one replica's KV cache", Example: "0.8", Published: 0.8,
		Metric: "vllm:kv_cache_usage_perc", Gauge: Scrape.KVUse,
		Query: "sum(vllm:kv_cache_usage_perc)",
	},
}

func (t *Trigger) form() Form {
	return NumberOf(0, mostTarget, t.Unit+", above 0, or one number for each model with + between them").OfEach()
}

// sum is the value over all replicas of a model. Without any sample a sum of gauges is 0,
// as KEDA has it (ignoreNullValues: true); a flow is not known then.
func (t *Trigger) sum(model *ModelView, now, window time.Duration) (float64, bool) {
	if t.Flow != nil {
		return t.Flow(model, now, window)
	}
	sum := 0.0
	for v := range model.Variants {
		for _, pod := range model.Variants[v].Pods {
			if last, ok := pod.Last(); ok {
				sum += t.Gauge(last)
			}
		}
	}
	return sum, true
}

// Arrivals are the requests per second that arrived within the window: those that the
// gateway sent on or holds back; without a gateway those that the replicas have ended or
// have. False before the second scrape.
func (m *ModelView) Arrivals(now, window time.Duration) (float64, bool) {
	if w := gatewayWindow(m.Gateway, now, window); len(w) > 1 {
		a, b := w[0], w[len(w)-1]
		came := float64(b.Dispatched-a.Dispatched) + float64(b.Queue-a.Queue)
		return max(0, came) / (b.At - a.At).Seconds(), true
	}
	if len(m.Gateway) > 0 {
		return 0, false
	}
	sum, some := 0.0, false
	for v := range m.Variants {
		for _, pod := range m.Variants[v].Pods {
			w := WindowOf(pod.Scrapes, now, window)
			if rate := w.Rate(func(s Scrape) float64 { return s.Ended() + s.InFlight() }); rate.Present {
				sum, some = sum+max(0, rate.Value), true
			}
		}
	}
	return sum, some
}

// inputTokens are the prompt tokens per second that arrived: the requests per second times
// the mean length of the prompts of those that ended within the window. A gateway counts
// requests when they come and engines prompts when they are done with them, so that the
// product is both early and robust.
func inputTokens(model *ModelView, now, window time.Duration) (float64, bool) {
	rate, ok := model.Arrivals(now, window)
	if !ok || rate == 0 {
		return 0, ok
	}
	input, _, some := model.MeanLengths(now, window)
	return rate * input, some
}

// MeanLengths are the mean input and output tokens of the requests that ended within a
// window; false without any.
func (m *ModelView) MeanLengths(now, length time.Duration) (input, output float64, some bool) {
	requests := 0.0
	for v := range m.Variants {
		for _, pod := range m.Variants[v].Pods {
			if w := WindowOf(pod.Scrapes, now, length); len(w) > 1 {
				input += float64(w.Last().Input - w[0].Input)
				output += float64(w.Last().Output - w[0].Output)
				requests += w.Last().Ended() - w[0].Ended()
			}
		}
	}
	if requests == 0 {
		return 0, 0, false
	}
	return input / requests, output / requests, true
}
