package config

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// publishedServiceClasses is the published name of the ConfigMap of service classes.
const publishedServiceClasses = "service-classes-config"

// ServiceClasses are what was promised to clients. The zero ServiceClasses has none.
type ServiceClasses struct {
	// Classes are sorted: the most important first, then by name.
	Classes []ServiceClass
	// configMap is the name of the ConfigMap that they came from.
	configMap string
	// closed are the names of classes that are not for the namespace that is asked about.
	closed []string
}

// ServiceClass is one class of clients.
type ServiceClass struct {
	// Name is unique; case does not matter.
	Name string
	// Entry is the key of the ConfigMap that the class came from.
	Entry string
	// Priority is from 1, the most important, to decision.LeastPriority.
	Priority int
	// Weight is what each of its models counts among those of its priority when devices
	// are scarce; 0 counts as 1.
	Weight float64
	// Targets are the promised latencies by model.
	Targets map[string]capacity.SLO
	// CapacityOnly has those of these models that saturation alone is to size; nil for none.
	CapacityOnly map[string]bool
	// Namespaces are those whose objects may have the class; empty for all.
	Namespaces []string
}

// in are the classes that objects of a namespace may have.
func (c ServiceClasses) in(namespace string) ServiceClasses {
	closed := func(class ServiceClass) bool {
		return len(class.Namespaces) > 0 && !slices.Contains(class.Namespaces, namespace)
	}
	all := c.Classes
	c.Classes = nil
	for _, class := range all {
		if closed(class) {
			c.closed = append(c.closed, strings.ToLower(class.Name))
			continue
		}
		c.Classes = append(c.Classes, class)
	}
	return c
}

// ParseServiceClasses reads the data of the ConfigMap of service classes. Each value is
// YAML or JSON: one class, or a list of them, which may stand in the field
// serviceClasses. A class has a name, a priority from 1, the most important, to 100, and
// a list of models with their latencies in milliseconds, in either of the published
// spellings: data with slo-tpot, or modelTargets with slo-itl; slo-ttft is one in both. With
// capacity-only: true saturation alone sizes a model.
// In a list a class may also name one model and its latencies beside its name and
// priority; it then comes up once for each of its models. A weight, above 0 and at most
// 100, may say that its models count more, or less, than others of their priority when
// devices are scarce. Namespaces may list those whose objects may have the class; a class without
// them is for all. A priority outside of its range is the least one. The warnings
// name that, and what has no effect. On an error nothing of the data is usable.
func ParseServiceClasses(configMap string, data map[string]string) (ServiceClasses, []string, error) {
	classes := ServiceClasses{configMap: configMap}
	s := &said{}
	read := classReader{first: map[string]*readClass{}}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		items, ok := parseList(name, data[name], s)
		if !ok {
			f, usable := parseFields(name, data[name], s)
			if !usable {
				continue
			}
			items = f.classes()
		}
		for _, f := range items {
			read.add(f, name)
		}
	}
	for _, class := range read.classes {
		classes.Classes = append(classes.Classes, class.ServiceClass)
	}
	if err := s.err(); err != nil {
		return ServiceClasses{}, s.warnings, fmt.Errorf("service classes: %w", err)
	}
	slices.SortFunc(classes.Classes, func(a, b ServiceClass) int {
		return cmp.Or(a.Priority-b.Priority, strings.Compare(a.Name, b.Name))
	})
	return classes, s.warnings, nil
}

// classReader collects classes, of which those of one model each may come up again.
type classReader struct {
	classes []*readClass
	first   map[string]*readClass
}

type readClass struct {
	ServiceClass
	place string
	// single says that the class is written with one model at a time.
	single bool
}

func (r *classReader) add(f fields, entry string) {
	_, single := f.raw["model"]
	class := &readClass{place: f.place, single: single}
	if single {
		class.ServiceClass = f.singleClass()
	} else {
		class.ServiceClass = f.class()
	}
	class.Entry = entry
	f.rest()
	folded := strings.ToLower(class.Name)
	other := r.first[folded]
	switch {
	case other == nil || folded == "":
		r.classes, r.first[folded] = append(r.classes, class), class
	case !single || !other.single || other.Entry != entry:
		f.wrong("service class %q is in %s already: give one of them another name", class.Name, other.place)
	case other.Priority != class.Priority || other.Weight != class.Weight || !slices.Equal(other.Namespaces, class.Namespaces):
		f.wrong("service class %q has another priority, weight or list of namespaces than in %s: give it the same ones", class.Name, other.place)
	default:
		for model, slo := range class.Targets {
			if _, twice := other.Targets[model]; twice {
				f.wrong("model %q is listed twice in service class %q: remove one", model, class.Name)
			}
			other.Targets[model] = slo
			other.sizeByCapacity(model, class.CapacityOnly[model])
		}
	}
}

// classes are the maps of an entry's classes.
func (f fields) classes() []fields {
	list, given := f.list("serviceClasses")
	if !given {
		return []fields{f}
	}
	f.rest()
	return list
}

// singleClass is a class with one of its models.
func (f fields) singleClass() ServiceClass {
	class := ServiceClass{Name: f.text("name"), Priority: f.priority(), Weight: f.weight(), Targets: map[string]capacity.SLO{}, Namespaces: f.namespaces()}
	if class.Name == "" {
		f.wrong("name is missing: name the service class")
	}
	model, slo := f.target()
	class.Targets[model] = slo
	class.sizeByCapacity(model, f.capacityOnly())
	return class
}

func (f fields) capacityOnly() bool {
	only := f.boolean("capacity-only")
	return only != nil && *only
}

// sizeByCapacity notes whether saturation alone is to size a model.
func (class *ServiceClass) sizeByCapacity(model string, only bool) {
	if !only {
		return
	}
	if class.CapacityOnly == nil {
		class.CapacityOnly = map[string]bool{}
	}
	class.CapacityOnly[model] = true
}

// target is a model and its latencies.
func (f fields) target() (model string, slo capacity.SLO) {
	model, slo = f.text("model"), capacity.SLO{TTFT: f.firstToken(), ITL: f.perToken()}
	switch {
	case model == "":
		f.wrong("model is missing: name the model by its ID")
	case slo == capacity.SLO{}:
		f.warn("model %q has no SLO here: set slo-ttft, slo-tpot or both", model)
	}
	return model, slo
}

func (f fields) class() ServiceClass {
	class := ServiceClass{Name: f.text("name"), Priority: f.priority(), Weight: f.weight(), Targets: map[string]capacity.SLO{}, Namespaces: f.namespaces()}
	if class.Name == "" {
		f.wrong("name is missing: name the service class")
	}
	targets, data := f.list("data")
	others, modelTargets := f.list("modelTargets")
	switch {
	case data && modelTargets:
		f.wrong("data and modelTargets are both given: move all models to one of them")
	case !data && !modelTargets:
		f.warn("the class lists no model: list them in data")
	}
	for _, t := range append(targets, others...) {
		model, slo := t.target()
		class.sizeByCapacity(model, t.capacityOnly())
		t.rest()
		if _, twice := class.Targets[model]; twice {
			t.wrong("model %q is listed twice: remove one", model)
		}
		class.Targets[model] = slo
	}
	return class
}

func (f fields) priority() int {
	given := f.number("priority")
	switch {
	case given == nil:
		f.warn("priority is missing, so it is %d: write 1, the most important, to %d", decision.LeastPriority, decision.LeastPriority)
	case *given != math.Trunc(*given):
		f.wrong("priority is %v: write a whole number from 1, the most important, to %d", *given, decision.LeastPriority)
	case *given < 1 || *given > decision.LeastPriority:
		f.warn("priority is %v, outside of 1 to %d, so it is %d", *given, decision.LeastPriority, decision.LeastPriority)
	default:
		return int(*given)
	}
	return decision.LeastPriority
}

// mostWeight is the greatest weight of a service class.
const mostWeight = 100

// weight is 0 where it is not given.
func (f fields) weight() float64 {
	given := f.number("weight")
	if given == nil {
		return 0
	}
	if *given <= 0 || *given > mostWeight {
		f.wrong("weight is %v: write a number above 0 and at most %d; 1 is that of a class without one", *given, mostWeight)
		return 0
	}
	return *given
}

// namespaces are those whose objects may have the class. One that lists none at all would be for nobody.
func (f fields) namespaces() []string {
	value, given := f.take("namespaces")
	if !given {
		return nil
	}
	list, ok := value.([]any)
	var names []string
	for _, item := range list {
		name, text := item.(string)
		if ok = ok && text && len(validation.IsDNS1123Label(name)) == 0; ok {
			names = append(names, name)
		}
	}
	if !ok || len(names) == 0 {
		f.wrong("namespaces is %v: list the names of the namespaces whose objects may have the class, or leave it out for all", value)
		return nil
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// firstToken is the time to the first token, under either of its names.
func (f fields) firstToken() capacity.Milliseconds {
	_, ttft := f.raw["slo-ttft"]
	_, ttw := f.raw["slo-ttw"]
	if ttft && ttw {
		f.wrong("slo-ttft and slo-ttw are both given and mean the same: remove one")
	}
	return max(f.latency("slo-ttft"), f.latency("slo-ttw"))
}

// perToken is the time per further token, under either of its names.
func (f fields) perToken() capacity.Milliseconds {
	_, tpot := f.raw["slo-tpot"]
	_, itl := f.raw["slo-itl"]
	if tpot && itl {
		f.wrong("slo-tpot and slo-itl are both given and mean the same: remove one")
	}
	return max(f.latency("slo-tpot"), f.latency("slo-itl"))
}

// leastLatency is what no server is faster than, in milliseconds. Whoever promises less has most
// likely written seconds.
const leastLatency = 1

// latency is 0, which promises nothing, where it is not given.
func (f fields) latency(name string) capacity.Milliseconds {
	given := f.numeric(name, "a number of milliseconds, in digits alone, without quotes")
	if given == nil {
		return 0
	}
	switch {
	case *given < 0:
		f.wrong("%s is %v: write milliseconds, at least 0", name, *given)
		return 0
	case *given > 0 && *given < leastLatency:
		f.warn("%s is %v milliseconds, which no server keeps: write %.4g if seconds were meant", name, *given, *given*1000)
	}
	return capacity.Milliseconds(*given)
}
