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

// key is the name under which gateways count a model whose ID so many of our namespaces
// have. The model's own namespace comes first. A gateway may also say none, or that in
// which it runs itself: where only one of our namespaces has the model ID, series without
// a namespace count for it, else those of the only namespace that gateways show the ID
// in. Nothing else is guessed.
func (c counted[T]) key(model decision.ModelKey, namespaces int) (decision.ModelKey, bool) {
	bare := decision.ModelKey{ID: model.ID}
	_, own := c.models[model]
	_, nameless := c.models[bare]
	names := c.names[model.ID]
	switch {
	case own:
		return model, true
	case namespaces != 1:
	case nameless:
		return bare, true
	case len(names) == 1:
		return names[0], true
	}
	return decision.ModelKey{}, false
}

// join gives each model what the gateways count, how its load went on earlier days and how
// its promise was kept, and sorts the models. Unclear are those of which gateways count what
// may be somebody else's.
func join(models map[decision.ModelKey]*decision.Model, gateways map[decision.ModelKey]decision.Model, history map[decision.ModelKey][]forecast.History, met map[decision.ModelKey]decision.Sample) (sorted []decision.Model, unclear []decision.ModelKey) {
	namespaces := map[string]int{}
	for key := range models {
		namespaces[key.ID]++
	}
	read, past, kept := countedBy(gateways), countedBy(history), countedBy(met)
	sorted = make([]decision.Model, 0, len(models))
	for _, key := range slices.SortedFunc(maps.Keys(models), byNamespace) {
		m := models[key]
		if name, ok := read.key(key, namespaces[key.ID]); ok {
			g := gateways[name]
			m.Arrival, m.Recent, m.RecentSpan, m.Queue = g.Arrival, g.Recent, g.RecentSpan, g.Queue
		} else if slices.ContainsFunc(read.names[key.ID], func(name decision.ModelKey) bool { return models[name] == nil }) {
			unclear = append(unclear, key)
		}
		if name, ok := past.key(key, namespaces[key.ID]); ok {
			m.History = history[name]
		}
		if name, ok := kept.key(key, namespaces[key.ID]); ok {
			m.Met = met[name]
		}
		sorted = append(sorted, *m)
	}
	return sorted, unclear
}

func byNamespace(a, b decision.ModelKey) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.ID, b.ID))
}

// tellUnclear logs, once for each model, that gateways count requests for its ID and
// nobody can tell whether they are for it.
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
	klog.FromContext(ctx).Info("Gateways count requests of a model that several namespaces have, without naming the namespace, so these requests are ignored: "+
		"let each gateway name the namespace of its models", "models", len(unclear), "firstNamespace", unclear[0].Namespace, "firstModelID", unclear[0].ID)
}
