package inventory

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// quota is one of namespace n, with as much of each resource used as the second list says.
func quota(name string, hard, used corev1.ResourceList, scopes ...corev1.ResourceQuotaScope) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name},
		Spec:       corev1.ResourceQuotaSpec{Hard: hard, Scopes: scopes},
		Status:     corev1.ResourceQuotaStatus{Hard: hard, Used: used},
	}
}

func selecting(q *corev1.ResourceQuota, scope corev1.ResourceQuotaScope, operator corev1.ScopeSelectorOperator, values ...string) *corev1.ResourceQuota {
	q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{ScopeName: scope, Operator: operator, Values: values}}}
	return q
}

// A quota of the namespace limits the count as the nodes do, in whatever it counts.
func TestQuotasOfTheNamespace(t *testing.T) {
	elsewhere := quota("q", list("pods", "0"), nil)
	elsewhere.Namespace = "m"
	none := corev1.ResourceList{}
	for name, c := range map[string]struct {
		quota *corev1.ResourceQuota
		slots int
		bound string
	}{
		"devices":                           {quota("q", list("requests.nvidia.com/gpu", "9"), list("requests.nvidia.com/gpu", "4")), 2, ""},
		"devices of another maker":          {quota("q", list("requests.amd.com/gpu", "0"), none), 8, ""},
		"more used than there is":           {quota("q", list("requests.nvidia.com/gpu", "1"), list("requests.nvidia.com/gpu", "4")), 0, ""},
		"nothing used is known of it":       {quota("q", list("requests.nvidia.com/gpu", "6"), none), 3, ""},
		"pods":                              {quota("q", list("pods", "5"), list("pods", "4")), 1, ""},
		"counted objects":                   {quota("q", list("count/pods", "5"), list("count/pods", "3")), 2, ""},
		"other objects":                     {quota("q", list("count/services", "0", "persistentvolumeclaims", "0", "requests.storage", "0"), none), 8, ""},
		"CPU":                               {quota("q", list("cpu", "10"), list("cpu", "500m")), 2, ""},
		"requested CPU":                     {quota("q", list("requests.cpu", "10"), list("requests.cpu", "9")), 0, ""},
		"memory":                            {quota("q", list("memory", "40Gi"), none), 5, ""},
		"requested memory":                  {quota("q", list("requests.memory", "8Gi"), none), 1, ""},
		"limits of CPU":                     {quota("q", list("limits.cpu", "16"), none), 2, ""},
		"limits of memory that nobody said": {quota("q", list("limits.memory", "1Ti"), none), 0, ""},
		"extended resources":                {quota("q", list("requests.rdma/hca", "3"), none), 3, ""},
		"huge pages":                        {quota("q", list("requests.hugepages-2Mi", "8Mi"), none), 2, "hugepages-2Mi"},
		"storage of the node":               {quota("q", list("ephemeral-storage", "1Gi"), none), 8, ""},
		"the tightest":                      {quota("q", list("pods", "3", "cpu", "10"), none), 2, ""},
		"of another namespace":              {elsewhere, 8, ""},
		"that ends":                         {quota("q", list("pods", "0"), none, corev1.ResourceQuotaScopeTerminating), 8, ""},
		"that does not end":                 {quota("q", list("pods", "1"), none, corev1.ResourceQuotaScopeNotTerminating), 1, ""},
		"best effort":                       {quota("q", list("pods", "0"), none, corev1.ResourceQuotaScopeBestEffort), 8, ""},
		"not best effort":                   {quota("q", list("pods", "1"), none, corev1.ResourceQuotaScopeNotBestEffort), 1, ""},
		"of both scopes":                    {quota("q", list("pods", "0"), none, corev1.ResourceQuotaScopeNotBestEffort, corev1.ResourceQuotaScopeTerminating), 8, ""},
		"a class":                           {selecting(quota("q", list("pods", "1"), none), corev1.ResourceQuotaScopePriorityClass, corev1.ScopeSelectorOpIn, "other", "high"), 1, ""},
		"other classes":                     {selecting(quota("q", list("pods", "1"), none), corev1.ResourceQuotaScopePriorityClass, corev1.ScopeSelectorOpIn, "other"), 8, ""},
		"but some classes":                  {selecting(quota("q", list("pods", "1"), none), corev1.ResourceQuotaScopePriorityClass, corev1.ScopeSelectorOpNotIn, "other"), 1, ""},
		"but this class":                    {selecting(quota("q", list("pods", "1"), none), corev1.ResourceQuotaScopePriorityClass, corev1.ScopeSelectorOpNotIn, "high"), 8, ""},
		"any class":                         {selecting(quota("q", list("pods", "1"), none), corev1.ResourceQuotaScopePriorityClass, corev1.ScopeSelectorOpExists), 1, ""},
		"no class":                          {selecting(quota("q", list("pods", "1"), none), corev1.ResourceQuotaScopePriorityClass, corev1.ScopeSelectorOpDoesNotExist), 8, ""},
		"affinity beyond the namespace":     {quota("q", list("pods", "1"), none, corev1.ResourceQuotaScopeCrossNamespacePodAffinity), 8, ""},
		"a scope that nobody knows":         {quota("q", list("pods", "1"), none, "Odd"), 8, "resource quota q"},
	} {
		t.Run(name, func(t *testing.T) {
			node := h100("a")
			node.Status.Allocatable["rdma/hca"], node.Status.Allocatable["nvidia.com/gpu"] = list("x", "99")["x"], list("x", "16")["x"]
			inv := new(Names).Read(Objects{Nodes: []*corev1.Node{node}, Quotas: []*corev1.ResourceQuota{c.quota}})
			server := container("nvidia.com/gpu", "2", "cpu", "4", "memory", "8Gi", "rdma/hca", "1")
			server.Resources.Limits = list("cpu", "8", "nvidia.com/gpu", "2", "rdma/hca", "1")
			tmpl := template(server)
			tmpl.Namespace, tmpl.Spec.PriorityClassName = "n", "high"
			if c.bound == "hugepages-2Mi" {
				tmpl.Spec.Containers[0].Resources.Requests["hugepages-2Mi"] = list("x", "4Mi")["x"]
			}
			r, err := inv.plain(tmpl, Normalize("H100"))
			require.NoError(t, err)
			assert.Equal(t, c.slots, slotsOf(t, inv, r))
			assert.Equal(t, c.bound, r.Bound)
		})
	}
}

func TestQuotasSayWhatIsLeft(t *testing.T) {
	inv := new(Names).Read(Objects{Nodes: []*corev1.Node{h100("a")}, Quotas: []*corev1.ResourceQuota{
		quota("gpus", list("requests.nvidia.com/gpu", "8"), list("requests.nvidia.com/gpu", "4")),
		quota("size", list("limits.memory", "64Gi", "cpu", "100"), list("cpu", "10")),
	}})
	tmpl := template(container("nvidia.com/gpu", "8", "cpu", "4"))
	tmpl.Namespace = "n"
	r, err := inv.plain(tmpl, Normalize("H100"))
	require.NoError(t, err)
	assert.Equal(t, "wants 8xH100: quota gpus of namespace n: 4 of requests.nvidia.com/gpu left, 1 node has room", inv.Cluster.Explain(r).String())
	tmpl.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = list("x", "1")["x"]
	r, err = inv.plain(tmpl, Normalize("H100"))
	require.NoError(t, err)
	assert.Equal(t, "wants 1xH100: quota size of namespace n: every container must say limits.memory, 1 node has room", inv.Cluster.Explain(r).String())
	hopeful, err := inv.Request(tmpl, nil, Normalize("H100"))
	require.NoError(t, err)
	assert.Equal(t, 4, slotsOf(t, inv, hopeful), "admission may say it for them")
	whole := tmpl.DeepCopy()
	whole.Spec.Resources = &corev1.ResourceRequirements{Limits: list("memory", "32Gi")}
	r, err = inv.plain(whole, Normalize("H100"))
	require.NoError(t, err)
	assert.Equal(t, 2, slotsOf(t, inv, r), "the pod says it as a whole")
	limit := list("memory", "16Gi")
	tmpl.Spec.Containers[0].Resources.Limits = limit
	r, err = inv.plain(tmpl, Normalize("H100"))
	require.NoError(t, err)
	assert.Equal(t, 4, slotsOf(t, inv, r))
}

// A quota counts what it counts for all variants of the namespace together.
func TestVariantsShareAQuota(t *testing.T) {
	inv := new(Names).Read(Objects{Nodes: []*corev1.Node{h100("a"), h100("b")}, Quotas: []*corev1.ResourceQuota{
		quota("gpus", list("requests.nvidia.com/gpu", "10"), list("requests.nvidia.com/gpu", "2")),
	}})
	ask := func(devices string) *corev1.PodTemplateSpec {
		tmpl := template(container("nvidia.com/gpu", devices))
		tmpl.Namespace = "n"
		return tmpl
	}
	four, err := inv.plain(ask("4"), Normalize("H100"))
	require.NoError(t, err)
	one, err := inv.plain(ask("1"), Normalize("H100"))
	require.NoError(t, err)
	assert.Equal(t, 2, slotsOf(t, inv, four))
	_, ok := inv.Cluster.Place(four)
	require.True(t, ok)
	assert.Equal(t, 4, slotsOf(t, inv, one))
}

func TestQuotasThatAreNotKnown(t *testing.T) {
	tmpl := template(container("nvidia.com/gpu", "1"))
	tmpl.Namespace = "n"
	fresh := quota("fresh", list("requests.nvidia.com/gpu", "4"), nil)
	fresh.Status = corev1.ResourceQuotaStatus{}
	for want, o := range map[string]Objects{
		"resource quotas":      {Nodes: []*corev1.Node{h100("a")}, Unread: Unread{Quotas: true}},
		"resource quota fresh": {Nodes: []*corev1.Node{h100("a")}, Quotas: []*corev1.ResourceQuota{fresh}},
	} {
		r, err := new(Names).Read(o).plain(tmpl, Normalize("H100"))
		require.NoError(t, err)
		assert.Equal(t, want, r.Bound)
	}
}

func TestScopesOfAPod(t *testing.T) {
	tmpl := template(container("nvidia.com/gpu", "1"))
	tmpl.Namespace = "n"
	tmpl.Spec.ActiveDeadlineSeconds = ptr.To[int64](600)
	tmpl.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
		PodAffinityTerm: corev1.PodAffinityTerm{Namespaces: []string{"m"}},
	}}}}
	for scope, slots := range map[corev1.ResourceQuotaScope]int{
		corev1.ResourceQuotaScopeTerminating: 1, corev1.ResourceQuotaScopeNotTerminating: 8, corev1.ResourceQuotaScopeBestEffort: 1,
		corev1.ResourceQuotaScopeNotBestEffort: 8, corev1.ResourceQuotaScopeCrossNamespacePodAffinity: 1,
	} {
		inv := new(Names).Read(Objects{Nodes: []*corev1.Node{h100("a")}, Quotas: []*corev1.ResourceQuota{quota("q", list("pods", "1"), nil, scope)}})
		r, err := inv.plain(tmpl, Normalize("H100"))
		require.NoError(t, err)
		assert.Equal(t, slots, slotsOf(t, inv, r), scope)
	}
}

// What admission may yet make of a pod, nobody knows whether a quota counts: the count is a
// bound, and no less than what it bounds.
func TestScopesThatAdmissionMayChange(t *testing.T) {
	class := func(operator corev1.ScopeSelectorOperator, values ...string) *corev1.ResourceQuota {
		return selecting(quota("q", list("pods", "1"), nil), corev1.ResourceQuotaScopePriorityClass, operator, values...)
	}
	best := quota("q", list("pods", "1"), nil, corev1.ResourceQuotaScopeBestEffort)
	notBest := quota("q", list("pods", "1"), nil, corev1.ResourceQuotaScopeNotBestEffort)
	for name, c := range map[string]struct {
		quota  *corev1.ResourceQuota
		class  string
		unread bool
		asks   string
		slots  int
		bound  string
	}{
		"best effort, unless defaults are added":      {best, "", false, "0", 8, "what admission adds, resource quota q"},
		"not best effort, whatever is added":          {notBest, "", false, "1", 1, "what admission adds"},
		"not best effort, once defaults are added":    {notBest, "", false, "0", 8, "what admission adds, resource quota q"},
		"no class, unless there is a default":         {class(corev1.ScopeSelectorOpDoesNotExist), "", true, "1", 8, "what admission adds, priority class, resource quota q"},
		"but some classes, unless one is the default": {class(corev1.ScopeSelectorOpNotIn, "high"), "", true, "1", 8, "what admission adds, priority class, resource quota q"},
		"a class, which may be the default":           {class(corev1.ScopeSelectorOpIn, "high"), "", true, "1", 8, "what admission adds, priority class, resource quota q"},
		"the class of the template":                   {class(corev1.ScopeSelectorOpIn, "high"), "high", true, "1", 1, "what admission adds, priority class"},
		"no default among the classes":                {class(corev1.ScopeSelectorOpDoesNotExist), "", false, "1", 1, "what admission adds"},
	} {
		t.Run(name, func(t *testing.T) {
			inv := new(Names).Read(Objects{Nodes: []*corev1.Node{h100("a")}, Quotas: []*corev1.ResourceQuota{c.quota}, Unread: Unread{PriorityClasses: c.unread}})
			tmpl := template(container("nvidia.com/gpu", "1", "cpu", c.asks))
			tmpl.Namespace, tmpl.Spec.PriorityClassName = "n", c.class
			r, err := inv.Request(tmpl, nil, Normalize("H100"))
			require.NoError(t, err)
			assert.Equal(t, c.slots, slotsOf(t, inv, r))
			assert.Equal(t, c.bound, r.Bound)
		})
	}
}
