package replay

import (
	"fmt"
	"strings"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// Scenario is what a replay needs beside its requests: nodes, what runs on them, and
// how the autoscaler is configured.
type Scenario struct {
	Name string
	// Prices names the price list that the costs are of.
	Prices string
	// Cluster is what the nodes hold and have free before the first replica.
	Cluster *placement.Cluster
	// Models are served side by side. Every request goes to one of them, drawn by their
	// shares.
	Models []Model
	// Events happen to the nodes, whatever the policy.
	Events []simulation.NodeEvent
	// Learning is how long at the beginning nothing counts, neither requests nor cost: time
	// for who has to learn.
	Learning time.Duration
	// Policy is the configuration that the manager would have. Its Hybrid is set by the
	// policy under test.
	Policy decision.Policy
	// Settings changes that configuration for policies with settings of their own; nil
	// where nobody knows it.
	Settings Settings
	// Policies are those that are tried where nobody asks for others; empty means all.
	Policies []string
	// Variation is the coefficient of variation of the start-up times; the mean is that
	// of the run.
	Variation float64
	// Drain is the grace period of replicas that go.
	Drain time.Duration
	// Collection is how metrics are collected.
	Collection Collection
	// RateSpread is over what time the copies of a request are spread where somebody
	// multiplies the requests (workload.Rate). A replay itself multiplies nothing.
	RateSpread time.Duration

	// found is the share of all prompt tokens that the prefix cache of a variant finds:
	// found[model][variant]; nil where no variant has one.
	found [][]float64
}

// Collection says how late and how coarse metrics are.
type Collection struct {
	// Scrape is the time between two scrapes of one replica.
	Scrape time.Duration
	// Later is by how many whole seconds every scrape comes later than where the name of what
	// is scraped puts it: how old metrics are when a round begins is chance.
	Later time.Duration
	// Window is the time over which rates and means are taken.
	Window time.Duration
	// Gateway is set when a gateway counts the requests of each model.
	Gateway bool
}

// Model is one model of a scenario.
type Model struct {
	Namespace, ID string
	// SLO is promised to its clients.
	SLO capacity.SLO
	// Share is how many of the trace's requests it gets, compared with the other models;
	// 0 means 1.
	Share float64
	// Traffic is what its clients ask for where no trace says it; nil means nothing. The
	// seed is that of the run.
	Traffic  *workload.Synthetic
	Variants []Variant
}

// key is the name by which decisions know it.
func (m *Model) key() decision.ModelKey {
	return decision.ModelKey{Namespace: m.Namespace, ID: m.ID}
}

// Variant is one way to serve a model.
type Variant struct {
	Name string
	// Cost is the price of one replica per hour.
	Cost capacity.Cost
	// Unpriced says that nobody gave that price: Cost then counts the memory of the devices.
	Unpriced bool
	// Request is what one replica takes and where it may go.
	Request *placement.Request
	// Profile is the latency of one replica in the simulated world.
	Profile serving.Profile
	// Given is the profile that the autoscaler is given; the zero value means none, so
	// that it has to learn.
	Given serving.Profile
	// TokenBudget is the most tokens in one iteration; 0 means the engine's default.
	TokenBudget int
	// PrefixCache has a replica find what it computed of prompts that begin alike, which
	// the requests have to say; PrefixHits is the share of its prompt that any other
	// request finds. See simulation.Options.
	PrefixCache bool
	PrefixHits  float64
	// Weight is how much load the router gives one replica, compared with those of the
	// other variants; 0 means 1.
	Weight float64
	// Policy is its bounds and behaviour.
	Policy decision.VariantPolicy
	// Initial is the number of replicas at the start where nothing else says it;
	// negative means what the load needs before a replica could start.
	Initial int
}

// epoch is the time of day of a run's beginning: nothing depends on it.
var epoch = time.Unix(0, 0).UTC()

func at(t time.Duration) time.Time { return epoch.Add(t) }

// served are the models as the world knows them.
func (s *Scenario) served(initial [][]int) []simulation.ServedModel {
	models := make([]simulation.ServedModel, 0, len(s.Models))
	for m := range s.Models {
		model := simulation.ServedModel{ID: s.Models[m].ID, SLO: s.Models[m].SLO}
		for i, v := range s.Models[m].Variants {
			model.Variants = append(model.Variants, simulation.ServedVariant{
				Name: v.Name, Profile: v.Profile, TokenBudget: v.TokenBudget, Request: v.Request,
				PrefixCache: v.PrefixCache, PrefixHits: v.PrefixHits,
				Weight: v.Weight, Max: v.Policy.Max, Initial: initial[m][i],
			})
		}
		models = append(models, model)
	}
	return models
}

// check reports what a scenario lacks.
func (s *Scenario) check() error {
	if s == nil || s.Cluster == nil || len(s.Models) == 0 {
		return fmt.Errorf("the scenario has no cluster or no models; expected both")
	}
	if s.Learning < 0 || s.Learning%minute != 0 {
		return fmt.Errorf("the learning takes %s; expected whole minutes, at least 0", s.Learning)
	}
	seen, models := map[decision.Key]bool{}, map[decision.ModelKey]bool{}
	for i := range s.Models {
		m := &s.Models[i]
		id := m.key()
		if models[id] {
			return fmt.Errorf("model %s: namespace %q has it twice; expected each model once", m.ID, m.Namespace)
		}
		models[id] = true
		if len(m.Variants) == 0 {
			return fmt.Errorf("model %s: it has no variants; expected at least one", m.ID)
		}
		for j := range m.Variants {
			v := &m.Variants[j]
			key := decision.Key{Namespace: m.Namespace, Name: v.Name}
			switch {
			case v.Name == "" || seen[key]:
				return fmt.Errorf("model %s: variant %q: expected a name that no other variant of namespace %q has", m.ID, v.Name, m.Namespace)
			case v.Request == nil:
				return fmt.Errorf("model %s: variant %s: the shape of a replica is not known; expected an accelerator and its count", m.ID, v.Name)
			case !v.Profile.Known():
				return fmt.Errorf("model %s: variant %s: it has no profile; expected the latency parameters of one replica", m.ID, v.Name)
			}
			seen[key] = true
		}
	}
	return s.Collection.check(s.Policy.Interval)
}

// check says what is wrong with it where rounds are so far apart.
func (c Collection) check(interval time.Duration) error {
	if c.Scrape < second || c.Scrape%second != 0 || c.Window < 2*c.Scrape || interval < second || interval%second != 0 {
		return fmt.Errorf("metrics are scraped every %s, over a window of %s, for rounds every %s; expected whole seconds for scrapes and rounds, at least one, and a window of at least two scrapes",
			c.Scrape, c.Window, interval)
	}
	if c.Later < 0 || c.Later%second != 0 {
		return fmt.Errorf("scrapes come %s later; expected whole seconds, at least 0", c.Later)
	}
	return nil
}

// variantNamed is the place of a variant, which is named NAME or, where several namespaces
// have one of that name, NAMESPACE/NAME.
func (s *Scenario) variantNamed(name string) (simulation.VariantIndex, error) {
	var found []simulation.VariantIndex
	var names []string
	for m := range s.Models {
		for v := range s.Models[m].Variants {
			own := s.Models[m].Variants[v].Name
			names = append(names, own)
			if name == own || name == s.Models[m].Namespace+"/"+own {
				found = append(found, simulation.VariantIndex{Model: m, Variant: v})
			}
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return simulation.VariantIndex{}, fmt.Errorf("no variant is named %s; expected one of %s", name, strings.Join(names, ", "))
	}
	return simulation.VariantIndex{}, fmt.Errorf("%d variants are named %s; expected NAMESPACE/NAME", len(found), name)
}
