package main

import (
	"fmt"
	"io"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
)

// row is one result with what it is of.
type row struct {
	Trace   string `json:"trace"`
	Prices  string `json:"prices"`
	Cluster string `json:"cluster"`
	replay.Result
}

const (
	// better is the share of requests by which one attainment is better than another.
	better = 0.002
	// cheaper is the relative difference by which one cost is lower than another.
	cheaper = 0.01
)

// judged says which of ours is compared with which others. Hybrid knows the promised
// latency and is compared with all; the other mode does not, and nor do the baselines.
var judged = []string{"hybrid", "capacity-only"}

// baselines are the competitors. A fixed fleet reacts to nothing, and the best one is
// known only afterwards.
var baselines = []string{"hpa:queue", "hpa:kv", "keda", "saturation-v1", "saturation-v2"}

// defeat is a baseline that did better than ours.
type defeat struct{ ours, other row }

// String says what was better.
func (d defeat) String() string {
	return fmt.Sprintf("%s, %s prices, %s cluster, start-up %g s: %s attains %.2f%% for %.2f; %s attains %.2f%% for %.2f",
		d.ours.Trace, d.ours.Prices, d.ours.Cluster, d.ours.StartupSeconds,
		d.other.Policy, 100*d.other.Attainment, d.other.Cost, d.ours.Policy, 100*d.ours.Attainment, d.ours.Cost)
}

// beats reports whether the other row is better at about the same price, or cheaper at
// about the same attainment.
func beats(other, ours row) bool {
	asGood := other.Attainment >= ours.Attainment-better
	asCheap := other.Cost <= ours.Cost*(1+cheaper)
	return asGood && other.Cost < ours.Cost*(1-cheaper) || asCheap && other.Attainment > ours.Attainment+better
}

// defeats are all that there are, in the order of the rows.
func defeats(rows []row) []defeat {
	var all []defeat
	for _, ours := range rows {
		if !slices.Contains(judged, ours.Policy) {
			continue
		}
		for _, other := range rows {
			if slices.Contains(baselines, other.Policy) && sameTrial(ours, other) && beats(other, ours) {
				all = append(all, defeat{ours, other})
			}
		}
	}
	return all
}

func sameTrial(a, b row) bool {
	return a.Trace == b.Trace && a.Prices == b.Prices && a.Cluster == b.Cluster && a.StartupSeconds == b.StartupSeconds
}

// The promise of the second proof.
const (
	leastAttainment = 0.99
	mostOverBound   = 1.3
)

// misses are the trials in which hybrid mode attains too little or costs too much over
// the bound: with a start-up of a minute, on the traces that are named.
func misses(rows []row) []row {
	var all []row
	for _, r := range rows {
		named := r.Trace == "azure-conversation" || r.Trace == "servegen-m-large"
		usual := r.Prices == aws && r.Cluster == roomy && r.StartupSeconds == 60
		if r.Policy == "hybrid" && named && usual && (r.Attainment < leastAttainment || r.CostOverBound > mostOverBound) {
			all = append(all, r)
		}
	}
	return all
}

// unplaceable are our rows on the full cluster that asked for what fits nowhere.
func unplaceable(rows []row) []row {
	var all []row
	for _, r := range rows {
		if r.Cluster == full && slices.Contains(judged, r.Policy) && r.UnplaceableReplicas > 0 {
			all = append(all, r)
		}
	}
	return all
}

// verdict prints what the rows prove, and reports whether all of it holds.
func verdict(out io.Writer, rows []row) bool {
	lost, missed, beyond := defeats(rows), misses(rows), unplaceable(rows)
	for _, d := range lost {
		fmt.Fprintf(out, "better than ours: %s\n", d)
	}
	for _, r := range missed {
		fmt.Fprintf(out, "promise missed: %s: %.2f%% at %.2f times the bound; expected at least %g%% at no more than %g\n",
			r.Trace, 100*r.Attainment, r.CostOverBound, 100*leastAttainment, mostOverBound)
	}
	for _, r := range beyond {
		fmt.Fprintf(out, "not placeable: %s in the %s cluster asked for %d replicas that fit nowhere\n", r.Policy, r.Cluster, r.UnplaceableReplicas)
	}
	if len(lost)+len(missed)+len(beyond) == 0 {
		fmt.Fprintln(out, "No baseline is better than ours, the promise holds, and nothing was asked for that fits nowhere.")
		return true
	}
	return false
}
