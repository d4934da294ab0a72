package main

import (
	"fmt"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
)

// row is one result with what it is of.
type row struct {
	Trace   string `json:"trace"`
	Prices  string `json:"prices"`
	Cluster string `json:"cluster"`
	replay.Result
	// aside rows are shown and judged by nothing.
	aside bool
}

const (
	// better is the share of requests by which one attainment is better than another.
	better = 0.002
	// cheaper is the relative difference by which one cost is lower than another.
	cheaper = 0.01
	// rounding is what the last digits of a float may add to a difference that is
	// exactly at a limit: far below one request or one cent of a run.
	rounding = 1e-9
)

// ours are the policies that are compared with the baselines. Neither mode is spared
// one: no baseline knows the promised latency, and hybrid mode, which does, must be
// worth it.
var ours = []string{"hybrid", "capacity-only"}

// baselines are the competitors. A fixed fleet reacts to nothing, and the best one is
// known only afterwards.
var baselines = []string{"hpa:queue", "hpa:kv", "keda", "saturation-v1", "saturation-v2"}

// defeat is a baseline that did better than ours.
type defeat struct{ ours, other row }

// String says what was better.
func (d defeat) String() string {
	return fmt.Sprintf("%s: %s attains %.2f%% for %.2f, %s %.2f%% for %.2f", d.ours.place(),
		d.other.Policy, 100*d.other.Attainment, d.other.Cost, d.ours.Policy, 100*d.ours.Attainment, d.ours.Cost)
}

func (r *row) place() string {
	return fmt.Sprintf("%s, %s prices, %s cluster, start-up %g s", r.Trace, r.Prices, r.Cluster, r.StartupSeconds)
}

// measured reports whether the numbers that are judged are there: nothing is proved by
// a run without requests, without a price or without a bound.
func (r *row) measured() bool {
	return !r.aside && r.Requests > 0 && r.Attainment >= 0 && r.Attainment <= 1 && r.Cost > 0 && r.CostOverBound > 0
}

// beats reports whether the other row is better at about the same price, or cheaper at
// about the same attainment. Exactly at a limit, an attainment or a cost is about the
// same.
func beats(other, ours row) bool {
	ahead := other.Attainment - ours.Attainment
	price := other.Cost / ours.Cost
	asGood, asCheap := ahead >= -better-rounding, price <= 1+cheaper+rounding
	return asGood && price < 1-cheaper-rounding || asCheap && ahead > better+rounding
}

// defeats are all that there are, in the order of the rows, and how many pairs were
// compared.
func defeats(rows []row) (lost []defeat, compared int) {
	for i := range rows {
		if !rows[i].measured() || !slices.Contains(ours, rows[i].Policy) {
			continue
		}
		for j := range rows {
			if !rows[j].measured() || !slices.Contains(baselines, rows[j].Policy) || !sameTrial(rows[i], rows[j]) {
				continue
			}
			compared++
			if beats(rows[j], rows[i]) {
				lost = append(lost, defeat{rows[i], rows[j]})
			}
		}
	}
	return lost, compared
}

func sameTrial(a, b row) bool {
	return a.Trace == b.Trace && a.Prices == b.Prices && a.Cluster == b.Cluster && a.StartupSeconds == b.StartupSeconds
}

// The promise of the second proof.
const (
	leastAttainment = 0.99
	mostOverBound   = 1.3
)

// promised are the traces of which it is given, with a start-up of a minute.
var promised = []string{conversation, large}

// misses are the trials in which hybrid mode attains too little or costs too much over
// the bound, and how many were looked at.
func misses(rows []row) (missed []row, looked int) {
	for _, r := range rows {
		usual := r.Prices == aws && r.Cluster == roomy && r.StartupSeconds == 60
		if !usual || r.Policy != "hybrid" || !slices.Contains(promised, r.Trace) || !r.measured() {
			continue
		}
		looked++
		if r.Attainment < leastAttainment-rounding || r.CostOverBound > mostOverBound+rounding {
			missed = append(missed, r)
		}
	}
	return missed, looked
}

// unplaceable are our rows on the full cluster that asked for what fits nowhere, and
// how many rows of ours there are.
func unplaceable(rows []row) (beyond []row, looked int) {
	for _, r := range rows {
		if r.Cluster != full || !slices.Contains(ours, r.Policy) || !r.measured() {
			continue
		}
		looked++
		if r.UnplaceableReplicas > 0 {
			beyond = append(beyond, r)
		}
	}
	return beyond, looked
}
