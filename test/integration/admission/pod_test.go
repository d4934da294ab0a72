package admission_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"
)

// optedIn are the labels of a namespace whose pods are placed.
var optedIn = map[string]string{v1alpha1.LabelPlacePods: "true"}

// deployment is a model server on one GPU, whose template says nothing else of where it
// goes but that it tolerates what GPUs are tainted with.
func deployment(namespace, name string, replicas int32, change ...func(*corev1.PodSpec)) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: ptr.To[int64](0),
					Tolerations:                   []corev1.Toleration{{Key: localcluster.GPUTaint, Operator: corev1.TolerationOpExists}},
					Containers: []corev1.Container{{
						Name: "vllm", Image: "vllm/vllm-openai:v0.11.0",
						Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{localcluster.GPUResource: resource.MustParse("1")}},
					}},
				},
			},
		},
	}
	for _, c := range change {
		c(&d.Spec.Template.Spec)
	}
	return d
}

// on names the accelerator of a variant.
func on(accelerator string) func(*v1alpha1.VariantAutoscaling) {
	return func(v *v1alpha1.VariantAutoscaling) { v.Spec.Accelerator = accelerator }
}

// ours is the toleration of the scheduler's nodes.
var ours = corev1.Toleration{Key: v1alpha1.TaintScheduler, Operator: corev1.TolerationOpEqual, Value: scheduler}

// madePod waits for a pod of a Deployment, and for what is true of it.
func madePod(t *testing.T, d *appsv1.Deployment, what string, is func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	conditiontest.Eventually(t, patience, what, func() (string, bool) {
		require.NoError(t, api.List(t.Context(), &pods, client.InNamespace(d.Namespace), client.MatchingLabels(d.Spec.Selector.MatchLabels)))
		if len(pods.Items) == 0 {
			return "no pod", false
		}
		pod := &pods.Items[0]
		return fmt.Sprintf("%s on node %q, scheduler %s, %v", pod.Name, pod.Spec.NodeName, pod.Spec.SchedulerName, pod.Status.Conditions), is(pod)
	})
	return &pods.Items[0]
}

func exists(*corev1.Pod) bool   { return true }
func placed(p *corev1.Pod) bool { return p.Spec.NodeName != "" }

// The pods of a variant in a namespace that opted in are told where to go, and go there.
func TestPodsArePlaced(t *testing.T) {
	for accelerator, c := range map[string]struct{ node, product string }{
		"H100": {"h100", localcluster.EightH100.Product}, "A100": {"a100", localcluster.EightA100.Product},
	} {
		t.Run(accelerator, func(t *testing.T) {
			namespace := space(t, optedIn)
			d := deployment(namespace, "server", 1)
			known(t, variant(namespace, "first", "server", on(accelerator)))
			create(t, d)
			pod := madePod(t, d, "a pod on its node", placed)
			assert.Equal(t, c.node, pod.Spec.NodeName)
			assert.Equal(t, scheduler, pod.Spec.SchedulerName)
			assert.Contains(t, pod.Spec.Tolerations, ours)
			require.NotNil(t, pod.Spec.Affinity)
			assert.Equal(t, []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: "nvidia.com/gpu.product", Operator: corev1.NodeSelectorOpIn, Values: []string{c.product},
			}}}}, pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms)
		})
	}
}

// known creates an object that the manager then knows, so that pods that come after it
// are known for those of a variant.
func known(t *testing.T, v *v1alpha1.VariantAutoscaling) {
	t.Helper()
	create(t, v)
	listen(t).answers(t, variant(v.Namespace, "another", v.Spec.ScaleTargetRef.Name),
		"VariantAutoscaling "+v.Name+" also scales Deployment "+v.Spec.ScaleTargetRef.Name+": delete all but one")
}

// Other pods are made as their templates say.
func TestOtherPodsAreLeftAlone(t *testing.T) {
	untouched := func(t *testing.T, d *appsv1.Deployment) {
		t.Helper()
		want := d.Spec.Template.Spec.DeepCopy()
		create(t, d)
		pod := madePod(t, d, "a pod", exists)
		if want.SchedulerName == "" {
			want.SchedulerName = corev1.DefaultSchedulerName
		}
		assert.Equal(t, want.SchedulerName, pod.Spec.SchedulerName)
		assert.Equal(t, want.Affinity, pod.Spec.Affinity)
		assert.Equal(t, want.NodeSelector, pod.Spec.NodeSelector)
		assert.NotContains(t, pod.Spec.Tolerations, ours)
	}
	t.Run("a namespace that has not opted in", func(t *testing.T) {
		namespace := space(t, nil)
		known(t, variant(namespace, "first", "server", on("H100")))
		untouched(t, deployment(namespace, "server", 1))
	})
	t.Run("pods of no variant", func(t *testing.T) {
		untouched(t, deployment(space(t, optedIn), "server", 1))
	})
	t.Run("a variant of another controller", func(t *testing.T) {
		namespace := space(t, optedIn)
		create(t, variant(namespace, "first", "server", on("H100"), func(v *v1alpha1.VariantAutoscaling) {
			v.Labels = map[string]string{v1alpha1.LabelControllerInstance: "blue"}
		}))
		untouched(t, deployment(namespace, "server", 1))
	})
	for name, says := range map[string]func(*corev1.PodSpec){
		"another scheduler": func(s *corev1.PodSpec) { s.SchedulerName = "packer" },
		"other nodes": func(s *corev1.PodSpec) {
			s.NodeSelector = map[string]string{"nvidia.com/gpu.product": localcluster.EightA100.Product}
		},
		"no devices": func(s *corev1.PodSpec) { s.Containers[0].Resources = corev1.ResourceRequirements{} },
	} {
		t.Run("a pod that says otherwise: "+name, func(t *testing.T) {
			namespace := space(t, optedIn)
			known(t, variant(namespace, "first", "server", on("H100")))
			untouched(t, deployment(namespace, "server", 1, says))
		})
	}
}

// The owner of a pod may be too new to be known, so that it is asked for. One that is not
// there is nobody's.
func TestPodsOfOwnersThatAreNotThere(t *testing.T) {
	namespace := space(t, optedIn)
	for kind, version := range map[string]string{"ReplicaSet": "apps/v1", "Deployment": "apps/v1", "StatefulSet": "apps/v1", "Pod": "v1"} {
		template := deployment(namespace, "server", 1).Spec.Template
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: "of-nobody",
				OwnerReferences: []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: "gone", UID: "1", Controller: ptr.To(true)}},
			},
			Spec: template.Spec,
		}
		require.NoError(t, api.Create(t.Context(), pod, client.DryRunAll), kind)
		assert.Equal(t, corev1.DefaultSchedulerName, pod.Spec.SchedulerName, kind)
	}
}

// A variant without replicas has room, although its template alone would go nowhere: the
// manager counts its pods as they will be.
func TestRoomIsCountedForPodsAsTheyWillBe(t *testing.T) {
	for name, c := range map[string]struct {
		labels map[string]string
		room   bool
	}{
		"the pods will be placed":        {optedIn, true},
		"the pods will be as they stand": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := space(t, c.labels)
			create(t, deployment(namespace, "server", 0))
			v := variant(namespace, "first", "server", on("H100"))
			create(t, v)
			conditiontest.Eventually(t, patience, "the room is counted", func() (string, bool) {
				require.NoError(t, api.Get(t.Context(), client.ObjectKeyFromObject(v), v))
				p := v.Status.Placement
				if p == nil || p.Slots == nil {
					return fmt.Sprintf("%+v", v.Status), false
				}
				return fmt.Sprint(*p.Slots), (*p.Slots > 0) == c.room
			})
		})
	}
}
