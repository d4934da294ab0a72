package controller

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

const (
	// mostAdapters is how many names of adapters are remembered of a model, as many as an object may
	// list.
	mostAdapters = 64
	// adapterMemory is for how long they are remembered. Servers show an adapter only while it is asked
	// for, and a model that sleeps shows none: it must wake on Monday for what was asked on Friday.
	adapterMemory = 7 * 24 * time.Hour
)

// adapters are the further names of models that their own pods showed, and when they did last. Whoever
// leads next learns them anew. The zero value has none. It belongs to the goroutine of the loop.
type adapters map[decision.ModelKey]map[string]time.Time

// see takes what pods showed at an instant. A pod is one of a variant's target, so that it names only
// what is of its own namespace. A name that other servers of the namespace show now has moved there.
func (a *adapters) see(variants []*variant, shown map[types.NamespacedName][]string, at time.Time) {
	if *a == nil {
		*a = adapters{}
	}
	served, now := map[decision.ModelKey]bool{}, map[decision.ModelKey]bool{}
	for _, v := range variants {
		model := v.model()
		served[model] = true
		for _, pod := range v.pods {
			for _, name := range shown[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] {
				if (*a)[model] == nil {
					(*a)[model] = map[string]time.Time{}
				}
				(*a)[model][name] = at
				now[decision.ModelKey{Namespace: model.Namespace, ID: name}] = true
			}
		}
	}
	for model, names := range *a {
		maps.DeleteFunc(names, func(name string, last time.Time) bool {
			moved := last.Before(at) && now[decision.ModelKey{Namespace: model.Namespace, ID: name}]
			return moved || at.Sub(last) > adapterMemory
		})
		newest := slices.SortedFunc(maps.Keys(names), func(x, y string) int {
			return cmp.Or(names[y].Compare(names[x]), cmp.Compare(x, y))
		})
		for _, name := range newest[min(len(newest), mostAdapters):] {
			delete(names, name)
		}
		if len(names) == 0 || !served[model] {
			delete(*a, model)
		}
	}
}

// name gives the models those names. What an object says comes before what a pod shows: a name that an
// object of the namespace has or lists is that one's, and one that two models show is neither's.
func (a adapters) name(models map[decision.ModelKey]*decision.Model) {
	said, showing := map[decision.ModelKey]bool{}, map[decision.ModelKey]int{}
	for key, m := range models {
		said[key] = true
		for _, name := range m.Names {
			said[decision.ModelKey{Namespace: key.Namespace, ID: name}] = true
		}
		for name := range a[key] {
			showing[decision.ModelKey{Namespace: key.Namespace, ID: name}]++
		}
	}
	for key, m := range models {
		for _, name := range slices.Sorted(maps.Keys(a[key])) {
			if here := (decision.ModelKey{Namespace: key.Namespace, ID: name}); !said[here] && showing[here] == 1 {
				addNames(m, []string{name})
			}
		}
	}
}
