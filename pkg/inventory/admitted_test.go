package inventory

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// plain is Request in a cluster whose admission adds nothing.
func (inv *Inventory) plain(template *corev1.PodTemplateSpec, wanted Name) (*placement.Request, error) {
	if template == nil {
		return inv.Request(nil, nil, wanted)
	}
	return inv.Request(template, PodOf(template), wanted)
}

// tainted is a node of eight H100 that keeps away what does not tolerate its devices.
func tainted(name string) *corev1.Node {
	n := h100(name)
	n.Spec.Taints = []corev1.Taint{{Key: "nvidia.com/gpu", Value: "present", Effect: corev1.TaintEffectNoSchedule}}
	return n
}

func slotsOf(t *testing.T, inv *Inventory, r *placement.Request) int {
	t.Helper()
	slots, err := inv.Cluster.Slots(r)
	require.NoError(t, err)
	return slots
}

// Admission may let pods tolerate the taints of the devices that they ask for. Nodes that
// only this keeps away are counted until a pod shows whether it does, and no count is
// exact before.
func TestTolerationsThatAdmissionAdds(t *testing.T) {
	other := tainted("other")
	other.Spec.Taints[0].Key = "team"
	harsh := tainted("harsh")
	harsh.Spec.Taints[0].Effect = corev1.TaintEffectNoExecute
	inv := Read([]*corev1.Node{tainted("a"), tainted("b"), other, harsh}, nil)
	tmpl := template(container("nvidia.com/gpu", "8"))

	r, err := inv.Request(tmpl, nil, Normalize("H100"))
	require.NoError(t, err)
	assert.Equal(t, 2, slotsOf(t, inv, r))
	assert.Equal(t, "what admission adds", r.Bound)

	tolerant := PodOf(tmpl)
	tolerant.Spec.Tolerations = []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
	r, err = inv.Request(tmpl, tolerant, Normalize("H100"))
	require.NoError(t, err)
	assert.Equal(t, 2, slotsOf(t, inv, r))
	assert.Empty(t, r.Bound, "a pod shows what admission adds")

	r, err = inv.Request(tmpl, PodOf(tmpl), Normalize("H100"))
	require.NoError(t, err)
	assert.Zero(t, slotsOf(t, inv, r), "it adds no toleration here")
	assert.Empty(t, r.Bound)
}

// Defaults of the namespace and sidecars are in the pods and not in the template.
func TestWhatAdmissionAddsToTheRequests(t *testing.T) {
	inv := Read([]*corev1.Node{h100("a")}, nil)
	tmpl := template(container("nvidia.com/gpu", "1"))
	made := PodOf(template(container("nvidia.com/gpu", "1", "cpu", "60"), container("cpu", "4", "rdma/hca", "1")))
	made.Spec.NodeName = "a"
	r, err := inv.Request(tmpl, made, Normalize("H100"))
	require.NoError(t, err)
	assert.EqualValues(t, 64_000, r.Shape.MilliCPU)
	assert.Equal(t, "1xH100 and 1 of rdma/hca", placement.Wants(r.Shape, r.Other))
	assert.Nil(t, r.Refused, "the next pod is bound to no node")
}

// What is on the live pod or on the template alone is of account in any case.
func TestBoundsOfALivePod(t *testing.T) {
	inv := Read([]*corev1.Node{h100("a")}, nil)
	tmpl := template(container("nvidia.com/gpu", "1"))
	made := PodOf(tmpl)
	made.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-0"}}}}
	made.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "serving"}
	made.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "quota"}}
	tmpl.Annotations = map[string]string{"leaderworkerset.sigs.k8s.io/exclusive-topology": "rack"}
	r, err := inv.Request(tmpl, made, Normalize("H100"))
	require.NoError(t, err)
	assert.Equal(t, "volumes, Kueue, exclusive topology", r.Bound)
}

// Gates are put on a pod when it is created and at no other time, so that one that is as it
// was admitted shows what admission holds back.
func TestGatesThatAdmissionAdds(t *testing.T) {
	inv := Read([]*corev1.Node{h100("a")}, nil)
	tmpl := template(container("nvidia.com/gpu", "1"))
	for gate, want := range map[string]string{"quota": "scheduling gates", "kueue.x-k8s.io/admission": "Kueue"} {
		made := PodOf(tmpl)
		made.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: gate}}
		r, err := inv.Request(tmpl, made, Normalize("H100"))
		require.NoError(t, err)
		assert.Equal(t, want, r.Bound)
	}
}

// A runtime class adds to what its pods ask for, and to where they may go.
func TestRuntimeClass(t *testing.T) {
	sandboxed := tainted("sandboxed")
	sandboxed.Labels["sandbox"] = "kata"
	sandboxed.Spec.Taints[0].Key = "sandbox"
	nodes := []*corev1.Node{sandboxed, h100("plain")}
	class := &nodev1.RuntimeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "kata"},
		Overhead:   &nodev1.Overhead{PodFixed: list("cpu", "2", "memory", "1Gi")},
		Scheduling: &nodev1.Scheduling{
			NodeSelector: map[string]string{"sandbox": "kata"},
			Tolerations:  []corev1.Toleration{{Key: "sandbox", Operator: corev1.TolerationOpExists}},
		},
	}
	bare := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "bare"}}
	ask := func(name string, change func(*corev1.PodSpec), unread Unread) (*Inventory, *placement.Request, error) {
		inv := new(Names).Read(Objects{Nodes: nodes, RuntimeClasses: []*nodev1.RuntimeClass{bare, class}, Unread: unread})
		tmpl := template(container("nvidia.com/gpu", "8", "cpu", "1"))
		tmpl.Spec.RuntimeClassName = ptr.To(name)
		if change != nil {
			change(&tmpl.Spec)
		}
		r, err := inv.Request(tmpl, nil, Normalize("H100"))
		return inv, r, err
	}
	inv, r, err := ask("kata", nil, Unread{})
	require.NoError(t, err)
	assert.Equal(t, []string{"node affinity or selector", ""}, r.Refused, "the class chooses nodes and tolerates their taint")
	assert.EqualValues(t, 3_000, r.Shape.MilliCPU)
	assert.EqualValues(t, 1<<30, r.Shape.MemoryBytes)
	assert.Equal(t, 1, slotsOf(t, inv, r))
	assert.Equal(t, "what admission adds", r.Bound)

	_, r, err = ask("bare", nil, Unread{})
	require.NoError(t, err)
	assert.EqualValues(t, 1_000, r.Shape.MilliCPU)
	assert.Equal(t, []string{"", "taint sandbox"}, r.Refused)

	_, r, err = ask("kata", func(s *corev1.PodSpec) { s.NodeSelector, s.Overhead = map[string]string{"zone": "a"}, list("cpu", "4") }, Unread{})
	require.NoError(t, err)
	assert.Equal(t, []string{"node affinity or selector", "node affinity or selector"}, r.Refused, "both selectors count")
	assert.EqualValues(t, 5_000, r.Shape.MilliCPU, "an overhead of its own is the class's")

	_, _, err = ask("kata", func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"sandbox": "gvisor"} }, Unread{})
	require.ErrorContains(t, err, "sandbox=gvisor and their runtime class kata those with sandbox=kata")
	_, _, err = ask("gone", nil, Unread{})
	require.ErrorContains(t, err, "runtime class gone, which does not exist")
	inv, r, err = ask("gone", nil, Unread{RuntimeClasses: true})
	require.NoError(t, err)
	assert.Equal(t, 2, slotsOf(t, inv, r), "the class may tolerate any taint, and a bound is no less than what it bounds")
	assert.Equal(t, "what admission adds, runtime class", r.Bound)
	assert.Len(t, class.Scheduling.NodeSelector, 1, "the class is as it was")
}

func pods(of types.UID, labels map[string]string, names ...string) []*corev1.Pod {
	var all []*corev1.Pod
	for i, name := range names {
		all = append(all, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: labels, Generation: 1, CreationTimestamp: metav1.NewTime(time.Unix(int64(i), 0)),
			OwnerReferences: []metav1.OwnerReference{{UID: of, Controller: ptr.To(true)}},
		}})
	}
	return all
}

func TestRevisionOfADeployment(t *testing.T) {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "d", UID: "d", Generation: 3, Annotations: map[string]string{revisionAnnotation: "4"}}}
	d.Status.ObservedGeneration = 3
	set := func(uid, revision string, owner types.UID) *appsv1.ReplicaSet {
		return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
			UID: types.UID(uid), Annotations: map[string]string{revisionAnnotation: revision}, OwnerReferences: []metav1.OwnerReference{{UID: owner, Controller: ptr.To(true)}},
		}}
	}
	sets := []*appsv1.ReplicaSet{set("strange", "4", "other"), set("old", "3", "d"), set("new", "4", "d")}
	all := append(pods("old", nil, "o0", "o1", "o2"), pods("new", nil, "n0", "n1")...)
	assert.Equal(t, "n1", RevisionOf(d, sets).Newest(all).Name)
	assert.Nil(t, RevisionOf(d, sets[:2]).Newest(all), "its ReplicaSet is not there yet")
	d.Generation = 4
	assert.Nil(t, RevisionOf(d, sets).Newest(all), "the template may have changed")
	d.Generation, d.Annotations = 3, nil
	assert.Nil(t, RevisionOf(d, sets).Newest(all))
	assert.Nil(t, Revision{}.Newest(all))
}

func TestNewestIsLiveAndAsItWasAdmitted(t *testing.T) {
	all := pods("s", nil, "a", "b", "c", "d", "e")
	all[1].CreationTimestamp = all[0].CreationTimestamp
	r := RevisionBy("s")
	assert.Equal(t, "e", r.Newest(all).Name)
	all[4].Generation = 2
	assert.Equal(t, "d", r.Newest(all).Name, "it was resized")
	all[3].Status.Phase = corev1.PodFailed
	assert.Equal(t, "c", r.Newest(all).Name)
	all[2].DeletionTimestamp = ptr.To(metav1.Now())
	assert.Equal(t, "a", r.Newest([]*corev1.Pod{all[1], all[0], all[2]}).Name, "of the same age, by name")
	all[0].Status.Phase = corev1.PodSucceeded
	assert.Equal(t, "b", r.Newest(all).Name)
	assert.Nil(t, r.Newest([]*corev1.Pod{{}}), "nobody's")
}

func TestRevisionOfAStatefulSet(t *testing.T) {
	s := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{UID: "s", Generation: 2}}
	s.Status.ObservedGeneration, s.Status.UpdateRevision = 2, "s-new"
	all := append(pods("s", map[string]string{appsv1.ControllerRevisionHashLabelKey: "s-new"}, "s-2", "s-1"),
		pods("s", map[string]string{appsv1.ControllerRevisionHashLabelKey: "s-old"}, "s-9", "s-8", "s-7")...)
	assert.Equal(t, "s-1", RevisionOfStatefulSet(s).Newest(all).Name)
	s.Status.ObservedGeneration = 1
	assert.Nil(t, RevisionOfStatefulSet(s).Newest(all))
	s.Status.ObservedGeneration, s.Status.UpdateRevision = 2, ""
	assert.Nil(t, RevisionOfStatefulSet(s).Newest(all))
}

func TestRevisionOfALeaderWorkerSet(t *testing.T) {
	leaders := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{UID: "s", Labels: map[string]string{groupRevisionLabel: "new"}}}
	all := append(pods("s", map[string]string{groupRevisionLabel: "new"}, "l-0"), pods("s", map[string]string{groupRevisionLabel: "old"}, "l-1", "l-2")...)
	one := &LeaderWorkerSet{PodsPerReplica: 1}
	assert.Equal(t, "l-0", RevisionOfLeaderWorkerSet(one, leaders).Newest(all).Name)
	assert.Nil(t, RevisionOfLeaderWorkerSet(&LeaderWorkerSet{PodsPerReplica: 2}, leaders).Newest(all))
	assert.Nil(t, RevisionOfLeaderWorkerSet(&LeaderWorkerSet{PodsPerReplica: 1, Rollout: Rollout{Unobserved: true}}, leaders).Newest(all))
	assert.Nil(t, RevisionOfLeaderWorkerSet(one, &appsv1.StatefulSet{}).Newest(all))
}
