package scenario

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

const (
	// defaultPeriod is that of the traffic of people.
	defaultPeriod = 24 * time.Hour
	// defaultNotice is how long before AWS takes a spot instance away it says so.
	defaultNotice = 2 * time.Minute
	longestLength = 366 * 24 * time.Hour
)

// events are what can happen to a node, by the words for it.
var events = map[string]simulation.NodeEventKind{
	"cordon": simulation.Cordoned, "drain": simulation.Drained, "fail": simulation.Failed, "reclaim": simulation.Reclaimed,
}

// schedule says what happens when: how long the traffic lasts, how much of it is for
// learning, and what befalls the nodes.
func (a *assembly) schedule() error {
	d, s := a.document, a.scenario
	if length := a.length(); length < time.Minute || length > longestLength {
		return fmt.Errorf("length is %s: expected from 1m to %s", length, longestLength)
	}
	if d.Learning != nil {
		s.Learning = time.Duration(*d.Learning)
	}
	if s.Learning%time.Minute != 0 {
		return fmt.Errorf("learning is %s: expected whole minutes", s.Learning)
	}
	own := 0
	for i := range d.Models {
		if d.Models[i].Traffic != nil {
			own++
		}
	}
	for i := range d.Models {
		if own > 0 && d.Models[i].Traffic == nil {
			return fmt.Errorf("%s is missing: expected the traffic of every model, or of none", key(index("models", i), "traffic"))
		}
	}
	if own > 0 && s.Learning >= a.length() {
		return fmt.Errorf("learning is %s: expected less than the length, %s", s.Learning, a.length())
	}
	for i := range d.Events {
		if err := a.addEvent(index("events", i), &d.Events[i]); err != nil {
			return err
		}
	}
	slices.SortStableFunc(s.Events, func(a, b simulation.NodeEvent) int { return cmp.Compare(a.At, b.At) })
	return nil
}

// length is how long the models' own traffic lasts.
func (a *assembly) length() time.Duration {
	if a.document.Length == nil {
		return defaultPeriod
	}
	return time.Duration(*a.document.Length)
}

// traffic is that of one model; nil without any.
func (a *assembly) traffic(at string, in *traffic) (*workload.Synthetic, error) {
	if in == nil {
		return nil, nil
	}
	var like *workload.Example
	for _, e := range workload.Examples() {
		if e.Name == in.Like {
			like = &e
		}
	}
	if like == nil {
		return nil, fmt.Errorf("%s is %q: expected one of %s", key(at, "like"), in.Like, strings.Join(workload.Names(), ", "))
	}
	wave := workload.Wave{Mean: in.Mean, PeakToTrough: 1, Period: defaultPeriod}
	if in.PeakToTrough != nil {
		wave.PeakToTrough = *in.PeakToTrough
	}
	if in.Period != nil {
		wave.Period = time.Duration(*in.Period)
	}
	if in.Peak != nil {
		wave.Peak = time.Duration(*in.Peak)
	}
	if err := wave.Check(); err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	load := like.Load
	load.Rate = wave.Points(a.length())
	return &load, nil
}

// addEvent adds what befalls some nodes, and that it is over.
func (a *assembly) addEvent(at string, in *event) error {
	kind, known := events[in.What]
	switch {
	case in.At == nil:
		return fmt.Errorf("%s is missing: expected the time from the beginning, such as 90m", key(at, "at"))
	case !known:
		return fmt.Errorf("%s is %q: expected cordon, drain, fail or reclaim", key(at, "what"), in.What)
	case len(in.Nodes) == 0:
		return fmt.Errorf("%s is missing: expected names of nodes, or of groups for all of their nodes", key(at, "nodes"))
	case in.Notice != nil && kind != simulation.Reclaimed:
		return fmt.Errorf("%s goes with reclaim only: expected none", key(at, "notice"))
	}
	e := simulation.NodeEvent{At: time.Duration(*in.At), Kind: kind}
	if kind == simulation.Reclaimed {
		e.Notice = defaultNotice
		if in.Notice != nil {
			e.Notice = time.Duration(*in.Notice)
		}
	}
	for i, name := range in.Nodes {
		met := false
		for e.Node = range a.scenario.Cluster.Nodes {
			node := a.scenario.Cluster.Nodes[e.Node].Name
			if node != name && groupOf(node) != name {
				continue
			}
			met = true
			a.scenario.Events = append(a.scenario.Events, e)
			if in.For != nil && e.At < math.MaxInt64-e.Notice-time.Duration(*in.For) {
				over := simulation.NodeEvent{At: e.At + e.Notice + time.Duration(*in.For), Node: e.Node, Kind: simulation.Restored}
				a.scenario.Events = append(a.scenario.Events, over)
			}
		}
		if !met {
			return fmt.Errorf("%s is %q: expected the name of a node of the cluster, or of a group", index(key(at, "nodes"), i), name)
		}
	}
	return nil
}
