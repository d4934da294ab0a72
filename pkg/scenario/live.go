package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
)

// Live is what a cluster tells of a scenario.
type Live struct {
	// Cluster is what others than the variants hold of the nodes.
	Cluster  *placement.Cluster
	Variants []LiveVariant
	// ServiceClasses and UnitCosts are those of the manager's ConfigMaps.
	ServiceClasses config.ServiceClasses
	UnitCosts      config.UnitCosts
	// Maps are the manager's ConfigMaps of thresholds and of scaling to zero, and Namespaces
	// those of namespaces that have some of their own.
	Maps
	Namespaces map[string]Maps
	// Configuration is the manager's configuration file.
	Configuration []byte
	// SLO is promised to the clients of models of which nothing else says it.
	SLO capacity.SLO
}

// LiveVariant is one object and what a replica of it takes.
type LiveVariant struct {
	Object  *v1alpha1.VariantAutoscaling
	Request *placement.Request
}

// Scenario makes a scenario of a cluster and of a file that adds what the cluster does
// not tell: latency profiles above all, by the names of variants. Empty data add
// nothing.
func (l Live) Scenario(data []byte, o Options) (*replay.Scenario, error) {
	d, err := decode(data)
	if err != nil {
		return nil, err
	}
	if d.Nodes != nil || d.Clusters != nil || d.Cluster != "" || o.Cluster != "" {
		return nil, errors.New("nodes, cluster and clusters come from the live cluster: expected none of them in the file or as --cluster")
	}
	if len(l.Variants) == 0 {
		return nil, errors.New("the cluster has no VariantAutoscaling object to replay")
	}
	d.told = &told{beside: l.Maps, namespaces: l.Namespaces}
	a := assembly{
		document: &d, slo: l.SLO, unprofiled: o.Unprofiled, base: l.Configuration, requests: map[decision.Key]*placement.Request{},
		scenario: &replay.Scenario{Name: cmp.Or(d.Name, "live cluster"), Cluster: l.Cluster},
	}
	if a.settings, err = d.settings(l.Configuration, nil); err != nil {
		return nil, err
	}
	if d.ServiceClasses == nil {
		a.settings.ServiceClasses = l.ServiceClasses
	}
	if a.costs, a.scenario.Prices, err = d.unitCosts(o.Prices); err != nil {
		return nil, err
	}
	if len(a.costs.Prices) == 0 {
		a.costs = l.UnitCosts
	}
	if d.Models, err = l.models(d.Models, a.requests, o.Unprofiled); err != nil {
		return nil, err
	}
	return a.scenario, a.assemble()
}

// models are those of the objects, with what the file adds.
func (l Live) models(added []model, requests map[decision.Key]*placement.Request, unprofiled bool) ([]model, error) {
	var models []model
	variants := slices.Clone(l.Variants)
	slices.SortFunc(variants, func(a, b LiveVariant) int {
		return cmp.Or(
			cmp.Compare(a.Object.Namespace, b.Object.Namespace), cmp.Compare(a.Object.Spec.ModelID, b.Object.Spec.ModelID),
			cmp.Compare(a.Object.Name, b.Object.Name))
	})
	for _, v := range variants {
		object := v.Object
		requests[decision.Key{Namespace: object.Namespace, Name: object.Name}] = v.Request
		last := len(models) - 1
		if last < 0 || models[last].Namespace != object.Namespace || models[last].ID != object.Spec.ModelID {
			models = append(models, model{Namespace: object.Namespace, ID: object.Spec.ModelID})
			last++
		}
		models[last].Variants = append(models[last].Variants, variantOf(object))
	}
	for i := range added {
		if err := addTo(models, index("models", i), &added[i]); err != nil {
			return nil, err
		}
	}
	var without []string
	for i := range models {
		for _, v := range models[i].Variants {
			if v.Profile == nil && v.VariantProfile == nil {
				without = append(without, v.Name)
			}
		}
	}
	if len(without) > 0 && !unprofiled {
		return nil, fmt.Errorf("no latency profile is known of %s: expected spec.variantProfile in the objects, or a scenario file with a model of that id and variants of these names, each with a profile",
			strings.Join(without, ", "))
	}
	return models, nil
}

// variantOf is what an object says.
func variantOf(object *v1alpha1.VariantAutoscaling) variant {
	spec := &object.Spec
	return variant{
		Name: object.Name, VariantCost: spec.VariantCost, SLOClassRef: spec.SLOClassRef, VariantProfile: spec.VariantProfile,
		MinReplicas: spec.MinReplicas, MaxReplicas: spec.MaxReplicas, Behavior: spec.Behavior,
	}
}

// addTo puts what the file says of a model over what the cluster says. Without a
// namespace, every model of that ID is meant.
func addTo(models []model, at string, added *model) error {
	found := false
	for i := range models {
		m := &models[i]
		if m.ID != added.ID || added.Namespace != "" && m.Namespace != added.Namespace {
			continue
		}
		found = true
		m.Share, m.SLO, m.Traffic = cmp.Or(added.Share, m.Share), cmp.Or(added.SLO, m.SLO), cmp.Or(added.Traffic, m.Traffic)
		for j := range added.Variants {
			if err := addVariant(m, index(key(at, "variants"), j), &added.Variants[j]); err != nil {
				return err
			}
		}
	}
	if !found {
		ids := make([]string, 0, len(models))
		for i := range models {
			ids = append(ids, models[i].ID)
		}
		return fmt.Errorf("%s is %q: expected the modelID of an object in the cluster (%s)", key(at, "id"), added.ID, strings.Join(ids, ", "))
	}
	return nil
}

func addVariant(m *model, at string, added *variant) error {
	if added.Accelerator != "" || added.AcceleratorCount != nil || added.NodeGroups != nil || added.CPU != nil || added.Memory != nil {
		return fmt.Errorf("%s: accelerator, acceleratorCount, nodeGroups, cpu and memory come from the cluster: expected none of them", at)
	}
	names := make([]string, 0, len(m.Variants))
	for i := range m.Variants {
		v := &m.Variants[i]
		if v.Name != added.Name {
			names = append(names, v.Name)
			continue
		}
		v.VariantCost = cmp.Or(added.VariantCost, v.VariantCost)
		v.SLOClassRef = cmp.Or(added.SLOClassRef, v.SLOClassRef)
		v.VariantProfile = cmp.Or(added.VariantProfile, v.VariantProfile)
		v.MinReplicas, v.MaxReplicas = cmp.Or(added.MinReplicas, v.MinReplicas), cmp.Or(added.MaxReplicas, v.MaxReplicas)
		v.Behavior = cmp.Or(added.Behavior, v.Behavior)
		v.Learn, v.Profile, v.InitialReplicas, v.Weight = added.Learn, added.Profile, added.InitialReplicas, added.Weight
		return nil
	}
	return fmt.Errorf("%s is %q: expected the name of an object of model %s (%s)", key(at, "name"), added.Name, m.ID, strings.Join(names, ", "))
}
