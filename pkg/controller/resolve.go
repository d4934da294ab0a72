package controller

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
)

// policy is what the object allows. One that cannot be read allows nothing.
func (v *variant) policy() decision.VariantPolicy {
	policy, err := config.VariantPolicy(&v.object.Spec)
	if err != nil {
		v.invalid(err)
		policy = decision.DefaultVariantPolicy()
		policy.Actuation = decision.ActuationOff
	}
	if f := v.target.follower; f != nil {
		if most := int(f.Spec.MaxReplicas); policy.Max < 0 || most < policy.Max {
			policy.Min, policy.Max, policy.MaxOf = min(policy.Min, most), most, "HorizontalPodAutoscaler "+f.Name
		}
	}
	return policy
}

// resolve fills in what one replica takes, costs and can do.
func (v *variant) resolve(fact *decision.Variant, s stock) {
	spec := &v.object.Spec
	var nodes []*corev1.Node
	for _, pod := range v.pods {
		if node := s.nodes[pod.Spec.NodeName]; node != nil {
			nodes = append(nodes, node)
		}
	}
	name, source, err := s.names.Resolve(spec.Accelerator, v.object.Labels[v1alpha1.LabelAcceleratorName], v.target.template, nodes)
	if err == nil {
		if v.target.template != nil && s.sends[v.key.Namespace] {
			// The webhook will complete its pods.
			v.target.template = s.sending.Template(v.target.template, name, source)
		}
		fact.Request, err = v.request(s, name)
	}
	if err != nil && v.target.state == decision.TargetFound {
		v.note(decision.ReasonShapeUnknown, err.Error())
	}
	v.Accelerator = name.Accelerator()
	if spec.AcceleratorCount != nil {
		v.devices = int(*spec.AcceleratorCount)
	}
	if fact.Request != nil {
		shape := fact.Request.Shape
		v.Shape, v.Other, v.Accelerator = &shape, fact.Request.Other, shape.Accelerator
		if v.devices == 0 {
			v.devices = shape.Devices * shape.Pods
		}
		v.warnOfDevices(s, name, source)
	}
	v.ID = spec.ResolvedVariantID(v.Accelerator, v.devices)
	v.warnOfName()
	v.serverLimits(fact, name, s)
	v.price(fact, s.costs)
}

// request is what one replica takes. Of a kind whose pod template is not known, the
// object may say it.
func (v *variant) request(s stock, name inventory.Name) (*placement.Request, error) {
	spec := &v.object.Spec
	switch {
	case v.target.state == decision.TargetMissing || v.target.state == decision.TargetForbidden:
		return nil, nil //nolint:nilnil // a target that is not there takes nothing, and that is no error
	case v.target.selectorProblem != "":
		return nil, errors.New(v.target.selectorProblem)
	case v.target.template != nil:
		template := *v.target.template
		template.Namespace = v.key.Namespace
		r, err := s.inventory.Request(&template, v.target.revision.Newest(v.pods), name, v.pods...)
		if err == nil {
			r.Shape.Pods = max(1, v.target.podsPerReplica)
		}
		return r, err
	case name.Known() && spec.AcceleratorCount != nil:
		device := name.Device()
		return &placement.Request{
			Shape: capacity.Shape{
				Accelerator: device.Accelerator, MemoryGiB: device.MemoryGiB, Form: device.Form, Devices: int(*spec.AcceleratorCount), Pods: 1,
			},
			Bound: fmt.Sprintf("the pod template of a %s", v.target.ref.Kind),
		}, nil
	}
	return nil, fmt.Errorf("the pod template of a %s is not known: set spec.accelerator and spec.acceleratorCount", v.target.ref.Kind)
}

// warnOfDevices says what is odd about how the variant asks for its devices.
func (v *variant) warnOfDevices(s stock, name inventory.Name, source inventory.Source) {
	if v.target.template == nil {
		return
	}
	given, shape := v.object.Spec.AcceleratorCount, v.Shape
	if total := shape.Devices * shape.Pods; given != nil && int(*given) != total && int(*given) != shape.Devices {
		v.warn(v1alpha1.ReasonAcceleratorCountDiffers, "spec.acceleratorCount is %d and the pod template asks for %d, which counts: correct one of them", *given, total)
	}
	if shape.Devices == 0 || source == inventory.SourceTemplate {
		return
	}
	selected, _, err := s.names.Resolve("", "", v.target.template, nil)
	switch {
	case err != nil:
	case !selected.Known():
		v.warn(v1alpha1.ReasonAcceleratorNotSelected,
			"the pod template names no %s nodes by a product label, so that a node autoscaler does not see that its pods need them: add a node selector or required node affinity", name)
	case selected.Short != name.Short:
		v.warn(v1alpha1.ReasonAcceleratorNotSelected, "the pod template names %s nodes and the variant is for %s, so that no node takes its pods: correct one of them", selected, name)
	}
}

func (v *variant) price(fact *decision.Variant, costs config.UnitCosts) {
	device, count := v.takes()
	var err error
	if fact.Cost, v.priced, err = costs.Replica(&v.object.Spec, device, count); err != nil {
		v.invalid(err)
	}
	fact.Unpriced = !v.priced
	profile, given, err := v.object.Spec.Profile()
	switch {
	case err != nil:
		v.invalid(err)
	case given:
		fact.Profile = profile.Profile()
	}
}

func (v *variant) note(reason decision.Reason, detail string) {
	v.notes = append(v.notes, decision.Fact{Reason: reason, Detail: decision.Words(detail)})
}

func (v *variant) warn(reason decision.Reason, format string, args ...any) {
	v.warnings = append(v.warnings, decision.Fact{Reason: reason, Detail: decision.Words(fmt.Sprintf(format, args...))})
}

func (v *variant) invalid(err error) { v.note(v1alpha1.ReasonInvalidConfiguration, err.Error()) }

// serverLimits fills in what follows from the template's server. Of a part of a device nothing
// says the memory.
func (v *variant) serverLimits(fact *decision.Variant, name inventory.Name, s stock) {
	if v.target.template == nil {
		return
	}
	var devices modelserver.Devices
	if v.Shape != nil && v.Shape.Accelerator == name.Short {
		devices = modelserver.Devices{Device: v.Shape.Device(), Count: v.Shape.Devices * v.Shape.Pods}
		devices.Device.MemoryGiB = cmp.Or(devices.Device.MemoryGiB, s.memory[devices.Device.Accelerator])
	}
	l := modelserver.LimitsOf(v.target.template.Spec.Containers, v.object.Spec.ModelID, devices)
	fact.BatchLimit, fact.BatchSource, fact.KVTokens, fact.KVSource = l.Batch, l.BatchSource, l.KVTokens, l.KVSource
}

// warnOfName says that the template's model server calls its model otherwise than
// spec.modelID.
func (v *variant) warnOfName() {
	if v.target.template == nil {
		return
	}
	given := v.object.Spec.ModelID
	if names, container := modelserver.OtherNames(v.target.template.Spec.Containers, given); len(names) > 0 {
		v.warn(v1alpha1.ReasonModelNameDiffers,
			"spec.modelID is %s and container %s serves %s, so that the model's requests at a gateway, its service class and its other variants may not be found: correct one of them",
			given, container, strings.Join(names, ", "))
	}
}

// promise puts into the policy what was promised to each model's clients, whether it may
// scale to zero, and its thresholds where its namespace has some of its own. Variants of a
// model whose service class cannot be told get a warning; saturation alone decides for them.
func (seen *observation) promise(settings *config.Dynamic, variants []*variant, own map[string]config.Local) {
	references := map[decision.ModelKey][]config.ClassReference{}
	for _, v := range variants {
		of := references[v.model()]
		if named := v.object.Spec.SLOClassRef; named != nil {
			of = append(of, config.ClassReference{Variant: v.key.Name, Class: named.Name, Key: named.Key})
		}
		references[v.model()] = of
	}
	seen.policy.Promises = make(map[decision.ModelKey]decision.Promise, len(references))
	seen.policy.IdleByModel = make(map[decision.ModelKey]decision.Idle, len(references))
	if len(own) > 0 {
		seen.policy.SaturationByModel = map[decision.ModelKey]decision.Saturation{}
	}
	for model, named := range references {
		here := settings.In(own[model.Namespace])
		seen.policy.Promises[model], seen.policy.IdleByModel[model] = settings.Promise(model, named), here.IdleOf(model)
		if len(own) > 0 {
			seen.policy.SaturationByModel[model] = here.SaturationOf(model)
		}
	}
	for _, v := range variants {
		v.Class = seen.policy.Promises[v.model()].Class
		if problem := seen.policy.Promises[v.model()].Problem; problem != "" {
			v.warn(v1alpha1.ReasonServiceClassUnclear, "%s", problem)
		}
	}
}

// warnOfWaking says that requests which wake the model are given up before a replica serves.
func (v *variant) warnOfWaking(settings *config.Dynamic, policy *decision.Policy, startup time.Duration) {
	patience := settings.GatewayPatience
	if patience <= 0 || startup <= patience || !policy.IdleOf(v.model()).Enabled || policy.Variants[v.key].Min > 0 {
		return
	}
	v.warn(v1alpha1.ReasonWakesTooLate,
		"the model may scale to zero, a replica took %s to start, and the gateway gives up a request that waits without one after %s (WVA_GATEWAY_PATIENCE), so the requests that wake the model fail: let the gateway wait longer, or keep a replica",
		startup.Round(time.Second), patience)
}

func (v *variant) model() decision.ModelKey {
	return decision.ModelKey{Namespace: v.key.Namespace, ID: v.object.Spec.ModelID}
}
