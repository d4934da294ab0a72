package replay

import (
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// Policy decides how many replicas there are. One value serves one run: it may
// remember what it saw.
type Policy interface {
	// Next is when it wants to be asked again, after having been asked at now; the
	// first time is asked for with a negative now.
	Next(now time.Duration) time.Duration
	// Decide answers with the wanted replicas of every variant.
	Decide(view *View) Answer
	// Parameters are what it was run with, in the order in which people read them.
	Parameters() []Parameter
}

// Parameter is one setting of a policy.
type Parameter struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Answer is what a policy wants.
type Answer struct {
	// Replicas are those of every variant of every model, in the order of the scenario.
	Replicas [][]int
	// Victims are, where the policy chooses them itself, the names of the replicas that
	// go, the first one first; without them Kubernetes chooses.
	Victims [][][]string
	// Plan is the decision behind it, for our own policies.
	Plan *decision.Plan
}

// View is what a policy can know at an instant: what the cluster says now, and what was
// scraped before.
type View struct {
	Now    time.Duration
	Models []ModelView
	// Scenario is what people wrote down before: prices, shapes, bounds.
	Scenario *Scenario
	// Cluster is what the nodes hold now. Nobody changes it.
	Cluster *placement.Cluster
}

// ModelView is one model.
type ModelView struct {
	// Gateway are the scrapes of what the gateway says, oldest first; empty without one.
	Gateway []GatewayScrape
	// Queue is what the gateway itself says now of the requests that wait; 0 without a
	// gateway. Who reads it asks the gateway and not the scrapes, as our manager does for
	// models that sleep.
	Queue    int
	Variants []VariantView
}

// VariantView is one variant.
type VariantView struct {
	// Replicas is what its target asks for.
	Replicas int
	// Pods are its replicas that are not leaving, sorted by name.
	Pods []Pod
}

// Ready counts the replicas that serve.
func (v VariantView) Ready() int {
	n := 0
	for i := range v.Pods {
		if v.Pods[i].Stage == simulation.Serving {
			n++
		}
	}
	return n
}

// Pod is one replica and its scrapes of the last minutes, oldest first.
type Pod struct {
	simulation.Replica
	Scrapes []Scrape
}

// Last is the newest scrape; false before the first one.
func (p Pod) Last() (Scrape, bool) {
	if len(p.Scrapes) == 0 {
		return Scrape{}, false
	}
	return p.Scrapes[len(p.Scrapes)-1], true
}

// Scrape is what one replica said of itself at an instant.
type Scrape struct {
	At time.Duration
	simulation.Metrics
}

// KVUse is the used share of the KV cache; 0 where its size is not known.
func (s Scrape) KVUse() float64 {
	if s.KVCapacity == 0 {
		return 0
	}
	return float64(s.KVUsed) / float64(s.KVCapacity)
}

// GatewayScrape is what the gateway said of one model at an instant.
type GatewayScrape struct {
	At time.Duration
	simulation.Gateway
	// Latencies are its histograms; nil unless the policy is a LatencyReader. Nobody changes
	// them.
	Latencies *simulation.Latencies
}
