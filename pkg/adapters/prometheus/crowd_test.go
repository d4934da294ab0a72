package prometheus

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/test/integration/prometheustest"
)

// Wherever an answer is cut into pieces, and whatever its labels say, each series counts for its namespace.
func TestWhatIsReadCountsForItsNamespace(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 6))
	tricky := []string{"", "a", `","namespace":"victim`, `}},{"metric":{"namespace":"victim"`, `{"metric":{`, strings.Repeat("long", 300), "\\", `\"namespace":"`}
	label := func() model.LabelValue { return model.LabelValue(tricky[random.IntN(len(tricky))]) }
	for range 300 {
		var answer model.Vector
		want := map[string]int64{}
		for range random.IntN(8) {
			namespace := model.LabelValue([]string{"a", "b", "team-c"}[random.IntN(3)])
			s := &model.Sample{Metric: model.Metric{"model_name": label(), "namespace": namespace, "pod": label()}, Value: 1}
			if random.IntN(4) == 0 {
				delete(s.Metric, "namespace")
			}
			answer = append(answer, s)
		}
		text, err := json.Marshal(map[string]any{"status": "success", "data": map[string]any{"result": answer}})
		require.NoError(t, err)
		// The slow reference: what stands between the beginnings of two series.
		pieces := strings.Split(string(text), `"metric":{`)
		for i, s := range answer {
			if name, ok := s.Metric["namespace"]; ok {
				want[string(name)] += int64(len(`"metric":{`) + len(pieces[i+1]))
			}
		}
		got, r := map[string]int64{}, rows{}
		for rest := text; len(rest) > 0; {
			n := min(len(rest), 1+random.IntN(40))
			r.count(rest[:n], got)
			rest = rest[n:]
		}
		r.count([]byte(strings.Repeat(" ", len(beginOfName))), got)
		for name, size := range want {
			assert.InDelta(t, size, got[name], float64(len(beginOfName)+1), "%s of %s", name, text)
		}
		assert.ElementsMatch(t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(got)), "%s", text)
	}
}

// A namespace that shows very much costs the others one reading, and then none until it is asked again.
func TestANamespaceThatShowsTooMuchIsLeftOut(t *testing.T) {
	for name, shows := range map[string]func(i int) string{
		"models of a gateway": func(i int) string {
			return fmt.Sprintf(`inference_extension_flow_control_queue_size{model_name="m%d",namespace="crowd",pod="epp",instance="10.0.0.2:9090",job="epp"}`, i)
		},
		"sizes of a cache": func(i int) string {
			return fmt.Sprintf(`vllm:cache_config_info{num_gpu_blocks="%d",block_size="16",engine="0",namespace="crowd",pod="fake",instance="10.0.0.2:9090",job="vllm"}`, i)
		},
		"few that are long": func(i int) string {
			return fmt.Sprintf(`inference_extension_flow_control_queue_size{model_name="m%d%s",namespace="crowd",pod="epp",instance="10.0.0.2:9090",job="epp"}`, i%100, strings.Repeat("x", 6000))
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := prometheustest.New(t)
			web := httptest.NewServer(server.Handler)
			t.Cleanup(web.Close)
			small := limits{answer: 256 << 10, reading: 512 << 10}
			client := newClient(limitedAPI(t, web.URL, small), web.URL, time.Minute, small)
			scrape := func(at time.Time, many int) {
				values := load(engine("a", "0"), at.Sub(start))
				values[`inference_extension_flow_control_queue_size{model_name="llama",namespace="models",pod="epp",instance="10.0.0.1:9090",job="epp"}`] = 3
				for i := range many {
					values[shows(i)] = 1
				}
				server.Append(at, values)
			}
			at := start
			next := func(many int) (decision.Replica, decision.Model, error) {
				for range 6 {
					at = at.Add(scrapeInterval)
					scrape(at, many)
				}
				replicas, models, err := client.Read(t.Context(), at, window, lookback)
				return replicas[pod("a")], models[decision.ModelKey{Namespace: "models", ID: "llama"}], err
			}
			seen := func(r decision.Replica, m decision.Model) bool {
				return r.Served.Present && r.KVTokens.Present && m.Queue.Value == 3
			}
			r, m, err := next(0)
			require.NoError(t, err)
			require.True(t, seen(r, m), "%+v %+v", r, m)
			_, _, err = next(4000)
			require.ErrorAs(t, err, &sizeError{}, "the reading is too large")
			for range 3 {
				r, m, err = next(4000)
				assert.Equal(t, LeftOutError{client.address, []string{"crowd"}}.Error(), err.Error())
				assert.True(t, seen(r, m), "others are read as ever: %+v %+v", r, m)
			}
			queues, err := client.Queues(t.Context(), at)
			require.NoError(t, err)
			assert.Len(t, queues, 1)

			at = at.Add(leftOutFor)
			r, m, err = next(1)
			require.NoError(t, err, "it is asked again, and shows less")
			assert.True(t, seen(r, m))
		})
	}
}

func TestWhoIsLeftOut(t *testing.T) {
	c := &crowds{}
	require.NoError(t, c.tell("x"))
	for i := range 4 {
		c.leaveOut(fmt.Sprint("n", i), start)
		c.leaveOut("n0", start.Add(time.Hour))
	}
	c.leaveOut("", start)
	c.leaveOut(strings.Repeat("n", 63), start)
	assert.Equal(t, []string{"n0", "n1", "n2", "n3"}, c.names(), "not what has no name, nor any number")
	failed := LeftOutError{}
	require.ErrorAs(t, c.tell("x"), &failed)
	require.NoError(t, failed.OfNamespace("other"))
	assert.NotContains(t, failed.OfNamespace("n1").Error(), "n2", "nobody is told of others")

	c.readmit(start.Add(leftOutFor - time.Second))
	assert.Len(t, c.names(), 4)
	c.readmit(start.Add(leftOutFor))
	assert.Empty(t, c.names())
	c.leaveOut("n0", start)
	c.readmit(start.Add(-time.Hour))
	assert.Empty(t, c.names(), "a clock was set back")
}
