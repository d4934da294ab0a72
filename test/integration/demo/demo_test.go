package demo_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
)

// demo runs the program and returns its report and what it printed.
func demo(t *testing.T, arguments ...string) (run report.Demo, output string) {
	t.Helper()
	programs, err := localcluster.Programs()
	require.NoError(t, err)
	file, kept := filepath.Join(t.TempDir(), "report.json"), filepath.Join(t.TempDir(), "report.html")
	command := exec.Command(filepath.Join(programs, "playground"), append([]string{"demo", "--report", file, "--report-html", kept}, arguments...)...) //nolint:gosec // our own program
	var printed bytes.Buffer
	page := &reader{t: t, printed: &printed, done: make(chan struct{})}
	// One writer for both, so that nobody writes while the other does.
	command.Stdout, command.Stderr = page, page
	require.NoError(t, command.Run(), "%s", &printed)
	page.check()

	text, err := os.ReadFile(file)
	require.NoError(t, err)
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&run))
	assert.FileExists(t, kept)
	assert.Contains(t, printed.String(), kept, "where to look next")
	return run, printed.String()
}

// reader looks at the live page, as soon as its address is printed, until the demo ends.
type reader struct {
	t       *testing.T
	printed *bytes.Buffer
	url     string
	// done is closed when nobody answers any more; what was seen until then is in the
	// other fields.
	done   chan struct{}
	html   string
	states []string
}

var liveURL = regexp.MustCompile(`Watch it live: (http://127\.0\.0\.1:\d+/)\n`)

func (r *reader) Write(text []byte) (int, error) {
	n, err := r.printed.Write(text)
	if match := liveURL.FindSubmatch(r.printed.Bytes()); match != nil && r.url == "" {
		r.url = string(match[1])
		go r.look()
	}
	return n, err
}

func (r *reader) look() {
	defer close(r.done)
	for ticker := time.Tick(report.FeedInterval); ; <-ticker {
		state, ok := r.get(r.url + "state.json")
		if !ok {
			return
		}
		r.states = append(r.states, state)
		if r.html == "" {
			r.html, _ = r.get(r.url)
		}
	}
}

func (r *reader) get(url string) (text string, ok bool) {
	request, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", false
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", false
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	body, err := io.ReadAll(answer.Body)
	return string(body), err == nil && answer.StatusCode == http.StatusOK
}

// check judges what was seen: the page opened, and its states followed the run.
func (r *reader) check() {
	require.NotEmpty(r.t, r.url, r.printed)
	<-r.done
	assert.Contains(r.t, r.html, "The demo, live")
	all := strings.Join(r.states, "\n")
	for _, part := range []string{"The cluster is starting.", "traffic", `"load":[`, "llama-8b-h100"} {
		assert.Contains(r.t, all, part)
	}
}

// With a Llama Stack server in front of it, the 8B model answers every request through
// the server's vLLM provider, and nobody misses a request or an accelerator.
func TestALlamaStackServerInFrontOfAModel(t *testing.T) {
	run, output := demo(t, "--llamastack", "--duration", "10s", "--tail", "1s", "--startup", "3s")
	assert.Equal(t, run.Requests.Total, run.Requests.Completed)
	match := regexp.MustCompile(`Llama Stack server llama-stack: (\d+) requests answered by its provider vllm-8b`).FindStringSubmatch(output)
	require.NotNil(t, match, output)
	answered, err := strconv.Atoi(match[1])
	require.NoError(t, err)
	assert.Positive(t, answered)
	assert.Less(t, answered, run.Requests.Completed, "the 70B model is asked directly")
	assert.Contains(t, output, "0 wrong")
}

// A short run on real parts: the load rises and ends, replicas follow, and every pod
// lands on its variant's accelerator through our scheduler. Requests wait in the first
// replicas until these have served them, and none goes before. How well latencies are
// kept depends on the machine and is not judged here.
func TestAShortDemo(t *testing.T) {
	run, output := demo(t, "--duration", "30s", "--tail", "125s", "--startup", "3s")
	assert.Equal(t, run.Requests.Total, run.Requests.Completed)
	assert.Greater(t, run.Requests.Total, 500)
	assert.NotEmpty(t, run.Decisions)
	require.Len(t, run.Models, 2)
	require.Len(t, run.Variants, 4)
	wanted := map[string]string{}
	for _, m := range run.Models {
		most, last := 0, 0
		for _, v := range run.Variants {
			wanted[v.Name] = v.Accelerator
			if v.Model != m.Model {
				continue
			}
			require.NotEmpty(t, v.Replicas)
			for _, p := range v.Replicas {
				most = max(most, p.Desired)
			}
			last += v.Replicas[len(v.Replicas)-1].Desired
		}
		assert.Greater(t, most, 1, "%s must grow:\n%s", m.Model, output)
		assert.Less(t, last, most, "%s must come down again:\n%s", m.Model, output)
	}
	assert.NotEmpty(t, run.Placements)
	for _, p := range run.Placements {
		assert.Equal(t, wanted[p.Variant], p.Accelerator, "%+v", p)
		assert.Equal(t, "variant-scheduler", p.Scheduler, "%+v", p)
	}
}
