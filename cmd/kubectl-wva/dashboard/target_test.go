package dashboard

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// scaleOf is a client that shows the scale of a target of a kind of its own, beside some objects.
func scaleOf(selector string, objects ...client.Object) client.Client {
	builder := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...)
	return builder.WithInterceptorFuncs(interceptor.Funcs{SubResourceGet: func(
		_ context.Context, _ client.Client, _ string, _, scale client.Object, _ ...client.SubResourceGetOption,
	) error {
		scale.(*unstructured.Unstructured).Object = map[string]any{
			"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": map[string]any{"name": "o", "uid": "o"}, "status": map[string]any{"selector": selector},
		}
		return nil
	}}).Build()
}

// A kind of its own may make one Deployment or StatefulSet, whose pods are then its own, as the
// manager has it, and else names them by its scale.
func TestThePodsOfATargetOfItsOwnKind(t *testing.T) {
	below := func(name string, owner types.UID) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "chat", Name: name, OwnerReferences: []metav1.OwnerReference{{Kind: "Other", Name: "o", UID: owner, Controller: new(true)}}}
	}
	selecting := func(value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": value}}
	}
	d := &appsv1.Deployment{ObjectMeta: below("d", "o"), Spec: appsv1.DeploymentSpec{Selector: selecting("deployed")}}
	s := &appsv1.StatefulSet{ObjectMeta: below("s", "o"), Spec: appsv1.StatefulSetSpec{Selector: selecting("set")}}
	others := &appsv1.Deployment{ObjectMeta: below("x", "another"), Spec: appsv1.DeploymentSpec{Selector: selecting("others")}}
	for name, c := range map[string]struct {
		selector string
		objects  []client.Object
		want     string
	}{
		"by its scale":                             {"app=scaled", []client.Object{others}, "scaled"},
		"neither":                                  {"", []client.Object{others}, ""},
		"of a Deployment below it":                 {"", []client.Object{d, others}, "deployed"},
		"of a StatefulSet below it":                {"app=scaled", []client.Object{s, others}, "set"},
		"of several below it, which its scale has": {"app=scaled", []client.Object{d, s}, "scaled"},
	} {
		t.Run(name, func(t *testing.T) {
			v := variantOf("o", 1)
			v.Spec.ScaleTargetRef = v1alpha1.ScaleTargetReference{APIVersion: "example.com/v1", Kind: "Other", Name: "o"}
			variants := []*v1alpha1.VariantAutoscaling{v}
			o := newOwners(variants, readSelectors(t.Context(), scaleOf(c.selector, c.objects...), variants))
			for _, value := range []string{"scaled", "deployed", "set", "others"} {
				_, own := o.of(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "chat", Labels: map[string]string{"app": value}}})
				assert.Equal(t, value == c.want, own, value)
			}
		})
	}
	require.Empty(t, readSelectors(t.Context(), scaleOf("app=scaled"), []*v1alpha1.VariantAutoscaling{variantOf("d", 1)}), "owner references tell those of a Deployment")
}
