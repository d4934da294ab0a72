package tenant_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"
)

// What a tenant does is refused, or has no effect on another namespace. The steps share one cluster.
func TestATenantReachesNobodyElse(t *testing.T) {
	w := newWorld(t)
	busy := w.model(t, "busy", 1, func(v *v1alpha1.VariantAutoscaling) {
		v.Spec.SLOClassRef = &v1alpha1.SLOClassReference{Name: "Gold", Key: "busy"}
	})
	asleep := w.model(t, "asleep", 0, nil)
	w.serves(t, busy)
	for _, step := range []struct {
		name string
		try  func(*testing.T, *world)
	}{
		{"what is not permitted", isRefused},
		{"what the manager itself may do", managerIsBounded},
		{"names that act on a terminal", controlCharacters},
		{"a number that takes long to read", longNumber},
		{"a target of another namespace", targetElsewhere},
		{"an autoscaler and a disruption budget for others", guardsElsewhere},
		{"a service class that is for others", classOfOthers},
		{"a service class of others where devices are scarce", scarceDevices},
		{"a service class where the cluster may grow", growingCluster},
		{"pods that name the owner of others", func(t *testing.T, w *world) { strangers(t, w, busy) }},
		{"a fake gateway", func(t *testing.T, w *world) { fakeGateway(t, w, busy, asleep) }},
		{"an object that takes the name of a sleeping model", takesTheName},
		{"kinds that nobody serves", unknownKinds},
		{"many names of one pod", func(t *testing.T, w *world) { manyNames(t, w, busy) }},
		{"series that are too many to be read", func(t *testing.T, w *world) { tooMuch(t, w, busy) }},
		{"a pod that answers without end", endlessAnswer},
	} {
		t.Run(step.name, func(t *testing.T) { step.try(t, w) })
	}
	assert.EqualValues(t, 1, w.replicas(t, "busy"), "after all of it")
}

// serves waits until a model serves and is seen to.
func (w *world) serves(t *testing.T, v *v1alpha1.VariantAutoscaling) {
	t.Helper()
	conditiontest.Eventually(t, patience, "a serving pod", func() (string, bool) {
		var pods corev1.PodList
		require.NoError(t, w.api.List(t.Context(), &pods, client.InNamespace(victim), client.MatchingLabels{"app": v.Name}))
		for i := range pods.Items {
			for _, c := range pods.Items[i].Status.Conditions {
				if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
					w.shown.server(&pods.Items[i], v.Spec.ModelID)
					return "", true
				}
			}
		}
		return fmt.Sprint(len(pods.Items), " pods"), false
	})
	w.shows(t, v, v1alpha1.ConditionMetricsAvailable, "MetricsFound")
}

// isRefused tries what would reach into other namespaces, or into the manager itself.
func isRefused(t *testing.T, w *world) {
	own := variant(theirs, "own", "own")
	require.NoError(t, w.tenant.Create(t.Context(), own), "edit is enough in the tenant's own namespace")
	t.Cleanup(func() { require.NoError(t, w.tenant.Delete(context.Background(), own)) })
	pods := &corev1.PodList{}
	require.NoError(t, w.api.List(t.Context(), pods, client.InNamespace(victim)))
	pod, merge := &pods.Items[0], types.MergePatchType
	busy := variant(victim, "busy", "busy")
	target := deployment(victim, "busy", 1)
	patched := func(object client.Object, patch string) error {
		return w.tenant.Patch(t.Context(), object, client.RawPatch(merge, []byte(patch)))
	}
	subject := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: attacker}}
	for name, err := range map[string]error{
		"an object in another namespace":       w.tenant.Create(t.Context(), variant(victim, "fake", "busy")),
		"a change of another one's object":     patched(busy, `{"spec":{"maxReplicas":1}}`),
		"a look at it":                         w.tenant.Get(t.Context(), client.ObjectKeyFromObject(busy), &v1alpha1.VariantAutoscaling{}),
		"a look at all objects":                w.tenant.List(t.Context(), &v1alpha1.VariantAutoscalingList{}),
		"the status of its own object":         w.tenant.Status().Patch(t.Context(), own.DeepCopy(), client.RawPatch(merge, []byte(`{"status":{"decision":null}}`))),
		"another one's replicas":               w.tenant.SubResource("scale").Update(t.Context(), target, client.WithSubResourceBody(&autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 7}})),
		"the marks of another one's pods":      patched(pod, `{"metadata":{"annotations":{"controller.kubernetes.io/pod-deletion-cost":"-5"}}}`),
		"the settings of the manager":          patched(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "service-classes-config"}}, `{"data":{"gold.yaml":""}}`),
		"settings of its own for the manager":  w.tenant.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "workload-variant-autoscaler-variantautoscaling-config"}}),
		"a token of the manager":               w.tenant.SubResource("token").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: account}}, &authenticationv1.TokenRequest{}),
		"a label of its own namespace":         patched(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: theirs}}, `{"metadata":{"labels":{"wva.llmd.ai/place-pods":"true"}}}`),
		"a role that adds to the manager's":    w.tenant.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "more", Labels: map[string]string{"llmd.ai/aggregate-to-workload-variant-autoscaler": "true"}}}),
		"the manager's role for the tenant":    w.tenant.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: theirs, Name: "more"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "workload-variant-autoscaler-scale"}, Subjects: subject}),
		"a binding in the whole cluster":       w.tenant.Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "more"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"}, Subjects: subject}),
		"the policy that bounds the manager":   w.tenant.Delete(t.Context(), &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "workload-variant-autoscaler-victims"}}),
		"a Deployment in the victim's name":    w.tenant.Create(t.Context(), deployment(victim, "fake", 1)),
		"the removal of another one's objects": w.tenant.DeleteAllOf(t.Context(), &v1alpha1.VariantAutoscaling{}, client.InNamespace(victim)),
	} {
		assert.True(t, apierrors.IsForbidden(err), "%s: %v", name, err)
	}
}

// controlCharacters tries names that would act on the terminal of whoever lists all objects.
func controlCharacters(t *testing.T, w *world) {
	for _, name := range []string{"a\x1b[2Jb", "a\nb", "a\x00b", "a\u202eb"} {
		err := w.tenant.Create(t.Context(), variant(theirs, "acts", name))
		assert.True(t, apierrors.IsInvalid(err), "%q: %v", name, err)
	}
}

// targetElsewhere names the Deployment of another namespace, and gets none.
func targetElsewhere(t *testing.T, w *world) {
	object := variant(theirs, "busy", "else")
	object.Spec.MinReplicas = new(int32)
	*object.Spec.MinReplicas = 5
	w.while(t, object)
	w.shows(t, object, v1alpha1.ConditionTargetResolved, v1alpha1.ReasonTargetNotFound)
	w.stays(t, "busy", 1)
}

// guardsElsewhere has, under the victim's names, what would make the manager stand back or keep pods.
func guardsElsewhere(t *testing.T, w *world) {
	all := intstr.FromString("100%")
	w.while(t,
		&autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: metav1.ObjectMeta{Namespace: theirs, Name: "busy"},
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "busy"}, MaxReplicas: 9,
			},
		},
		&policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: theirs, Name: "busy"},
			Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &all, Selector: &metav1.LabelSelector{}},
		},
		deployment(theirs, "busy", 1), variant(theirs, "busy", "busy"),
	)
	// The tenant's own object is what shows that both were seen.
	w.shows(t, variant(theirs, "busy", "busy"), v1alpha1.ConditionConflict, v1alpha1.ReasonAutoscalerOnTarget)
	busy := variant(victim, "busy", "busy")
	conditiontest.Throughout(t, aWhile, "nobody else decides", func() (string, bool) {
		require.NoError(t, w.api.Get(t.Context(), client.ObjectKeyFromObject(busy), busy))
		c := apimeta.FindStatusCondition(busy.Status.Conditions, v1alpha1.ConditionConflict)
		return fmt.Sprintf("%+v", busy.Status.Conditions), c != nil && c.Reason == "NoConflict"
	})
	w.stays(t, "busy", 1)
}

// while makes an object of the tenant that goes with the step.
func (w *world) while(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		require.NoError(t, w.tenant.Create(t.Context(), object))
		t.Cleanup(func() { require.NoError(t, w.tenant.Delete(context.Background(), object)) })
	}
}

// classOfOthers claims a class that names other namespaces.
func classOfOthers(t *testing.T, w *world) {
	object := variant(theirs, "claims", "busy")
	object.Spec.SLOClassRef = &v1alpha1.SLOClassReference{Name: "Gold", Key: "busy"}
	w.while(t, object, deployment(theirs, "claims", 1))
	w.shows(t, object, v1alpha1.ConditionTargetResolved, v1alpha1.ReasonTargetFound)
	conditiontest.Eventually(t, patience, "whom the class is for", func() (string, bool) {
		mine, yours := variant(theirs, "claims", ""), variant(victim, "busy", "")
		require.NoError(t, w.api.Get(t.Context(), client.ObjectKeyFromObject(mine), mine))
		require.NoError(t, w.api.Get(t.Context(), client.ObjectKeyFromObject(yours), yours))
		return fmt.Sprintf("tenant %+v, victim %+v", mine.Status.ServiceClass, yours.Status.ServiceClass), mine.Status.ServiceClass == "" && yours.Status.ServiceClass == "Gold"
	})
}

// fakeGateway shows a gateway's series of the victim's models from a pod of the tenant. They reach
// Prometheus, and count for neither of them.
func fakeGateway(t *testing.T, w *world, busy, asleep *v1alpha1.VariantAutoscaling) {
	w.shown.gateway(theirs, "busy", 1000, 500)
	w.shown.gateway(theirs, "asleep", 1000, 500)
	w.shows(t, busy, v1alpha1.ConditionOptimizationReady, v1alpha1.ReasonGatewayNotTrusted)
	w.shows(t, asleep, v1alpha1.ConditionOptimizationReady, v1alpha1.ReasonGatewayNotTrusted)
	w.stays(t, "busy", 1)
	w.stays(t, "asleep", 0)
}

// takesTheName has the model ID of a sleeping model, and lists it. The model wakes all the same when
// requests wait at the gateway that the administrator names.
func takesTheName(t *testing.T, w *world) {
	object := variant(theirs, "none", "asleep")
	object.Spec.Actuation, object.Spec.AlsoServes = v1alpha1.ActuationOff, []string{"busy"}
	w.while(t, object)
	w.shows(t, object, v1alpha1.ConditionTargetResolved, v1alpha1.ReasonTargetNotFound)
	w.shown.gateway(trusted, "asleep", 0, 0)
	w.stays(t, "asleep", 0)
	w.shown.gateway(trusted, "asleep", 0, 1)
	conditiontest.Eventually(t, patience, "the model wakes", func() (string, bool) {
		n := w.replicas(t, "asleep")
		return fmt.Sprint(n, " replicas"), n == 1
	})
	w.shown.gateway(trusted, "asleep", 0, 0)
}

// unknownKinds asks for many kinds that nobody serves. A new object of the victim is answered soon.
func unknownKinds(t *testing.T, w *world) {
	const many = 100
	for i := range many {
		object := variant(theirs, fmt.Sprint("unknown-", i), "unknown")
		object.Spec.ScaleTargetRef.APIVersion, object.Spec.ScaleTargetRef.Kind = fmt.Sprintf("none%d.example.com/v1", i), "None"
		w.while(t, object)
	}
	v := w.model(t, "new", 1, nil)
	w.shows(t, v, v1alpha1.ConditionTargetResolved, v1alpha1.ReasonTargetFound)
	var d appsv1.Deployment
	require.NoError(t, w.api.Get(t.Context(), client.ObjectKey{Namespace: victim, Name: "new"}, &d))
	assert.EqualValues(t, 1, *d.Spec.Replicas)
}
