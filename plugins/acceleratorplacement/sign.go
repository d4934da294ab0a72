package acceleratorplacement

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// signature is what the pods of one signature have in common, as far as this
// plugin's answers depend on the pod: what it takes, who owns it, and what it
// accepts.
type signature struct {
	Takes     inventory.Takes
	Namespace string                 `json:",omitempty"`
	Owner     *metav1.OwnerReference `json:",omitempty"`
	Accepts   string                 `json:",omitempty"`
}

// SignPod lets pods of the same owner share the work of one scheduling cycle. It
// looks at the pod alone.
func (p *Plugin) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	takes, err := inventory.PodTakes(pod)
	if err != nil {
		return nil, fwk.NewStatus(fwk.Unschedulable, err.Error())
	}
	s := signature{Takes: takes}
	if takes.Devices == 0 {
		return []fwk.SignFragment{{Key: Name, Value: s}}, nil
	}
	affinity, err := fwk.NodeAffinitySigner(pod)
	if err != nil {
		return nil, fwk.AsStatus(fmt.Errorf("signing the node affinity of pod %s: %w", klog.KObj(pod), err))
	}
	s.Namespace, s.Owner, s.Accepts = pod.Namespace, metav1.GetControllerOf(pod), pod.Annotations[v1alpha1.AnnotationAccelerators]
	return []fwk.SignFragment{
		{Key: Name, Value: s},
		// A variant's accelerator may be what its pods select.
		{Key: fwk.NodeAffinitySignerName, Value: affinity},
		{Key: fwk.NodeSelectorSignerName, Value: pod.Spec.NodeSelector},
		{Key: fwk.TolerationsSignerName, Value: fwk.TolerationsSigner(pod)},
	}, nil
}
