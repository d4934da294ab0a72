package prometheus

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
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

// slow is a server behind a network that carries so many bytes of an answer in time. It ends the time of the
// reading when somebody waits for more, or the connection if that is its way.
type slow struct {
	http.Handler
	most   int
	breaks bool
	// over ends the time.
	over func()
}

func (s *slow) RoundTrip(request *http.Request) (*http.Response, error) {
	whole := httptest.NewRecorder()
	s.ServeHTTP(whole, request)
	response := whole.Result()
	response.Body = &slowBody{Reader: whole.Body, left: s.most, of: s, waits: request.Context(), closed: make(chan struct{})}
	return response, nil
}

type slowBody struct {
	io.Reader
	left   int
	of     *slow
	waits  context.Context //nolint:containedctx // it is the request's
	once   sync.Once
	closed chan struct{}
}

func (b *slowBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		if b.of.breaks {
			return 0, io.ErrUnexpectedEOF
		}
		b.of.over()
		select {
		case <-b.closed:
			return 0, http.ErrBodyReadAfterClose
		case <-b.waits.Done():
			return 0, b.waits.Err()
		}
	}
	n, err := b.Reader.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

func (b *slowBody) Close() error {
	b.once.Do(func() { close(b.closed) })
	return nil
}

// timed is a context whose time ends when it is said.
type timed struct {
	context.Context
	done chan struct{}
}

func (t timed) Done() <-chan struct{} { return t.done }

func (t timed) Err() error {
	select {
	case <-t.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// Who shows more than can be read in time costs the others a reading now and then. Who is alone, or shows no
// more than pods do, loses nothing by it.
func TestANamespaceThatTakesAllTheTimeIsLeftOut(t *testing.T) {
	const all = 1 << 30
	for name, c := range map[string]struct {
		// most is how much of an answer comes in time, in bytes.
		most int
		// limit is how much a reading may take, of which a part must have been read in vain.
		limit          int64
		breaks, others bool
		out            bool
	}{
		"the time is over":          {most: 256 << 10, limit: 8 << 20, others: true, out: true},
		"the connection breaks":     {most: 256 << 10, limit: 8 << 20, breaks: true, others: true, out: true},
		"nobody else is there":      {most: 256 << 10, limit: 8 << 20},
		"too large and nobody else": {most: all, limit: 256 << 10},
		"little was read in vain":   {most: 64 << 10, limit: 64 << 20, others: true},
		"nothing came":              {most: 0, limit: 8 << 20, others: true},
	} {
		t.Run(name, func(t *testing.T) {
			server := prometheustest.New(t)
			network := &slow{Handler: server.Handler, most: c.most, breaks: c.breaks}
			own := limits{answer: c.limit, reading: c.limit}
			client := newClient(limitedAPI(t, "http://prometheus", own, network), "http://prometheus", time.Hour, own)
			at := start
			next := func(scrapes int) (int, error) {
				for range scrapes {
					at = at.Add(scrapeInterval)
					values := map[string]float64{}
					if c.others {
						values = load(engine("a", "0"), at.Sub(start))
					}
					for i := range 4000 {
						values[fmt.Sprintf(`inference_extension_flow_control_queue_size{model_name="m%d",namespace="crowd",pod="epp",instance="10.0.0.2:9090",job="epp"}`, i)] = 1
					}
					server.Append(at, values)
				}
				time := timed{t.Context(), make(chan struct{})}
				network.over = sync.OnceFunc(func() { close(time.done) })
				replicas, _, err := client.Read(time, at, window, lookback)
				return len(replicas), err
			}
			_, err := next(6)
			require.Error(t, err)
			if !c.out {
				assert.Empty(t, client.crowds.names(), "%v", err)
				return
			}
			require.Equal(t, []string{"crowd"}, client.crowds.names(), "%v", err)
			n, err := next(1)
			assert.EqualError(t, err, LeftOutError{client.address, []string{"crowd"}}.Error())
			assert.Equal(t, 1, n, "others are read as ever")

			at = at.Add(firstOut)
			network.most = all
			_, err = next(1)
			require.NoError(t, err, "the network is fast again")
			assert.Empty(t, client.crowds.lately, "and nothing is held against anybody")
		})
	}
}

// Who takes all the time again and again is left out longer and longer, and whose network was slow once is not.
func TestForHowLongOneIsLeftOut(t *testing.T) {
	c, at := &crowds{}, start
	var lasts []time.Duration
	cut := func() {
		c.leaveOut("n", at, firstOut)
		begun := at
		for ; len(c.names()) > 0; at = at.Add(time.Second) {
			c.readmit(at)
		}
		lasts = append(lasts, (at.Sub(begun) - time.Second).Round(time.Second))
	}
	for range 7 {
		cut()
	}
	at = at.Add(leftOutFor)
	c.readmit(at)
	cut()
	cut()
	c.forgive()
	cut()
	assert.Equal(t, []time.Duration{
		firstOut, 2 * firstOut, 4 * firstOut, 8 * firstOut, 16 * firstOut, leftOutFor, leftOutFor,
		firstOut, 2 * firstOut, // after a long time
		firstOut, // after a whole reading
	}, lasts)
}

func TestWhoIsLeftOut(t *testing.T) {
	c := &crowds{}
	require.NoError(t, c.tell("x"))
	for i := range 4 {
		c.leaveOut(fmt.Sprint("n", i), start, leftOutFor)
		c.leaveOut("n0", start.Add(time.Hour), leftOutFor)
	}
	c.leaveOut("", start, leftOutFor)
	c.leaveOut(strings.Repeat("n", 63), start, leftOutFor)
	assert.Equal(t, []string{"n0", "n1", "n2", "n3"}, c.names(), "not what has no name, nor any number")
	failed := LeftOutError{}
	require.ErrorAs(t, c.tell("x"), &failed)
	require.NoError(t, failed.OfNamespace("other"))
	assert.NotContains(t, failed.OfNamespace("n1").Error(), "n2", "nobody is told of others")

	c.readmit(start.Add(leftOutFor - time.Second))
	assert.Len(t, c.names(), 4)
	c.readmit(start.Add(leftOutFor))
	assert.Empty(t, c.names())
	c.leaveOut("n0", start, leftOutFor)
	c.readmit(start.Add(-time.Hour))
	assert.Empty(t, c.names(), "a clock was set back")
}
