package prometheus

import (
	"context"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
)

// What is asked of a namespace before anything else is.
const (
	paces      = "scrapes of each namespace"
	paceNewest = "newest"
	paceWindow = "in the window"
	paceMiddle = "in a wider window"
	paceBehind = "in the lookback"
)

// Bounds of what a reading follows. A tenant decides how its own servers are scraped, so that a
// namespace can be read otherwise for its own sake only, and not in any number of ways.
const (
	// mostLag is how much more than an interval old the newest scrape may be to be asked for at its time.
	mostLag = 2 * time.Minute
	// manyGroups is in how many ways namespaces are read at most beside the usual one.
	manyGroups = 4
	// sparse is the share of the window from which on an interval is too long for it: too
	// often the window would hold a single scrape, of which there is no rate.
	sparse = 0.6
	// punctual is how many intervals old the newest scrape is at most to be asked for now. Prometheus
	// carries a rate on to the end of its window over 1.1 of them, and the interval is an estimate.
	punctual = 0.9
)

// wider are the windows that are tried, in windows: the smallest one that holds two scrapes.
var wider = []float64{1, 2.5, 5}

// resolution is that of the times at which queries are evaluated.
const resolution = time.Second

// seenPace is how the servers and gateways of one namespace are scraped. The densest of its
// series says it: a young one has few scrapes at any interval.
type seenPace struct {
	newest time.Time
	// window, middle and behind are the largest numbers of scrapes within the window, the next
	// wider one, and the lookback.
	window, middle, behind float64
}

// group is a set of namespaces that are asked alike.
type group struct {
	// namespaces is nil for all.
	namespaces []string
	at         time.Time
	window     time.Duration
	pace       decision.Pace
	densest    float64
}

// paces asks for all that seenPace has.
func (q builder) paces(middle time.Duration) query {
	var all []string
	for _, quantity := range []modelserver.Quantity{modelserver.Running, modelserver.Completed, modelserver.GatewayQueue, modelserver.GatewayDispatched} {
		for _, series := range selectors(quantity) {
			for about, vector := range map[string]string{
				paceNewest: fmt.Sprintf("timestamp(%s)", series),
				paceWindow: fmt.Sprintf("count_over_time(%s[%s])", series, q.window),
				paceMiddle: fmt.Sprintf("count_over_time(%s[%s])", series, promDuration(middle)),
				paceBehind: fmt.Sprintf("count_over_time(%s[%s])", series, q.lookback),
			} {
				all = append(all, by(about, vector))
			}
		}
	}
	slices.Sort(all)
	return query{paces, fmt.Sprintf("max by (namespace, %s) (%s)", labelIs, strings.Join(all, " or "))}
}

func seenPaces(vector model.Vector) map[string]seenPace {
	seen := map[string]seenPace{}
	for _, s := range vector {
		name := string(s.Metric[modelserver.LabelNamespace])
		p := seen[name]
		switch s.Metric[labelIs] {
		case paceNewest:
			p.newest = time.Unix(0, 0).Add(seconds(number(s))).UTC()
		case paceWindow:
			p.window = number(s)
		case paceMiddle:
			p.middle = number(s)
		case paceBehind:
			p.behind = number(s)
		}
		seen[name] = p
	}
	for name, p := range seen {
		if p.newest.Unix() <= 0 || !(p.behind > 0) {
			delete(seen, name)
		}
	}
	return seen
}

// mature is how many times as many scrapes a longer time must have had than a shorter one: a
// series that has just begun has as many in both, and says nothing of the longer one.
const mature = 1.5

// interval is the time between two scrapes. Of n scrapes, the newest of which is as old as age,
// the others lie n-1 to n intervals behind it.
func (p seenPace) interval(at time.Time, window, lookback time.Duration) time.Duration {
	age := max(0, at.Sub(p.newest))
	over := func(d time.Duration, scrapes float64) time.Duration {
		return time.Duration(float64(max(0, d-age)) / max(1, scrapes))
	}
	switch {
	case p.behind >= mature*p.middle && p.middle > 0:
		return over(lookback, p.behind-0.5)
	case p.middle >= mature*p.window:
		return over(middleOf(window, lookback), p.middle)
	}
	return time.Duration(float64(window) / max(1, p.window))
}

func middleOf(window, lookback time.Duration) time.Duration {
	return min(time.Duration(wider[1]*float64(window)), lookback)
}

// groupsOf says how namespaces are read. Those in the first group are not read otherwise than
// ever; it has all that no other one has.
func groupsOf(seen map[string]seenPace, at time.Time, window, lookback time.Duration) []group {
	usual := group{at: at, window: window}
	var others []group
	names := slices.SortedFunc(maps.Keys(seen), func(a, b string) int {
		if c := seen[b].newest.Compare(seen[a].newest); c != 0 {
			return c
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		p := seen[name]
		interval := p.interval(at, window, lookback)
		age := at.Sub(p.newest)
		own := group{at: at, window: windowFor(interval, window, lookback)}
		own.densest = max(p.window, math.Ceil(own.window.Seconds()/max(interval.Seconds(), 1e-3)))
		if float64(age) > punctual*float64(interval) && age <= mostLag+interval && !p.newest.Add(resolution).After(at) {
			own.at = p.newest.Add(resolution - 1).Truncate(resolution)
		}
		if own.window == window && own.at.Equal(at) {
			usual.densest = max(usual.densest, own.densest)
			usual.namespaces = append(usual.namespaces, name)
			continue
		}
		// Those that are scraped a little earlier are read with those that are scraped later, as
		// they are where no scrape is late.
		alike := slices.IndexFunc(others, func(g group) bool {
			return g.window == own.window && g.at.Equal(at) == own.at.Equal(at) && g.at.Sub(own.at) <= interval
		})
		switch {
		case alike >= 0:
			g := &others[alike]
			g.namespaces = append(g.namespaces, name)
			g.densest, g.pace.Interval = max(g.densest, own.densest), max(g.pace.Interval, interval.Round(time.Second))
		case len(others) < manyGroups:
			own.namespaces = []string{name}
			own.pace = decision.Pace{Interval: interval.Round(time.Second), Lag: max(0, at.Sub(own.at)-interval).Round(time.Second), Window: own.window}
			others = append(others, own)
		default:
			usual.namespaces = append(usual.namespaces, name)
		}
	}
	if len(usual.namespaces) == 0 && len(others) == 1 {
		others[0].namespaces = nil
		return others
	}
	usual.namespaces = nil
	return append([]group{usual}, others...)
}

// windowFor is the smallest window that holds two scrapes at this interval.
func windowFor(interval, window, lookback time.Duration) time.Duration {
	if float64(interval) <= sparse*float64(window) {
		return window
	}
	for _, factor := range wider {
		if w := time.Duration(factor * float64(window)); w >= 2*interval && w <= lookback {
			return w
		}
	}
	return max(window, lookback)
}

// manyNames is how many namespaces a query names at most: every selector of it names them, and
// servers refuse long queries.
const manyNames = 8

// narrowTo is the client that need not see other namespaces; nil means all.
func (c *Client) narrowTo(namespaces []string) *Client {
	if namespaces == nil || len(namespaces) > manyNames {
		return c
	}
	quoted := make([]string, len(namespaces))
	for i, name := range namespaces {
		quoted[i] = regexp.QuoteMeta(name)
	}
	only := labels.MustNewMatcher(labels.MatchRegexp, modelserver.LabelNamespace, strings.Join(quoted, "|"))
	return &Client{api: oneCluster{c.api, []*labels.Matcher{only}}, address: c.address, timeout: c.timeout}
}

// paced asks how each namespace is scraped, and says in which groups they are read. Without an
// answer all are read as usual.
func (c *Client) paced(ctx context.Context, at time.Time, window, lookback time.Duration) ([]group, error) {
	at = at.Truncate(resolution)
	vector, err := c.instant(ctx, newBuilder(window, lookback).paces(middleOf(window, lookback)), at)
	return groupsOf(seenPaces(vector), at, window, lookback), err
}
