package replay

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/cluster"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/replay/past"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/scenario"
)

func devices(n int64) corev1.ResourceList {
	return corev1.ResourceList{
		"nvidia.com/gpu":      *resource.NewQuantity(n, resource.DecimalSI),
		corev1.ResourceCPU:    resource.MustParse("8"),
		corev1.ResourceMemory: resource.MustParse("64Gi"),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
}

func podOf(gpus int64) corev1.PodSpec {
	list := corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(gpus, resource.DecimalSI)}
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "server", Resources: corev1.ResourceRequirements{Requests: list, Limits: list}}}}
}

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "demo", Name: name, Labels: map[string]string{"app": name}, UID: types.UID("uid-" + name)}
}

func controlled(meta metav1.ObjectMeta, kind, by string) metav1.ObjectMeta {
	meta.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: by, UID: types.UID("uid-" + by), Controller: new(true)}}
	return meta
}

// objects are a node with 8 devices, a variant that holds 2 of them and a training that
// holds 3.
func objects() []client.Object {
	set := controlled(named("llama-1"), "Deployment", "llama")
	set.Labels = map[string]string{"app": "llama"}
	pod := controlled(named("llama-1-a"), "ReplicaSet", "llama-1")
	pod.Labels = set.Labels
	running := podOf(2)
	running.NodeName = "gpu"
	training := podOf(3)
	training.NodeName = "gpu"
	ready := []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return []client.Object{
		&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "gpu", Labels: map[string]string{"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}},
			Status:     corev1.NodeStatus{Allocatable: devices(8), Conditions: ready},
		},
		&appsv1.Deployment{ObjectMeta: named("llama"), Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "llama"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: set.Labels}, Spec: podOf(2)},
		}},
		&appsv1.ReplicaSet{ObjectMeta: set},
		&corev1.Pod{ObjectMeta: pod, Spec: running},
		&corev1.Pod{ObjectMeta: named("training"), Spec: training},
		&v1alpha1.VariantAutoscaling{ObjectMeta: named("llama"), Spec: v1alpha1.VariantAutoscalingSpec{
			ModelID: "llama", ScaleTargetRef: v1alpha1.ScaleTargetReference{Name: "llama"},
			VariantProfile: &v1alpha1.VariantProfile{PerfParms: &v1alpha1.PerfParms{
				DecodeParms: &v1alpha1.DecodeParms{Alpha: "7", Beta: "0.1"}, PrefillParms: &v1alpha1.PrefillParms{Gamma: "9", Delta: "0.01"},
			}},
		}},
	}
}

// managerNamespace is that of the plain manifests.
const managerNamespace = "workload-variant-autoscaler-system"

// release is the manager as the chart installs it, with its ConfigMaps.
func release() []client.Object {
	at := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "serving", Name: "blue-workload-variant-autoscaler-" + name}
	}
	manager := &appsv1.Deployment{ObjectMeta: at("controller-manager"), Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Args: []string{
		"--config-map-name=" + at("variantautoscaling-config").Name, "--accelerator-names-config-map-name=" + at("accelerator-names").Name,
		"--service-class-config-map-name=" + at("service-classes-config").Name, "--accelerator-cost-config-map-name=" + at("accelerator-unit-costs").Name,
	}}}}}}}
	manager.Labels = map[string]string{"app.kubernetes.io/name": "workload-variant-autoscaler", "app.kubernetes.io/component": "manager"}
	return []client.Object{
		manager,
		&corev1.ConfigMap{ObjectMeta: at("variantautoscaling-config"), Data: map[string]string{"config.yaml": "WVA_LIMITED_MODE: true\nPROMETHEUS_BASE_URL: https://prometheus"}},
		&corev1.ConfigMap{ObjectMeta: at("accelerator-names"), Data: map[string]string{"NVIDIA-H100-80GB-HBM3": "OURS"}},
		&corev1.ConfigMap{ObjectMeta: at("service-classes-config"), Data: map[string]string{"gold": "name: gold\npriority: 1\ndata: [{model: llama, slo-ttft: 400, slo-tpot: 30}]"}},
		&corev1.ConfigMap{ObjectMeta: at("accelerator-unit-costs"), Data: map[string]string{"OURS": "cost: 3"}},
	}
}

// TestALiveClusterWithARelease: the chart calls ConfigMaps after the release, and puts them
// into its namespace.
func TestALiveClusterWithARelease(t *testing.T) {
	live, notes, err := readLive(t, api(t, never, append(objects(), release()...)...))
	require.NoError(t, err)
	assert.Empty(t, notes)
	s, err := live.Scenario(nil, scenario.Options{})
	require.NoError(t, err)
	m := s.Models[0]
	assert.Equal(t, capacity.SLO{TTFT: 400, ITL: 30}, m.SLO, "of its service class")
	assert.Equal(t, capacity.Cost(6), m.Variants[0].Cost, "of its prices, by its name of the accelerator")
	assert.True(t, s.Policy.Limited)
}

// What the manager of the cluster reads counts: its flags, its thresholds and its scaling to
// zero, and those of the variants' namespaces where it lets them have some of their own.
func TestALiveClusterWhoseNamespacesHaveTheirOwn(t *testing.T) {
	local := func(name string, data map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: name}, Data: data}
	}
	beside := func(name string, data map[string]string) client.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "serving", Name: name}, Data: data}
	}
	all := append(objects(), release()...)
	thresholds := local("saturation-scaling-config", map[string]string{"default": "kvCacheThreshold: 0.6"})
	all = append(all,
		beside("capacity-scaling-config", map[string]string{"default": "kvCacheThreshold: 0.7"}),
		beside("wva-model-scale-to-zero-config", map[string]string{"default": "enable_scale_to_zero: true"}),
		local("wva-saturation-scaling-config", nil), // without an entry it does not count
		thresholds,
	)
	manager := all[len(objects())].(*appsv1.Deployment)
	model := decision.ModelKey{Namespace: "demo", ID: "llama"}
	of := func() (decision.Policy, string) {
		live, notes, err := readLive(t, api(t, never, all...))
		require.NoError(t, err)
		s, err := live.Scenario(nil, scenario.Options{})
		require.NoError(t, err)
		return s.Policy, notes
	}
	policy, notes := of()
	assert.Empty(t, notes)
	assert.InDelta(t, 0.7, policy.SaturationOf(model).KVCacheThreshold, 1e-9, "namespaces have no say by default")
	assert.True(t, policy.IdleOf(model).Enabled)

	args := &manager.Spec.Template.Spec.Containers[0].Args
	*args = append(*args, "--wva-namespace-config", "--wva-slo-percentile=0.9")
	policy, notes = of()
	assert.Empty(t, notes)
	assert.InDelta(t, 0.6, policy.SaturationOf(model).KVCacheThreshold, 1e-9)
	assert.InDelta(t, 0.9, policy.Share, 1e-9, "a flag of its Deployment")
	assert.True(t, policy.IdleOf(model).Enabled, "that of the manager, for its namespace has none")

	all = append(all, local("model-scale-to-zero-config", map[string]string{"default": "enable_scale_to_zero: false", "strange": "model_id: llama\nnamespace: other"}))
	policy, notes = of()
	assert.False(t, policy.IdleOf(model).Enabled)
	assert.Contains(t, notes, "note: ConfigMap demo/model-scale-to-zero-config: ")

	_, notes, err := readLive(t, api(t, func(o runtime.Object, name string) error {
		if _, ok := o.(*corev1.ConfigMap); ok && name == "saturation-scaling-config" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, name, errors.New("no"))
		}
		return nil
	}, all...))
	require.NoError(t, err)
	assert.Contains(t, notes, "note: ConfigMap demo/saturation-scaling-config may not be read, so the settings beside the manager count for that namespace")

	thresholds.Data["default"] = "kvCacheThreshold: much"
	_, _, err = readLive(t, api(t, never, all...))
	require.ErrorContains(t, err, "in ConfigMap demo/saturation-scaling-config: ")
}

// orphan is a variant without a target.
func orphan() client.Object {
	return &v1alpha1.VariantAutoscaling{ObjectMeta: named("orphan"), Spec: v1alpha1.VariantAutoscalingSpec{
		ModelID: "llama", ScaleTargetRef: v1alpha1.ScaleTargetReference{Name: "orphan"},
	}}
}

func configMap(name string, data map[string]string) client.Object {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: managerNamespace, Name: name}, Data: data}
}

// api is a cluster with those objects; fail says which reads fail.
func api(t *testing.T, fail func(object runtime.Object, name string) error, all ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)))
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(all...).
		WithIndex(&corev1.Pod{}, "status.phase", func(object client.Object) []string {
			return []string{string(object.(*corev1.Pod).Status.Phase)}
		}).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
				if err := fail(object, key.Name); err != nil {
					return err
				}
				return c.Get(ctx, key, object, options...)
			},
			// A fake knows no inequality of fields.
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if err := fail(list, ""); err != nil {
					return err
				}
				var kept []client.ListOption
				for _, o := range options {
					if _, ok := o.(client.MatchingFieldsSelector); !ok {
						kept = append(kept, o)
					}
				}
				return c.List(ctx, list, kept...)
			},
		}).Build()
}

func never(runtime.Object, string) error { return nil }

func readLive(t *testing.T, api client.Client) (live scenario.Live, notes string, err error) {
	t.Helper()
	var said bytes.Buffer
	o := &options{live: cluster.NewFlags(), sloTTFT: 1500}
	live, err = o.readLive(t.Context(), api, "", types.NamespacedName{}, &said)
	return live, said.String(), err
}

func TestALiveClusterBecomesAScenario(t *testing.T) {
	all := append(objects(),
		configMap("service-classes-config", map[string]string{"gold": "name: gold\npriority: 1\ndata: [{model: llama, slo-ttft: 400, slo-tpot: 30}]"}),
		configMap("accelerator-unit-costs", map[string]string{"H100": "cost: 3"}),
		configMap("workload-variant-autoscaler-accelerator-names", nil),
		configMap("workload-variant-autoscaler-variantautoscaling-config", map[string]string{"WVA_LIMITED_MODE": "true", "config.yaml": "WVA_LIMITED_MODE: false"}),
	)
	live, notes, err := readLive(t, api(t, never, all...))
	require.NoError(t, err)
	assert.Empty(t, notes)
	s, err := live.Scenario(nil, scenario.Options{})
	require.NoError(t, err)
	require.Len(t, s.Cluster.Nodes, 1)
	assert.Equal(t, 5, s.Cluster.Nodes[0].Free.Devices, "only the training holds some")
	m := s.Models[0]
	assert.Equal(t, capacity.SLO{TTFT: 400, ITL: 30}, m.SLO, "of the service class")
	assert.Equal(t, []any{"llama", capacity.Cost(6), 2}, []any{m.Variants[0].Name, m.Variants[0].Cost, m.Variants[0].Request.Shape.Devices})
	assert.True(t, s.Policy.Limited)
}

func TestALiveClusterWithoutConfigMaps(t *testing.T) {
	live, notes, err := readLive(t, api(t, never, objects()...))
	require.NoError(t, err)
	for _, missing := range []string{
		"workload-variant-autoscaler-accelerator-names is not there, so accelerators have the names that are built in (no manager is installed",
		"so the settings of the manager do not count", "so SLOs do not count", "so prices of accelerators do not count",
	} {
		assert.Contains(t, notes, missing)
	}
	s, err := live.Scenario(nil, scenario.Options{})
	require.NoError(t, err)
	assert.Equal(t, capacity.SLO{TTFT: 1500}, s.Models[0].SLO, "of the flag")
	shape := s.Models[0].Variants[0].Request.Shape
	assert.Equal(t, config.Unpriced(shape.Device(), shape.Devices), s.Models[0].Variants[0].Cost)
}

func TestWhatALiveClusterDoesNotTell(t *testing.T) {
	forbidden := func(what string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: what}, "", errors.New("no"))
	}
	without := func(name string) []client.Object {
		var kept []client.Object
		for _, object := range objects() {
			if _, isPod := object.(*corev1.Pod); object.GetName() != name || isPod {
				kept = append(kept, object)
			}
		}
		return kept
	}
	for name, c := range map[string]struct {
		objects []client.Object
		fail    func(runtime.Object, string) error
		says    string
		notes   string
	}{
		"no object":               {objects()[:1], never, "there are no VariantAutoscaling objects in all namespaces: expected at least one", ""},
		"no target":               {append(without("llama"), objects()[5]), never, "variant demo/llama is left out, and its pods are other work: Deployment llama does not exist in namespace demo", ""},
		"no target of one of two": {append(objects(), orphan()), never, "", "note: variant demo/orphan is left out, and its pods are other work: Deployment orphan does not exist in namespace demo"},
		"no pods may be read": {objects(), func(o runtime.Object, _ string) error {
			if _, ok := o.(*corev1.PodList); ok {
				return forbidden("pods")
			}
			return nil
		}, "the pods of all namespaces may not be read", ""},
		"no ConfigMap may be read": {objects(), func(o runtime.Object, _ string) error {
			if _, ok := o.(*corev1.ConfigMap); ok {
				return forbidden("configmaps")
			}
			return nil
		}, "", "note: ConfigMap workload-variant-autoscaler-system/wva-service-classes-config may not be read"},
		"a broken ConfigMap": {append(objects(), configMap("accelerator-unit-costs", map[string]string{"H100": "cost: dear"})), never,
			`in ConfigMap workload-variant-autoscaler-system/accelerator-unit-costs: accelerator prices: entry "H100": cost is dear`, ""},
		"a strange ConfigMap": {append(objects(), configMap("accelerator-unit-costs", map[string]string{"H100": "{cost: 3, colour: red}"})), never,
			"", "colour has no effect"},
	} {
		t.Run(name, func(t *testing.T) {
			_, notes, err := readLive(t, api(t, c.fail, c.objects...))
			if c.says != "" {
				require.ErrorContains(t, err, c.says)
			} else {
				require.NoError(t, err)
			}
			assert.Contains(t, notes, c.notes)
			for note := range strings.Lines(notes) {
				missing := strings.Contains(note, "there is no ConfigMap") || strings.Contains(note, "is not there")
				assert.True(t, missing || c.notes != "", note)
			}
		})
	}
}

// A model without objects is served by its Deployments, as adopt would write them. What
// others hold stays theirs.
func TestTheModelOfAPastNeedsNoObjects(t *testing.T) {
	deployment := func(name, model string) *appsv1.Deployment {
		spec := podOf(2)
		spec.Containers[0].Command = []string{"vllm", "serve", model, "--max-num-seqs", "64"}
		labels := map[string]string{"app": name}
		return &appsv1.Deployment{ObjectMeta: named(name), Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
		}}
	}
	all := append(objects(), deployment("chat", "mistral"), deployment("code", "codestral"))
	all[0].(*corev1.Node).Labels["nvidia.com/gpu.count"] = "8"
	deployed := all[len(all)-2].(*appsv1.Deployment)
	deployed.Spec.Template.Spec.NodeSelector = map[string]string{"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
	read := func(model string) (scenario.Live, *options, string, error) {
		var said bytes.Buffer
		o := newOptions(cluster.NewFlags())
		o.model, o.past = model, &past.Past{}
		live, err := o.readLive(t.Context(), api(t, never, all...), "demo", types.NamespacedName{}, &said)
		return live, o, said.String(), err
	}
	live, o, notes, err := read("mistral")
	require.NoError(t, err)
	assert.Contains(t, notes, "note: no VariantAutoscaling object is of model mistral, so the variants are what kubectl wva adopt makes of the Deployments that serve it: demo/chat\n")
	assert.NotContains(t, notes, "there are no VariantAutoscaling objects")
	require.Len(t, live.Variants, 1)
	assert.Equal(t, "chat", live.Variants[0].Object.Name)
	assert.Equal(t, 2, live.Variants[0].Request.Shape.Devices)
	assert.Equal(t, 64, o.servers["chat"].arguments.MaxSequences)
	assert.Equal(t, 3, live.Cluster.Nodes[0].Free.Devices, "the training holds three, and a variant of another model two")

	live, o, notes, err = read("llama")
	require.NoError(t, err)
	assert.NotContains(t, notes, "adopt")
	require.Len(t, live.Variants, 1, "its object")
	assert.Equal(t, 5, live.Cluster.Nodes[0].Free.Devices)
	assert.Equal(t, "llama", o.servers["llama"].target)

	_, _, _, err = read("none")
	require.ErrorContains(t, err, "--from-prometheus: no VariantAutoscaling object and no Deployment that names its model is of none in namespace demo")
	require.ErrorContains(t, err, "expected another --namespace, or a --scenario that says how the model is served")
}
