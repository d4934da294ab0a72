package prometheus

import (
	"fmt"
	"time"
)

// What a query is about. The strings appear in errors.
const (
	kvUse            = "KV cache use"
	waiting          = "waiting requests"
	running          = "running requests"
	served           = "completed requests"
	growth           = "growth of requests in flight"
	inService        = "time in service"
	inputTokens      = "input tokens"
	outputTokens     = "output tokens"
	scraped          = "time of the last scrape"
	gatewayQueue     = "gateway queue"
	gatewayGrowth    = "growth of the gateway queue"
	gatewayDispatch  = "requests dispatched by the gateway"
	gatewayScraped   = "time of the gateway's last scrape"
	perPod           = "namespace, pod, pod_name"
	perModel         = "namespace, target_model_name, model_name"
	metricQueue      = "inference_extension_flow_control_queue_size"
	metricDispatched = `inference_extension_scheduler_attempts_total{status="success"}`
	metricRunning    = "vllm:num_requests_running"
	metricWaiting    = "vllm:num_requests_waiting"
	metricKV         = "vllm:kv_cache_usage_perc"
	metricKVOlder    = "vllm:gpu_cache_usage_perc"
)

type query struct {
	about  string
	promQL string
}

// queries are all queries of one reading.
func queries(window, lookback time.Duration) []query {
	q := builder{window: promDuration(window), lookback: promDuration(lookback)}
	return []query{
		// A replica with several engines is as full as its fullest one: that engine
		// queues first.
		{kvUse, fmt.Sprintf("max by (%[1]s) (%[2]s) or max by (%[1]s) (%[3]s)", perPod, q.mean(metricKV), q.mean(metricKVOlder))},
		{waiting, q.sum(perPod, q.mean(metricWaiting))},
		{running, q.sum(perPod, q.mean(metricRunning))},
		{served, q.sum(perPod, q.rate("vllm:request_success_total"))},
		// A derivative is linear, so the two gauges need no common subquery.
		{growth, q.sum(perPod, q.slope(metricRunning)) + " + " + q.sum(perPod, q.slope(metricWaiting))},
		{inService, q.ratio("vllm:request_inference_time_seconds")},
		{inputTokens, q.ratio("vllm:request_prompt_tokens")},
		{outputTokens, q.ratio("vllm:request_generation_tokens")},
		{scraped, q.scraped()},
		{gatewayQueue, q.sum(perModel, once(metricQueue))},
		{gatewayGrowth, q.sum(perModel, q.slope(metricQueue))},
		{gatewayDispatch, q.sum(perModel, q.rate(metricDispatched))},
		{gatewayScraped, fmt.Sprintf("max by (%[1]s) (timestamp(%[2]s)) or max by (%[1]s) (timestamp(%[3]s))", perModel, metricQueue, metricDispatched)},
	}
}

type builder struct {
	window, lookback string
}

// once makes one series of those that differ only in how they were scraped: a pod
// that two jobs scrape must not count twice. Two ports of a pod differ in their
// instance and stay apart.
func once(vector string) string {
	return "max without (job, service, endpoint, container, prometheus, prometheus_replica) (" + vector + ")"
}

func (builder) sum(by, vector string) string { return fmt.Sprintf("sum by (%s) (%s)", by, vector) }

// mean is a gauge's mean over the window, or its last value before that. A pod that
// is younger than the window has the mean of its life.
func (q builder) mean(gauge string) string {
	return once(fmt.Sprintf("avg_over_time(%[1]s[%[2]s]) or last_over_time(%[1]s[%[3]s])", gauge, q.window, q.lookback))
}

// rate needs two scrapes in the window and is absent until then.
func (q builder) rate(counter string) string {
	return once(fmt.Sprintf("rate(%s[%s])", counter, q.window))
}

func (q builder) slope(gauge string) string {
	return once(fmt.Sprintf("deriv(%s[%s])", gauge, q.window))
}

// ratio is the mean of a histogram's observations. Without an observation in the
// window it is 0/0, which is NaN and so absent.
func (q builder) ratio(histogram string) string {
	return q.sum(perPod, q.rate(histogram+"_sum")) + " / " + q.sum(perPod, q.rate(histogram+"_count"))
}

// scraped is the time of the newest sample. One failed scrape makes a series stale
// at once, although the window still holds its samples; only a subquery finds the
// time of the last good scrape then.
func (q builder) scraped() string {
	return fmt.Sprintf("max by (%[1]s) (timestamp(%[2]s)) or max by (%[1]s) (timestamp(%[3]s)) or max by (%[1]s) (timestamp(%[4]s))"+
		" or max by (%[1]s) (max_over_time(timestamp(%[2]s)[%[5]s:15s]))", perPod, metricRunning, metricKV, metricKVOlder, q.lookback)
}

func promDuration(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }
