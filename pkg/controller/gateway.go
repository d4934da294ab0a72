package controller

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"k8s.io/klog/v2"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/forecast"
)

// counted is what gateways count of each model, under the name that they give it.
type counted[T any] struct {
	models map[decision.ModelKey]T
	names  map[string][]decision.ModelKey
}

func countedBy[T any](models map[decision.ModelKey]T) counted[T] {
	c := counted[T]{models: models, names: make(map[string][]decision.ModelKey, len(models))}
	for key := range models {
		c.names[key.ID] = append(c.names[key.ID], key)
	}
	return c
}

// key is the name under which gateways count what is asked for by a name. The model's own
// namespace comes first. A gateway may also say none, or that in which it runs itself: where
// nobody else has the name, series without a namespace count for it, else those of the only
// namespace that gateways show the name in. Nothing else is guessed.
func (c counted[T]) key(of asked) (decision.ModelKey, bool) {
	bare := decision.ModelKey{ID: of.name.ID}
	_, own := c.models[of.name]
	_, nameless := c.models[bare]
	names := c.names[of.name.ID]
	switch {
	case own:
		return of.name, true
	case !of.alone:
	case nameless:
		return bare, true
	case len(names) == 1:
		return names[0], true
	}
	return decision.ModelKey{}, false
}

// gatewayCounts is what gateways count of each name.
type gatewayCounts struct{ counted[decision.Model] }

// under is what gateways count under the names of a model; nil where that is nothing. It is
// doubtful where they count one of its names for who knows whom.
func (c gatewayCounts) under(all []asked, ours map[decision.ModelKey]bool) (sum *decision.Model, doubtful bool) {
	var parts []decision.Model
	for _, of := range all {
		if name, ok := c.key(of); ok {
			parts = append(parts, c.models[name])
		} else if slices.ContainsFunc(c.names[of.name.ID], func(name decision.ModelKey) bool { return !ours[name] }) {
			doubtful = true
		}
	}
	if len(parts) == 0 {
		return nil, doubtful
	}
	g := together(parts)
	return &g, doubtful
}

// claimed are the names of all models in their own namespaces, and the namespaces in which
// gateways count others.
func claimed(all map[decision.ModelKey][]asked, gateways map[decision.ModelKey]decision.Model) (ours map[decision.ModelKey]bool, strange map[string]bool) {
	ours, strange = map[decision.ModelKey]bool{}, map[string]bool{}
	here := map[string]bool{}
	for key, of := range all {
		here[key.Namespace] = true
		for _, a := range of {
			ours[a.name] = true
		}
	}
	for name := range gateways {
		if here[name.Namespace] && !ours[name] {
			strange[name.Namespace] = true
		}
	}
	return ours, strange
}

// join gives each model what the gateways count under its names, how its load went on earlier days
// and how its promise was kept, and sorts the models. Unclear are those of which gateways count
// what may be somebody else's, or in whose namespace they count what no model has for a name.
func join(models map[decision.ModelKey]*decision.Model, gateways map[decision.ModelKey]decision.Model, history map[decision.ModelKey][]forecast.History, met map[decision.ModelKey]decision.Kept) (sorted []decision.Model, unclear []decision.ModelKey) {
	all := namesOf(slices.Collect(maps.Values(models))).of
	read, past, kept := gatewayCounts{countedBy(gateways)}, countedBy(history), countedBy(met)
	ours, strange := claimed(all, gateways)
	sorted = make([]decision.Model, 0, len(models))
	for _, key := range slices.SortedFunc(maps.Keys(models), byNamespace) {
		m := models[key]
		g, doubtful := read.under(all[key], ours)
		if g != nil {
			m.Arrival, m.Recent, m.RecentSpan, m.Queue = g.Arrival, g.Recent, g.RecentSpan, g.Queue
		}
		if doubtful || strange[key.Namespace] {
			unclear = append(unclear, key)
		}
		own := all[key][0]
		if name, ok := past.key(own); ok {
			m.History = history[name]
		}
		if name, ok := kept.key(own); ok {
			m.Met = met[name]
		}
		sorted = append(sorted, *m)
	}
	return sorted, unclear
}

func byNamespace(a, b decision.ModelKey) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.ID, b.ID))
}

// tellUnclear logs, once for each model, that gateways count requests and nobody can tell whether
// they are for it.
func (o *observer) tellUnclear(ctx context.Context, models map[decision.ModelKey]*decision.Model, unclear []decision.ModelKey) {
	maps.DeleteFunc(o.unclear, func(key decision.ModelKey, _ bool) bool { return models[key] == nil })
	unclear = slices.DeleteFunc(unclear, func(key decision.ModelKey) bool { return o.unclear[key] })
	if len(unclear) == 0 {
		return
	}
	if o.unclear == nil {
		o.unclear = map[decision.ModelKey]bool{}
	}
	for _, key := range unclear {
		o.unclear[key] = true
	}
	klog.FromContext(ctx).Info("Gateways count requests that may be for these models, and nothing says so, so they are ignored: "+
		"let each gateway name the namespace of its models, and list further names of a model, such as those of adapters, in spec.alsoServes", "models", len(unclear), "firstNamespace", unclear[0].Namespace, "firstModelID", unclear[0].ID)
}
