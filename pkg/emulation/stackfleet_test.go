package emulation_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"llmd.ai/workload-variant-autoscaler/pkg/emulation"
)

// stackPod is a pod with a configuration and a Secret, as the operator makes it.
func stackPod(name, model string, isReady corev1.ConditionStatus) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Labels: map[string]string{"app": "llama-stack"}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Env: []corev1.EnvVar{
				{Name: "MODEL", Value: model},
				{Name: "TOKEN", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "auth"}, Key: "token"}}},
			}}},
			Volumes: []corev1.Volume{{Name: "user-config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "config"}}}}},
		},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: isReady}}},
	}
}

func TestAStackFleetAnswersForReadyPods(t *testing.T) {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer hush" {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	defer provider.Close()
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "ns", Name: name} }
	service := func(name, app string) *corev1.Service {
		return &corev1.Service{ObjectMeta: meta(name), Spec: corev1.ServiceSpec{Selector: map[string]string{"app": app}}}
	}
	fleet := emulation.NewStackFleet(fake.NewClientset(
		stackPod("a", "starting", corev1.ConditionFalse), stackPod("b", "m", corev1.ConditionTrue), stackPod("c", "third", corev1.ConditionTrue),
		service("demo-service", "llama-stack"), service("other", "other"),
		&corev1.Secret{ObjectMeta: meta("auth"), Data: map[string][]byte{"token": []byte("hush")}},
		&corev1.ConfigMap{ObjectMeta: meta("config"), Data: map[string]string{"config.yaml": `
providers: {inference: [{provider_id: p, provider_type: "remote::vllm", config: {base_url: "` + provider.URL + `/v1", api_token: "${env.TOKEN}"}}]}
registered_resources: {models: [{model_id: "${env.MODEL}", provider_id: p}]}`}},
	))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); fleet.Run(ctx) }()
	defer func() { stop(); <-ended }()

	front := fleet.Service("ns", "demo-service")
	require.Eventually(t, func() bool {
		status, _ := asked(t, front, http.MethodGet, "/v1/health", "")
		return status == http.StatusOK
	}, time.Minute, 10*time.Millisecond)
	status, text := asked(t, front, http.MethodPost, "/v1/completions", `{"model": "m"}`)
	assert.Equal(t, http.StatusOK, status, text)
	status, _ = asked(t, fleet, http.MethodPost, "http://demo-service.ns.svc.cluster.local:8321/v1/completions", `{"model": "p/m"}`)
	assert.Equal(t, http.StatusOK, status)
	status, _ = asked(t, front, http.MethodPost, "/v1/completions", `{"model": "third"}`)
	assert.Equal(t, http.StatusNotFound, status, "another pod's model")
	assert.Equal(t, 2, fleet.Answered("p"))

	status, text = asked(t, fleet, http.MethodGet, "http://demo-service.elsewhere.svc/v1/health", "")
	assert.Equal(t, http.StatusServiceUnavailable, status)
	assert.Contains(t, text, `\"demo-service\" not found`)
	status, text = asked(t, fleet.Service("ns", "other"), http.MethodGet, "/v1/health", "")
	assert.Equal(t, http.StatusServiceUnavailable, status)
	assert.Contains(t, text, "the Service ns/other has no ready pod")
}
