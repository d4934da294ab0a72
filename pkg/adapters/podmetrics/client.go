package podmetrics

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	settings "llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
)

const (
	// defaultWindow and defaultLookback are what is remembered until a reading asks
	// for more.
	defaultWindow   = time.Minute
	defaultLookback = 5 * time.Minute
)

// Client scrapes the pods that it follows and the gateways that it was given. It is
// safe for concurrent use.
type Client struct {
	options  Options
	gateways []*gateway
	// plain speaks to pods over http and carries no token.
	plain, secure *http.Client
	servers       vocabulary
	now           func() time.Time
	// slots are taken by scrapes of pods that answered the last time, missed by those of
	// pods that missed that one, and doubtful by those of pods that missed several: one
	// that is well again waits for none of the many that are on a node that is gone.
	slots, missed, doubtful *turns
	// fresh has a value when there are pods that were never asked.
	fresh   chan struct{}
	scrapes sync.WaitGroup

	mu   sync.Mutex
	pods map[types.NamespacedName]*pod
	// window and lookback are the longest ones that a reading asked for.
	window, lookback time.Duration
}

// pod is a pod that is followed.
type pod struct {
	mu      sync.Mutex
	target  modelserver.Target
	history history
	// lists are the adapters that the last good scrape showed.
	lists []modelserver.AdapterList
	// busy is set while a scrape is under way or waits for its turn.
	busy bool
	// asked is when the last scrape began, and failure what became of it.
	asked   time.Time
	failure error
	// misses counts the failures in a row.
	misses int
}

// New returns a client that follows no pod. It contacts nobody; it fails on options
// out of range, on addresses that are no URL and on TLS files that cannot be used.
func New(o Options) (*Client, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	c := &Client{
		options:  o,
		servers:  vocabularyOf(modelserver.OfServer()),
		now:      o.Now,
		slots:    newTurns(o.Concurrency),
		missed:   newTurns(max(1, o.Concurrency/4)),
		doubtful: newTurns(max(1, o.Concurrency/4)),
		fresh:    make(chan struct{}, 1),
		pods:     map[types.NamespacedName]*pod{},
		window:   defaultWindow, lookback: defaultLookback,
	}
	var err error
	if c.plain, err = o.Pods.client("pod metrics", "", false); err != nil {
		return nil, err
	}
	if c.secure, err = o.Pods.client("pod metrics", "", o.Scheme == schemeHTTPS); err != nil {
		return nil, err
	}
	for _, address := range o.Gateways {
		g, err := newGateway(address, o)
		if err != nil {
			return nil, err
		}
		c.gateways = append(c.gateways, g)
	}
	return c, nil
}

// Follow says which pods to scrape from now on; all others are forgotten. A pod of
// the same name with another UID starts anew.
func (c *Client) Follow(targets []modelserver.Target) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pods := make(map[types.NamespacedName]*pod, len(targets))
	fresh := false
	for _, t := range targets {
		name := types.NamespacedName{Namespace: t.Namespace, Name: t.Name}
		p := c.pods[name]
		if p == nil || !p.follow(t) {
			p, fresh = &pod{target: t}, true
		}
		pods[name] = p
	}
	c.pods = pods
	if fresh {
		select {
		case c.fresh <- struct{}{}:
		default:
		}
	}
}

// follow takes over what changed about a pod; it reports false when it is another pod.
func (p *pod) follow(t modelserver.Target) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.target.UID != t.UID {
		return false
	}
	p.target = t
	return true
}

// Run scrapes at every interval, and pods that are new at once, until the context
// ends. A scrape that takes longer than the interval holds up nothing but itself.
func (c *Client) Run(ctx context.Context) error {
	ticker := time.NewTicker(c.options.Interval)
	defer ticker.Stop()
	defer c.scrapes.Wait()
	for {
		c.round(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		case <-c.fresh:
		}
	}
}

// Scrape asks everything that is due, once, and returns when all have answered or were
// given up. Run does the same again and again and waits for nobody.
func (c *Client) Scrape(ctx context.Context) {
	c.round(ctx)
	c.scrapes.Wait()
}

// round begins a scrape of everything that is due.
func (c *Client) round(ctx context.Context) {
	c.mu.Lock()
	pods := make([]*pod, 0, len(c.pods))
	for _, p := range c.pods {
		pods = append(pods, p)
	}
	window, lookback := c.window, c.lookback
	c.mu.Unlock()
	now := c.now()
	for _, p := range pods {
		slots, namespace, due := c.due(p, now)
		if !due {
			continue
		}
		c.scrapes.Go(func() {
			if !slots.enter(ctx, namespace) {
				p.release()
				return
			}
			c.visit(ctx, p, window, lookback)
			slots.leave()
		})
	}
	for _, g := range c.gateways {
		if g.due(now, c.options.Interval/2) {
			c.scrapes.Go(func() { c.visitGateway(ctx, g, window, lookback) })
		}
	}
}

// due reports whether a pod is to be asked now, and among whom, in turns of its namespace. What was asked just
// now is not: two scrapes close together tell little about the time between them.
func (c *Client) due(p *pod, now time.Time) (among *turns, namespace string, due bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	since := now.Sub(p.asked)
	if p.busy || since >= 0 && since < c.options.Interval/2 {
		return nil, "", false
	}
	p.busy = true
	switch p.misses {
	case 0:
		return c.slots, p.target.Namespace, true
	case 1:
		return c.missed, p.target.Namespace, true
	}
	return c.doubtful, p.target.Namespace, true
}

func (p *pod) release() {
	p.mu.Lock()
	p.busy = false
	p.mu.Unlock()
}

// visit scrapes one pod.
func (c *Client) visit(ctx context.Context, p *pod, window, lookback time.Duration) {
	at := c.now()
	p.mu.Lock()
	p.asked = at
	target := p.target
	p.mu.Unlock()

	found, err := c.ask(ctx, target)

	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy = false
	if ctx.Err() != nil {
		return // not the pod's failure
	}
	if p.failure = err; err != nil {
		p.misses++
		return
	}
	p.misses, p.lists = 0, found.takeLists()
	p.history.append(at, found, c.keep(window), lookback)
}

// keep is how long all points are remembered: a reading may come an interval after the
// newest of them.
func (c *Client) keep(window time.Duration) time.Duration { return window + 2*c.options.Interval }

func (c *Client) ask(ctx context.Context, t modelserver.Target) (exposition, error) {
	address, err := c.address(t)
	if err != nil {
		return nil, err
	}
	client := c.plain
	if address.Scheme == schemeHTTPS {
		client = c.secure
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	all := exposition{}
	for rank := range max(1, t.Ranks) {
		found, err := c.servers.scrape(ctx, client, nextPort(address, rank), "")
		if err == nil && len(found) == 0 {
			err = fmt.Errorf("asking %s: the answer has no metric of a known model server", settings.Location(address.String()))
		}
		if err != nil {
			return nil, err // What some ranks show is a part.
		}
		for k, value := range found {
			if t.Ranks > 1 && k.quantity != modelserver.Adapters {
				k.labels = fmt.Sprintf("%s,port=%d", k.labels, rank)
			}
			all[k] = value // Of what several ranks list, one time is as good as the other.
		}
	}
	return all, nil
}

// nextPort is the address so many ports on.
func nextPort(address *url.URL, more int) *url.URL {
	port, err := strconv.Atoi(address.Port())
	if more == 0 || err != nil {
		return address
	}
	next := *address
	next.Host = net.JoinHostPort(address.Hostname(), strconv.Itoa(port+more))
	return &next
}

func (c *Client) address(t modelserver.Target) (*url.URL, error) {
	ip, err := netip.ParseAddr(t.Address)
	if err != nil {
		return nil, fmt.Errorf("the address %q is no IP address", t.Address)
	}
	port, path, scheme := t.Port, t.Path, t.Scheme
	if port == 0 {
		port = c.options.Port
	}
	if path == "" {
		path = c.options.Path
	}
	if scheme == "" {
		scheme = c.options.Scheme
	}
	path, query, _ := strings.Cut(path, "?")
	return &url.URL{
		Scheme: scheme, Host: net.JoinHostPort(ip.String(), strconv.Itoa(port)),
		Path: "/" + strings.TrimPrefix(path, "/"), RawQuery: query,
	}, nil
}

// Read returns the samples at an instant from what the scrapes have brought so far:
// the replicas by pod, and what gateways count by model. Of a model only its name,
// Arrival, Recent and Queue are set; its namespace is empty when nothing says it.
//
// Rates and means are taken over the window, and over a wider one where it holds no two scrapes;
// Pace says so. Where it holds none, the last value of a gauge is looked for as far back as the
// lookback; such a sample is as old as its time says.
//
// The error says how many ready pods and gateways did not answer the last time, and
// names the first; the rest of the reading is good.
func (c *Client) Read(_ context.Context, at time.Time, window, lookback time.Duration) (map[types.NamespacedName]decision.Replica, map[decision.ModelKey]decision.Model, error) {
	pace := decision.Pace{Interval: c.options.Interval}
	if wide := widened(window, c.options.Interval); wide > window {
		window, lookback, pace.Window = wide, max(wide, lookback), wide
	}
	c.mu.Lock()
	c.window, c.lookback = max(c.window, window), max(c.lookback, lookback)
	pods := make(map[types.NamespacedName]*pod, len(c.pods))
	for name, p := range c.pods {
		pods[name] = p
	}
	c.mu.Unlock()

	replicas := make(map[types.NamespacedName]decision.Replica, len(pods))
	failures, why := map[string]error{}, map[types.NamespacedName]error{}
	for name, p := range pods {
		p.mu.Lock()
		if r, ok := p.history.view(at, window, lookback).replica(name.Name, p.failure != nil); ok {
			r.Pace = pace
			replicas[name] = r
		}
		if p.failure != nil && p.target.Ready {
			failures[name.String()], why[name] = p.failure, p.failure
		}
		p.mu.Unlock()
	}
	models, err := c.models(at, window, lookback)
	for key, m := range models {
		m.Pace = pace
		models[key] = m
	}
	if len(failures) > 0 {
		err = errors.Join(&silent{summary("pods", len(pods), failures), why}, err)
	}
	return replicas, models, err
}

// Adapters returns, by pod, the names of the adapters that it showed in its last scrape and that were in
// use lately. A pod that did not answer the last time is missing. It fails never.
func (c *Client) Adapters(_ context.Context, at time.Time) (map[types.NamespacedName][]string, error) {
	c.mu.Lock()
	pods := maps.Clone(c.pods)
	c.mu.Unlock()
	all := map[types.NamespacedName][]string{}
	for name, p := range pods {
		p.mu.Lock()
		lists := p.lists
		if p.failure != nil {
			lists = nil
		}
		p.mu.Unlock()
		if names := modelserver.AdaptersOf(lists, at); len(names) > 0 {
			all[name] = names
		}
	}
	return all, nil
}

// widened is the window where it holds two scrapes at whatever time it ends, although one comes late;
// else two and a half of the intervals.
func widened(window, interval time.Duration) time.Duration {
	if window >= 2*interval {
		return window
	}
	return interval * 5 / 2
}

// silent is the error of pods that did not answer.
type silent struct {
	error
	why map[types.NamespacedName]error
}

// Of is why a pod did not answer; nil where it did.
func (s *silent) Of(pod types.NamespacedName) error { return s.why[pod] }

// Unwrap is the error of them all.
func (s *silent) Unwrap() error { return s.error }

// summary makes one error of many: how many failed, and the first by name.
func summary(what string, all int, failures map[string]error) error {
	if len(failures) == 0 {
		return nil
	}
	names := make([]string, 0, len(failures))
	for name := range failures {
		names = append(names, name)
	}
	slices.Sort(names)
	return fmt.Errorf("pod metrics: %d of %d %s did not answer, the first is %s: %w", len(names), all, what, names[0], failures[names[0]])
}
