package child

import (
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
)

func service(in Input) Object {
	port, target := Port(in.Object), intstr.FromString(PortName)
	if in.Rolling.Unnamed {
		target = intstr.FromInt32(port)
	}
	return &corev1.Service{
		TypeMeta:   kind("v1", "Service"),
		ObjectMeta: meta(in, in.Object.Name+"-service"),
		Spec: corev1.ServiceSpec{
			Type:     corev1.ServiceTypeClusterIP,
			Selector: Selector(in.Object.Name),
			Ports:    []corev1.ServicePort{{Name: PortName, Protocol: corev1.ProtocolTCP, Port: port, TargetPort: target}},
		},
	}
}

func volumeClaim(in Input, storage *v1alpha2.VolumeStorage) Object {
	size := resource.MustParse(v1alpha2.DefaultStorageSize)
	if storage.Size != nil {
		size = *storage.Size
	}
	return &corev1.PersistentVolumeClaim{
		TypeMeta:   kind("v1", "PersistentVolumeClaim"),
		ObjectMeta: meta(in, in.Object.Name+"-pvc"),
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: size}},
		},
	}
}

// autoscaler never goes below the replicas of the object, as far as its maximum lets them.
func autoscaler(in Input, a *v1alpha2.Autoscaling) Object {
	use := func(name corev1.ResourceName, percentage *int32) []autoscalingv2.MetricSpec {
		if percentage == nil {
			return nil
		}
		return []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
			Name: name, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: percentage},
		}}}
	}
	metrics := slices.Concat(use(corev1.ResourceCPU, a.TargetCPUUtilizationPercentage), use(corev1.ResourceMemory, a.TargetMemoryUtilizationPercentage))
	if len(metrics) == 0 {
		metrics = use(corev1.ResourceCPU, ptr.To[int32](80))
	}
	return &autoscalingv2.HorizontalPodAutoscaler{
		TypeMeta:   kind("autoscaling/v2", "HorizontalPodAutoscaler"),
		ObjectMeta: meta(in, in.Object.Name+"-hpa"),
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: in.Object.Name},
			MinReplicas:    ptr.To(min(a.MaxReplicas, max(1, replicas(in), ptr.Deref(a.MinReplicas, 1)))),
			MaxReplicas:    a.MaxReplicas,
			Metrics:        metrics,
		},
	}
}

func disruptionBudget(in Input, b *v1alpha2.PodDisruptionBudget) Object {
	spec := policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: Selector(in.Object.Name)}}
	if b != nil {
		spec.MinAvailable, spec.MaxUnavailable = b.MinAvailable, b.MaxUnavailable
	} else {
		spec.MaxUnavailable = ptr.To(intstr.FromInt32(1))
	}
	return &policyv1.PodDisruptionBudget{TypeMeta: kind("policy/v1", "PodDisruptionBudget"), ObjectMeta: meta(in, in.Object.Name+"-pdb"), Spec: spec}
}

// networkPolicy lets others in by numbers: not every network knows the names of ports.
func networkPolicy(in Input) Object {
	var ports []networkingv1.NetworkPolicyPort
	for _, port := range append([]int32{Port(in.Object)}, in.Rolling.Ports...) {
		ports = append(ports, networkingv1.NetworkPolicyPort{Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To(intstr.FromInt32(port))})
	}
	return &networkingv1.NetworkPolicy{
		TypeMeta:   kind("networking.k8s.io/v1", "NetworkPolicy"),
		ObjectMeta: meta(in, in.Object.Name+"-network-policy"),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: Selector(in.Object.Name)},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{
				Ports: ports,
				From:  allowed(in),
			}},
		},
	}
}

// allowed are those who may reach the server: its own namespace, the operator's, and
// whom the object names.
func allowed(in Input) []networkingv1.NetworkPolicyPeer {
	n := networking(in)
	from := ptr.Deref(n.AllowedFrom, v1alpha2.AllowedFrom{})
	if slices.Contains(from.Namespaces, "*") {
		return []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{}}}
	}
	labelled := func(key, value string) networkingv1.NetworkPolicyPeer {
		return networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}}
	}
	peers := []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}, labelled(corev1.LabelMetadataName, in.OperatorNamespace)}
	for _, namespace := range from.Namespaces {
		peers = append(peers, labelled(corev1.LabelMetadataName, namespace))
	}
	for _, label := range from.Labels {
		peers = append(peers, networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: label, Operator: metav1.LabelSelectorOpExists}},
		}})
	}
	carried, _ := v1alpha2.ReadV1alpha1Extras(in.Object)
	if n.Expose != nil || n.AllowedFrom != nil || carried.Presence[v1alpha2.PresenceNetwork] {
		peers = append(peers, labelled("network.openshift.io/policy-group", "ingress"))
	}
	return peers
}

// ingress has no TLS and no class: the cluster's defaults count. OpenShift makes a Route of
// it where it has a host, and none of a rule without one.
func ingress(in Input, hostname string) Object {
	path := networkingv1.HTTPIngressPath{
		Path: "/", PathType: ptr.To(networkingv1.PathTypePrefix),
		Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
			Name: in.Object.Name + "-service", Port: networkingv1.ServiceBackendPort{Number: Port(in.Object)},
		}},
	}
	return &networkingv1.Ingress{
		TypeMeta:   kind("networking.k8s.io/v1", "Ingress"),
		ObjectMeta: meta(in, in.Object.Name+"-ingress"),
		Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{
			Host:             hostname,
			IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{path}}},
		}}},
	}
}
