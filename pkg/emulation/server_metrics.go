package emulation

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// blockSize is the number of tokens in a block of the KV cache, vLLM's default.
// The engine counts tokens; blocks only appear in the metrics.
const blockSize = 16

// Bucket bounds of vLLM's histograms: of tokens, of the times of whole requests,
// of the time to the first token and of the time between tokens, in seconds.
var (
	tokenBounds = []float64{
		1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000,
	}
	requestBounds = []float64{
		0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680,
	}
	firstTokenBounds = []float64{
		0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
	}
	interTokenBounds = []float64{
		0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80,
	}
)

// observations are what the histograms of one server have seen. They are guarded
// by the server's lock.
type observations struct {
	prompt, generation     *histogram
	firstToken, interToken *histogram
	// meanInterToken is of requests that ended; 0 for one of a single token.
	meanInterToken                *histogram
	endToEnd, queueing, inService *histogram
	finished, aborted             uint64
}

func newObservations() observations {
	return observations{
		prompt: newHistogram(tokenBounds), generation: newHistogram(tokenBounds),
		firstToken: newHistogram(firstTokenBounds), interToken: newHistogram(interTokenBounds), meanInterToken: newHistogram(interTokenBounds),
		endToEnd: newHistogram(requestBounds), queueing: newHistogram(requestBounds), inService: newHistogram(requestBounds),
	}
}

func (o *observations) iteration(i simulation.Iteration) {
	o.interToken.observe((i.End - i.Start).Seconds(), i.Decoding)
}

func (o *observations) event(e simulation.Event) {
	switch e.Kind {
	case simulation.FirstToken:
		o.firstToken.observe((e.At - e.Times.Arrived).Seconds(), 1)
	case simulation.Resumed:
		o.interToken.observe(e.Gap.Seconds(), 1)
	case simulation.Finished:
		o.finished++
		o.prompt.observe(float64(e.Request.Input), 1)
		o.generation.observe(float64(e.Request.Output), 1)
		o.endToEnd.observe((e.At - e.Times.Arrived).Seconds(), 1)
		o.queueing.observe((e.Times.Started - e.Times.Arrived).Seconds(), 1)
		o.inService.observe((e.At - e.Times.Started).Seconds(), 1)
		o.meanInterToken.observe((e.At-e.Times.FirstToken).Seconds()/float64(max(1, e.Request.Output-1)), 1)
	}
}

// The labels of every series but cache_config_info.
var serverLabels = []string{"model_name", "engine"}

func describeServer(name, help string, more ...string) *prometheus.Desc {
	return prometheus.NewDesc("vllm:"+name, help, append(serverLabels[:len(serverLabels):len(serverLabels)], more...), nil)
}

var (
	descRunning     = describeServer("num_requests_running", "Requests in the batch.")
	descWaiting     = describeServer("num_requests_waiting", "Requests in the queue.")
	descKVUse       = describeServer("kv_cache_usage_perc", "Used share of the KV cache; 1 is all of it.")
	descPreemptions = describeServer("num_preemptions_total", "Requests that lost their place in the KV cache.")
	descQueries     = describeServer("prefix_cache_queries_total", "Tokens looked up in the prefix cache, which is off.")
	descHits        = describeServer("prefix_cache_hits_total", "Tokens found in the prefix cache, which is off.")
	descPrompted    = describeServer("prompt_tokens_total", "Prompt tokens processed.")
	descGenerated   = describeServer("generation_tokens_total", "Tokens generated.")
	descSuccess     = describeServer("request_success_total", "Requests that ended, by reason.", "finished_reason")
	descPrompt      = describeServer("request_prompt_tokens", "Prompt tokens per finished request.")
	descGeneration  = describeServer("request_generation_tokens", "Generated tokens per finished request.")
	descFirstToken  = describeServer("time_to_first_token_seconds", "Time from arrival to the first token.")
	descInterToken  = describeServer("inter_token_latency_seconds", "Time between two tokens of a request.")
	descPerToken    = describeServer("time_per_output_token_seconds", "The same as inter_token_latency_seconds, under its earlier name.")
	descMeanToken   = describeServer("request_time_per_output_token_seconds", "Mean time between two tokens per finished request.")
	descEndToEnd    = describeServer("e2e_request_latency_seconds", "Time from arrival to the last token.")
	descQueueing    = describeServer("request_queue_time_seconds", "Time from arrival to the begin of service.")
	descInService   = describeServer("request_inference_time_seconds", "Time from the begin of service to the last token.")
	// Like the real one, it does not name the model.
	descCache = prometheus.NewDesc("vllm:cache_config_info", "Size of the KV cache.",
		[]string{"block_size", "cache_dtype", "enable_prefix_caching", "num_gpu_blocks", "engine"}, nil)
)

// serverCollector reads the metrics of a server when they are scraped, all of
// them at one instant.
type serverCollector struct{ server *Server }

// Describe implements prometheus.Collector.
func (c serverCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descRunning, descWaiting, descKVUse, descPreemptions, descQueries, descHits, descPrompted, descGenerated, descSuccess,
		descPrompt, descGeneration, descFirstToken, descInterToken, descPerToken, descMeanToken, descEndToEnd, descQueueing, descInService, descCache,
	} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (c serverCollector) Collect(metrics chan<- prometheus.Metric) {
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	s.follow()
	state, o, labels := s.engine.State(), &s.observed, []string{s.options.Model, "0"}
	value := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, more ...string) {
		metrics <- prometheus.MustNewConstMetric(d, kind, v, append(labels[:len(labels):len(labels)], more...)...)
	}
	value(descRunning, prometheus.GaugeValue, float64(state.Running))
	value(descWaiting, prometheus.GaugeValue, float64(state.Waiting))
	if state.KVCapacity > 0 {
		value(descKVUse, prometheus.GaugeValue, float64(state.KVUsed)/float64(state.KVCapacity))
		//nolint:promlinter // vLLM's own name
		metrics <- prometheus.MustNewConstMetric(descCache, prometheus.GaugeValue, 1,
			strconv.Itoa(blockSize), "auto", "False", strconv.Itoa(state.KVCapacity/blockSize), "0")
	}
	value(descPreemptions, prometheus.CounterValue, float64(state.Preemptions))
	value(descQueries, prometheus.CounterValue, 0)
	value(descHits, prometheus.CounterValue, 0)
	value(descPrompted, prometheus.CounterValue, float64(state.Prompted))
	value(descGenerated, prometheus.CounterValue, float64(state.Generated))
	value(descSuccess, prometheus.CounterValue, float64(o.finished), "length")
	value(descSuccess, prometheus.CounterValue, float64(o.aborted), "abort")
	value(descSuccess, prometheus.CounterValue, 0, "stop")
	for d, h := range map[*prometheus.Desc]*histogram{
		descPrompt: o.prompt, descGeneration: o.generation, descFirstToken: o.firstToken, descInterToken: o.interToken, descPerToken: o.interToken,
		descMeanToken: o.meanInterToken, descEndToEnd: o.endToEnd, descQueueing: o.queueing, descInService: o.inService,
	} {
		metrics <- h.metric(d, labels)
	}
}
