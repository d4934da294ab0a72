package podmetrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	settings "llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
)

// lookAge is how old a scrape may be that a look at the queues still uses.
const lookAge = time.Second

// lookPatience bounds how long one address, and the look-up of all, may hold up a look:
// the next look is due after a second.
const lookPatience = time.Second

// gateway is one URL with the addresses behind it.
type gateway struct {
	url        *url.URL
	client     *http.Client
	vocabulary vocabulary
	// namespace is the one that the host names, or empty. Bound is set where the gateway tells of no
	// other one.
	namespace string
	bound     bool
	lookup    func(ctx context.Context, host string) ([]netip.Addr, error)

	mu        sync.Mutex
	endpoints map[netip.Addr]*endpoint
	busy      bool
	asked     time.Time
	failure   error
}

// endpoint is one address of a gateway.
type endpoint struct {
	address netip.Addr
	// turn is held by whoever asks it.
	turn chan struct{}

	mu      sync.Mutex
	history history
	failure error
	// looked is when latest was asked for.
	looked time.Time
	latest exposition
}

func newGateway(address string, o Options) (*gateway, error) {
	u, err := gatewayURL(address)
	if err != nil {
		return nil, err
	}
	client, err := o.Gateway.client("pod metrics: gateway "+u.Host, u.Hostname(), true)
	if err != nil {
		return nil, err
	}
	namespace := settings.ServiceNamespace(u.Hostname())
	return &gateway{
		url: u, client: client, vocabulary: vocabularyOf(modelserver.OfGateway()), namespace: namespace,
		bound: namespace != "" && len(o.GatewaysFor) > 0 && !slices.Contains(o.GatewaysFor, namespace),
		lookup: func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		},
		endpoints: map[netip.Addr]*endpoint{},
	}, nil
}

// location names the gateway in errors.
func (g *gateway) location() string { return settings.Location(g.url.String()) }

// due reports whether the gateway is to be asked now.
func (g *gateway) due(now time.Time, least time.Duration) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	since := now.Sub(g.asked)
	if g.busy || since >= 0 && since < least {
		return false
	}
	g.busy, g.asked = true, now
	return true
}

// resolve returns the endpoints that the gateway has now and forgets the others. When
// the name cannot be resolved, they are those of before.
func (g *gateway) resolve(ctx context.Context) ([]*endpoint, error) {
	addresses, err := g.lookup(ctx, g.url.Hostname())
	if err == nil && len(addresses) == 0 {
		err = errors.New("no address")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failure = nil
	if err != nil {
		g.failure = fmt.Errorf("resolving %s: %w", g.url.Hostname(), settings.StableError(err))
		return g.all(), g.failure
	}
	endpoints := make(map[netip.Addr]*endpoint, len(addresses))
	for _, a := range family(addresses) {
		if endpoints[a] = g.endpoints[a]; endpoints[a] == nil {
			endpoints[a] = &endpoint{address: a, turn: make(chan struct{}, 1)}
		}
	}
	g.endpoints = endpoints
	return g.all(), nil
}

func (g *gateway) resolveFor(ctx context.Context, limit time.Duration) ([]*endpoint, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return g.resolve(ctx)
}

// family are the addresses of one family: a server with one of each must not count
// twice.
func family(addresses []netip.Addr) []netip.Addr {
	var four, six []netip.Addr
	for _, a := range addresses {
		if a = a.Unmap(); a.Is4() {
			four = append(four, a)
		} else {
			six = append(six, a)
		}
	}
	if len(four) > 0 {
		return four
	}
	return six
}

// all are the endpoints in the order of their addresses. The gateway must be locked.
func (g *gateway) all() []*endpoint {
	all := make([]*endpoint, 0, len(g.endpoints))
	for _, e := range g.endpoints {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b *endpoint) int { return a.address.Compare(b.address) })
	return all
}

// ask brings the endpoint's latest up to date, unless it is from after the time.
func (g *gateway) ask(ctx context.Context, e *endpoint, after time.Time, now func() time.Time) (exposition, time.Time, error) {
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return nil, time.Time{}, fmt.Errorf("asking %s: %w", g.location(), ctx.Err())
	}
	e.mu.Lock()
	latest, looked := e.latest, e.looked
	e.mu.Unlock()
	// One from after now is from before the clock was set back.
	if latest != nil && looked.After(after) && !looked.After(now()) {
		return latest, looked, nil
	}
	address := *g.url
	address.Host = e.address.String()
	if port := g.url.Port(); port != "" {
		address.Host = net.JoinHostPort(e.address.String(), port)
	} else if e.address.Is6() {
		address.Host = "[" + e.address.String() + "]"
	}
	at := now()
	found, err := g.vocabulary.scrape(ctx, g.client, &address, g.url.Host)
	if err != nil {
		return nil, time.Time{}, err
	}
	found = found.within(g.namespace, g.bound)
	e.mu.Lock()
	e.latest, e.looked = found, at
	e.mu.Unlock()
	return found, at, nil
}

// within gives series without a namespace the one given, else the only one that other
// series of the same model have. Bound leaves out those of other namespaces.
func (x exposition) within(namespace string, bound bool) exposition {
	others := map[string]string{}
	for k := range x {
		if ns := k.model.Namespace; ns != "" {
			if before, found := others[k.model.ID]; found && before != ns {
				ns = ""
			}
			others[k.model.ID] = ns
		}
	}
	named := make(exposition, len(x))
	for k, value := range x {
		if k.model.Namespace == "" {
			k.model.Namespace = namespace
			if namespace == "" {
				k.model.Namespace = others[k.model.ID]
			}
		}
		if !bound || k.model.Namespace == namespace {
			named[k] = value
		}
	}
	return named
}

// visitGateway scrapes all addresses of one gateway.
func (c *Client) visitGateway(ctx context.Context, g *gateway, window, lookback time.Duration) {
	defer func() {
		g.mu.Lock()
		g.busy = false
		g.mu.Unlock()
	}()
	asking, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	endpoints, _ := g.resolve(asking)
	var group errgroup.Group
	for _, e := range endpoints {
		group.Go(func() error {
			begun := c.now()
			found, at, err := g.ask(asking, e, begun.Add(-c.options.Interval/4), c.now)
			e.mu.Lock()
			defer e.mu.Unlock()
			if ctx.Err() != nil {
				return nil
			}
			if e.failure = err; err == nil && at.UnixMilli() != e.history.newest {
				e.history.append(at, found, c.keep(window), lookback)
			}
			return nil
		})
	}
	_ = group.Wait()
}

// models are what all gateways show.
func (c *Client) models(at time.Time, window, lookback time.Duration) (map[decision.ModelKey]decision.Model, error) {
	sums := map[decision.ModelKey]modelserver.Gateway{}
	failures := map[string]error{}
	for _, g := range c.gateways {
		g.mu.Lock()
		endpoints := g.all()
		if g.failure != nil {
			failures[g.location()] = g.failure
		}
		g.mu.Unlock()
		for key, part := range g.parts(endpoints, at, window, lookback, failures) {
			sums[key] = merged(sums, key, part)
		}
	}
	models := make(map[decision.ModelKey]decision.Model, len(sums))
	for key, g := range sums {
		models[key] = g.Model(key)
	}
	return models, summary("gateways", len(c.gateways), failures)
}

// parts are what one gateway shows of each model. Where an address has not answered
// within the window, the sum of the others is a lower bound: a rate is unknown then, and
// so is an empty queue.
func (g *gateway) parts(endpoints []*endpoint, at time.Time, window, lookback time.Duration, failures map[string]error) map[decision.ModelKey]modelserver.Gateway {
	sums := map[decision.ModelKey]modelserver.Gateway{}
	complete := true
	for _, e := range endpoints {
		e.mu.Lock()
		v := e.history.view(at, window, lookback).aged()
		if e.failure != nil && failures[g.location()] == nil {
			failures[g.location()] = e.failure
		}
		if e.history.newest > v.window.from {
			for key := range v.models() {
				part := v.gateway(key)
				if e.failure != nil {
					part.Span = 0
				}
				sums[key] = merged(sums, key, part)
			}
		} else {
			complete = false
		}
		e.mu.Unlock()
	}
	if !complete {
		for key, sum := range sums {
			lower := modelserver.Gateway{Time: sum.Time, Queued: true}
			if sum.Queue.Value > 0 {
				lower.Queue = sum.Queue
			}
			sums[key] = lower
		}
	}
	return sums
}

// merged adds what one more place shows of a model. A place that is new there has no
// rate yet, and adds none.
func merged(sums map[decision.ModelKey]modelserver.Gateway, key decision.ModelKey, part modelserver.Gateway) modelserver.Gateway {
	sum, found := sums[key]
	if !found {
		return part
	}
	sum.Queued = sum.Queued || part.Queued
	sum.Queue = plus(sum.Queue, part.Queue)
	sum.Growth = plus(sum.Growth, part.Growth)
	sum.Change = plus(sum.Change, part.Change)
	sum.Dispatched = plus(sum.Dispatched, part.Dispatched)
	sum.Latest = plus(sum.Latest, part.Latest)
	sum.Born = plus(sum.Born, part.Born)
	sum.Span = max(sum.Span, part.Span)
	if part.Time.Before(sum.Time) {
		sum.Time = part.Time
	}
	return sum
}

// plus is as old as the older of the two.
func plus(a, b decision.Sample) decision.Sample {
	switch {
	case !a.Present:
		return b
	case !b.Present:
		return a
	case b.Time.Before(a.Time):
		a.Time = b.Time
	}
	a.Value += b.Value
	return a
}

// Queues returns the lengths of the gateways' queues, asked for at once: nothing is
// older than a second, and no address is waited for longer. With an error some addresses did not answer; a queue that
// nobody else is known to have is absent then, and any other a lower bound.
func (c *Client) Queues(ctx context.Context, at time.Time) (map[decision.ModelKey]decision.Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	looks := make([]look, len(c.gateways))
	var group errgroup.Group
	for i, g := range c.gateways {
		group.Go(func() error {
			looks[i] = g.look(ctx, at.Add(-lookAge), c.now)
			return nil
		})
	}
	_ = group.Wait()
	queues := map[decision.ModelKey]decision.Sample{}
	failures := map[string]error{}
	for i, l := range looks {
		if l.err != nil {
			failures[c.gateways[i].location()] = l.err
		}
		for key, queue := range l.queues {
			queues[key] = plus(queues[key], queue)
		}
	}
	return queues, summary("gateways", len(c.gateways), failures)
}

// look is what one gateway's addresses say of its queues.
type look struct {
	queues map[decision.ModelKey]decision.Sample
	err    error
}

func (g *gateway) look(ctx context.Context, after time.Time, now func() time.Time) look {
	endpoints, err := g.resolveFor(ctx, lookPatience)
	looks := make([]look, len(endpoints))
	var group errgroup.Group
	for i, e := range endpoints {
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, lookPatience)
			defer cancel()
			found, at, err := g.ask(ctx, e, after, now)
			if err == nil {
				var once history
				once.append(at, found, lookAge, lookAge)
				looks[i].queues = once.queues(at)
			}
			looks[i].err = err
			return nil
		})
	}
	_ = group.Wait()
	sum := look{queues: map[decision.ModelKey]decision.Sample{}, err: err}
	for _, l := range looks {
		sum.err = errors.Join(sum.err, l.err)
		for key, queue := range l.queues {
			sum.queues[key] = plus(sum.queues[key], queue)
		}
	}
	if sum.err != nil {
		for key, queue := range sum.queues {
			if queue.Value <= 0 {
				sum.queues[key] = decision.Sample{}
			}
		}
	}
	return sum
}

// queues are the lengths of all queues that the last scrape showed.
func (h *history) queues(at time.Time) map[decision.ModelKey]decision.Sample {
	v, all := h.view(at, lookAge, lookAge), map[decision.ModelKey]decision.Sample{}
	for key := range v.models() {
		if queue := v.gateway(key).Queue; queue.Present {
			all[key] = queue
		}
	}
	return all
}
