package modelserver

import "strings"

// Quantity is one thing that is measured.
type Quantity int

// The quantities of a model server, and those of a gateway.
const (
	// KVUse is the used share of the KV cache, 0 to 1.
	KVUse Quantity = iota
	// Waiting is the number of requests in the server's queue.
	Waiting
	// Running is the number of requests in service.
	Running
	// Completed counts the requests that ended.
	Completed
	// InService is the time in seconds from the begin of a request's service to its
	// last token.
	InService
	// Prompt is the number of prompt tokens of a request that ended.
	Prompt
	// Generation is the number of tokens that were generated for a request that ended.
	Generation
	// FirstToken is the time in seconds from a request's arrival to its first token.
	FirstToken
	// InterToken is the time in seconds between two tokens of a request.
	InterToken
	// CacheBlocks is the size of the KV cache, told in labels: so many blocks of so
	// many tokens.
	CacheBlocks
	// CacheTokens is the size of the KV cache in tokens.
	CacheTokens
	// Adapters are the LoRA adapters that requests ask for by name, told in labels.
	Adapters
	// MeanInterToken is the mean time in seconds between two tokens of a request that
	// ended. It tells which requests kept a promise.
	MeanInterToken
	// GatewayQueue is the number of requests of a model that wait in the gateway.
	GatewayQueue
	// GatewayDispatched counts the requests of a model that the gateway sent on.
	GatewayDispatched

	quantities
)

// Series says which series stand behind a metric.
type Series int

const (
	// Gauge is one series that goes up and down.
	Gauge Series = iota
	// Counter is one series that only grows, until its server starts anew.
	Counter
	// Histogram is a histogram of which the _sum and the _count are read.
	Histogram
	// Info is one series whose labels are what it says.
	Info
	// Lists are series whose labels are what they say, and whose value is when that was so last.
	Lists
)

// Metric is one quantity under all its names.
type Metric struct {
	Quantity Quantity
	Series   Series
	// Names are what servers and their versions call it, the preferred one first.
	// Where one server has several of them, the first counts and the others are the
	// same thing again.
	Names []string
	// Label and Value, unless empty, say which series count: those whose label has
	// this value.
	Label, Value string
	// whole is a label of SGLang's series that are parts of the one without it.
	whole string
}

// Selection is the label that series under a name must have with a value to count; all count
// where the label is empty. An empty value is that of series without the label.
func (m Metric) Selection(name string) (label, value string) {
	if m.whole != "" && strings.Contains(name, sglang) {
		return m.whole, ""
	}
	return m.Label, m.Value
}

// Labels of metrics.
const (
	// LabelEngine tells the engines of one server apart.
	LabelEngine = "engine"
	// LabelBlocks and LabelBlockSize are the labels of CacheBlocks.
	LabelBlocks    = "num_gpu_blocks"
	LabelBlockSize = "block_size"
	// LabelModel is the model that a client asked for, and LabelTargetModel the one
	// that the gateway made of it.
	LabelModel       = "model_name"
	LabelTargetModel = "target_model_name"
	// LabelNamespace is the namespace of the replicas.
	LabelNamespace = "namespace"
)

// RankLabels tell apart the processes of one engine, which all report the engine's
// numbers. (SGLang's dp_rank is none of them: it tells engines apart.) No other label changes what
// a series means: whatever a server splits a count by, the parts make the whole.
func RankLabels() []string { return []string{"tp_rank", "pp_rank", "moe_ep_rank"} }

// ray is what Ray puts before a name, and sglang what is in all names of SGLang.
const (
	ray    = "ray_"
	sglang = "sglang"
)

// spellings are a name as its server writes it, and as those write it who hand it on: many take
// no colon (SGLang's router, llm-d's dashboards, OpenTelemetry), and Ray puts a word of its own
// before that.
func spellings(name string) []string {
	plain := strings.ReplaceAll(name, ":", "_")
	if plain == name {
		return []string{name}
	}
	return []string{name, plain, ray + plain}
}

// table has the quantities in their order. Of vLLM's names, those of version 1 of
// its engine come first. The Python client appends _total to the name of a counter;
// other writers of the same metrics do not. SGLang has no histogram of the time in
// service. With --enable-priority-scheduling it shows its requests once as a whole and once
// more by priority. The gateway's names are those of llm-d's endpoint picker and the older ones
// of the Gateway API Inference Extension; some versions write both.
var table = [quantities]Metric{
	KVUse:             {Series: Gauge, Names: []string{"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage"}},
	Waiting:           {Series: Gauge, Names: []string{"vllm:num_requests_waiting", "sglang:num_queue_reqs"}, whole: "priority"},
	Running:           {Series: Gauge, Names: []string{"vllm:num_requests_running", "sglang:num_running_reqs"}, whole: "priority"},
	Completed:         {Series: Counter, Names: []string{"vllm:request_success_total", "vllm:request_success", "sglang:num_requests_total", "sglang:num_requests"}},
	InService:         {Series: Histogram, Names: []string{"vllm:request_inference_time_seconds"}},
	Prompt:            {Series: Histogram, Names: []string{"vllm:request_prompt_tokens", "sglang:prompt_tokens_histogram"}},
	Generation:        {Series: Histogram, Names: []string{"vllm:request_generation_tokens", "sglang:generation_tokens_histogram"}},
	FirstToken:        {Series: Histogram, Names: []string{"vllm:time_to_first_token_seconds", "sglang:time_to_first_token_seconds"}},
	InterToken:        {Series: Histogram, Names: []string{"vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds", "sglang:inter_token_latency_seconds"}},
	CacheBlocks:       {Series: Info, Names: []string{"vllm:cache_config_info"}},
	CacheTokens:       {Series: Gauge, Names: []string{"sglang:max_total_num_tokens"}},
	Adapters:          {Series: Lists, Names: []string{"vllm:lora_requests_info"}},
	MeanInterToken:    {Series: Histogram, Names: []string{"vllm:request_time_per_output_token_seconds"}},
	GatewayQueue:      {Series: Gauge, Names: []string{"llm_d_epp_flow_control_queue_size", "inference_extension_flow_control_queue_size"}},
	GatewayDispatched: {Series: Counter, Names: []string{"llm_d_epp_scheduler_attempts_total", "inference_extension_scheduler_attempts_total", "llm_d_epp_scheduler_attempts", "inference_extension_scheduler_attempts"}, Label: "status", Value: "success"},
}

// Of is the row of a quantity.
func Of(q Quantity) Metric {
	m := table[q]
	m.Quantity = q
	m.Names = nil
	for _, name := range table[q].Names {
		m.Names = append(m.Names, spellings(name)...)
	}
	return m
}

// OfServer are the rows of a model server on which decisions rest.
func OfServer() []Metric { return rows(KVUse, Adapters) }

// OfGateway are the rows of a gateway.
func OfGateway() []Metric { return rows(GatewayQueue, GatewayDispatched) }

func rows(first, last Quantity) []Metric {
	var all []Metric
	for q := first; q <= last; q++ {
		all = append(all, Of(q))
	}
	return all
}
