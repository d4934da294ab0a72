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

// trigger is a metric by which HPA and KEDA scale.
type trigger struct {
	name string
	// unit says what a target is, and example is one.
	unit, example string
	// published is the target that is commonly written; 0 where every service has its own.
	published float64
	// metric is the name of a gauge of one replica, which gauge reads; empty for flows.
	metric string
	gauge  func(Scrape) float64
	// query is what Prometheus is asked for, a sum over the model, and flow computes it
	// where it is no sum of gauges; false while too little is known.
	query string
	flow  func(model *ModelView, now, window time.Duration) (float64, bool)
}

// triggers are all that there are.
var triggers = []*trigger{
	{
		name: triggerRPS, unit: "requests per second of one replica", example: "4.5",
		query: "sum(rate(requests that arrived))", flow: arrivals,
	},
	{
		name: triggerIntok, unit: "input tokens per second of one replica", example: "5000",
		query: "sum(rate(requests that arrived)) * mean prompt tokens of those that ended", flow: inputTokens,
	},
	{
		name: triggerInflight, unit: "running and waiting requests of one replica", example: "30",
		metric: "vllm:num_requests_running + vllm:num_requests_waiting", gauge: inFlight,
		query: "sum(vllm:num_requests_running + vllm:num_requests_waiting)",
	},
	{
		name: triggerQueue, unit: "waiting requests of one replica", example: "5", published: 5,
		metric: "vllm:num_requests_waiting", gauge: func(s Scrape) float64 { return float64(s.Waiting) },
		query: "sum(vllm:num_requests_waiting)",
	},
	{
		name: triggerKV, unit: "the used share of one replica's KV cache", example: "0.8", published: 0.8,
		metric: "vllm:kv_cache_usage_perc", gauge: Scrape.KVUse,
		query: "sum(vllm:kv_cache_usage_perc)",
	},
}

func (t *trigger) form() form {
	return numberOf(0, mostTarget, t.unit+", above 0, or one number for each model with + between them").ofEach()
}

// sum is the value over all replicas of a model. Without any sample a sum of gauges is 0,
// as KEDA has it (ignoreNullValues: true); a flow is not known then.
func (t *trigger) sum(model *ModelView, now, window time.Duration) (float64, bool) {
	if t.flow != nil {
		return t.flow(model, now, window)
	}
	sum := 0.0
	for v := range model.Variants {
		for _, pod := range model.Variants[v].Pods {
			if last, ok := pod.Last(); ok {
				sum += t.gauge(last)
			}
		}
	}
	return sum, true
}

// arrivals are the requests per second that arrived within the window: those that the
// gateway sent on or holds back; without a gateway those that the replicas have ended or
// have. False before the second scrape.
func arrivals(model *ModelView, now, window time.Duration) (float64, bool) {
	first := len(model.Gateway)
	for first > 0 && model.Gateway[first-1].At > now-window {
		first--
	}
	if w := model.Gateway[first:]; len(w) > 1 {
		a, b := w[0], w[len(w)-1]
		came := float64(b.Dispatched-a.Dispatched) + float64(b.Queue-a.Queue)
		return max(0, came) / (b.At - a.At).Seconds(), true
	}
	if len(model.Gateway) > 0 {
		return 0, false
	}
	sum, some := 0.0, false
	for v := range model.Variants {
		for _, pod := range model.Variants[v].Pods {
			w := windowOf(pod.Scrapes, now, window)
			if rate := w.rate(func(s Scrape) float64 { return finished(s) + inFlight(s) }); rate.Present {
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
	rate, ok := arrivals(model, now, window)
	if !ok || rate == 0 {
		return 0, ok
	}
	input, _, some := meanLengths(model, now, window)
	return rate * input, some
}
