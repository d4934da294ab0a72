package agreement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// newPod is the pod that the API server makes of a template, with its defaults, and
// without what admission adds.
func newPod(name string, template *corev1.PodTemplateSpec) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	pod.Namespace, pod.Name, pod.UID = cmp.Or(pod.Namespace, namespace), name, types.UID(name)
	pod.CreationTimestamp = metav1.NewTime(time.Now())
	corev1defaults.SetObjectDefaults_Pod(pod)
	pod.Status.Phase = corev1.PodPending
	return pod
}

// demand is what one variant, or pods without one, ask of a cluster.
type demand struct {
	variant  *served
	template *corev1.PodTemplateSpec
	// accepts are the accelerators that pods without a variant list, in their order.
	accepts []string
	// bounds are what the inventory must name because it does not model it; without
	// them the template is modelled completely.
	bounds []string
	// devices is false for pods that any scheduler could place.
	devices bool
	// twinOf is the variant from whose template this one differs in a single thing.
	twinOf *served
}

// newDemands are the demands of one cluster: often of one variant, else of several
// whose replicas come in turns.
func (c *cluster) newDemands() []demand {
	demands := []demand{c.newDemand()}
	for c.chance(2) && len(demands) < 4 {
		next := c.newDemand()
		if slices.ContainsFunc(demands, func(d demand) bool { return d.variant == next.variant }) {
			continue // a variant has one template
		}
		if c.chance(2) {
			next = c.twin(demands[0], next)
		}
		demands = append(demands, next)
	}
	return demands
}

// twin is a demand of another variant that differs from one in a single thing which nodes
// look at.
func (c *cluster) twin(of, next demand) demand {
	if of.accepts != nil || next.accepts != nil || next.variant == of.variant {
		return next
	}
	twin := of
	twin.variant, twin.twinOf = next.variant, of.variant
	twin.template = of.template.DeepCopy()
	twin.template.Labels["variant"] = next.variant.name
	spec := &twin.template.Spec
	spec.NodeSelector = maps.Clone(spec.NodeSelector)
	for key := range of.variant.selector {
		delete(spec.NodeSelector, key)
	}
	for key, value := range next.variant.selector {
		if spec.NodeSelector == nil {
			spec.NodeSelector = map[string]string{}
		}
		spec.NodeSelector[key] = value
	}
	// The devices are those of the other variant.
	for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			r := &containers[i].Resources
			for _, list := range []corev1.ResourceList{r.Requests, r.Limits} {
				if q, asks := list[of.variant.resource]; asks && of.variant.resource != next.variant.resource {
					delete(list, of.variant.resource)
					list[next.variant.resource] = q
				}
			}
		}
	}
	if len(spec.Tolerations) == 0 {
		spec.Tolerations = []corev1.Toleration{{Key: "team", Value: "other", Effect: corev1.TaintEffectNoExecute}}
		return twin
	}
	t := &spec.Tolerations[c.rng.IntN(len(spec.Tolerations))]
	switch {
	case t.Key == "": // it tolerates everything
		t.Effect = corev1.TaintEffectNoExecute
	case c.chance(2):
		t.Effect = map[corev1.TaintEffect]corev1.TaintEffect{
			corev1.TaintEffectNoSchedule: corev1.TaintEffectNoExecute, corev1.TaintEffectNoExecute: corev1.TaintEffectNoSchedule, "": corev1.TaintEffectNoSchedule,
		}[t.Effect]
	case t.Operator == corev1.TolerationOpExists:
		t.Operator, t.Value = corev1.TolerationOpEqual, "present"
	default:
		t.Value += "s"
	}
	return twin
}

func (c *cluster) newDemand() demand {
	d := demand{variant: c.variant(), template: &corev1.PodTemplateSpec{}, devices: c.quietly || !c.chance(12)}
	d.template.Namespace = namespace
	d.template.Labels = map[string]string{"app": "server", "variant": d.variant.name}
	spec := &d.template.Spec
	spec.SchedulerName = profileName
	spec.NodeSelector = d.variant.selector
	spec.Containers = []corev1.Container{{Name: "server", Image: "server", Resources: c.requests()}}
	if d.devices {
		c.addDevices(d.variant.resource, spec)
	}
	c.addContainers(spec)
	if c.chance(8) {
		spec.RuntimeClassName = ptr.To(pick(c.rng, runtimeClasses...).Name)
	}
	if c.chance(3) {
		spec.PriorityClassName = pick(c.rng, priorityClasses...).Name
	}
	c.choose(spec)
	c.tolerate(spec, d.devices)
	if c.chance(5) {
		if bound := c.constrain(d.template); bound != "" {
			d.bounds = append(d.bounds, bound)
		}
	}
	if d.devices && d.variant.resource == nvidia && d.variant.selector == nil && c.chance(6) {
		d.accepts = pick(c.rng, acceptedLists...)
		d.template.Annotations = map[string]string{v1alpha1.AnnotationAccelerators: strings.Join(d.accepts, ",")}
	}
	return d
}

// variant is most often one whose devices are there.
func (c *cluster) variant() *served {
	wanted := pick(c.rng, c.suited...)
	for i := range variants {
		if variants[i].name == wanted && !c.chance(6) {
			return &variants[i]
		}
	}
	return &variants[c.rng.IntN(len(variants))]
}

// acceptedLists are what pods without a variant accept, in their order.
var acceptedLists = [][]string{
	{"H100", "A100"}, {"A100-80GB", "H100", "A100"}, {"L40S", "A100-40GB", "H100-NVL", "H100"}, {"A100"}, {"NVIDIA-A100-SXM4-80GB-MIG-3g.40gb", "A100"},
}

// pod is one more pod of the demand.
func (d *demand) pod(serial int) *corev1.Pod {
	if d.accepts != nil {
		return newPod(fmt.Sprintf("%s-%d", d.variant.name, serial), d.template)
	}
	return d.variant.replica(serial, d.template)
}

func quantities(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// requests are CPU and memory of a container: as requests, as limits alone, or none.
func (c *cluster) requests() corev1.ResourceRequirements {
	amounts := quantities()
	if !c.chance(4) {
		amounts[corev1.ResourceCPU] = resource.MustParse(pick(c.rng, "100m", "250m", "1", "1500m", "2", "3.5", "7"))
	}
	if !c.chance(4) {
		amounts[corev1.ResourceMemory] = resource.MustParse(pick(c.rng, "128Mi", "1G", "2560Mi", "8Gi", "10G", "1234567", "100m"))
	}
	if c.chance(4) {
		return corev1.ResourceRequirements{Limits: amounts}
	}
	return corev1.ResourceRequirements{Requests: amounts}
}

func ask(r *corev1.ResourceRequirements, name corev1.ResourceName, count int64) {
	for _, list := range []*corev1.ResourceList{&r.Requests, &r.Limits} {
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[name] = *resource.NewQuantity(count, resource.DecimalSI)
	}
}

// addDevices lets the first container ask for devices, and sometimes another one too.
func (c *cluster) addDevices(name corev1.ResourceName, spec *corev1.PodSpec) {
	ask(&spec.Containers[0].Resources, name, pick[int64](c.rng, 1, 1, 1, 2, 2, 3, 4, 8))
	if c.chance(8) {
		// As people write it: a limit alone.
		delete(spec.Containers[0].Resources.Requests, name)
	}
	if c.chance(8) {
		second := corev1.Container{Name: "draft", Image: "server"}
		ask(&second.Resources, name, 1)
		spec.Containers = append(spec.Containers, second)
	}
	if c.chance(10) {
		check := corev1.Container{Name: "check", Image: "check"}
		ask(&check.Resources, name, pick[int64](c.rng, 1, 2))
		spec.InitContainers = append(spec.InitContainers, check)
	}
}

// addContainers adds what counts by rules of its own: init containers, sidecars, requests
// of the whole pod.
func (c *cluster) addContainers(spec *corev1.PodSpec) {
	if c.chance(6) {
		spec.InitContainers = append(spec.InitContainers, corev1.Container{Name: "load", Image: "load", Resources: c.requests()})
	}
	if c.chance(6) {
		spec.InitContainers = append(spec.InitContainers, corev1.Container{
			Name: "proxy", Image: "proxy", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways), Resources: c.requests(),
		})
	}
	if c.chance(6) {
		// After a sidecar, an init container has what it needs beside the sidecar.
		spec.InitContainers = append(spec.InitContainers, corev1.Container{Name: "warm", Image: "load", Resources: c.requests()})
	}
	if c.chance(15) {
		spec.Resources = pick(c.rng,
			&corev1.ResourceRequirements{Requests: quantities("cpu", "8", "memory", "30Gi")},
			&corev1.ResourceRequirements{Limits: quantities("cpu", "12", "memory", "40Gi")},
			&corev1.ResourceRequirements{Limits: quantities("cpu", "12"), Requests: quantities("memory", "30Gi")},
		)
	}
}

// choose adds node selectors and required node affinity.
func (c *cluster) choose(spec *corev1.PodSpec) {
	if c.chance(5) {
		selector := map[string]string{"pool": "inference"}
		for k, v := range spec.NodeSelector {
			selector[k] = v
		}
		spec.NodeSelector = selector
	}
	if !c.chance(4) {
		return
	}
	expression := func(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: op, Values: values}
	}
	expressions := []corev1.NodeSelectorRequirement{
		expression(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, "zone-1"),
		expression("pool", corev1.NodeSelectorOpNotIn, "batch", "gone"),
		expression("generation", corev1.NodeSelectorOpGt, "2"),
		expression("generation", corev1.NodeSelectorOpLt, "4"),
		expression("pool", corev1.NodeSelectorOpExists),
		expression("spot", corev1.NodeSelectorOpDoesNotExist),
	}
	var terms []corev1.NodeSelectorTerm
	for range 1 + c.rng.IntN(2) {
		term := corev1.NodeSelectorTerm{}
		for range 1 + c.rng.IntN(2) {
			term.MatchExpressions = append(term.MatchExpressions, pick(c.rng, expressions...))
		}
		if c.chance(5) {
			term.MatchFields = []corev1.NodeSelectorRequirement{expression(metav1.ObjectNameField, corev1.NodeSelectorOpIn, pick(c.rng, c.nodes...).Name)}
		}
		terms = append(terms, term)
	}
	spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
	}}
}

// tolerate adds tolerations. Pods without devices never tolerate everything: our
// Filter is not asked about them, and a node that is out for the model is so for the
// others only by its taint.
func (c *cluster) tolerate(spec *corev1.PodSpec, devices bool) {
	all := []corev1.Toleration{
		{Key: "wva.llmd.ai/scheduler", Operator: corev1.TolerationOpEqual, Value: profileName, Effect: corev1.TaintEffectNoSchedule},
		{Key: "wva.llmd.ai/scheduler", Operator: corev1.TolerationOpExists},
		{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
		{Key: "team", Value: "other", Effect: corev1.TaintEffectNoExecute},
		{Key: "team", Value: "mine"},
	}
	if devices {
		all = append(all, corev1.Toleration{Operator: corev1.TolerationOpExists})
	}
	for range c.rng.IntN(4) {
		spec.Tolerations = append(spec.Tolerations, pick(c.rng, all...))
	}
}

// constrain adds one constraint beyond devices, CPU and memory, and returns the words
// for it if the model does not know it.
func (c *cluster) constrain(template *corev1.PodTemplateSpec) string {
	spec := &template.Spec
	own := &metav1.LabelSelector{MatchLabels: map[string]string{"variant": template.Labels["variant"]}}
	term := corev1.PodAffinityTerm{LabelSelector: own, TopologyKey: pick(c.rng, corev1.LabelHostname, corev1.LabelTopologyZone)}
	affinity := func() *corev1.Affinity {
		if spec.Affinity == nil {
			spec.Affinity = &corev1.Affinity{}
		}
		return spec.Affinity
	}
	switch c.rng.IntN(8) {
	case 0, 1:
		affinity().PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}
		return "pod anti-affinity"
	case 2:
		affinity().PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}
		return "pod affinity"
	case 3:
		spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: term.TopologyKey, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: own,
		}}
		return "topology spread"
	case 4:
		spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8000, HostPort: 8000}}
		if spec.HostNetwork = c.chance(2); spec.HostNetwork {
			spec.Containers[0].Ports[0].HostPort = 0
		}
		return "host ports"
	case 5:
		ask(&spec.Containers[0].Resources, corev1.ResourceEphemeralStorage, 8<<30)
		return "ephemeral-storage"
	case 6:
		ask(&spec.Containers[0].Resources, link, pick[int64](c.rng, 1, 1, 2))
		return ""
	default:
		if c.chance(2) {
			// A StatefulSet whose template says nothing of them.
			set := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{
				Template: *template, VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "model"}}},
			}}
			*template = *inventory.TemplateOfStatefulSet(set)
			return "volumes"
		}
		spec.Volumes = []corev1.Volume{{Name: "model", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "model"},
		}}}
		return "volumes"
	}
}

// other is a pod that is there already, of any scheduler and in any state. More may
// be bound to a node than it holds.
func (c *cluster) other() *corev1.Pod {
	c.serial++
	node := pick(c.rng, c.nodes...)
	template := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		SchedulerName: pick(c.rng, corev1.DefaultSchedulerName, profileName),
		Containers:    []corev1.Container{{Name: "main", Image: "main", Resources: c.requests()}},
	}}
	template.Namespace = pick(c.rng, namespace, "batch")
	template.Labels = map[string]string{"app": "other"}
	for name := range node.Status.Allocatable {
		_, modelled := map[corev1.ResourceName]bool{corev1.ResourceCPU: true, corev1.ResourceMemory: true, corev1.ResourcePods: true, corev1.ResourceEphemeralStorage: true}[name]
		if !modelled && c.chance(2) {
			ask(&template.Spec.Containers[0].Resources, name, int64(1+c.rng.IntN(3)))
		}
	}
	c.addContainers(&template.Spec)
	if c.chance(8) {
		// The overhead of a sandbox.
		template.Spec.Overhead = quantities("cpu", "250m", "memory", "120Mi")
	}
	if c.chance(25) {
		// It wants to be alone with respect to servers, which is not in their templates.
		template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "server"}}, TopologyKey: corev1.LabelHostname,
			}},
		}}
	}
	pod := newPod(fmt.Sprintf("other-%d-%d", c.number, c.serial), template)
	pod.Spec.NodeName = node.Name
	pod.Status.Phase = corev1.PodRunning
	pod.Spec.Priority = ptr.To(pick[int32](c.rng, -10, -10, -5, 0, 0, 2_000_000_000))
	switch c.rng.IntN(14) {
	case 0:
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{Time: epoch}, ptr.To[int64](30)
	case 1:
		pod.Status.Phase = pick(c.rng, corev1.PodSucceeded, corev1.PodFailed)
	case 2:
		pod.Spec.NodeName, pod.Status.Phase = "", corev1.PodPending
	case 3:
		pod.Spec.NodeName = "a-node-that-is-gone"
	case 4, 5: // a resize under way, or one that will never be
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "main", AllocatedResources: quantities("cpu", pick(c.rng, "300m", "3")),
			Resources: &corev1.ResourceRequirements{Requests: quantities("cpu", pick(c.rng, "500m", "5"), "memory", "3Gi")},
		}}
		if c.chance(3) {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible}}
		}
	case 6:
		pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8000, HostPort: 8000, Protocol: corev1.ProtocolTCP}}
	case 7: // room is made for it by preemption
		pod.Spec.NodeName, pod.Status.Phase = "", corev1.PodPending
		pod.Spec.Priority, pod.Status.NominatedNodeName = ptr.To(pick[int32](c.rng, -10, 0, 1000)), node.Name
	}
	return pod
}

// bound says whether the scheduler's informer shows the pod as one on a node.
func bound(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" && !slices.Contains([]corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed}, pod.Status.Phase)
}
