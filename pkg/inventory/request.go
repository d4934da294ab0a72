package inventory

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// Request is what one replica of the template asks of this cluster, as one pod;
// the caller sets Shape.Pods of a replica that spans nodes. The devices are those
// that the pods request; wanted names their accelerator and is of no account for
// pods without devices.
//
// It is an error, and the shape unknown, when the model cannot count such pods: the
// accelerator is unknown, devices come by resource claims, or several kinds of
// devices are on one pod or one node.
func (inv *Inventory) Request(template *corev1.PodTemplateSpec, wanted Name) (*placement.Request, error) {
	if template == nil {
		return nil, fmt.Errorf("reading the pod template: %w", placement.ErrShapeUnknown)
	}
	if len(template.Spec.ResourceClaims) > 0 {
		return nil, fmt.Errorf("reading the pod template: %w", ErrClaims)
	}
	pod := podOf(template)
	takes, err := PodTakes(pod)
	if err != nil {
		return nil, fmt.Errorf("reading the pod template: %w", err)
	}
	if takes.Devices > 0 && !wanted.Known() {
		return nil, fmt.Errorf("the pods ask for %d %s of an unknown accelerator: set spec.accelerator", takes.Devices, takes.Resource)
	}
	if err := inv.besideError(takes.Resource); err != nil {
		return nil, err
	}
	shape := capacity.Shape{Devices: takes.Devices, Pods: 1, MilliCPU: takes.MilliCPU, MemoryBytes: takes.MemoryBytes}
	if takes.Devices > 0 {
		shape.Accelerator = wanted.Accelerator()
	}
	r := &placement.Request{Shape: shape, Bound: unmodelled(pod, takes.Other)}
	r.Refused = inv.refusals(pod, shape, takes.Resource, wanted)
	return r, nil
}

// refusals asks every node of the right type whether it admits the pod. The result
// is nil when all do.
func (inv *Inventory) refusals(pod *corev1.Pod, shape capacity.Shape, resource corev1.ResourceName, wanted Name) []string {
	affinity := nodeaffinity.GetRequiredNodeAffinity(pod)
	var refused []string
	for i, node := range inv.Nodes {
		if inv.Cluster.Nodes[i].Type(shape) != placement.Fits {
			continue
		}
		why := ""
		if d := &inv.Devices[i]; shape.Devices > 0 {
			why = otherDevices(d, resource, wanted)
		}
		if why == "" {
			why = Refusal(pod, node, affinity)
		}
		if why == "" {
			continue
		}
		if refused == nil {
			refused = make([]string, len(inv.Nodes))
		}
		refused[i] = why
	}
	return refused
}

// otherDevices says why devices of the right short name are not those that are
// asked for.
func otherDevices(have *Devices, resource corev1.ResourceName, wanted Name) string {
	switch {
	case have.Resource != resource && have.Count > 0:
		return "offers " + string(have.Resource)
	case !wanted.Covers(have.Name):
		return "carries " + have.Name.String()
	default:
		return ""
	}
}

// Refusal says why the node keeps the pod away, or empty: what the scheduler's node
// name, taint and node affinity filters say. Affinity is the pod's, parsed once.
func Refusal(pod *corev1.Pod, node *corev1.Node, affinity nodeaffinity.RequiredNodeAffinity) string {
	if pod.Spec.NodeName != "" && pod.Spec.NodeName != node.Name {
		return "node name"
	}
	if taint := untolerated(pod.Spec.Tolerations, node.Spec.Taints); taint != nil {
		return "taint " + taint.Key
	}
	if matches, err := affinity.Match(node); err != nil {
		return "node affinity: " + err.Error()
	} else if !matches {
		return "node affinity or selector"
	}
	return ""
}

// untolerated is the first taint that keeps pods with these tolerations away.
func untolerated(tolerations []corev1.Toleration, taints []corev1.Taint) *corev1.Taint {
	i := slices.IndexFunc(taints, func(t corev1.Taint) bool {
		return (t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute) &&
			!quietly(corev1helpers.TolerationsTolerateTaint, tolerations, &t)
	})
	if i < 0 {
		return nil
	}
	return &taints[i]
}

// quietly calls the helper with the zero logger, which discards. The helper only
// logs malformed numbers of the comparison operators, which are off by default, and
// this package has no logger.
func quietly[L any](tolerate func(L, []corev1.Toleration, *corev1.Taint, bool) bool, tolerations []corev1.Toleration, taint *corev1.Taint) bool {
	var discard L
	return tolerate(discard, tolerations, taint, false)
}
