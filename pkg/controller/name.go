package controller

import (
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// names are the names of each model by which clients ask for it, its own ID first. Of those that
// its objects list in addition, some are another model's of the namespace.
type names struct {
	of    map[decision.ModelKey][]decision.ModelKey
	taken map[decision.ModelKey][]string
}

// namesOf are the names of the models. What objects of another namespace are called, or list,
// changes none of them. In a namespace, a model ID is nobody's further name: whoever lists one takes
// nothing from its model. A further name that two models of a namespace list is neither's, because
// each would be asked for the requests of the other.
func namesOf(models []*decision.Model) names {
	known, listing := map[decision.ModelKey]bool{}, map[decision.ModelKey]int{}
	for _, m := range models {
		known[decision.ModelKey{Namespace: m.Namespace, ID: m.ID}] = true
		for _, name := range m.Names {
			listing[decision.ModelKey{Namespace: m.Namespace, ID: name}]++
		}
	}
	n := names{of: make(map[decision.ModelKey][]decision.ModelKey, len(models)), taken: map[decision.ModelKey][]string{}}
	for _, m := range models {
		key := decision.ModelKey{Namespace: m.Namespace, ID: m.ID}
		all := []decision.ModelKey{key}
		for _, name := range m.Names {
			switch here := (decision.ModelKey{Namespace: m.Namespace, ID: name}); {
			case name == m.ID:
			case known[here] || listing[here] > 1:
				n.taken[key] = append(n.taken[key], name)
			default:
				all = append(all, here)
			}
		}
		n.of[key] = all
	}
	return n
}

// addNames adds the further names that an object lists to those of its model.
func addNames(m *decision.Model, more []string) {
	if len(more) == 0 {
		return
	}
	m.Names = append(m.Names, more...)
	slices.Sort(m.Names)
	m.Names = slices.Compact(m.Names)
}

// warnOfNames tells the variants whose objects list names that are somebody else's.
func warnOfNames(variants []*variant, n names) {
	for _, v := range variants {
		for _, name := range v.object.Spec.AlsoServes {
			if slices.Contains(n.taken[v.model()], name) {
				v.warn(v1alpha1.ReasonNameTaken, "spec.alsoServes lists %s, which another model of the namespace has or lists, so it is ignored: remove it from one of them", name)
			}
		}
	}
}

// together is what gateways count of a model under all of its names. A rate is known where all
// parts are, and as old as the oldest; of those that wait each is one that waits.
func together(parts []decision.Model) (all decision.Model) {
	for i, part := range parts {
		if i == 0 {
			all = part
			continue
		}
		all.Arrival, all.Recent = bothOf(all.Arrival, part.Arrival), bothOf(all.Recent, part.Recent)
		switch {
		case !all.Queue.Present:
			all.Queue = part.Queue
		case part.Queue.Present:
			all.Queue = bothOf(all.Queue, part.Queue)
		}
		if all.RecentSpan = max(all.RecentSpan, part.RecentSpan); !all.Recent.Present {
			all.RecentSpan = 0
		}
	}
	return all
}

// bothOf is the sum of two samples, absent where one is.
func bothOf(a, b decision.Sample) decision.Sample {
	if !a.Present || !b.Present {
		return decision.Sample{}
	}
	return decision.Sample{Value: a.Value + b.Value, Time: earlier(a.Time, b.Time), Present: true}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
