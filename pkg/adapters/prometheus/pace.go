package prometheus

import (
	"context"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
)

// What is asked of the servers and of the gateways of a namespace before anything else is.
const (
	paces      = "scrapes of each namespace"
	paceNewest = "newest"
	paceWindow = "in the window"
	paceMiddle = "in a wider window"
	paceBehind = "in the lookback"
	ofServers  = "servers, "
	ofGateways = "gateways, "
)

// Bounds of what a reading follows. A tenant decides how its own servers are scraped, so that a
// namespace can be read otherwise for its own sake only, and not in any number of ways.
const (
	// mostLag is how much more than an interval old the newest scrape may be to be asked for at its time.
	mostLag = 2 * time.Minute
	// manyGroups is in how many ways namespaces are read at most beside the usual one.
	manyGroups = 4
	// sparse is the share of the window from which on an interval is too long for it: too
	// often the window would hold a single scrape, of which there is no rate. Half of it is exact,
	// and what is seen of an interval is a little more or less.
	sparse = 0.53
	// punctual is how many intervals old the newest scrape is at most to be asked for now. Prometheus
	// carries a rate on to the end of its window over 1.1 of them.
	punctual = 1.05
	// mature is how many times as many scrapes a longer time must have had than a shorter one: a
	// series that has just begun has as many in both, and says nothing of the longer one.
	mature = 1.5
)

// wider are the windows that are tried, in windows: the smallest one that holds two scrapes.
var wider = []float64{1, 2.5, 5}

// resolution is that of the times at which queries are evaluated.
const resolution = time.Second

// seenPace is how the servers or the gateways of one namespace are scraped. The densest of its
// series says it: a young one has few scrapes at any interval.
type seenPace struct {
	newest time.Time
	// window, middle and behind are the largest numbers of scrapes within the window, the next
	// wider one, and the lookback.
	window, middle, behind float64
	// least and most are what the time between two scrapes can be; both are zero where nothing
	// says it, as where there was a single scrape.
	least, most time.Duration
	// lag is how old the newest scrape was when it was first seen, and known says that it was not
	// there before. What only stands still is no lag: nothing is scraped then.
	lag time.Duration
}

// interval is about the time between two scrapes; zero where it is not known.
func (p seenPace) interval() time.Duration { return (p.least + p.most) / 2 }

// pace is what the decision is told of one that is asked for at an instant.
func (p seenPace) pace(window time.Duration) decision.Pace {
	interval := p.interval().Round(resolution)
	return decision.Pace{Interval: interval, Lag: max(0, p.lag-interval).Round(resolution), Window: window}
}

// group is a set of namespaces that are asked alike.
type group struct {
	// namespaces is nil for all.
	namespaces []string
	at         time.Time
	window     time.Duration
	// paces are those of the namespaces that are known.
	paces   map[string]decision.Pace
	densest float64
}

// paces asks for all that seenPace has.
func (q builder) paces(middle time.Duration) query {
	var parts []string
	ask := func(about string, expression func(series string) string, quantities ...modelserver.Quantity) {
		var all []string
		for _, quantity := range quantities {
			for _, series := range selectors(quantity) {
				all = append(all, by(about, expression(series)))
			}
		}
		parts = append(parts, fmt.Sprintf("max by (namespace, %s) (%s)", labelIs, strings.Join(all, " or ")))
	}
	for about, expression := range map[string]func(series string) string{
		paceNewest: func(series string) string { return fmt.Sprintf("timestamp(%s)", series) },
		paceWindow: func(series string) string { return fmt.Sprintf("count_over_time(%s[%s])", series, q.window) },
		paceMiddle: func(series string) string {
			return fmt.Sprintf("count_over_time(%s[%s])", series, promDuration(middle))
		},
		paceBehind: func(series string) string { return fmt.Sprintf("count_over_time(%s[%s])", series, q.lookback) },
	} {
		ask(ofServers+about, expression, modelserver.Running, modelserver.Completed)
		ask(ofGateways+about, expression, modelserver.GatewayQueue, modelserver.GatewayDispatched)
	}
	slices.Sort(parts)
	return asking(paces, parts...)
}

// seenPaces reads what paces asked for, of servers or of gateways.
func seenPaces(vector model.Vector, kind string) map[string]seenPace {
	seen := map[string]seenPace{}
	for _, s := range vector {
		about, ours := strings.CutPrefix(string(s.Metric[labelIs]), kind)
		if !ours {
			continue
		}
		name := string(s.Metric[modelserver.LabelNamespace])
		p := seen[name]
		switch about {
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
	maps.DeleteFunc(seen, func(_ string, p seenPace) bool { return p.newest.Unix() <= 0 || !(p.behind > 0) })
	return seen
}

// bounded sets what the interval can be. Of n scrapes within a time, the newest of which is as old as
// age, the others lie n-1 to n intervals behind it. Of those that have just begun the latter is not
// true, and the least is taken for the interval.
func (p seenPace) bounded(at time.Time, window, lookback time.Duration) seenPace {
	age := max(0, at.Sub(p.newest))
	over := func(d time.Duration, scrapes float64) time.Duration {
		return time.Duration(float64(max(0, d-age)) / scrapes)
	}
	switch middle := middleOf(window, lookback); {
	case p.behind >= 2 && p.behind >= mature*p.middle:
		p.least, p.most = over(lookback, p.behind), over(lookback, p.behind-1)
	case p.middle >= 2 && p.middle >= mature*p.window:
		p.least = over(middle, p.middle)
		p.most = p.least
	case p.window >= 2:
		p.least = over(window, p.window)
		p.most = p.least
	}
	return p
}

func middleOf(window, lookback time.Duration) time.Duration {
	return min(time.Duration(wider[1]*float64(window)), lookback)
}

// sightings are what one reading after the other has shown of how namespaces are scraped. The zero
// value has none. It is safe for concurrent use.
type sightings struct {
	mu sync.Mutex
	of map[string]map[string]seenPace
}

// see joins what is seen now with what was seen before, and forgets namespaces that are gone.
func (s *sightings) see(kind string, seen map[string]seenPace, at time.Time, window, lookback time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, p := range seen {
		p = p.bounded(at, window, lookback)
		if before, known := s.of[kind][name]; known {
			p.lag = before.lag
			if p.newest.After(before.newest) {
				p.lag = max(0, at.Sub(p.newest))
			}
			switch least, most := max(p.least, before.least), min(p.most, before.most); {
			case p.most == 0:
				p.least, p.most = before.least, before.most
			case least <= most:
				p.least, p.most = least, most
			}
		}
		seen[name] = p
	}
	if s.of == nil {
		s.of = map[string]map[string]seenPace{}
	}
	s.of[kind] = seen
}

// groupsOf says how namespaces are read. Those in the first group are not read otherwise than
// ever; it has all that no other one has.
func groupsOf(seen map[string]seenPace, at time.Time, window, lookback time.Duration) []group {
	usual := group{at: at, window: window, paces: map[string]decision.Pace{}}
	var others []group
	names := slices.SortedFunc(maps.Keys(seen), func(a, b string) int {
		if c := seen[b].newest.Compare(seen[a].newest); c != 0 {
			return c
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		p := seen[name]
		own := p.group(at, window, lookback)
		if own.window == window && own.at.Equal(at) {
			usual.densest = max(usual.densest, own.densest)
			usual.namespaces, usual.paces[name] = append(usual.namespaces, name), p.pace(0)
			continue
		}
		// Those that are scraped a little earlier are read with those that are scraped later, as
		// they are where no scrape is late.
		alike := slices.IndexFunc(others, func(g group) bool {
			return g.window == own.window && g.at.Equal(at) == own.at.Equal(at) && g.at.Sub(own.at) <= p.interval()
		})
		switch {
		case alike >= 0:
			g := &others[alike]
			g.namespaces, g.densest = append(g.namespaces, name), max(g.densest, own.densest)
			g.paces[name] = p.pace(own.window)
		case len(others) < manyGroups:
			own.namespaces, own.paces = []string{name}, map[string]decision.Pace{name: p.pace(own.window)}
			others = append(others, own)
		default:
			usual.densest = max(usual.densest, p.window)
			usual.namespaces, usual.paces[name] = append(usual.namespaces, name), p.pace(0)
		}
	}
	if len(usual.namespaces) == 0 && len(others) == 1 {
		others[0].namespaces = nil
		return others
	}
	usual.namespaces = nil
	return append([]group{usual}, others...)
}

// group is how one that is scraped like this is read. Where the newest scrape is so old that the window would
// hold no other one, it is asked for at its time, too.
func (p seenPace) group(at time.Time, window, lookback time.Duration) group {
	interval, age := p.interval(), at.Sub(p.newest)
	g := group{at: at, window: windowFor(interval, window, lookback), densest: p.window}
	if interval > 0 {
		g.densest = max(p.window, math.Ceil(g.window.Seconds()/p.least.Seconds()))
	}
	late := float64(age) > punctual*float64(p.least) || age+interval >= g.window
	if interval > 0 && late && age <= mostLag+interval && !p.newest.Add(resolution).After(at) {
		g.at = p.newest.Add(resolution - 1).Truncate(resolution)
	}
	return g
}

// when is a window and its end.
type when struct {
	at     time.Time
	window time.Duration
}

// lagStep is how exactly a lag is asked for where namespaces are asked alike.
const lagStep = 15 * time.Second

// asked sorts models by how their namespaces are scraped, as far as a reading has shown it. There are no more
// ways than a reading has.
func (s *sightings) asked(at time.Time, window time.Duration, promises map[decision.ModelKey]capacity.SLO) map[when]map[decision.ModelKey]capacity.SLO {
	s.mu.Lock()
	defer s.mu.Unlock()
	usual := when{at, window}
	all := map[when]map[decision.ModelKey]capacity.SLO{}
	for key, slo := range promises {
		own, interval := usual, s.of[ofServers][key.Namespace].interval()
		if interval > 0 {
			own.window = windowFor(interval, window, time.Duration(wider[len(wider)-1]*float64(window)))
			// Two scrapes must lie in the window when the next one is about to be known.
			if lag := s.of[ofServers][key.Namespace].lag; lag+2*interval > own.window && lag <= mostLag+interval {
				own.at = at.Add(-(lag + lagStep - 1).Truncate(lagStep))
			}
		}
		if all[own] == nil && own != usual && len(all) > manyGroups {
			own = usual
		}
		if all[own] == nil {
			all[own] = map[decision.ModelKey]capacity.SLO{}
		}
		all[own][key] = slo
	}
	return all
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

// longestNames is how long the names of namespaces are together that a query has at most: each of its
// selectors names them, of which there are up to 62, and servers refuse long queries.
const longestNames = 64

// narrowTo is the client that need not see other namespaces; nil means all.
func (c *Client) narrowTo(namespaces []string) *Client {
	quoted := make([]string, len(namespaces))
	for i, name := range namespaces {
		quoted[i] = regexp.QuoteMeta(name)
	}
	names := strings.Join(quoted, "|")
	if namespaces == nil || len(names) > longestNames {
		return c
	}
	only := []*labels.Matcher{labels.MustNewMatcher(labels.MatchRegexp, modelserver.LabelNamespace, names)}
	return &Client{api: oneCluster{c.api, only}, matchers: slices.Concat(c.matchers, only), crowds: c.crowds, address: c.address, timeout: c.timeout, limits: c.limits}
}

// selecting are the matchers of every selector of a query.
func (c *Client) selecting() []*labels.Matcher { return slices.Concat(c.matchers, c.crowds.matchers()) }

// paced asks how each namespace is scraped, and says in which groups servers and gateways are
// read. Without an answer all are read as usual.
func (c *Client) paced(ctx context.Context, at time.Time, window, lookback time.Duration) (servers, gateways []group, err error) {
	at = at.Truncate(resolution)
	vector, err := c.instant(ctx, newBuilder(window, lookback).paces(middleOf(window, lookback)), at)
	seen := map[string]map[string]seenPace{ofServers: seenPaces(vector, ofServers), ofGateways: seenPaces(vector, ofGateways)}
	if err == nil {
		c.crowds.find(seen[ofServers], seen[ofGateways])
	}
	groups := func(kind string) []group {
		if err == nil {
			c.seen.see(kind, seen[kind], at, window, lookback)
		}
		return groupsOf(seen[kind], at, window, lookback)
	}
	return groups(ofServers), groups(ofGateways), err
}
