package manager

import (
	"bufio"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// podsPerPage is how many pods a page shows; Prometheus scrapes the pages one by one.
const podsPerPage = 1000

// state is what a replica of any variant does.
type state struct {
	// rate is in requests per second; running and waiting are requests.
	rate, running, waiting float64
	// kvUse is a share.
	kvUse float64
}

// Half of a replica is used at first, and then all of it.
var (
	easy  = state{rate: 2, running: 20, waiting: 0, kvUse: 0.45}
	heavy = state{rate: 4, running: 60, waiting: 12, kvUse: 0.95}
)

// exporter shows the series of every pod, as vLLM names them and as Prometheus labels
// them in a cluster.
type exporter struct {
	options
	mutex sync.Mutex
	now   state
	// completed is how many requests each replica had completed when the state began.
	completed float64
	since     time.Time
}

func newExporter(o options) *exporter {
	return &exporter{options: o, now: easy, since: time.Now()}
}

// become changes what all replicas do.
func (e *exporter) become(next state) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	now := time.Now()
	e.completed += e.now.rate * now.Sub(e.since).Seconds()
	e.now, e.since = next, now
}

// pages is how many pages there are, under /page/0 and so on.
func (e *exporter) pages() int { return (e.variants*e.replicas + podsPerPage - 1) / podsPerPage }

// ServeHTTP implements http.Handler.
func (e *exporter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	page, err := strconv.Atoi(r.URL.Path[len("/page/"):])
	if err != nil || page < 0 || page >= e.pages() {
		http.NotFound(w, r)
		return
	}
	e.mutex.Lock()
	s := e.now
	completed := e.completed + s.rate*time.Since(e.since).Seconds()
	e.mutex.Unlock()
	const input, output, firstToken, perToken = 1000, 200, 0.2, 0.03
	series := []struct {
		name  string
		more  string
		value float64
	}{
		{"vllm:num_requests_running", "", s.running},
		{"vllm:num_requests_waiting", "", s.waiting},
		{"vllm:kv_cache_usage_perc", "", s.kvUse},
		{"vllm:request_success_total", `,finished_reason="stop"`, completed},
		{"vllm:request_prompt_tokens_sum", "", input * completed},
		{"vllm:request_prompt_tokens_count", "", completed},
		{"vllm:request_generation_tokens_sum", "", output * completed},
		{"vllm:request_generation_tokens_count", "", completed},
		{"vllm:time_to_first_token_seconds_sum", "", firstToken * completed},
		{"vllm:time_to_first_token_seconds_count", "", completed},
		{"vllm:inter_token_latency_seconds_sum", "", perToken * output * completed},
		{"vllm:inter_token_latency_seconds_count", "", output * completed},
		{"vllm:request_inference_time_seconds_sum", "", (firstToken + perToken*output) * completed},
		{"vllm:request_inference_time_seconds_count", "", completed},
		{"vllm:cache_config_info", `,block_size="16",num_gpu_blocks="28000"`, 1},
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	out := bufio.NewWriterSize(w, 1<<16)
	for i := page * podsPerPage; i < min((page+1)*podsPerPage, e.variants*e.replicas); i++ {
		v := variant(i / e.replicas)
		labels := fmt.Sprintf(`{namespace=%q,pod=%q,model_name=%q`, e.namespace(v), v.pod(i%e.replicas), v.model())
		for _, one := range series {
			_, _ = fmt.Fprintf(out, "%s%s%s} %g\n", one.name, labels, one.more, one.value)
		}
	}
	_ = out.Flush()
}
