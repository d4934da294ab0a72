package prometheus

import (
	"cmp"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
	"llmd.ai/workload-variant-autoscaler/pkg/round"
)

// group is a set of units that are asked alike. A query names the namespaces, and of its answer the
// group takes what is of its units.
type group struct {
	// namespaces is nil for all.
	namespaces []string
	at         time.Time
	window     time.Duration
	// paces are those of the units that are known.
	paces   map[unit]decision.Pace
	densest float64
	// apart is the longest time between two scrapes of one of several addresses of the same pod.
	apart time.Duration
}

// add puts a unit that is scraped like this into the group.
func (g *group) add(of unit, p seenPace, window time.Duration, densest float64) {
	if !slices.Contains(g.namespaces, of.Namespace) {
		g.namespaces = append(g.namespaces, of.Namespace)
	}
	g.paces[of], g.densest = p.pace(window), max(g.densest, densest)
}

// indexOf is the one of the groups that reads a pod or a model: its own, else that of its namespace, else
// the first.
func indexOf(groups []group, of unit) int {
	for _, one := range []unit{of, {Namespace: of.Namespace}} {
		if i := slices.IndexFunc(groups, func(g group) bool { _, has := g.paces[one]; return has }); i >= 0 {
			return i
		}
	}
	return 0
}

// paceOf is how a pod or a model is scraped; the zero pace where nothing says it.
func (g group) paceOf(of unit) decision.Pace {
	if own, has := g.paces[of]; has {
		return own
	}
	return g.paces[unit{Namespace: of.Namespace}]
}

// spread is how far apart the units of a namespace are scraped.
type spread struct {
	// oldest is the oldest of their newest scrapes. Of what ends, or is scraped too seldom for the window of the
	// namespace, it says nothing.
	oldest time.Time
	// late is set where some cannot be read now: the newest scrape is older than an interval, or the window
	// holds no other one.
	late bool
}

// spreadsOf are those of the namespaces.
func spreadsOf(seen map[unit]seenPace, at time.Time, window, lookback time.Duration) map[string]spread {
	all := map[string]spread{}
	for of, p := range seen {
		if of.Name == "" {
			continue
		}
		whole, s := seen[unit{Namespace: of.Namespace}], all[of.Namespace]
		if !p.goesOn(whole, at) {
			continue
		}
		s.late = s.late || p.most > p.least && float64(at.Sub(p.newest)) > punctual*float64(p.among(whole))
		if usual := round.Window(whole.interval(), window, lookback); round.Window(p.interval(), window, lookback) <= usual {
			s.late = s.late || p.scrapesIn(usual, window, lookback) < 2
			if s.oldest.IsZero() || p.newest.Before(s.oldest) {
				s.oldest = p.newest
			}
		}
		all[of.Namespace] = s
	}
	return all
}

// goesOn reports whether the unit of a namespace has been scraped about as lately as others, by its interval.
func (p seenPace) goesOn(whole seenPace, at time.Time) bool {
	interval := p.among(whole)
	return interval > 0 && float64(whole.newest.Sub(p.newest)) < (2-punctual)*float64(interval) && at.Sub(p.newest) <= mostLag+interval
}

// among is the interval of a unit among those of its namespace. One that missed a scrape is an interval behind
// them, and seems to have a longer one.
func (p seenPace) among(whole seenPace) time.Duration {
	interval := p.interval()
	if other := whole.interval(); other < interval && float64(interval) < mature*float64(other) {
		return other
	}
	return interval
}

// scrapesIn is how many scrapes one of the wider windows has had until now.
func (p seenPace) scrapesIn(wide, window, lookback time.Duration) float64 {
	switch {
	case wide <= window:
		return p.window
	case wide <= middleOf(window, lookback):
		return p.middle
	}
	return p.behind
}

// groupsOf says how all are read. What is in the first group is not read otherwise than
// ever; it has all that no other one has.
func groupsOf(seen map[unit]seenPace, at time.Time, window, lookback time.Duration) []group {
	usual := group{at: at, window: window, paces: map[unit]decision.Pace{}}
	spreads := spreadsOf(seen, at, window, lookback)
	var others []group
	for _, of := range newestFirst(seen) {
		if of.Name != "" {
			continue
		}
		p := seen[of]
		apart := spreads[of.Namespace]
		own := p.group(at, window, lookback, apart.late)
		if own.window == window && own.at.Equal(at) {
			usual.add(of, p, 0, own.densest)
			continue
		}
		// Those that are scraped a little earlier are read with those that are scraped later, as
		// they are where no scrape is late.
		alike := slices.IndexFunc(others, func(g group) bool {
			return g.window == own.window && g.at.Equal(at) == own.at.Equal(at) && g.at.Sub(own.at) <= p.interval() &&
				(g.at.Equal(at) || g.at.Sub(apart.oldest)+p.interval() < g.window)
		})
		switch {
		case alike >= 0:
			others[alike].add(of, p, own.window, own.densest)
		case len(others) < manyGroups:
			own.add(of, p, own.window, own.densest)
			others = append(others, own)
		default:
			usual.add(of, p, 0, p.window)
		}
	}
	all := append([]group{usual}, others...)
	if len(usual.namespaces) == 0 && len(others) == 1 {
		all = others
	}
	all = withSeldom(all, seen, at, window, lookback)
	all[0].namespaces = nil
	for of, p := range seen {
		g := &all[indexOf(all, of)]
		g.apart = max(g.apart, p.apart)
	}
	return all
}

// newestFirst are the units in an order that is the same each time.
func newestFirst(seen map[unit]seenPace) []unit {
	return slices.SortedFunc(maps.Keys(seen), func(a, b unit) int {
		return cmp.Or(seen[b].newest.Compare(seen[a].newest), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
}

// withSeldom adds groups of those of which the window of their namespace holds less than two scrapes, as others
// are scraped more often: two monitors may select the pods of one model, or two addresses of one pod, of which
// each may be the one that counts. They are read at the same
// time, so that no namespace needs more than a few groups, and first those that are read now, which any
// namespace may have.
func withSeldom(groups []group, seen map[unit]seenPace, now time.Time, window, lookback time.Duration) []group {
	type seldom struct {
		of     unit
		within group
		window time.Duration
	}
	var all []seldom
	for _, of := range newestFirst(seen) {
		if of.Name == "" {
			continue
		}
		p, within := seen[of], groups[indexOf(groups, of)]
		own := round.Window(max(p.interval(), p.apart), window, lookback)
		if p.goesOn(seen[unit{Namespace: of.Namespace}], now) {
			own = p.holdsTwo(max(own, within.window), within.at, now, window, lookback)
		}
		if own > within.window {
			all = append(all, seldom{of, within, own})
		}
	}
	slices.SortStableFunc(all, func(a, b seldom) int { return b.within.at.Compare(a.within.at) })
	most := len(groups) + manyGroups
	for _, one := range all {
		p := seen[one.of]
		i := slices.IndexFunc(groups, func(g group) bool { return g.window == one.window && g.at.Equal(one.within.at) })
		if i < 0 && len(groups) < most {
			i = len(groups)
			groups = append(groups, group{at: one.within.at, window: one.window, paces: map[unit]decision.Pace{}})
		}
		if i >= 0 {
			groups[i].add(one.of, p, one.window, p.densestIn(one.window))
		}
	}
	return groups
}

// holdsTwo is the smallest window from a given one on that holds two scrapes when it ends then.
func (p seenPace) holdsTwo(from time.Duration, end, now time.Time, window, lookback time.Duration) time.Duration {
	for _, wide := range round.Windows(window) {
		w := min(wide, max(window, lookback))
		two := end.Sub(p.newest)+p.interval() < w
		if end.Equal(now) {
			two = p.scrapesIn(w, window, lookback) >= 2
		}
		if w >= from && two {
			return w
		}
	}
	return from
}

// group is how one that is scraped like this is read. Where the newest scrape is so old that the window would
// hold no other one, or some of its pods cannot be read now, it is asked for at its time, too.
func (p seenPace) group(at time.Time, window, lookback time.Duration, apart bool) group {
	interval, age := p.interval(), at.Sub(p.newest)
	g := group{at: at, window: round.Window(interval, window, lookback), paces: map[unit]decision.Pace{}}
	g.densest = p.densestIn(g.window)
	late := float64(age) > punctual*float64(p.least) || age+interval >= g.window || apart
	if interval > 0 && late && age <= mostLag+interval && !p.newest.Add(resolution).After(at) {
		g.at = p.newest.Add(resolution - 1).Truncate(resolution)
	}
	return g
}

// densestIn is how many scrapes a window holds at most.
func (p seenPace) densestIn(window time.Duration) float64 {
	if p.interval() == 0 {
		return p.window
	}
	return max(p.window, math.Ceil(window.Seconds()/p.least.Seconds()))
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
	// What all servers of a model tell is known over a window that is wide enough for each of them.
	slowest := map[string]time.Duration{}
	for of, p := range s.of[ofServers] {
		slowest[of.Namespace] = max(slowest[of.Namespace], p.interval())
	}
	for key, slo := range promises {
		own, interval := usual, slowest[key.Namespace]
		if interval > 0 {
			own.window = round.Window(interval, window, slices.Max(round.Windows(window)))
			// Two scrapes must lie in the window when the next one is about to be known.
			if lag := s.of[ofServers][unit{Namespace: key.Namespace}].lag; lag+2*interval > own.window && lag <= mostLag+interval {
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
