package prometheus

import (
	"cmp"
	"context"
	"errors"
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
	"k8s.io/apimachinery/pkg/types"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
)

// What is asked of the servers and of the gateways of a namespace before anything else is. What is asked of some
// pods is asked apart: how long that answer is, is up to whoever runs them.
const (
	paces      = "scrapes of each namespace"
	unlikes    = "pods that are scraped otherwise than others"
	podPaces   = "scrapes of these pods"
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
	// manyGroups is in how many ways namespaces are read at most beside the usual one, and in how many
	// further ones what is scraped more seldom than others of its namespace.
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

// unit is what is scraped in one way: the servers or the gateways of a namespace, which has no name
// then, or one pod or model of it. A namespace is scraped as the densest of its series is: a young one
// has few scrapes at any interval.
type unit = types.NamespacedName

// seenPace is how a unit is scraped.
type seenPace struct {
	newest time.Time
	// window, middle and behind are the largest numbers of scrapes within the window, the next
	// wider one, and the lookback.
	window, middle, behind float64
	// least and most are what the time between two scrapes can be; both are zero where nothing
	// says it, as where there was a single scrape.
	least, most time.Duration
	// addresses are how each of several is scraped, and apart is the longest time between two scrapes of one.
	addresses map[string]seenPace
	apart     time.Duration
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

// paces asks for all that seenPace has, of each namespace.
func (q builder) paces(middle time.Duration) query {
	var parts []string
	ask := func(about string, expression func(series string) string, quantities ...modelserver.Quantity) {
		var all []string
		for _, quantity := range quantities {
			for _, series := range selectors(quantity) {
				all = append(all, expression(series))
			}
		}
		parts = append(parts, by(about, fmt.Sprintf("max by (%s) (%s)", modelserver.LabelNamespace, strings.Join(all, " or "))))
	}
	for about, expression := range q.numbers(middle) {
		ask(ofServers+about, expression, modelserver.Running, modelserver.Completed)
		ask(ofGateways+about, expression, modelserver.GatewayQueue, modelserver.GatewayDispatched)
	}
	slices.Sort(parts)
	return asking(paces, parts...)
}

// numbers are those of a pace.
func (q builder) numbers(middle time.Duration) map[string]func(series string) string {
	count := func(past string) func(series string) string {
		return func(series string) string { return fmt.Sprintf("count_over_time(%s[%s])", series, past) }
	}
	return map[string]func(series string) string{
		paceNewest: func(series string) string { return fmt.Sprintf("timestamp(%s)", series) },
		paceWindow: count(q.window), paceMiddle: count(promDuration(middle)), paceBehind: count(q.lookback),
	}
}

// owned is what is asked of the units of one kind: by which labels, and of which of their series.
type owned struct {
	kind, owner, labels string
	quantities          []modelserver.Quantity
}

// ownedByPods and ownedByModels are the servers and the gateways. Every server shows what runs.
func ownedByPods() owned {
	return owned{ofServers, "namespace,pod,pod_name", sources + "," + address, []modelserver.Quantity{modelserver.Running}}
}

func ownedByModels() owned {
	return owned{ofGateways, perModel, perPod + "," + address + ",target_model_name,model_name", []modelserver.Quantity{modelserver.GatewayQueue, modelserver.GatewayDispatched}}
}

// first makes one value for each address of a unit, of the first of its quantities that it shows.
func (o owned) first(expression func(series string) string) string {
	var all []string
	for _, quantity := range o.quantities {
		all = append(all, each(quantity, func(series string) string {
			return fmt.Sprintf("max by (%s) (%s)", o.labels, expression(series))
		}))
	}
	return "(" + strings.Join(all, " or ") + ")"
}

func (o owned) named(vector string) string {
	if o.kind == ofGateways {
		return vector
	}
	return ofPods("max", perPod+","+address, vector)
}

// unlike asks which units are not scraped as their namespace is: more seldom than others, or so that their newest
// scrape is older than an interval. They are few.
func (q builder) unlike(lookback time.Duration) query {
	var parts []string
	for _, o := range []owned{ownedByPods(), ownedByModels()} {
		behind := o.first(func(series string) string { return fmt.Sprintf("count_over_time(%s[%s])", series, q.lookback) })
		newest := o.first(func(series string) string { return fmt.Sprintf("timestamp(%s)", series) })
		most := func(vector string) string {
			return fmt.Sprintf("on (namespace) group_left () max by (namespace) (%s)", vector)
		}
		// Of n scrapes within a time the others lie n-1 to n intervals behind the newest one.
		found := fmt.Sprintf("%[1]s * %[2]g < %[3]s or (time() - %[4]s) * %[5]s > %[6]s", behind, mature, most(behind),
			newest, most(behind+" - 0.5"), most(fmt.Sprintf("%g * (%g - time() + %s)", punctual, lookback.Seconds(), newest)))
		parts = append(parts, by(o.kind, o.named(fmt.Sprintf("%s >= 2 and on (%s) (%s)", behind, o.owner, found))))
	}
	return asking(unlikes, parts...)
}

// podPaces asks for all that seenPace has of each address of some pods, and of each model at each address of
// a gateway.
func (q builder) podPaces(middle time.Duration, pods map[string]bool) query {
	matchers := []string{""}
	if len(pods) <= manyPods {
		matchers = nil
		for _, names := range inLots(slices.Sorted(maps.Keys(pods))) {
			matchers = append(matchers, fmt.Sprintf("pod=~%q", names), fmt.Sprintf("pod_name=~%q", names))
		}
	}
	var parts []string
	for about, expression := range q.numbers(middle) {
		for _, matcher := range matchers {
			o := ownedByPods()
			parts = append(parts, by(ofServers+about, o.named(o.first(func(series string) string { return expression(narrowed(series, matcher)) }))))
		}
		parts = append(parts, by(ofGateways+about, ownedByModels().first(expression)))
	}
	slices.Sort(parts)
	return asking(podPaces, parts...)
}

// seenPaces reads what was asked for, of servers or of gateways, and joins it for each namespace.
func seenPaces(vector model.Vector, kind string) map[unit]seenPace {
	seen := map[unit]seenPace{}
	for _, s := range vector {
		about, ours := strings.CutPrefix(string(s.Metric[labelIs]), kind)
		if !ours {
			continue
		}
		of, _ := podOf(s.Metric)
		if kind == ofGateways {
			key, _ := modelOf(s.Metric)
			of = unitOf(key)
		}
		seen[unit{Namespace: of.Namespace}] = seen[unit{Namespace: of.Namespace}].with(about, s)
		if of.Name == "" {
			continue
		}
		p, at := seen[of].with(about, s), string(s.Metric[labelPod]+"/"+s.Metric[address])
		if p.addresses == nil {
			p.addresses = map[string]seenPace{}
		}
		p.addresses[at] = p.addresses[at].with(about, s)
		seen[of] = p
	}
	maps.DeleteFunc(seen, func(_ unit, p seenPace) bool { return p.newest.Unix() <= 0 || !(p.behind > 0) })
	return seen
}

// with is a pace with one more number of what was asked for. The densest counts.
func (p seenPace) with(about string, s *model.Sample) seenPace {
	switch about {
	case paceNewest:
		if newest := time.Unix(0, 0).Add(seconds(number(s))).UTC(); newest.After(p.newest) {
			p.newest = newest
		}
	case paceWindow:
		p.window = max(p.window, number(s))
	case paceMiddle:
		p.middle = max(p.middle, number(s))
	case paceBehind:
		p.behind = max(p.behind, number(s))
	}
	return p
}

func unitOf(key decision.ModelKey) unit { return unit{Namespace: key.Namespace, Name: key.ID} }

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
	for _, one := range p.addresses {
		if len(p.addresses) > 1 {
			p.apart = max(p.apart, one.bounded(at, window, lookback).interval())
		}
	}
	p.addresses = nil
	return p
}

func middleOf(window, lookback time.Duration) time.Duration {
	return min(time.Duration(wider[1]*float64(window)), lookback)
}

// sightings are what one reading after the other has shown of how units are scraped. The zero
// value has none. It is safe for concurrent use.
type sightings struct {
	mu sync.Mutex
	of map[string]map[unit]seenPace
}

// see joins what is seen now with what was seen before, and forgets what is gone.
func (s *sightings) see(kind string, seen map[unit]seenPace, at time.Time, window, lookback time.Duration) {
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
		s.of = map[string]map[unit]seenPace{}
	}
	s.of[kind] = seen
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
		if usual := windowFor(whole.interval(), window, lookback); windowFor(p.interval(), window, lookback) <= usual {
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
		own := windowFor(max(p.interval(), p.apart), window, lookback)
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
	for _, factor := range wider {
		w := min(time.Duration(factor*float64(window)), max(window, lookback))
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
	g := group{at: at, window: windowFor(interval, window, lookback), paces: map[unit]decision.Pace{}}
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
			own.window = windowFor(interval, window, time.Duration(wider[len(wider)-1]*float64(window)))
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

// paced asks how all is scraped, and says in which groups servers and gateways are
// read. Without an answer all are read as usual.
func (c *Client) paced(ctx context.Context, at time.Time, window, lookback time.Duration) (servers, gateways []group, err error) {
	at = at.Truncate(resolution)
	q, middle := newBuilder(window, lookback), middleOf(window, lookback)
	vector, err := c.instant(ctx, q.paces(middle), at)
	if err == nil {
		c.crowds.find(seenPaces(vector, ofServers), seenPaces(vector, ofGateways))
	}
	each, eachErr := c.pacesOfUnlike(ctx, q, middle, lookback, at)
	vector = append(vector, each...)
	groups := func(kind string) []group {
		seen := seenPaces(vector, kind)
		if err == nil {
			c.seen.see(kind, seen, at, window, lookback)
		}
		return groupsOf(seen, at, window, lookback)
	}
	return groups(ofServers), groups(ofGateways), errors.Join(err, eachErr)
}

// pacesOfUnlike are the paces of those that are not scraped as their namespace is.
func (c *Client) pacesOfUnlike(ctx context.Context, q builder, middle, lookback time.Duration, at time.Time) (model.Vector, error) {
	found, err := c.instant(ctx, q.unlike(lookback), at)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	pods := map[string]bool{}
	for _, s := range found {
		if s.Metric[labelIs] == ofServers {
			pods[string(s.Metric[labelPod])] = true
		}
	}
	return c.instant(ctx, q.podPaces(middle, pods), at)
}
