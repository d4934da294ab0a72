package config

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// ClassReference is the service class that one variant names, in spec.sloClassRef.
type ClassReference struct {
	// Variant is the name of the variant, for messages.
	Variant string
	// Class is the name of a service class, in any case; or that of the ConfigMap, and
	// then Key is the entry of it that holds the class.
	Class string
	// Key is the model in the class whose latencies count; empty for the variant's own.
	Key string
}

// noPromise is that of a model in no service class.
var noPromise = decision.Promise{Priority: decision.LeastPriority}

// promise is what was promised to the clients of a model whose variants have these
// references. Where that cannot be told, no latency is promised, the problem says
// why, and the most important class that may be meant gives the priority.
func (c ServiceClasses) promise(modelID string, references []ClassReference) decision.Promise {
	if len(references) == 0 {
		return foremost(c.Classes, modelID)
	}
	result := c.named(modelID, references[0])
	problems := problemOf(result)
	for _, other := range references[1:] {
		promise := c.named(modelID, other)
		if problem := problemOf(promise); len(problem) > 0 {
			if !slices.Contains(problems, problem[0]) {
				problems = append(problems, problem...)
			}
		} else if len(problems) == 0 && promise != result {
			problems = append(problems, fmt.Sprintf("variant %s is of %s and variant %s of %s: give all variants of model %s the same sloClassRef",
				references[0].Variant, wording(result), other.Variant, wording(promise), modelID))
		}
		if promise.Priority < result.Priority {
			result = promise
		}
	}
	if len(problems) > 0 {
		result.SLO, result.Problem = capacity.SLO{}, strings.Join(problems, "; ")
	}
	return result
}

// problemOf is the problem of a promise, if it has one.
func problemOf(p decision.Promise) []string {
	if p.Problem == "" {
		return nil
	}
	return []string{p.Problem}
}

// named is the promise that one reference names.
func (c ServiceClasses) named(modelID string, r ClassReference) decision.Promise {
	for _, class := range c.Classes {
		if strings.EqualFold(class.Name, r.Class) {
			return class.promiseTo(modelID, r)
		}
	}
	unknown := noPromise
	if slices.Contains(c.closed, strings.ToLower(r.Class)) {
		unknown.Problem = fmt.Sprintf("variant %s names service class %q, which is not for its namespace: %s", r.Variant, r.Class, c.known())
		return unknown
	}
	if !c.isConfigMap(r.Class) {
		unknown.Problem = fmt.Sprintf("variant %s names service class %q, which does not exist: %s", r.Variant, r.Class, c.known())
		return unknown
	}
	var candidates []ServiceClass
	for _, class := range c.Classes {
		if r.Key == "" || class.isIn(r.Key) {
			candidates = append(candidates, class)
		}
	}
	switch len(candidates) {
	case 0:
		unknown.Problem = fmt.Sprintf("variant %s names entry %q of ConfigMap %s, which holds no service class: %s", r.Variant, r.Key, r.Class, c.known())
		return unknown
	case 1:
		r.Key = ""
		return candidates[0].promiseTo(modelID, r)
	}
	return foremost(candidates, modelID)
}

// isConfigMap reports whether a reference means the ConfigMap of the classes, by its
// own or by one of its published names.
func (c ServiceClasses) isConfigMap(name string) bool {
	return name == c.configMap || slices.Contains(serviceClassMaps, name)
}

// isIn reports whether the class came from an entry, whose name may lack its
// extension.
func (class ServiceClass) isIn(entry string) bool {
	extension := path.Ext(class.Entry)
	stem := strings.TrimSuffix(class.Entry, extension)
	return class.Entry == entry || stem == entry && slices.Contains([]string{".yaml", ".yml", ".json"}, extension)
}

// known says which classes there are.
func (c ServiceClasses) known() string {
	if len(c.Classes) == 0 {
		return "there are no service classes"
	}
	const enough = 5
	names := make([]string, 0, enough+1)
	for i, class := range c.Classes {
		if i == enough {
			names = append(names, fmt.Sprintf("%d more", len(c.Classes)-enough))
			break
		}
		names = append(names, class.Name)
	}
	return "there are " + strings.Join(names, ", ")
}

// promiseTo is the class's entry by the key of the reference, else by the model.
func (class ServiceClass) promiseTo(modelID string, r ClassReference) decision.Promise {
	promise := decision.Promise{Class: class.Name, Priority: class.Priority, Weight: class.Weight}
	entry := r.Key
	slo, ok := class.Targets[entry]
	if !ok {
		entry = modelID
		slo, ok = class.Targets[entry]
	}
	switch {
	case ok:
		promise.SLO, promise.CapacityOnly = slo, class.CapacityOnly[entry]
	case r.Key == "" || r.Key == modelID:
		promise.Problem = fmt.Sprintf("service class %s, which variant %s names, does not list model %s", class.Name, r.Variant, modelID)
	default:
		promise.Problem = fmt.Sprintf("service class %s, which variant %s names, lists neither %s nor model %s", class.Name, r.Variant, r.Key, modelID)
	}
	return promise
}

// foremost is the promise of the class that lists the model: of several the most
// important one, of equally important ones the first by name.
func foremost(classes []ServiceClass, modelID string) decision.Promise {
	for _, class := range classes {
		if slo, ok := class.Targets[modelID]; ok {
			return decision.Promise{Class: class.Name, Priority: class.Priority, Weight: class.Weight, SLO: slo, CapacityOnly: class.CapacityOnly[modelID]}
		}
	}
	return noPromise
}

// wording is a promise in words.
func wording(p decision.Promise) string {
	name := p.Class
	if name == "" {
		name = "no class"
	}
	only := ""
	if p.CapacityOnly {
		only = ", capacity-only"
	}
	return fmt.Sprintf("%s (priority %d, TTFT %g ms, ITL %g ms%s)", name, p.Priority, float64(p.SLO.TTFT), float64(p.SLO.ITL), only)
}
