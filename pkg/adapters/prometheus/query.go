package prometheus

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
)

// What a query is about. The strings appear in errors.
const (
	kvUse        = "KV cache use"
	waiting      = "waiting requests"
	running      = "running requests"
	served       = "completed requests"
	growth       = "growth of requests in flight"
	inService    = "time in service"
	inputTokens  = "input tokens"
	outputTokens = "output tokens"
	firstToken   = "time to first token"
	interToken   = "time between tokens"
	cacheBlocks  = "blocks of the KV cache"
	twice        = "pages that were scraped more than once"
	manyCaches   = "number of equal KV caches"
	cacheTokens  = "tokens of the KV cache"
	scraped      = "times of the last scrapes"
	ended        = "time of the last count of completed requests"
	earlier      = "times of the last scrapes that did not fail"
	lastTwo      = "last two scrapes"
	span         = "time between the last two scrapes"
	latestServed = "requests completed since the scrape before"
	latestChange = "change of requests in flight since the scrape before"

	olderServers  = "older scrapes of servers"
	olderGateways = "older scrapes of gateways"
	serversAgain  = "servers at two addresses"
	gatewaysAgain = "gateways at two addresses"

	gatewayQueue    = "gateway queue"
	gatewayGrowth   = "growth of the gateway queue"
	gatewayDispatch = "requests dispatched by the gateway"
	gatewayScraped  = "time of the gateway's last scrape"
	gatewayLastTwo  = "last two scrapes of the gateway"
	gatewaySpan     = "time between the gateway's last two scrapes"
	gatewayLatest   = "requests dispatched by the gateway since the scrape before"
	gatewayChange   = "change of the gateway queue since the scrape before"
	gatewayBorn     = "requests dispatched by the gateway to new replicas"

	perPod   = "namespace,pod"
	perModel = "namespace,target_model_name,model_name"

	// Two scrapes are of one page, which is what a job finds at an address.
	perPage        = perPod + "," + address + "," + job
	perGatewayPage = perPage + ",target_model_name,model_name"

	// labelName tells by which of its names a gateway's metric was found, and labelIs
	// whether a value is the metric's or the time of its scrape, and of what.
	labelName = "wva_name"
	labelIs   = "wva_is"
	isTime    = "time"
	isCount   = "count"
)

// query is what one question asks for. Its parts know nothing of each other: no answer to one has the
// labels of an answer to another, so that they can be asked together or one after the other.
type query struct {
	about string
	parts []string
}

func asking(about string, parts ...string) query { return query{about, parts} }

// promQL asks for all parts at once.
func (q query) promQL() string { return strings.Join(q.parts, " or ") }

func (q builder) ofPods() []query {
	return []query{
		// They are asked in this order, and nothing is known without its time.
		asking(scraped, lastScrapes(kvUse, waiting, running)),
		asking(ended, lastScrapes(served)),
		// A replica with several engines is as full as its fullest one: that engine
		// queues first.
		asking(kvUse, q.mean(modelserver.KVUse, "max")),
		asking(waiting, q.mean(modelserver.Waiting, "sum")),
		asking(running, q.mean(modelserver.Running, "sum")),
		asking(served, q.rate(modelserver.Completed)),
		asking(growth, q.growth()),
		asking(inService, q.ratio(modelserver.InService)),
		asking(inputTokens, q.ratio(modelserver.Prompt)),
		asking(outputTokens, q.ratio(modelserver.Generation)),
		asking(firstToken, q.ratio(modelserver.FirstToken)),
		asking(interToken, q.ratio(modelserver.InterToken)),
		asking(cacheBlocks, q.blocks()),
		asking(cacheTokens, q.last(modelserver.CacheTokens)),
	}
}

func (q builder) ofGateways() []query {
	over := func(function string, counted func(vector, series string) string) func(string) string {
		return func(series string) string {
			return counted(fmt.Sprintf("%s(%s[%s])", function, series, q.window), series)
		}
	}
	return []query{
		asking(gatewayScraped, gatewayTimes()),
		asking(gatewayQueue, named(modelserver.GatewayQueue, func(series string) string { return q.counted(series, series) })),
		// One that started anew lost its queue: those requests neither left nor wait.
		asking(gatewayGrowth, fmt.Sprintf("(%s) unless on (%s) %s > 0", named(modelserver.GatewayQueue, over("deriv", q.counted)), perModel,
			q.restarts(perModel, modelserver.GatewayDispatched))),
		asking(gatewayDispatch, named(modelserver.GatewayDispatched, q.dispatched)),
		asking(gatewayLastTwo,
			// Gateways are few, so that short steps cost little.
			by(gatewaySpan, q.span(perGatewayPage, modelserver.GatewayDispatched, time.Second)+" or "+q.span(perGatewayPage, modelserver.GatewayQueue, time.Second)),
			by(gatewayLatest, named(modelserver.GatewayDispatched, func(series string) string {
				return q.unlessRestarted(perModel, series, over("irate", q.pages)(series))
			})),
			by(gatewayChange, named(modelserver.GatewayQueue, over("idelta", q.pages))),
			by(gatewayBorn, named(modelserver.GatewayDispatched, q.born)),
		),
	}
}

// dispatched is the rate of what the gateway sent on. A gateway that counts by replica
// has a new series for each new one, whose first value no rate sees: at the very time
// when the queue empties into it. What such a series shows was all sent within the
// window, if the gateway itself was seen before it.
func (q builder) dispatched(series string) string {
	fresh := fmt.Sprintf("((%[1]s unless %[1]s offset %[2]s) and on (instance, pod) %[1]s offset %[2]s)", series, q.window)
	return q.counted(fmt.Sprintf("((rate(%[1]s[%[2]s]) unless %[3]s) or %[3]s / %[4]g)", series, q.window, fresh, q.seconds), series)
}

// born is what the series show that the scrape before did not have, of gateways that
// it did have.
func (q builder) born(series string) string {
	return q.pages(fmt.Sprintf("(%[1]s and (count_over_time(%[1]s[%[2]s]) == 1) and on (instance, pod) (count_over_time(%[1]s[%[2]s]) > 1))",
		series, q.window), series)
}

// queues asks for the gateway's queues and for the times of their scrapes at once.
func queues(window time.Duration) query {
	q := newBuilder(window, 0)
	lengths := named(modelserver.GatewayQueue, func(series string) string { return q.counted(series, series) })
	return asking(gatewayQueue, "("+lengths+")", by(isTime, each(modelserver.GatewayQueue, newest)))
}

func gatewayTimes() string {
	return each(modelserver.GatewayQueue, newest) + " or " + each(modelserver.GatewayDispatched, newest)
}

func newest(series string) string {
	return fmt.Sprintf("max by (%s) (timestamp(%s))", perModel, series)
}

type builder struct {
	window, lookback string
	// again is at least the time between two scrapes of an address that may show again what another one does: half of
	// the window, unless it is scraped more seldom.
	again string
	// seconds is the window.
	seconds float64
	// servers and gateways are the copies to leave out.
	servers, gateways copies
	// at is when the queries are evaluated; the zero time for those that need not know it.
	at time.Time
}

func newBuilder(window, lookback time.Duration) builder {
	return builder{window: promDuration(window), lookback: promDuration(lookback), again: promDuration(window / 2), seconds: window.Seconds(), servers: copies{true, true}, gateways: copies{true, true}}
}

// each asks for every name of a quantity. A pod (or a model) that has several counts
// by the first: "or" adds only what has not been found.
func each(quantity modelserver.Quantity, expression func(series string) string) string {
	var all []string
	for _, series := range selectors(quantity) {
		all = append(all, expression(series))
	}
	return "(" + strings.Join(all, " or ") + ")"
}

// named asks for every name of a gateway's quantity and says by which one each
// answer was found. Two names of one thing need not carry the same labels, and "or"
// compares labels: which answer counts for a model is decided when it is read.
func named(quantity modelserver.Quantity, expression func(series string) string) string {
	var all []string
	for i, series := range selectors(quantity) {
		all = append(all, fmt.Sprintf("label_replace(%s, %q, \"%d\", \"\", \"\")", expression(series), labelName, i))
	}
	return strings.Join(all, " or ")
}

// selectors are the names of a quantity as PromQL selects them.
func selectors(quantity modelserver.Quantity) []string {
	m := modelserver.Of(quantity)
	all := m.Names
	for i, name := range all {
		if label, value := m.Selection(name); label != "" {
			all[i] += fmt.Sprintf("{%s=%q}", label, value)
		}
	}
	return all
}

func sum(by, vector string) string { return fmt.Sprintf("sum by (%s) (%s)", by, vector) }

// mean is a gauge's mean over the window, or its last value before that. A pod that
// is younger than the window has the mean of its life. Every name is tried within the
// window first: a pod that changed its server has both names in the past.
func (q builder) mean(quantity modelserver.Quantity, across string) string {
	return q.within(quantity, across, "avg_over_time")
}

// last is a gauge's last value.
func (q builder) last(quantity modelserver.Quantity) string {
	return q.within(quantity, "sum", "last_over_time")
}

func (q builder) within(quantity modelserver.Quantity, across, function string) string {
	over := func(function, past string) string {
		return q.ofServers(across, each(quantity, func(series string) string {
			return q.whole(across, fmt.Sprintf("%s(%s[%s])", function, series, past), series)
		}))
	}
	return over(function, q.window) + " or " + over("last_over_time", q.lookback)
}

// over is a function of the series of a quantity, added up for each pod. The suffix is that of a
// part of a histogram.
func (q builder) over(function string, quantity modelserver.Quantity, suffix string) string {
	return q.ofServers("sum", each(quantity, func(series string) string {
		return q.whole("sum", fmt.Sprintf("%s(%s%s[%s])", function, series, suffix, q.window), series+suffix)
	}))
}

// rate needs two scrapes in the window and is absent until then.
func (q builder) rate(quantity modelserver.Quantity) string { return q.over("rate", quantity, "") }

// growth is the slope of what is in flight. A derivative is linear, so the two gauges
// need no common subquery. A server that started anew within the window lost what it
// had in flight: that is neither served nor gone, and the growth is unknown.
func (q builder) growth() string {
	return fmt.Sprintf("(%s + %s) unless %s > 0", q.over("deriv", modelserver.Running, ""), q.over("deriv", modelserver.Waiting, ""),
		ofPods("max", perPod, q.restarts(sources, modelserver.Completed)))
}

// restarts is how often counters began anew within the window.
func (q builder) restarts(by string, quantity modelserver.Quantity) string {
	return each(quantity, func(series string) string {
		return fmt.Sprintf("max by (%s) (resets(%s[%s]))", by, series, q.window)
	})
}

// unlessRestarted leaves out those whose counter began anew with the last scrape.
func (q builder) unlessRestarted(by, counter, vector string) string {
	return fmt.Sprintf("(%s unless on (%[2]s) min by (%[2]s) (idelta(%s[%s])) < 0)", vector, by, counter, q.window)
}

// latest is the rate of completions between the last two scrapes, unknown when the
// server started anew between them.
func (q builder) latest() string {
	return q.ofPages(each(modelserver.Completed, func(series string) string {
		return q.unlessRestarted(sources, series, q.whole("sum", fmt.Sprintf("irate(%s[%s])", series, q.window), series))
	}))
}

// change is that of a gauge between the last two scrapes.
func (q builder) change(quantity modelserver.Quantity) string {
	return q.ofPages(each(quantity, func(series string) string {
		return q.whole("sum", fmt.Sprintf("idelta(%s[%s])", series, q.window), series)
	}))
}

// ratio is the mean of a histogram's observations. Without an observation in the
// window it is 0/0, which is NaN and so absent.
func (q builder) ratio(quantity modelserver.Quantity) string {
	return q.over("rate", quantity, "_sum") + " / " + q.over("rate", quantity, "_count")
}

// blocks is the time of the newest scrape for each size that a KV cache was said to
// have, and how many said it in that scrape; only its labels say the size.
func (q builder) blocks() string {
	told := each(modelserver.CacheBlocks, func(series string) string {
		return fmt.Sprintf("max by (%[1]s) (timestamp(%[2]s)) or max by (%[1]s) (max_over_time(timestamp(%[2]s)[%[3]s:15s]))", sources+","+sizes, series, q.lookback)
	})
	return ofPods("max", perPod+","+sizes, q.unlessAgain(told)) + " or " + by(manyCaches, ofPods("max", perPod+","+sizes, q.equalBlocks()))
}

// sizes are the labels that say the size of an engine's KV cache.
const sizes = address + "," + modelserver.LabelEngine + "," + modelserver.LabelBlocks + "," + modelserver.LabelBlockSize

// equalBlocks is how many caches of each size one scrape of a target showed.
func (q builder) equalBlocks() string {
	return each(modelserver.CacheBlocks, func(series string) string {
		return fmt.Sprintf("count by (%s,%s,%s) (%s)", sources, sizes, job, q.oneScrape(series, series, sources, q.servers))
	})
}

// told are the quantities that say when they were told: values of one must not look as new
// as those of another.
var told = []struct {
	about    string
	quantity modelserver.Quantity
}{{kvUse, modelserver.KVUse}, {waiting, modelserver.Waiting}, {running, modelserver.Running}, {served, modelserver.Completed}}

// lastScrapes are the times of the newest samples of those that the last scrape found.
func lastScrapes(of ...string) string {
	var all []string
	for _, one := range told {
		if !slices.Contains(of, one.about) {
			continue
		}
		now := func(series string) string { return fmt.Sprintf("max by (%s) (timestamp(%s))", sources, series) }
		all = append(all, by(one.about, ofPods("max", perPod, each(one.quantity, now))))
	}
	return strings.Join(all, " or ")
}

// manyPods is how many pods a query names at most.
const manyPods = 200

// goodScrapes are the times of the newest samples of pods whose last scrape failed. That makes
// a series stale at once, although the window still holds its samples, and only a subquery
// finds the time of the last good scrape then. It is dear, so it is sent for the pods alone
// that need it, of which there are few.
func (q builder) goodScrapes(pods map[string]bool) query {
	matchers := []string{""}
	if len(pods) <= manyPods {
		matchers = nil
		for _, names := range inLots(slices.Sorted(maps.Keys(pods))) {
			matchers = append(matchers, fmt.Sprintf("pod=~%q", names), fmt.Sprintf("pod_name=~%q", names))
		}
	}
	var all []string
	for _, one := range told {
		past := q.lookback
		if one.about == served {
			past = q.window // A counter tells nothing before the window.
		}
		for _, matcher := range matchers {
			before := func(series string) string {
				return fmt.Sprintf("max by (%s) (max_over_time(timestamp(%s)[%s:15s]))", sources, narrowed(series, matcher), past)
			}
			all = append(all, by(one.about, ofPods("max", perPod, each(one.quantity, before))))
		}
	}
	return asking(earlier, all...)
}

// lot is how long the names are together that a part of a query names, each several times.
const lot = 512

// inLots joins names to patterns that match them, each of which is at most about as long as a lot.
func inLots(names []string) (patterns []string) {
	last := -1
	for _, name := range names {
		name = regexp.QuoteMeta(name)
		if last < 0 || len(patterns[last])+len(name) >= lot {
			patterns, last = append(patterns, name), last+1
			continue
		}
		patterns[last] += "|" + name
	}
	return patterns
}

// narrowed is a selector with one more matcher.
func narrowed(series, matcher string) string {
	switch rest, selects := strings.CutSuffix(series, "}"); {
	case matcher == "":
		return series
	case selects:
		return rest + "," + matcher + "}"
	}
	return series + "{" + matcher + "}"
}

// by marks an answer with what it is about.
func by(about, vector string) string {
	return fmt.Sprintf("label_replace(%s, %q, %q, \"\", \"\")", vector, labelIs, about)
}

// span is the time between the last two scrapes: the newest time less the newest one
// that differs from it, looked for in steps that are shorter than any interval in use.
// After a failed scrape it is absent. VictoriaMetrics (app/vmselect/promql, 1.151) needs it written so: in its
// subqueries end() is each of the steps, and a single instant looks no further back than a step,
// where several ones find the scrape interval. The time of the evaluation is the last of them,
// being a whole second.
func (q builder) span(by string, quantity modelserver.Quantity, step time.Duration) string {
	return each(quantity, func(series string) string {
		return fmt.Sprintf("max by (%[1]s) (timestamp(%[2]s) - max_over_time((timestamp(%[2]s) < max_over_time(timestamp(%[2]s)[5s:1s] @ %[5]s))[%[3]s:%[4]s]))",
			by, series, q.window, promDuration(step), instant(q.at))
	})
}

// lastTwo asks what happened between the last two scrapes of pods, of which none had more
// scrapes within the window, and how long that was: at once, because a scrape that comes in
// between two queries would mix two intervals. Each step costs as much as a query of its own, so
// there are no more of them than are needed: a step is a third of the shortest interval, so that
// it passes over no scrape, not even an early one.
func (q builder) lastTwo(scrapes float64) query {
	step := max(time.Second, time.Duration(q.seconds/(3*scrapes))*time.Second)
	return asking(lastTwo,
		by(span, ofPods("max", perPage, q.span(sources+","+address+","+job, modelserver.Running, step))),
		by(latestServed, q.latest()),
		by(latestChange, q.change(modelserver.Running)+" + "+q.change(modelserver.Waiting)),
	)
}

// instant is a time as PromQL writes it, in seconds.
func instant(at time.Time) string {
	return strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', 3, 64)
}

func promDuration(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }
