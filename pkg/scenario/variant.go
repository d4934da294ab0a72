package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
)

// The bounds that the VariantAutoscaling object has for what a behaviour limits.
const (
	mostStabilizationSeconds = 3600
	mostPeriodSeconds        = 1800
)

// built is a variant in the making.
type built struct {
	at   string
	in   *variant
	spec v1alpha1.VariantAutoscalingSpec
	// request is that of a live variant; nil means that the file says it.
	request *placement.Request
	cluster *placement.Cluster
	costs   config.UnitCosts
	// priced says that a replica without a price costs what the manager takes for it.
	priced bool
	// unprofiled says that it may have no profile.
	unprofiled bool
}

func (b *built) wrong(name, format string, args ...any) error {
	return fmt.Errorf("%s %s", key(b.at, name), fmt.Sprintf(format, args...))
}

// variant makes one variant of a model.
func (b *built) variant() (replay.Variant, error) {
	v := replay.Variant{Name: b.in.Name, Initial: -1, Request: b.request}
	b.spec.MinReplicas, b.spec.MaxReplicas, b.spec.Behavior = b.in.MinReplicas, b.in.MaxReplicas, b.in.Behavior
	b.spec.VariantCost, b.spec.VariantProfile = b.in.VariantCost, b.in.VariantProfile
	if b.in.Name == "" {
		return v, b.wrong("name", "is missing: expected the name of the variant")
	}
	if b.request == nil {
		request, err := b.shape()
		if err != nil {
			return v, err
		}
		v.Request = request
	}
	for _, fill := range []func(*replay.Variant) error{b.bounds, b.cost, b.profiles} {
		if err := fill(&v); err != nil {
			return v, err
		}
	}
	return v, nil
}

// shape is what one replica takes, by the file.
func (b *built) shape() (*placement.Request, error) {
	name := inventory.Normalize(b.in.Accelerator)
	count := int32(0)
	if b.in.AcceleratorCount != nil {
		count = *b.in.AcceleratorCount
	}
	switch {
	case !name.Known():
		return nil, b.wrong("accelerator", "is %q: expected the type of the replica's devices, such as H100", b.in.Accelerator)
	case count < 1 || count > mostDevices:
		return nil, b.wrong("acceleratorCount", "is %d: expected the devices of one replica, from 1 to %d", count, mostDevices)
	case b.in.CPU != nil && b.in.CPU.Sign() < 0:
		return nil, b.wrong("cpu", "is %s: expected at least 0", b.in.CPU)
	case b.in.Memory != nil && b.in.Memory.Sign() < 0:
		return nil, b.wrong("memory", "is %s: expected at least 0", b.in.Memory)
	}
	refused, err := b.refused()
	if err != nil {
		return nil, err
	}
	d := name.Device()
	return &placement.Request{Refused: refused, Shape: capacity.Shape{
		Accelerator: d.Accelerator, MemoryGiB: d.MemoryGiB, Form: d.Form, Devices: int(count), Pods: 1,
		MilliCPU: milli(b.in.CPU, 0), MemoryBytes: bytes(b.in.Memory, 0),
	}}, nil
}

// refused says which nodes are of other groups than those that the variant names.
func (b *built) refused() ([]string, error) {
	if len(b.in.NodeGroups) == 0 {
		return nil, nil
	}
	groups, refused := map[string]bool{}, make([]string, len(b.cluster.Nodes))
	for i := range b.cluster.Nodes {
		group := groupOf(b.cluster.Nodes[i].Name)
		groups[group] = true
		if !slices.Contains(b.in.NodeGroups, group) {
			refused[i] = "the node selector names other nodes"
		}
	}
	for i, name := range b.in.NodeGroups {
		if !groups[name] {
			return nil, b.wrong(index("nodeGroups", i), "is %q: expected one of the node groups %s", name, strings.Join(slices.Sorted(maps.Keys(groups)), ", "))
		}
	}
	return refused, nil
}

// bounds are the replicas and the behaviour that are allowed. What the object's schema
// refuses is refused here.
func (b *built) bounds(v *replay.Variant) error {
	switch {
	case b.in.MinReplicas != nil && (*b.in.MinReplicas < 0 || *b.in.MinReplicas > replay.MostReplicas):
		return b.wrong("minReplicas", "is %d: expected from 0 to %d", *b.in.MinReplicas, replay.MostReplicas)
	case b.in.MaxReplicas != nil && (*b.in.MaxReplicas < 1 || *b.in.MaxReplicas > replay.MostReplicas):
		return b.wrong("maxReplicas", "is %d: expected from 1 to %d, or none for no bound", *b.in.MaxReplicas, replay.MostReplicas)
	case b.in.InitialReplicas != nil && (*b.in.InitialReplicas < 0 || *b.in.InitialReplicas > replay.MostReplicas):
		return b.wrong("initialReplicas", "is %d: expected from 0 to %d", *b.in.InitialReplicas, replay.MostReplicas)
	case b.in.Weight != nil && !(*b.in.Weight > 0):
		return b.wrong("weight", "is %v: expected above 0", *b.in.Weight)
	}
	if given := b.in.Behavior; given != nil {
		if err := cmp.Or(
			checkRules(key(b.at, "behavior.scaleUp"), given.ScaleUp), checkRules(key(b.at, "behavior.scaleDown"), given.ScaleDown),
		); err != nil {
			return err
		}
	}
	policy, err := config.VariantPolicy(&b.spec)
	if err != nil {
		return b.ofSpec(err)
	}
	// A replay acts on every decision, also where the cluster only looks at them.
	policy.Actuation = decision.ActuationScale
	v.Policy = policy
	if b.in.InitialReplicas != nil {
		v.Initial = *b.in.InitialReplicas
	}
	if b.in.Weight != nil {
		v.Weight = *b.in.Weight
	}
	return nil
}

// ofSpec says the place in the file of what is wrong with a field of the object.
func (b *built) ofSpec(err error) error {
	return errors.New(strings.ReplaceAll(oneLine(err), "spec.", b.at+"."))
}

func checkRules(at string, r *v1alpha1.ScalingRules) error {
	if r == nil {
		return nil
	}
	if s := r.StabilizationWindowSeconds; s != nil && (*s < 0 || *s > mostStabilizationSeconds) {
		return fmt.Errorf("%s.stabilizationWindowSeconds is %d: expected from 0 to %d", at, *s, mostStabilizationSeconds)
	}
	for i, p := range r.Policies {
		at := index(key(at, "policies"), i)
		switch {
		case p.Value < 1:
			return fmt.Errorf("%s.value is %d: expected at least 1", at, p.Value)
		case p.PeriodSeconds < 1 || p.PeriodSeconds > mostPeriodSeconds:
			return fmt.Errorf("%s.periodSeconds is %d: expected from 1 to %d", at, p.PeriodSeconds, mostPeriodSeconds)
		}
	}
	return nil
}

// cost is the price of one replica: its own, else that of its devices.
func (b *built) cost(v *replay.Variant) error {
	shape := v.Request.Shape
	device := capacity.Device{Accelerator: shape.Accelerator, MemoryGiB: shape.MemoryGiB, Form: shape.Form}
	if _, known := b.costs.Of(device); !known && b.spec.VariantCost == "" && !b.priced {
		return b.wrong("variantCost", "is missing, and there is no price of %s: expected one of both", device)
	}
	cost, given, err := b.costs.Replica(&b.spec, device, shape.Devices*max(1, shape.Pods))
	if err != nil {
		return b.ofSpec(err)
	}
	v.Cost, v.Unpriced = cost, !given
	return nil
}

// profiles are the latency of one replica, and what the autoscaler is told of it.
func (b *built) profiles(v *replay.Variant) error {
	given, told, err := b.spec.Profile()
	switch {
	case err != nil:
		return b.ofSpec(err)
	case told && !b.in.Learn:
		v.Given = given.Profile()
	}
	p := b.in.Profile
	switch {
	case p != nil:
		if err := p.check(key(b.at, "profile")); err != nil {
			return err
		}
		v.Profile, v.TokenBudget = p.profile(), p.TokenBudget
		v.PrefixCache, v.PrefixHits = p.PrefixCache, p.PrefixHits
	case told:
		// An iteration of alpha + beta*n + delta*k: what gamma adds to alpha for each
		// prefill is left out, because the engine has no place for it.
		v.Profile = serving.Profile{
			Base: given.Alpha, PerRequest: given.Beta, PerPrefillToken: given.Delta, BatchLimit: given.MaxBatchSize,
		}
	case b.unprofiled && !b.in.Learn:
		return nil
	default:
		return b.wrong("profile", "is missing: expected the latency of one replica of %s, there or in variantProfile", b.in.Name)
	}
	// An autoscaler that has watched these servers for days has learned how fast they are.
	if !told && !b.in.Learn {
		v.Given = v.Profile
		v.Given.PerPrefillToken *= capacity.Milliseconds(1 - v.PrefixHits)
	}
	return nil
}

func (p *profile) check(at string) error {
	if !(p.Base > 0) {
		return fmt.Errorf("%s.base is %v: expected the milliseconds of an iteration without requests, above 0", at, p.Base)
	}
	for _, field := range []struct {
		name  string
		value float64
	}{
		{"perRequest", p.PerRequest},
		{"perResidentToken", p.PerResidentToken},
		{"perPrefillToken", p.PerPrefillToken},
		{"kvTokens", p.KVTokens},
		{"batchLimit", float64(p.BatchLimit)},
		{"tokenBudget", float64(p.TokenBudget)},
	} {
		if field.value < 0 || math.IsInf(field.value, 0) {
			return fmt.Errorf("%s.%s is %v: expected at least 0", at, field.name, field.value)
		}
	}
	if !(p.PrefixHits >= 0 && p.PrefixHits < 1) {
		return fmt.Errorf("%s.prefixHits is %v: expected a share of at least 0 and below 1", at, p.PrefixHits)
	}
	return nil
}

func (p *profile) profile() serving.Profile {
	return serving.Profile{
		Base: capacity.Milliseconds(p.Base), PerRequest: capacity.Milliseconds(p.PerRequest),
		PerResidentToken: capacity.Milliseconds(p.PerResidentToken), PerPrefillToken: capacity.Milliseconds(p.PerPrefillToken),
		KVTokens: capacity.Tokens(p.KVTokens), BatchLimit: p.BatchLimit,
	}
}
