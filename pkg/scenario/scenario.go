package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// Options are choices among what a file has.
type Options struct {
	// Prices names a price list and Cluster a cluster; empty means the one that the
	// file names, or its only one.
	Prices, Cluster string
	// Unprofiled says that variants may have no profile. Those that have none get the zero
	// value, which whoever asks for this fills in.
	Unprofiled bool
}

// What holds where the file says nothing.
const (
	defaultNamespace = "default"
	// defaultScrape is what Prometheus is often told.
	defaultScrape = 15 * time.Second
	// defaultDrain is the grace period of a pod that gives none.
	defaultDrain = 30 * time.Second
	// defaultVariation is that of start-ups from a warm cache on equal nodes.
	defaultVariation = 0.1
	mostVariation    = 2
)

// Parse reads a scenario file. The error is of one mistake and names its place.
func Parse(data []byte, o Options) (*replay.Scenario, error) {
	d, err := decode(data)
	if err != nil {
		return nil, err
	}
	nodes, over, err := d.chosenCluster(o.Cluster)
	if err != nil {
		return nil, err
	}
	if len(d.Models) == 0 {
		return nil, errors.New("models is missing: expected at least one model with its variants")
	}
	a := assembly{document: &d, over: over, unprofiled: o.Unprofiled, scenario: &replay.Scenario{Name: d.Name, Cluster: nodes}}
	if a.settings, err = d.settings(nil, over); err != nil {
		return nil, err
	}
	if err := d.checkClusters(); err != nil {
		return nil, err
	}
	if a.costs, a.scenario.Prices, err = d.unitCosts(o.Prices); err != nil {
		return nil, err
	}
	if err := a.assemble(); err != nil {
		return nil, err
	}
	return a.scenario, a.checkRoom()
}

// chosenCluster is the cluster that is meant and the configuration that goes with it.
func (d *document) chosenCluster(asked string) (*placement.Cluster, map[string]any, error) {
	if d.Nodes != nil && d.Clusters != nil {
		return nil, nil, errors.New("nodes and clusters are both given: expected one of them")
	}
	if d.Clusters == nil && asked == "" && d.Cluster == "" {
		made, err := nodes("nodes", d.Nodes)
		return made, nil, err
	}
	name, err := choose("clusters", "cluster", "--cluster", asked, d.Cluster, d.Clusters)
	if err != nil {
		return nil, nil, err
	}
	chosen := d.Clusters[name]
	made, err := nodes(key(key("clusters", name), "nodes"), chosen.Nodes)
	return made, maps.Clone(chosen.Configuration), err
}

// checkClusters finds the mistakes in clusters that nobody has chosen this time.
func (d *document) checkClusters() error {
	for _, name := range slices.Sorted(maps.Keys(d.Clusters)) {
		at, other := key("clusters", name), d.Clusters[name]
		if _, err := nodes(key(at, "nodes"), other.Nodes); err != nil {
			return err
		}
		if _, err := d.settings(nil, other.Configuration); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	}
	return nil
}

// assembly is a scenario in the making.
type assembly struct {
	document *document
	settings settings
	// base and over are the manager's configuration beside that of the document.
	base  []byte
	over  map[string]any
	costs config.UnitCosts
	// requests are those of live variants by namespace and name; nil without a cluster.
	requests map[decision.Key]*placement.Request
	// slo is promised to models of which nothing else says it.
	slo capacity.SLO
	// unprofiled says that variants may have no profile.
	unprofiled bool

	scenario *replay.Scenario
}

func (a *assembly) assemble() error {
	d, s := a.document, a.scenario
	s.Policy = a.settings.Policy()
	s.Policy.Promises = map[decision.ModelKey]decision.Promise{}
	s.Policy.Variants = map[decision.Key]decision.VariantPolicy{}
	if err := a.collect(); err != nil {
		return err
	}
	s.Drain, s.Variation = defaultDrain, defaultVariation
	if d.Drain != nil {
		s.Drain = time.Duration(*d.Drain)
	}
	if v := d.StartupVariation; v != nil {
		if *v < 0 || *v > mostVariation {
			return fmt.Errorf("startupVariation is %v: expected a coefficient of variation from 0 to %d", *v, mostVariation)
		}
		s.Variation = *v
	}
	s.RateSpread = workload.DefaultSpread
	if d.RateSpread != nil {
		s.RateSpread = time.Duration(*d.RateSpread)
	}
	if err := workload.CheckSpread(s.RateSpread); err != nil {
		return fmt.Errorf("rateSpread: %w", err)
	}
	if err := a.schedule(); err != nil {
		return err
	}
	for i := range d.Models {
		if err := a.addModel(index("models", i), &d.Models[i]); err != nil {
			return err
		}
	}
	a.settings.ofModels(&s.Policy, maps.Keys(s.Policy.Promises))
	s.Settings = &manager{document: d, base: a.base, over: a.over, policy: s.Policy}
	return a.policies()
}

// collect says how metrics are collected.
func (a *assembly) collect() error {
	c := replay.Collection{Scrape: defaultScrape, Window: a.settings.MetricsWindow, Gateway: a.settings.collection.Gateway}
	if given := a.settings.collection.Scrape; given != nil {
		c.Scrape = time.Duration(*given)
	}
	// Two scrapes are the least that a rate needs.
	if c.Scrape < time.Second || c.Scrape%time.Second != 0 || c.Scrape > c.Window/2 {
		return fmt.Errorf("collection.scrape is %s: expected whole seconds, at least 1s and at most half of the window (%s)", c.Scrape, c.Window)
	}
	// A replay counts in whole seconds.
	if interval := a.settings.Interval; interval%time.Second != 0 {
		return fmt.Errorf("configuration.GLOBAL_OPT_INTERVAL is %s: expected whole seconds", interval)
	}
	a.scenario.Collection = c
	return nil
}

func (a *assembly) addModel(at string, in *model) error {
	m := replay.Model{Namespace: in.Namespace, ID: in.ID}
	if m.Namespace == "" {
		m.Namespace = defaultNamespace
	}
	name := decision.ModelKey{Namespace: m.Namespace, ID: m.ID}
	_, twice := a.scenario.Policy.Promises[name]
	switch {
	case in.ID == "":
		return fmt.Errorf("%s is missing: expected the name by which clients ask for the model", key(at, "id"))
	case twice:
		return fmt.Errorf("%s is %q, as that of another model of namespace %s: expected all its variants in one place", key(at, "id"), in.ID, m.Namespace)
	case in.Share != nil && !(*in.Share > 0):
		return fmt.Errorf("%s is %v: expected above 0", key(at, "share"), *in.Share)
	case len(in.Variants) == 0:
		return fmt.Errorf("%s is missing: expected at least one variant", key(at, "variants"))
	}
	if in.Share != nil {
		m.Share = *in.Share
	}
	var err error
	if m.Traffic, err = a.traffic(key(at, "traffic"), in.Traffic); err != nil {
		return err
	}
	promise, err := a.promise(at, in)
	if err != nil {
		return err
	}
	m.SLO = promise.SLO
	a.scenario.Policy.Promises[name] = promise
	for i := range in.Variants {
		if err := a.addVariant(index(key(at, "variants"), i), &m, &in.Variants[i]); err != nil {
			return err
		}
	}
	a.scenario.Models = append(a.scenario.Models, m)
	return nil
}

func (a *assembly) addVariant(at string, m *replay.Model, in *variant) error {
	name := decision.Key{Namespace: m.Namespace, Name: in.Name}
	if _, twice := a.scenario.Policy.Variants[name]; twice {
		return fmt.Errorf("%s is %q, as that of another variant of namespace %s: expected a name of its own", key(at, "name"), in.Name, m.Namespace)
	}
	b := built{at: at, in: in, request: a.requests[name], cluster: a.scenario.Cluster, costs: a.costs, priced: a.requests != nil, unprofiled: a.unprofiled}
	b.spec.ModelID = m.ID
	v, err := b.variant()
	if err != nil {
		return err
	}
	a.scenario.Policy.Variants[name] = v.Policy
	m.Variants = append(m.Variants, v)
	return nil
}

// promise is what was promised to the clients of a model: by itself, else by the
// service classes.
func (a *assembly) promise(at string, in *model) (decision.Promise, error) {
	if in.SLO != nil {
		if in.SLO.TTFT < 0 || in.SLO.ITL < 0 || in.SLO.TTFT+in.SLO.ITL == 0 {
			return decision.Promise{}, fmt.Errorf("%s is ttft %v and itl %v: expected milliseconds of at least 0, one of them above", key(at, "slo"), in.SLO.TTFT, in.SLO.ITL)
		}
		return decision.Promise{
			Priority: decision.LeastPriority,
			SLO:      capacity.SLO{TTFT: capacity.Milliseconds(in.SLO.TTFT), ITL: capacity.Milliseconds(in.SLO.ITL)},
		}, nil
	}
	var references []config.ClassReference
	for i := range in.Variants {
		if r := in.Variants[i].SLOClassRef; r != nil {
			references = append(references, config.ClassReference{Variant: in.Variants[i].Name, Class: r.Name, Key: r.Key})
		}
	}
	promise := a.settings.Promise(decision.ModelKey{Namespace: cmp.Or(in.Namespace, defaultNamespace), ID: in.ID}, references)
	switch {
	case promise.SLO != capacity.SLO{}:
		return promise, nil
	case a.slo != capacity.SLO{}:
		promise.SLO, promise.Problem = a.slo, ""
		return promise, nil
	case promise.Problem != "":
		return promise, fmt.Errorf("%s: %s", at, promise.Problem)
	case a.requests != nil:
		return promise, fmt.Errorf("model %s has no SLO: expected --slo-ttft or --slo-itl, a service class that lists it, or slo in a scenario file", in.ID)
	}
	return promise, fmt.Errorf("%s is missing, and no service class lists model %s: expected one of both", key(at, "slo"), in.ID)
}

// checkRoom refuses variants that would fit on no node even without other work.
func (a *assembly) checkRoom() error {
	empty := a.scenario.Cluster.Emptied()
	for i, m := range a.scenario.Models {
		for j, v := range m.Variants {
			slots, err := empty.Slots(v.Request)
			if err == nil && slots > 0 {
				continue
			}
			at := index(key(index("models", i), "variants"), j)
			if err != nil {
				return fmt.Errorf("%s: %w", at, err)
			}
			return fmt.Errorf("%s: no node has room for a replica of %s even without other work: %s; expected nodes that do", at, v.Name, empty.Explain(v.Request))
		}
	}
	return nil
}
