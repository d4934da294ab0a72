package prometheus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
)

// Read returns the samples at an instant: the replicas by pod, and what gateways
// count by model. Of a model only its name, Arrival, Recent and Queue are set; its
// namespace is empty when the gateway's series carry none.
//
// Rates and means are taken over the window. Where the servers or the gateways of a namespace, or some of them, are
// scraped too seldom for it, theirs are taken over a wider one, and where what is scraped is known
// late, they are asked for at the time of the newest scrape; Pace says so. Where a window holds no scrape,
// the last value of a gauge is looked for as far back as the lookback; such a sample is as old as
// its time says.
//
// A query that fails leaves its samples absent; the error then names the query and
// the server, and the rest of the reading is good. After an answer that was too large, or that
// could not be read in time, the namespace that took most of it is left out of the next readings,
// whose error is a LeftOutError.
func (c *Client) Read(ctx context.Context, at time.Time, window, lookback time.Duration) (map[types.NamespacedName]decision.Replica, map[decision.ModelKey]decision.Model, error) {
	ctx = c.limits.bounded(ctx)
	c.crowds.readmit(at)
	leftOut := c.crowds.tell(c.address)
	servers, gateways, err := c.paced(ctx, at, window, lookback)
	replicas, failed := readGroups(servers, func(g group) (map[types.NamespacedName]decision.Replica, error) {
		return c.narrowTo(g.namespaces).servers(ctx, g, lookback)
	}, func(pod types.NamespacedName) unit { return pod })
	models, failedToo := readGroups(gateways, func(g group) (map[decision.ModelKey]decision.Model, error) {
		return c.narrowTo(g.namespaces).gateways(ctx, g, lookback)
	}, unitOf)
	if err = errors.Join(err, failed, failedToo); err == nil {
		c.crowds.forgive()
	}
	return replicas, models, errors.Join(leftOut, err)
}

// readGroups reads one group after the other, each for its own units, and the first for all
// others too.
func readGroups[K comparable, V any](groups []group, read func(group) (map[K]V, error), of func(K) unit) (map[K]V, error) {
	var all map[K]V
	var failures []error
	for i, g := range groups {
		some, err := read(g)
		failures = append(failures, err)
		if i == 0 {
			all = some
			continue
		}
		for key, one := range some {
			if indexOf(groups, of(key)) == i {
				all[key] = one
			}
		}
	}
	return all, errors.Join(failures...)
}

// servers is what Read says of the replicas of one group.
func (c *Client) servers(ctx context.Context, g group, lookback time.Duration) (map[types.NamespacedName]decision.Replica, error) {
	q, copiedErr := c.uncopied(ctx, g, lookback, builder.copiedServers)
	var recent model.Vector
	var recentErr error
	var group errgroup.Group
	group.Go(func() error {
		if g.densest > 0 {
			recent, recentErr = c.instant(ctx, q.lastTwo(g.densest), g.at)
		}
		return nil
	})
	answers, err := c.ask(ctx, g.at, q.ofPods())
	_ = group.Wait()
	err = errors.Join(copiedErr, err, recentErr)
	split(answers, recent)
	dated := answers[ended] != nil
	if late := untold(answers); len(late) > 0 {
		more, lateErr := c.ask(ctx, g.at, []query{q.goodScrapes(late)})
		answers[scraped] = append(answers[scraped], more[earlier]...)
		dated = dated && lateErr == nil
		err = errors.Join(err, lateErr)
	}
	if !dated {
		undate(answers)
	}
	replicas := pods(answers)
	for name, r := range replicas {
		r.Pace = g.paceOf(name)
		replicas[name] = r
	}
	return replicas, err
}

// gateways is what Read says of the models of one group.
func (c *Client) gateways(ctx context.Context, g group, lookback time.Duration) (map[decision.ModelKey]decision.Model, error) {
	q, copiedErr := c.uncopied(ctx, g, lookback, builder.copiedGateways)
	answers, err := c.ask(ctx, g.at, q.ofGateways())
	split(answers, answers[gatewayLastTwo])
	found := models(answers)
	for key, m := range found {
		m.Pace = g.paceOf(unitOf(key))
		found[key] = m
	}
	return found, errors.Join(copiedErr, err)
}

// uncopied asks which copies there are, and leaves them out.
func (c *Client) uncopied(ctx context.Context, g group, lookback time.Duration, copied func(builder) query) (builder, error) {
	q := newBuilder(g.window, lookback)
	q.at, q.again = g.at, promDuration(max(g.window/2, time.Duration(punctual*float64(g.apart))))
	found, err := c.instant(ctx, copied(q), g.at)
	if err == nil {
		q = q.leaveOut(found)
	}
	return q, err
}

// split sorts the parts of an answer by what they are about.
func split(answers map[string]model.Vector, parts model.Vector) {
	for _, s := range parts {
		about := string(s.Metric[labelIs])
		answers[about] = append(answers[about], s)
	}
}

// lookWindow is how far a look at the queues looks back to know a gateway that is behind two ports.
const lookWindow = time.Minute

// Queues returns the lengths of the gateway's queues at an instant, with one query:
// for a look in between two readings. The namespace of a model is empty when the
// gateway's series carry none.
func (c *Client) Queues(ctx context.Context, at time.Time) (map[decision.ModelKey]decision.Sample, error) {
	vector, err := c.instant(ctx, queues(lookWindow), at)
	if err != nil {
		return nil, err
	}
	var lengths, scrapes model.Vector
	for _, s := range vector {
		if s.Metric[labelIs] == isTime {
			scrapes = append(scrapes, s)
		} else {
			lengths = append(lengths, s)
		}
	}
	times := instants(scrapes, modelOf)
	samples := map[decision.ModelKey]decision.Sample{}
	for key, length := range totalsOf(lengths) {
		if sample := modelserver.Known(length, times[key]); sample.Present {
			samples[key] = sample
		}
	}
	return samples, nil
}

// instant asks a query at an instant: all of its parts at once, or as many at a time as a server takes.
func (c *Client) instant(ctx context.Context, q query, at time.Time) (model.Vector, error) {
	all := model.Vector{} // An answer that is empty is an answer.
	for _, some := range q.shortened(c.selecting()) {
		vector, err := c.part(ctx, some, at)
		if err != nil {
			return nil, err
		}
		all = append(all, vector...)
	}
	return all, nil
}

func (c *Client) part(ctx context.Context, q query, at time.Time) (model.Vector, error) {
	ctx, cancel := context.WithTimeout(c.limits.bounded(ctx), c.timeout)
	defer cancel()
	value, warnings, err := c.api.Query(ctx, q.promQL(), at)
	if err = cmp.Or(err, partial(warnings)); err != nil {
		c.crowds.crowded(ctx, err, at, c.limits)
		return nil, fmt.Errorf("prometheus %s: query for the %s: %w", c.address, q.about, cause(err))
	}
	vector, ok := value.(model.Vector)
	if !ok {
		return nil, fmt.Errorf("prometheus %s: query for the %s: the answer is a %s and not a vector", c.address, q.about, value.Type())
	}
	return slices.DeleteFunc(vector, func(s *model.Sample) bool { return s == nil }), nil
}

// partial is an error where an answer is only a part, as Thanos and Mimir give it while one of
// their stores does not answer: the sum of a part is no sum, and would remove replicas. What
// PromQL itself warns of is no part.
func partial(warnings v1.Warnings) error {
	for _, w := range warnings {
		if !strings.HasPrefix(w, "PromQL ") {
			return fmt.Errorf("the answer is only a part: %s", words(w, nil))
		}
	}
	return nil
}

// fieldsOf says which answer is which sample of a replica.
func fieldsOf(r *decision.Replica) map[string]*decision.Sample {
	return map[string]*decision.Sample{
		kvUse:        &r.KVUse,
		waiting:      &r.Waiting,
		running:      &r.Running,
		served:       &r.Served,
		growth:       &r.InFlightGrowth,
		inService:    &r.InService,
		inputTokens:  &r.Input,
		outputTokens: &r.Output,
		firstToken:   &r.TTFT,
		interToken:   &r.ITL,
		cacheTokens:  &r.KVTokens,
	}
}

// seenFor says whose time a sample of a replica carries.
func seenFor(about string, s modelserver.Seen) time.Time {
	switch about {
	case kvUse:
		return s.KVUse
	case waiting:
		return s.Waiting
	case running:
		return s.Running
	case growth:
		return s.InFlight()
	case latestServed, latestChange:
		return s.Flow()
	case cacheTokens, cacheBlocks, span:
		return s.Any()
	}
	return s.Service()
}

func pods(answers map[string]model.Vector) map[types.NamespacedName]decision.Replica {
	seen := scrapesOf(slices.Concat(answers[scraped], answers[ended]))
	samples := map[string]map[types.NamespacedName]decision.Sample{}
	for about, vector := range answers {
		samples[about] = samplesOf(about, vector, seen)
	}
	caches := caches(answers[cacheBlocks])
	flows := flowsOf(answers[latestServed], nil, answers[latestChange], answers[span], podOf)

	replicas := make(map[types.NamespacedName]decision.Replica, len(seen))
	for pod, times := range seen {
		r := decision.Replica{Name: pod.Name}
		for about, field := range fieldsOf(&r) {
			*field = samples[about][pod]
		}
		if tokens, ok := caches[pod]; ok {
			r.KVTokens = modelserver.Known(tokens, seenFor(cacheBlocks, times))
		}
		flow, at := flows[pod], seenFor(latestChange, times)
		r.Recent, r.RecentSpan = modelserver.Recent(flow.left(at), flow.changed(at), flow.span, at)
		if r != (decision.Replica{Name: pod.Name}) {
			replicas[pod] = r
		}
	}
	return replicas
}

// untold are the names of the pods with a value whose time the last scrape did not tell.
// Not only a count of its own asks for the time of the last count: a rate needs two counts,
// and the times and sizes of requests are as old as the only one that the window holds.
func untold(answers map[string]model.Vector) map[string]bool {
	seen, late := scrapesOf(slices.Concat(answers[scraped], answers[ended])), map[string]bool{}
	for about, vector := range answers {
		of, asked := seenFor, scraped
		switch {
		case restsOnCount(about):
			of, asked = func(_ string, s modelserver.Seen) time.Time { return s.Completed }, ended
		case !slices.Contains([]string{kvUse, waiting, running, cacheBlocks, cacheTokens}, about):
			continue // it comes with one of the others
		}
		if answers[asked] == nil {
			continue // that query failed, and has said so
		}
		for _, s := range vector {
			if pod, ok := podOf(s.Metric); ok && of(about, seen[pod]).IsZero() {
				late[pod.Name] = true
			}
		}
	}
	return late
}

// undate drops what is as old as a count of which nobody could say the time: a server that
// seems to have no count would lend it the time of something newer.
func undate(answers map[string]model.Vector) {
	seen := scrapesOf(answers[ended])
	for about, vector := range answers {
		if restsOnCount(about) {
			answers[about] = slices.DeleteFunc(vector, func(s *model.Sample) bool {
				pod, _ := podOf(s.Metric)
				return seen[pod].Completed.IsZero()
			})
		}
	}
}

// restsOnCount says whether a sample of a replica is as old as the count of completed requests.
func restsOnCount(about string) bool {
	switch about {
	case served, inService, inputTokens, outputTokens, firstToken, interToken:
		return true
	}
	return false
}

// scrapesOf reads when each pod last told what.
func scrapesOf(vector model.Vector) map[types.NamespacedName]modelserver.Seen {
	type told struct {
		pod   types.NamespacedName
		about model.LabelValue
	}
	scrapes := map[types.NamespacedName]modelserver.Seen{}
	for last, at := range instants(vector, func(labels model.Metric) (told, bool) {
		pod, ok := podOf(labels)
		return told{pod, labels[labelIs]}, ok
	}) {
		seen := scrapes[last.pod]
		switch last.about {
		case kvUse:
			seen.KVUse = at
		case waiting:
			seen.Waiting = at
		case running:
			seen.Running = at
		case served:
			seen.Completed = at
		}
		scrapes[last.pod] = seen
	}
	return scrapes
}

func samplesOf(about string, vector model.Vector, seen map[types.NamespacedName]modelserver.Seen) map[types.NamespacedName]decision.Sample {
	samples := make(map[types.NamespacedName]decision.Sample, len(vector))
	for _, s := range vector {
		pod, ok := podOf(s.Metric)
		if !ok {
			continue
		}
		if sample := modelserver.Known(number(s), seenFor(about, seen[pod])); sample.Present {
			samples[pod] = sample
		}
	}
	return samples
}

// caches adds up the KV caches of a pod's engines. An engine that started anew with
// another size has told both; the newer one counts. What one scrape showed is added up.
func caches(vector model.Vector) map[types.NamespacedName]float64 {
	type engine struct {
		pod          types.NamespacedName
		instance, id model.LabelValue
	}
	type cache struct {
		engine
		size float64
	}
	newest, many := map[cache]float64{}, map[cache]float64{}
	for _, s := range vector {
		pod, ok := podOf(s.Metric)
		size, known := modelserver.Tokens(string(s.Metric[modelserver.LabelBlocks]), string(s.Metric[modelserver.LabelBlockSize]))
		c := cache{engine{pod, s.Metric[address], s.Metric[modelserver.LabelEngine]}, size}
		switch {
		case !ok || !known:
		case s.Metric[labelIs] == manyCaches:
			many[c] = number(s)
		default:
			newest[c] = number(s)
		}
	}
	last, tokens := map[engine]float64{}, map[engine]float64{}
	for c, at := range newest {
		if n := max(1, many[c]) * c.size; at > last[c.engine] {
			last[c.engine], tokens[c.engine] = at, n
		} else if at == last[c.engine] {
			tokens[c.engine] += n
		}
	}
	sums := make(map[types.NamespacedName]float64, len(tokens))
	for e, n := range tokens {
		sums[e.pod] += n
	}
	return sums
}

func models(answers map[string]model.Vector) map[decision.ModelKey]decision.Model {
	times := instants(answers[gatewayScraped], modelOf)
	totals := map[string]map[decision.ModelKey]float64{}
	for _, about := range []string{gatewayQueue, gatewayGrowth, gatewayDispatch} {
		totals[about] = totalsOf(answers[about])
	}
	flows := flowsOf(preferred(answers[gatewayLatest]), preferred(answers[gatewayBorn]), preferred(answers[gatewayChange]), answers[gatewaySpan], modelOf)
	read := make(map[decision.ModelKey]decision.Model, len(times))
	for key, at := range times {
		sample := func(about string) decision.Sample {
			if total, ok := totals[about][key]; ok {
				return modelserver.Known(total, at)
			}
			return decision.Sample{}
		}
		_, queued := totals[gatewayQueue][key]
		flow := flows[key]
		read[key] = modelserver.Gateway{
			Time: at, Queued: queued,
			Queue: sample(gatewayQueue), Growth: sample(gatewayGrowth), Dispatched: sample(gatewayDispatch),
			Latest: flow.left(at), Change: flow.changed(at), Span: flow.span,
		}.Model(key)
	}
	return read
}

func podOf(labels model.Metric) (types.NamespacedName, bool) {
	name := labels[labelPod]
	return types.NamespacedName{Namespace: string(labels["namespace"]), Name: string(name)}, name != ""
}

// modelOf prefers the name after the gateway's own rewriting.
func modelOf(labels model.Metric) (decision.ModelKey, bool) {
	id := labels["target_model_name"]
	if id == "" {
		id = labels["model_name"]
	}
	return decision.ModelKey{Namespace: string(labels["namespace"]), ID: string(id)}, id != ""
}

// number is the value of a sample, and NaN for a histogram.
func number(s *model.Sample) float64 {
	if s.Histogram != nil {
		return math.NaN()
	}
	return float64(s.Value)
}

// seconds has the resolution of Prometheus, and is zero for what is no number.
func seconds(s float64) time.Duration {
	if math.IsNaN(s) || math.IsInf(s, 0) {
		return 0
	}
	return time.Duration(math.Round(s*1000)) * time.Millisecond
}

// instants reads values that are Unix times in seconds; the newest one counts.
func instants[K comparable](vector model.Vector, keyOf func(model.Metric) (K, bool)) map[K]time.Time {
	times := make(map[K]time.Time, len(vector))
	for _, s := range vector {
		key, ok := keyOf(s.Metric)
		since := seconds(number(s))
		if !ok || since <= 0 {
			continue
		}
		if at := time.Unix(0, 0).Add(since).UTC(); at.After(times[key]) {
			times[key] = at
		}
	}
	return times
}

// preferred are the series of each model that have the preferred one of the metric's names.
func preferred(vector model.Vector) model.Vector {
	names := map[decision.ModelKey]model.LabelValue{}
	for _, s := range vector {
		key, _ := modelOf(s.Metric)
		if before, found := names[key]; !found || s.Metric[labelName] < before {
			names[key] = s.Metric[labelName]
		}
	}
	return slices.DeleteFunc(slices.Clone(vector), func(s *model.Sample) bool {
		key, _ := modelOf(s.Metric)
		return s.Metric[labelName] != names[key]
	})
}

// totalsOf adds up the preferred series of each model. A total in which one value is no number is no number.
func totalsOf(vector model.Vector) map[decision.ModelKey]float64 {
	sums := make(map[decision.ModelKey]float64, len(vector))
	for _, s := range preferred(vector) {
		if key, ok := modelOf(s.Metric); ok {
			sums[key] += number(s)
		}
	}
	return sums
}
