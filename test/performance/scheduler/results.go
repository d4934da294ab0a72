package scheduler

import (
	"fmt"
	"io"
	"math"
	"time"
)

// results is what bench-scheduler.json holds.
type results struct {
	Started          time.Time    `json:"started"`
	Minutes          float64      `json:"minutes"`
	Processors       int          `json:"processors"`
	Nodes            int          `json:"nodes"`
	AcceleratorNodes int          `json:"acceleratorNodes"`
	Pods             int          `json:"pods"`
	Pairs            int          `json:"pairs"`
	Summary          []comparison `json:"summary"`
	Runs             []measured   `json:"runs"`
}

// measured is one run.
type measured struct {
	// Pair is its number from 1. The order within a pair is that of the list.
	Pair      int    `json:"pair"`
	Workload  string `json:"workload"`
	Scheduler string `json:"scheduler"`
	Pods      int    `json:"pods"`
	// Seconds is the time from the first binding to the last one.
	Seconds       float64 `json:"seconds"`
	PodsPerSecond float64 `json:"podsPerSecond"`
	// NodesUsed is how many nodes got at least one pod.
	NodesUsed int `json:"nodesUsed"`
	// SchedulerCPUSeconds is the processor time of the scheduler from its start.
	SchedulerCPUSeconds float64 `json:"schedulerCPUSeconds"`
	// Load is the machine's load average before the run.
	Load float64 `json:"load"`
}

// comparison is what the pairs of one workload say.
type comparison struct {
	Workload string `json:"workload"`
	// Stock and Ours are the geometric means of pods per second.
	Stock float64 `json:"stockPodsPerSecond"`
	Ours  float64 `json:"oursPodsPerSecond"`
	// Ratio is ours over stock, with its interval.
	Ratio interval `json:"ratio"`
	// CPURatio is the scheduler's processor time, ours over stock: less is better.
	CPURatio interval `json:"cpuRatio"`
	// Target is where the lower end of the ratio should be.
	Target float64 `json:"target"`
	Met    bool    `json:"met"`
}

// interval is an estimate with the ends of its 95 % confidence interval.
type interval struct {
	Estimate float64 `json:"estimate"`
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
}

// compare pairs the runs of a workload.
func compare(w workload, runs []measured) comparison {
	type pair struct{ stock, ours measured }
	byPair := map[int]pair{}
	order := []int{}
	for _, run := range runs {
		if run.Workload != w.name {
			continue
		}
		p, known := byPair[run.Pair]
		if !known {
			order = append(order, run.Pair)
		}
		if run.Scheduler == stockName {
			p.stock = run
		} else {
			p.ours = run
		}
		byPair[run.Pair] = p
	}
	var stock, ours, ratios, cpu []float64
	for _, number := range order {
		p := byPair[number]
		stock = append(stock, math.Log(p.stock.PodsPerSecond))
		ours = append(ours, math.Log(p.ours.PodsPerSecond))
		ratios = append(ratios, math.Log(p.ours.PodsPerSecond/p.stock.PodsPerSecond))
		cpu = append(cpu, math.Log(p.ours.SchedulerCPUSeconds/p.stock.SchedulerCPUSeconds))
	}
	c := comparison{
		Workload: w.name, Stock: math.Exp(mean(stock)), Ours: math.Exp(mean(ours)),
		Ratio: ratioOf(ratios), CPURatio: ratioOf(cpu), Target: w.target,
	}
	c.Met = c.Ratio.Low >= c.Target
	return c
}

// ratioOf is the mean of logarithms of paired ratios as a ratio, with the interval of
// Student's t:
//
//	exp(m - t s/sqrt(n)), exp(m), exp(m + t s/sqrt(n))
//
// for n ratios with the mean m and the standard deviation s. It needs two of them.
func ratioOf(logs []float64) interval {
	m, n := mean(logs), float64(len(logs))
	squares := 0.0
	for _, x := range logs {
		squares += (x - m) * (x - m)
	}
	half := studentT(len(logs)-1) * math.Sqrt(squares/(n-1)) / math.Sqrt(n)
	return interval{Estimate: math.Exp(m), Low: math.Exp(m - half), High: math.Exp(m + half)}
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// studentT is the 97.5 % quantile of Student's distribution. Up to ten degrees of
// freedom it is the table's; beyond, the first terms of the expansion around the
// normal quantile z (Fisher and Cornish), which are right to three decimals there:
//
//	z + (z^3+z)/(4d) + (5z^5+16z^3+3z)/(96d^2) + (3z^7+19z^5+17z^3-15z)/(384d^3)
func studentT(degrees int) float64 {
	table := [...]float64{math.Inf(1), 12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281}
	if degrees < len(table) {
		return table[max(degrees, 0)]
	}
	const z = 1.959964
	d := float64(degrees)
	z3 := z * z * z
	z5, z7 := z3*z*z, z3*z3*z
	return z + (z3+z)/(4*d) + (5*z5+16*z3+3*z)/(96*d*d) + (3*z7+19*z5+17*z3-15*z)/(384*d*d*d)
}

func (r *results) print(out io.Writer) {
	_, _ = fmt.Fprintf(out, "%d pairs on %d nodes (%d with GPUs), %d pods a run, %.0f minutes\n", r.Pairs, r.Nodes, r.AcceleratorNodes, r.Pods, r.Minutes)
	for _, c := range r.Summary {
		verdict := "met"
		if !c.Met {
			verdict = "MISSED"
		}
		_, _ = fmt.Fprintf(out, "pods with %-11s stock %4.0f/s, ours %4.0f/s, ratio %.3f (%.3f to %.3f), lower end at least %.2f: %s; scheduler's CPU %.2f times\n",
			c.Workload+":", c.Stock, c.Ours, c.Ratio.Estimate, c.Ratio.Low, c.Ratio.High, c.Target, verdict, c.CPURatio.Estimate)
	}
}
