package modelserver

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

// Target is a pod whose metrics can be asked for directly.
type Target struct {
	Namespace, Name string
	// UID tells a pod from an earlier one of the same name.
	UID types.UID
	// Address is the pod's IP address.
	Address string
	// Port, Path and Scheme say where the metrics are; the zero value of each means
	// that the pod does not say.
	Port         int
	Path, Scheme string
	// Ranks, where there are several, is at how many ports from Port on the pod's engines
	// show their metrics, each those of one.
	Ranks int
	// Ready is set while the pod is ready. The silence of one that is not is no
	// failure.
	Ready bool
}

// The annotations by which people have told Prometheus where a pod's metrics are. They
// are a custom and no standard. prometheus.io/scrape is not looked at: whoever scrapes
// with a PodMonitor sets it to false, and the metrics are there all the same.
const (
	annotationPort   = "prometheus.io/port"
	annotationPath   = "prometheus.io/path"
	annotationScheme = "prometheus.io/scheme"
)

// portNames are the names of container ports that serve metrics, the best one first.
var portNames = []string{"metrics", "http"}

// TargetOf says where a pod's metrics are. It reports false for a pod without an
// address and for one that has ended.
//
// The port is that of the annotation, else the container port named metrics, else the
// one named http, else the only one.
func TargetOf(pod *corev1.Pod) (Target, bool) {
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	if pod.Status.PodIP == "" || ended {
		return Target{}, false
	}
	t := Target{
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Address: pod.Status.PodIP,
		Port: portOf(pod), Path: pod.Annotations[annotationPath], Ranks: ranksOf(pod),
	}
	if scheme := pod.Annotations[annotationScheme]; scheme == "http" || scheme == "https" {
		t.Scheme = scheme
	}
	for _, c := range pod.Status.Conditions {
		t.Ready = t.Ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	}
	return t, true
}

// ranksOf is at how many ports the pod's server shows the metrics of its ranks; 0 for one at a port.
// vLLM's supervisor of data parallelism starts a server for each (0.22 to 0.31,
// --data-parallel-multi-port-external-lb).
func ranksOf(pod *corev1.Pod) int {
	for i := range pod.Spec.Containers {
		if a := serving.ParseArguments(commandLine(&pod.Spec.Containers[i])); a.PortPerRank && a.Engines() > 1 {
			return a.Engines()
		}
	}
	return 0
}

func portOf(pod *corev1.Pod) int {
	if port, err := strconv.ParseUint(pod.Annotations[annotationPort], 10, 16); err == nil && port > 0 {
		return int(port)
	}
	var ports []corev1.ContainerPort
	for i := range pod.Spec.Containers {
		for _, p := range pod.Spec.Containers[i].Ports {
			if p.Protocol == corev1.ProtocolTCP || p.Protocol == "" {
				ports = append(ports, p)
			}
		}
	}
	for _, name := range portNames {
		for _, p := range ports {
			if p.Name == name {
				return int(p.ContainerPort)
			}
		}
	}
	if len(ports) == 1 {
		return int(ports[0].ContainerPort)
	}
	return 0
}
