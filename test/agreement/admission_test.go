package agreement

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authentication/user"
	quotav1 "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1conversion "k8s.io/kubernetes/pkg/apis/core/v1"
	quotacore "k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	"k8s.io/kubernetes/plugin/pkg/admission/extendedresourcetoleration"
	"k8s.io/kubernetes/plugin/pkg/admission/limitranger"
	"k8s.io/kubernetes/plugin/pkg/admission/priority"
	"k8s.io/kubernetes/plugin/pkg/admission/runtimeclass"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

// runtimeClasses are those of every cluster.
var runtimeClasses = []*nodev1.RuntimeClass{
	{
		ObjectMeta: metav1.ObjectMeta{Name: "sandbox"}, Handler: "sandbox",
		Overhead: &nodev1.Overhead{PodFixed: quantities("cpu", "250m", "memory", "120Mi")},
	},
	{
		ObjectMeta: metav1.ObjectMeta{Name: "pooled"}, Handler: "pooled",
		Scheduling: &nodev1.Scheduling{
			NodeSelector: map[string]string{"pool": "inference"},
			Tolerations:  []corev1.Toleration{{Key: "team", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}},
		},
	},
}

// priorityClasses are those of every cluster. Pods without a class have priority 0.
var priorityClasses = []*schedulingv1.PriorityClass{
	{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 1000},
	{ObjectMeta: metav1.ObjectMeta{Name: "low"}, Value: -10},
	{ObjectMeta: metav1.ObjectMeta{Name: "patient"}, Value: 1000, PreemptionPolicy: ptr.To(corev1.PreemptNever)},
}

// usualAdmission is what every API server does, generousAdmission what some are told to
// do beside it.
var (
	usualAdmission    = []string{priority.PluginName, runtimeclass.PluginName}
	generousAdmission = []string{limitranger.PluginName, priority.PluginName, runtimeclass.PluginName, "ExtendedResourceToleration"}
)

// newAdmission is a chain of the API server's own admission plugins.
func newAdmission(t testing.TB, names []string) admission.MutationInterface {
	t.Helper()
	objects := []runtime.Object{
		&corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "defaults"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
			{Type: corev1.LimitTypeContainer, DefaultRequest: quantities("cpu", "300m", "memory", "256Mi")},
		}}},
	}
	for _, c := range runtimeClasses {
		objects = append(objects, c)
	}
	for _, c := range priorityClasses {
		objects = append(objects, c)
	}
	client := fake.NewClientset(objects...)
	factory := informers.NewSharedInformerFactory(client, 0)
	known := admission.NewPlugins()
	limitranger.Register(known)
	priority.Register(known)
	runtimeclass.Register(known)
	extendedresourcetoleration.Register(known)
	ready := initializer.New(client, nil, factory, nil, nil, nil, t.Context().Done(), nil)
	nothing, err := admission.ReadAdmissionConfiguration(names, "", nil)
	require.NoError(t, err)
	chain, err := known.NewFromPlugins(names, nothing, ready, nil)
	require.NoError(t, err)
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	mutating, ok := chain.(admission.MutationInterface)
	require.True(t, ok)
	return mutating
}

// admitted is what the API server makes of the pod that a controller creates.
func admitted(t testing.TB, chain admission.MutationInterface, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	var internal core.Pod
	require.NoError(t, corev1conversion.Convert_v1_Pod_To_core_Pod(pod.DeepCopy(), &internal, nil))
	attributes := admission.NewAttributesRecord(&internal, nil, core.Kind("Pod").WithVersion("v1"), pod.Namespace, pod.Name,
		core.Resource("pods").WithVersion("v1"), "", admission.Create, &metav1.CreateOptions{}, false, &user.DefaultInfo{})
	require.NoError(t, chain.Admit(context.Background(), attributes, nil))
	out := &corev1.Pod{}
	require.NoError(t, corev1conversion.Convert_core_Pod_To_v1_Pod(&internal, out, nil))
	out.Generation = 1
	return out
}

// charge counts the pod against the quotas of its namespace as the quota plugin does, by
// its own evaluator of pods. It reports false, and counts nothing, where one of them has
// too little left.
func (c *cluster) charge(t testing.TB, pod *corev1.Pod) bool {
	t.Helper()
	evaluator := quotacore.NewPodEvaluator(nil, clock.RealClock{})
	usage, err := evaluator.Usage(pod)
	require.NoError(t, err)
	after := map[*corev1.ResourceQuota]corev1.ResourceList{}
	for _, q := range c.quotas {
		matches, err := evaluator.Matches(q, pod)
		require.NoError(t, err)
		if q.Namespace != pod.Namespace || !matches {
			continue
		}
		hard := quotav1.ResourceNames(q.Status.Hard)
		if evaluator.Constraints(hard, pod) != nil {
			return false
		}
		taken := quotav1.Mask(usage, hard)
		sum := quotav1.Add(q.Status.Used, taken)
		if fits, _ := quotav1.LessThanOrEqual(quotav1.Mask(sum, quotav1.ResourceNames(taken)), q.Status.Hard); !fits {
			return false
		}
		after[q] = sum
	}
	for q, used := range after {
		q.Status.Used = used
	}
	return true
}

// refund is charge undone, for a pod that was evicted.
func (c *cluster) refund(t testing.TB, pod *corev1.Pod) {
	t.Helper()
	evaluator := quotacore.NewPodEvaluator(nil, clock.RealClock{})
	usage, err := evaluator.Usage(pod)
	require.NoError(t, err)
	for _, q := range c.quotas {
		matches, err := evaluator.Matches(q, pod)
		require.NoError(t, err)
		if q.Namespace == pod.Namespace && matches {
			q.Status.Used = quotav1.SubtractWithNonNegativeResult(q.Status.Used, quotav1.Mask(usage, quotav1.ResourceNames(q.Status.Hard)))
		}
	}
}

// newQuotas are quotas of the namespace of servers, and of another one.
func (c *cluster) newQuotas() {
	for i := range c.rng.IntN(3) {
		hard := corev1.ResourceList{}
		for range 1 + c.rng.IntN(2) {
			pair := pick(c.rng, []string{"pods", "4"}, []string{"requests.nvidia.com/gpu", "9"}, []string{"requests.cpu", "21"}, []string{"cpu", "9500m"},
				[]string{"memory", "33Gi"}, []string{"limits.memory", "50Gi"}, []string{"requests." + string(link), "3"}, []string{"count/pods", "6"}, []string{"limits.cpu", "30"})
			for name, amount := range quantities(pair...) {
				hard[name] = amount
			}
		}
		q := &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: pick(c.rng, namespace, namespace, "batch"), Name: []string{"first", "second"}[i]},
			Spec:       corev1.ResourceQuotaSpec{Hard: hard},
			Status:     corev1.ResourceQuotaStatus{Hard: hard, Used: corev1.ResourceList{}},
		}
		switch c.rng.IntN(5) {
		case 0:
			q.Spec.Scopes = []corev1.ResourceQuotaScope{pick(c.rng, corev1.ResourceQuotaScopeNotTerminating, corev1.ResourceQuotaScopeTerminating)}
		case 1:
			operator, values := pick(c.rng, corev1.ScopeSelectorOpIn, corev1.ScopeSelectorOpExists, corev1.ScopeSelectorOpNotIn), []string{"high"}
			if operator == corev1.ScopeSelectorOpExists {
				values = nil
			}
			q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
				{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: operator, Values: values},
			}}
		}
		c.quotas = append(c.quotas, q)
	}
}
