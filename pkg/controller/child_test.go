package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// The pods of a kind that is not known here are those of the one workload that it owns.
func TestTheChildOfATarget(t *testing.T) {
	meta := func(name, owner string) metav1.ObjectMeta {
		m := metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(name)}
		if owner != "" {
			m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Server", Name: owner, UID: types.UID(owner), Controller: ptr.To(true)}}
		}
		return m
	}
	template := func(image string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: image}}}}
	}
	deployment := func(name, owner string) client.Object {
		return &appsv1.Deployment{ObjectMeta: meta(name, owner), Spec: appsv1.DeploymentSpec{Template: template("of a deployment")}}
	}
	set := func(name, owner string) client.Object {
		return &appsv1.StatefulSet{ObjectMeta: meta(name, owner), Spec: appsv1.StatefulSetSpec{Template: template("of a set")}}
	}
	ofDeployment := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "d-1", UID: "d-1",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "d", UID: "d", Controller: ptr.To(true)}}}}
	byOwner := func(o client.Object) []string {
		if owner := metav1.GetControllerOf(o); owner != nil {
			return []string{string(owner.UID)}
		}
		return nil
	}
	for name, c := range map[string]struct {
		objects []client.Object
		child   string
		image   string
		owners  []types.UID
		ordered bool
	}{
		"a deployment":             {[]client.Object{deployment("d", "server"), ofDeployment}, targetKeyOf("apps/v1", "Deployment", "d"), "of a deployment", []types.UID{"d-1"}, false},
		"a stateful set":           {[]client.Object{set("s", "server")}, targetKeyOf("apps/v1", "StatefulSet", "s"), "of a set", []types.UID{"s"}, true},
		"none":                     {nil, "", "", nil, false},
		"one of somebody else":     {[]client.Object{deployment("d", "other"), set("s", "")}, "", "", nil, false},
		"two":                      {[]client.Object{deployment("d", "server"), set("s", "server")}, "", "", nil, false},
		"one, and another's other": {[]client.Object{deployment("d", "other"), set("s", "server")}, targetKeyOf("apps/v1", "StatefulSet", "s"), "of a set", []types.UID{"s"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			builder := fake.NewClientBuilder().WithScheme(everything(t)).WithObjects(c.objects...)
			for _, kind := range []client.Object{&appsv1.Deployment{}, &appsv1.StatefulSet{}, &appsv1.ReplicaSet{}} {
				builder = builder.WithIndex(kind, indexOwner, byOwner)
			}
			v := &variant{target: target{scale: &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{UID: "server"}}, selector: labels.Everything(), selectorProblem: "no selector"}}
			v.key.Namespace = "n"
			require.NoError(t, (&targetFinder{reader: builder.Build()}).findChild(t.Context(), v))
			assert.Equal(t, c.child, v.target.child)
			if c.child == "" {
				assert.NotNil(t, v.target.selector, "the selector counts")
				assert.Nil(t, v.target.template)
				return
			}
			assert.Equal(t, c.image, v.target.template.Spec.Containers[0].Image)
			assert.Equal(t, c.owners, v.target.owners)
			assert.Equal(t, c.ordered, v.target.ordered)
			assert.Nil(t, v.target.selector)
			assert.Empty(t, v.target.selectorProblem)
		})
	}
}
