package prometheus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/types"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
	"llmd.ai/workload-variant-autoscaler/pkg/round"
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
	// punctual is how many intervals old the newest scrape is at most to be asked for now. Prometheus
	// carries a rate on to the end of its window over 1.1 of them.
	punctual = 1.05
	// mature is how many times as many scrapes a longer time must have had than a shorter one: a
	// series that has just begun has as many in both, and says nothing of the longer one.
	mature = 1.5
)

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
	return min(round.Windows(window)[1], lookback)
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
