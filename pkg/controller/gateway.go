package controller

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"k8s.io/klog/v2"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/forecast"
)

// hearing says what of the gateways' counts is for whom. What a gateway shows counts for the models
// of the namespace that shows it. For those of other namespaces it counts where the administrator
// trusts that namespace, or where the series say none: whoever may leave that out of what Prometheus
// scrapes could as well write another one. Objects of other namespaces change nothing of that, but
// those of the gateway's own.
type hearing struct {
	names
	// trusted are the namespaces of gateways for all models, sorted.
	trusted []string
	// ours are all names in the namespaces of their models.
	ours map[decision.ModelKey]bool
}

func hear(models []*decision.Model, trusted []string) hearing {
	h := hearing{names: namesOf(models), trusted: trusted, ours: map[decision.ModelKey]bool{}}
	for _, all := range h.of {
		for _, name := range all {
			h.ours[name] = true
		}
	}
	return h
}

// under are the names under which gateways count what is asked for by a name; none where they do
// not. The model's own namespace comes first, then those that are trusted. What these show under a
// name that a model has there is that one's alone. Series without a namespace come last: they may
// be a second view of the same gateways.
func under[T any](h hearing, name decision.ModelKey, shown map[decision.ModelKey]T) (all []decision.ModelKey) {
	if _, own := shown[name]; own {
		return []decision.ModelKey{name}
	}
	for _, namespace := range h.trusted {
		there := decision.ModelKey{Namespace: namespace, ID: name.ID}
		if _, found := shown[there]; found && !h.ours[there] {
			all = append(all, there)
		}
	}
	bare := decision.ModelKey{ID: name.ID}
	if _, found := shown[bare]; found && len(all) == 0 {
		all = append(all, bare)
	}
	return all
}

// sum is what gateways count of a model under all of its names; nil where that is nothing. Others
// are then the namespaces of gateways that show one of the names.
func (h hearing) sum(model decision.ModelKey, gateways map[decision.ModelKey]decision.Model, showing map[string][]string) (sum *decision.Model, others []string) {
	var parts []decision.Model
	for _, name := range h.of[model] {
		counts := under(h, name, gateways)
		for _, at := range counts {
			parts = append(parts, gateways[at])
		}
		if len(counts) == 0 {
			others = append(others, showing[name.ID]...)
		}
	}
	if len(parts) > 0 {
		g := together(parts)
		return &g, nil
	}
	slices.Sort(others)
	return nil, slices.Compact(others)
}

// unused are the names that gateways show and that no model of their namespace has: the namespaces
// by name, and whether a namespace has such a name.
func (h hearing) unused(gateways map[decision.ModelKey]decision.Model) (showing map[string][]string, in map[string]bool) {
	showing, in = map[string][]string{}, map[string]bool{}
	for name := range gateways {
		if name.Namespace != "" && !h.ours[name] {
			showing[name.ID] = append(showing[name.ID], name.Namespace)
			in[name.Namespace] = true
		}
	}
	return showing, in
}

// odd is what gateways show and nobody can use.
type odd struct {
	// distrusted are, by model, the namespaces of the gateways that show it, where none of them is
	// trusted to count for it and no other gateway does.
	distrusted map[decision.ModelKey][]string
	// strange are the models in whose namespace gateways count what no model has for a name.
	strange []decision.ModelKey
}

// join gives each model what the gateways count under its names, how its load went on earlier days
// and how its promise was kept, and sorts the models.
func join(models map[decision.ModelKey]*decision.Model, h hearing, gateways map[decision.ModelKey]decision.Model, history map[decision.ModelKey][]forecast.History, met map[decision.ModelKey]decision.Kept) (sorted []decision.Model, odd odd) {
	showing, in := h.unused(gateways)
	var servers hearing // They are not trusted to count for others.
	odd.distrusted = map[decision.ModelKey][]string{}
	sorted = make([]decision.Model, 0, len(models))
	for _, key := range slices.SortedFunc(maps.Keys(models), byNamespace) {
		m := models[key]
		g, others := h.sum(key, gateways, showing)
		if g != nil {
			m.Arrival, m.Recent, m.RecentSpan, m.Queue, m.Pace = g.Arrival, g.Recent, g.RecentSpan, g.Queue, g.Pace
		}
		if len(others) > 0 {
			odd.distrusted[key] = others
		}
		if in[key.Namespace] && !slices.Contains(h.trusted, key.Namespace) {
			odd.strange = append(odd.strange, key)
		}
		for _, at := range under(servers, key, history) {
			m.History = history[at]
		}
		for _, at := range under(servers, key, met) {
			m.Met = met[at]
		}
		sorted = append(sorted, *m)
	}
	return sorted, odd
}

func byNamespace(a, b decision.ModelKey) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.ID, b.ID))
}

// warnOfGateways tells the variants of models that only gateways show which are not trusted to count
// for them. Where those are is for the administrator to know, who reads the log.
func warnOfGateways(variants []*variant, distrusted map[decision.ModelKey][]string) {
	for _, v := range variants {
		if len(distrusted[v.model()]) > 0 {
			v.warn(v1alpha1.ReasonGatewayNotTrusted, "a gateway in another namespace shows this model and is not trusted to count its requests, so it is ignored: "+
				"if it is the model's gateway, the administrator names its namespace, which the log of the manager has, in GATEWAY_NAMESPACES")
		}
	}
}

// mostNamed is how many namespaces the log names of one model.
const mostNamed = 3

// tellOdd logs, once for each model, what gateways count and nobody can use.
func (o *observer) tellOdd(ctx context.Context, models map[decision.ModelKey]*decision.Model, odd odd) {
	log := klog.FromContext(ctx)
	if fresh := o.toldStrange.fresh(models, odd.strange); len(fresh) > 0 {
		log.Info("Gateways count requests under names that no model of their namespace has, so they are ignored: "+
			"list further names of a model, such as those of adapters, in spec.alsoServes", "models", len(fresh), "firstNamespace", fresh[0].Namespace, "firstModelID", fresh[0].ID)
	}
	for _, key := range o.toldDistrust.fresh(models, slices.SortedFunc(maps.Keys(odd.distrusted), byNamespace)) {
		gateways := odd.distrusted[key]
		log.Info("Gateways in other namespaces show a model and are not trusted to count its requests, so they are ignored: "+
			"name those namespaces of gateways in GATEWAY_NAMESPACES that are yours", "namespace", key.Namespace, "modelID", key.ID,
			"gatewaysIn", len(gateways), "firstGatewaysIn", gateways[:min(len(gateways), mostNamed)])
	}
}

// toldOf are the models of which something was told.
type toldOf map[decision.ModelKey]bool

// fresh are those of which it was not told yet. It is told again of a model that was gone.
func (t *toldOf) fresh(models map[decision.ModelKey]*decision.Model, of []decision.ModelKey) []decision.ModelKey {
	maps.DeleteFunc(*t, func(key decision.ModelKey, _ bool) bool { return models[key] == nil })
	of = slices.DeleteFunc(of, func(key decision.ModelKey) bool { return (*t)[key] })
	if *t == nil {
		*t = toldOf{}
	}
	for _, key := range of {
		(*t)[key] = true
	}
	return of
}
