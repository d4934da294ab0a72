package api_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// full is a status with every field set, longer than the schema allows until it is
// bounded.
func full() v1alpha1.VariantAutoscalingStatus {
	now := metav1.NewTime(time.Unix(1_700_000_000, 0).UTC())
	cpu, memory := resource.MustParse("8"), resource.MustParse("64Gi")
	status := v1alpha1.VariantAutoscalingStatus{
		CurrentAlloc:          &v1alpha1.CurrentAlloc{VariantID: "m-H100-4", Accelerator: "H100", NumReplicas: new(int32(1))},
		DesiredOptimizedAlloc: &v1alpha1.DesiredAlloc{LastRunTime: &now, Accelerator: "H100", NumReplicas: new(int32(3))},
		Actuation:             &v1alpha1.ActuationStatus{Applied: false, LastScaleTime: &now},
		Placement: &v1alpha1.Placement{
			ObservedGeneration: 1,
			Shape: &v1alpha1.Shape{
				Accelerator: "H100", DeviceMemoryGiB: 80, Form: "SXM5", Devices: new(int32(4)), Pods: new(int32(1)), CPU: &cpu, Memory: &memory,
			},
			Slots:      new(int32(0)),
			SlotsBound: strings.Repeat("p", 500),
			Pending:    new(int32(2)), Unschedulable: new(int32(1)), Unplaced: new(int32(1)),
		},
		Decision: &v1alpha1.Decision{
			Reason:  "Saturated",
			Message: strings.Repeat("ü", 5000),
			Binds:   strings.Repeat("b", 500), Alternative: strings.Repeat("a", 500),
		},
		Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady,
			Message: "autoscaling", LastTransitionTime: now, ObservedGeneration: 1,
		}},
	}
	for range 20 {
		status.Decision.Steps = append(status.Decision.Steps, v1alpha1.DecisionStep{
			Stage: "demand", Before: 1, After: 3, Reason: "Saturated", Detail: strings.Repeat("ü", 500),
		})
	}
	return status
}

func withStatus(t *testing.T, object *unstructured.Unstructured, status v1alpha1.VariantAutoscalingStatus) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	require.NoError(t, err)
	object = object.DeepCopy()
	object.Object["status"] = content
	return object
}

func TestStatusIsApart(t *testing.T) {
	status := full()
	status.Decision.Bound()
	status.Placement.Bound()
	created, err := create(t, withStatus(t, variant(t, base), status))
	require.NoError(t, err)
	assert.NotContains(t, created.Object, "status", "a user does not write the status")

	changed := withStatus(t, created, status)
	changed.Object["spec"].(map[string]any)["modelID"] = "other"
	written, err := objects.UpdateStatus(t.Context(), changed, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
	require.NoError(t, err)
	assert.Equal(t, "m", written.Object["spec"].(map[string]any)["modelID"], "the status subresource does not write the spec")
	assert.EqualValues(t, 1, written.GetGeneration(), "a status is no new generation")

	var typed v1alpha1.VariantAutoscaling
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(written.Object, &typed, true))
	assert.Equal(t, "H100", typed.Status.CurrentAlloc.Accelerator)
	want, err := json.Marshal(status)
	require.NoError(t, err)
	got, err := json.Marshal(typed.Status)
	require.NoError(t, err)
	assert.JSONEq(t, string(want), string(got), "every field is stored")
	assert.Contains(t, string(got), `"applied":false`, "not applied is said, not left out")
}

func TestStatusMayBeEmpty(t *testing.T) {
	created, err := create(t, variant(t, base))
	require.NoError(t, err)
	empty := v1alpha1.VariantAutoscalingStatus{
		CurrentAlloc:          &v1alpha1.CurrentAlloc{},
		DesiredOptimizedAlloc: &v1alpha1.DesiredAlloc{},
	}
	_, err = objects.UpdateStatus(t.Context(), withStatus(t, created, empty), metav1.UpdateOptions{})
	require.NoError(t, err, "what is unknown is left out")
}

func TestStatusRules(t *testing.T) {
	tests := map[string]struct {
		change  func(*v1alpha1.VariantAutoscalingStatus)
		message string
	}{
		"negative current replicas": {func(s *v1alpha1.VariantAutoscalingStatus) { s.CurrentAlloc.NumReplicas = new(int32(-1)) }, "currentAlloc.numReplicas in body should be greater than or equal to 0"},
		"negative wanted replicas":  {func(s *v1alpha1.VariantAutoscalingStatus) { s.DesiredOptimizedAlloc.NumReplicas = new(int32(-1)) }, "desiredOptimizedAlloc.numReplicas in body should be greater than or equal to 0"},
		"negative slots":            {func(s *v1alpha1.VariantAutoscalingStatus) { s.Placement.Slots = new(int32(-1)) }, "placement.slots in body should be greater than or equal to 0"},
		"a replica without pods":    {func(s *v1alpha1.VariantAutoscalingStatus) { s.Placement.Shape.Pods = new(int32(0)) }, "placement.shape.pods in body should be greater than or equal to 1"},
		"negative memory":           {func(s *v1alpha1.VariantAutoscalingStatus) { s.Placement.Shape.DeviceMemoryGiB = -1 }, "placement.shape.deviceMemoryGiB in body should be greater than or equal to 0"},
		"a long form":               {func(s *v1alpha1.VariantAutoscalingStatus) { s.Placement.Shape.Form = text(17) }, "status.placement.shape.form: Too long: may not be more than 16 bytes"},
		"too many steps": {func(s *v1alpha1.VariantAutoscalingStatus) {
			s.Decision.Steps = append(s.Decision.Steps, s.Decision.Steps[0])
		}, "status.decision.steps: Too many: 17: must have at most 16 items"},
		"a long message":    {func(s *v1alpha1.VariantAutoscalingStatus) { s.Decision.Message += "x" }, "status.decision.message: Too long: may not be more than 1024 bytes"},
		"a long detail":     {func(s *v1alpha1.VariantAutoscalingStatus) { s.Decision.Steps[0].Detail += "x" }, "status.decision.steps[0].detail: Too long"},
		"a condition twice": {func(s *v1alpha1.VariantAutoscalingStatus) { s.Conditions = append(s.Conditions, s.Conditions[0]) }, `status.conditions[1]: Duplicate value: {"type":"Ready"}`},
	}
	created, err := create(t, variant(t, base))
	require.NoError(t, err)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			status := full()
			status.Decision.Bound()
			status.Placement.Bound()
			test.change(&status)
			_, err := objects.UpdateStatus(t.Context(), withStatus(t, created, status), metav1.UpdateOptions{})
			require.ErrorContains(t, err, test.message)
		})
	}
}

func TestColumns(t *testing.T) {
	created, err := create(t, variant(t, base))
	require.NoError(t, err)
	status := full()
	status.Decision, status.Placement = nil, nil
	_, err = objects.UpdateStatus(t.Context(), withStatus(t, created, status), metav1.UpdateOptions{})
	require.NoError(t, err)

	config := cluster.Config()
	config.APIPath, config.GroupVersion = "/apis", &v1alpha1.GroupVersion
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := rest.RESTClientFor(config)
	require.NoError(t, err)
	answer, err := client.Get().Namespace(namespace).Resource(v1alpha1.Resource).Name(created.GetName()).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	require.NoError(t, err)
	var table metav1.Table
	require.NoError(t, json.Unmarshal(answer, &table))
	var columns, wide []string
	for _, column := range table.ColumnDefinitions {
		if name := strings.ToUpper(column.Name); column.Priority == 0 {
			columns = append(columns, name)
		} else {
			wide = append(wide, name)
		}
	}
	assert.Equal(t, []string{"NAME", "MODEL", "VARIANTID", "ACCELERATOR", "CURRENTREPLICAS", "OPTIMIZED", "READY", "AGE"}, columns)
	assert.Equal(t, []string{"ACTUATION", "MIN", "MAX", "REASON"}, wide, "with -o wide alone")
	require.Len(t, table.Rows, 1)
	assert.Equal(t, []any{created.GetName(), "m", "m-H100-4", "H100", 1.0, 3.0, "True"}, table.Rows[0].Cells[:7])
}

func TestShortName(t *testing.T) {
	client, err := discovery.NewDiscoveryClientForConfig(cluster.Config())
	require.NoError(t, err)
	resources, err := client.ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
	require.NoError(t, err)
	names := map[string]metav1.APIResource{}
	for _, one := range resources.APIResources {
		names[one.Name] = one
	}
	assert.Equal(t, []string{"va"}, names["variantautoscalings"].ShortNames)
	assert.True(t, names["variantautoscalings"].Namespaced)
	assert.Contains(t, names, "variantautoscalings/status")
}
