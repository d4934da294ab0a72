package modelserver

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func pod(annotations map[string]string, ports ...corev1.ContainerPort) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", UID: "u", Annotations: annotations},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "sidecar"}, {Name: "server", Ports: ports}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1",
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
}

func TestWhereAPodsMetricsAre(t *testing.T) {
	named := func(name string, port int32) corev1.ContainerPort {
		return corev1.ContainerPort{Name: name, ContainerPort: port}
	}
	cases := []struct {
		name         string
		pod          *corev1.Pod
		port         int
		path, scheme string
	}{
		{"nothing said", pod(nil), 0, "", ""},
		{"annotations", pod(map[string]string{"prometheus.io/port": "9", "prometheus.io/path": "/m", "prometheus.io/scheme": "https"}, named("metrics", 1)), 9, "/m", "https"},
		{"a port that is no number", pod(map[string]string{"prometheus.io/port": "http"}, named("http", 8000), named("grpc", 1)), 8000, "", ""},
		{"port zero", pod(map[string]string{"prometheus.io/port": "0"}, named("http", 8000), named("grpc", 1)), 8000, "", ""},
		{"a port that is too high", pod(map[string]string{"prometheus.io/port": "65536"}), 0, "", ""},
		{"a scheme that is none", pod(map[string]string{"prometheus.io/scheme": "file"}), 0, "", ""},
		{"metrics before http", pod(nil, named("http", 8000), named("metrics", 8200)), 8200, "", ""},
		{"the only port", pod(nil, named("", 30000)), 30000, "", ""},
		{"the only port is not TCP", pod(nil, corev1.ContainerPort{ContainerPort: 1, Protocol: corev1.ProtocolUDP}), 0, "", ""},
		{"two ports without names", pod(nil, named("", 1), named("", 2)), 0, "", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			target, ok := TargetOf(c.pod)
			assert.True(t, ok)
			assert.Equal(t, Target{Namespace: "n", Name: "p", UID: "u", Address: "10.0.0.1", Port: c.port, Path: c.path, Scheme: c.scheme, Ready: true}, target)
		})
	}
}

// A server with a port for each of its ranks is known by all of them.
func TestAPortForEachRank(t *testing.T) {
	for words, want := range map[string]int{
		"vllm serve m": 0,
		"vllm serve m --data-parallel-size 8 --data-parallel-hybrid-lb":                                                                         0,
		"vllm serve m --data-parallel-size 8 --data-parallel-multi-port-external-lb":                                                            8,
		"vllm serve m --data-parallel-size=16 --data-parallel-size-local=8 --data-parallel-start-rank=8 --data-parallel-multi-port-external-lb": 8,
		"vllm serve m --data-parallel-size 1 --data-parallel-multi-port-external-lb":                                                            0,
	} {
		p := pod(nil, corev1.ContainerPort{Name: "http", ContainerPort: 8000}, corev1.ContainerPort{Name: "rank-1", ContainerPort: 8001})
		p.Spec.Containers[1].Command = []string{"bash", "-c", words}
		target, ok := TargetOf(p)
		assert.True(t, ok)
		assert.Equal(t, want, target.Ranks, words)
		assert.Equal(t, 8000, target.Port)
	}
}

func TestPodsWithoutMetrics(t *testing.T) {
	starting := pod(nil)
	starting.Status.PodIP = ""
	_, ok := TargetOf(starting)
	assert.False(t, ok)

	ended := pod(nil)
	ended.Status.Phase = corev1.PodSucceeded
	_, ok = TargetOf(ended)
	assert.False(t, ok)

	loading := pod(nil)
	loading.Status.Conditions = nil
	target, ok := TargetOf(loading)
	assert.True(t, ok)
	assert.False(t, target.Ready)
}
