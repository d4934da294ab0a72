package dashboard

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/status"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
)

// mostDecisions bounds the list of the page.
const mostDecisions = 500

// listing is what is there at one moment.
type listing struct {
	at       time.Time
	variants []*v1alpha1.VariantAutoscaling
	// unreadable says what is wrong with objects that could not be read.
	unreadable []string
	pods       []*corev1.Pod
	nodes      []*corev1.Node
	// podsKnown says that pods may be read.
	podsKnown bool
}

// history is what was seen so far: one listing after the other.
type history struct {
	// start is the beginning of what is kept.
	start time.Time
	// first is when the first listing was made.
	first time.Time
	// changed is when a listing last differed from the one before in what is shown.
	changed   time.Time
	last      listing
	replicas  map[types.NamespacedName][]state
	states    map[types.NamespacedName]string
	lives     map[types.UID]*report.PodLife
	decisions []decided
}

// state is the replicas of a variant from at on.
type state struct {
	at            time.Time
	wanted, ready int
}

// decided is one decision, or a change of the state of a variant.
type decided struct {
	at              time.Time
	variant         types.NamespacedName
	from, to        int
	reason, message string
	steps           []v1alpha1.DecisionStep
}

func newHistory(start time.Time) *history {
	return &history{
		start: start, replicas: map[types.NamespacedName][]state{},
		states: map[types.NamespacedName]string{}, lives: map[types.UID]*report.PodLife{},
	}
}

// look takes a listing in. Owners say whose the pods are.
func (h *history) look(now listing, owners *owners) {
	first := h.last.at.IsZero()
	ready := h.lookAtPods(now, owners)
	there := map[types.NamespacedName]bool{}
	for _, v := range now.variants {
		key := keyOf(v)
		there[key] = true
		if first {
			h.remember(v)
		}
		serving := ready[key] / podsOf(v)
		if !now.podsKnown {
			serving = servingBy(&v.Status)
		}
		h.lookAt(v, now.at, serving, first)
	}
	for key := range h.replicas {
		if !there[key] {
			delete(h.replicas, key)
			delete(h.states, key)
			h.changed = now.at
		}
	}
	if first {
		h.first = now.at
	}
	if first || len(h.last.nodes) != len(now.nodes) {
		h.changed = now.at
	}
	h.last = now
}

func keyOf(v *v1alpha1.VariantAutoscaling) types.NamespacedName {
	return types.NamespacedName{Namespace: v.Namespace, Name: v.Name}
}

// podsOf is how many pods one replica has.
func podsOf(v *v1alpha1.VariantAutoscaling) int {
	if p := v.Status.Placement; p != nil && p.Shape != nil && p.Shape.Pods != nil {
		return max(1, int(*p.Shape.Pods))
	}
	return 1
}

// servingBy are the replicas that serve as far as a status tells: those that the target asks
// for, without those that do not serve yet.
func servingBy(s *v1alpha1.VariantAutoscalingStatus) int {
	n := 0
	if s.CurrentAlloc != nil && s.CurrentAlloc.NumReplicas != nil {
		n = int(*s.CurrentAlloc.NumReplicas)
	}
	if s.Placement != nil && s.Placement.Pending != nil {
		n -= int(*s.Placement.Pending)
	}
	return max(0, n)
}

// lookAt notes the replicas of a variant, a decision that changed them, and a state that
// has become another one.
func (h *history) lookAt(v *v1alpha1.VariantAutoscaling, at time.Time, ready int, first bool) {
	key, row := keyOf(v), status.RowOf(v, nil)
	wanted := cmp.Or(row.Desired, row.Current)
	if before := h.states[key]; before != row.State {
		h.states[key] = row.State
		h.changed = at
		if !first && before != "" && wanted != nil {
			h.decisions = append(h.decisions, decided{at: at, variant: key, from: int(*wanted), to: int(*wanted), reason: row.State,
				message: cmp.Or(row.Message, "it was "+before)})
		}
	}
	if wanted == nil {
		return
	}
	states := h.replicas[key]
	if n := len(states); n > 0 {
		before := states[n-1]
		if before.wanted == int(*wanted) && before.ready == ready {
			return
		}
		if before.wanted != int(*wanted) {
			h.decisions = append(h.decisions, decisionOf(v, at, before.wanted, int(*wanted)))
		}
	}
	h.changed = at
	h.replicas[key] = append(states, state{at: at, wanted: int(*wanted), ready: ready})
}

func decisionOf(v *v1alpha1.VariantAutoscaling, at time.Time, from, to int) decided {
	d := decided{at: at, variant: keyOf(v), from: from, to: to}
	if s := v.Status.Decision; s != nil {
		d.reason, d.message, d.steps = s.Reason, s.Message, s.Steps
	}
	return d
}

// remember notes the last decision of a variant that is seen for the first time, if it
// changed anything.
func (h *history) remember(v *v1alpha1.VariantAutoscaling) {
	d, alloc := v.Status.Decision, v.Status.DesiredOptimizedAlloc
	if d == nil || len(d.Steps) == 0 || alloc == nil || alloc.LastRunTime == nil || alloc.LastRunTime.Time.Before(h.start) {
		return
	}
	from, to := int(d.Steps[0].Before), int(d.Steps[len(d.Steps)-1].After)
	if from != to {
		h.decisions = append(h.decisions, decisionOf(v, alloc.LastRunTime.Time, from, to))
	}
}

// lookAtPods notes the steps in the lives of the pods of variants, and counts those that
// are ready.
func (h *history) lookAtPods(now listing, owners *owners) (ready map[types.NamespacedName]int) {
	ready = map[types.NamespacedName]int{}
	there := map[types.UID]bool{}
	for _, pod := range now.pods {
		key, own := owners.of(pod)
		if !own {
			continue
		}
		there[pod.UID] = true
		life := h.lives[pod.UID]
		if life == nil {
			life = &report.PodLife{Name: pod.Name, Made: pod.CreationTimestamp.Time}
			h.lives[pod.UID] = life
		}
		before := *life
		life.Variant = key.String()
		if isReady := h.lookAtPod(life, pod, now.at); isReady {
			ready[key]++
		}
		if *life != before {
			h.changed = now.at
		}
	}
	for uid, life := range h.lives {
		if !there[uid] && life.Gone.IsZero() {
			life.Gone = now.at
			h.changed = now.at
		}
	}
	return ready
}

// lookAtPod notes the steps that a pod has made, at the times that the cluster tells.
func (h *history) lookAtPod(life *report.PodLife, pod *corev1.Pod, now time.Time) (ready bool) {
	if life.Node == "" && pod.Spec.NodeName != "" {
		life.Node, life.Placed = pod.Spec.NodeName, transition(pod, corev1.PodScheduled, now)
	}
	if pod.DeletionTimestamp != nil && life.Leaving.IsZero() {
		life.Leaving = now
	}
	if inventory.HeldBy(pod) == "" && pod.Spec.NodeName != "" && life.Gone.IsZero() {
		life.Gone = now
	}
	for _, c := range pod.Status.Conditions {
		ready = ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	}
	if ready && life.Serving.IsZero() {
		life.Serving = transition(pod, corev1.PodReady, now)
	}
	return ready && pod.DeletionTimestamp == nil
}

// transition is when a condition of a pod became what it is; where nobody says it, now.
func transition(pod *corev1.Pod, kind corev1.PodConditionType, now time.Time) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind && c.Status == corev1.ConditionTrue && !c.LastTransitionTime.IsZero() && c.LastTransitionTime.Time.Before(now) {
			return c.LastTransitionTime.Time
		}
	}
	return now
}

// add takes in decisions of before the first listing, but those that are known.
func (h *history) add(earlier []decided) {
	for _, d := range earlier {
		known := slices.ContainsFunc(h.decisions, func(k decided) bool {
			return k.variant == d.variant && k.to == d.to && d.at.Sub(k.at).Abs() < sameDecision
		})
		if !known && !d.at.Before(h.start) {
			h.decisions = append(h.decisions, d)
			h.changed = h.last.at
		}
	}
}

// sameDecision is how far an event and the status of one decision may be apart.
const sameDecision = 90 * time.Second

// forget moves the beginning and drops what was before it.
func (h *history) forget(start time.Time) {
	h.start = start
	for key, states := range h.replicas {
		// The last state of before is that of the beginning.
		n := 0
		for n+1 < len(states) && !states[n+1].at.After(start) {
			n++
		}
		h.replicas[key] = slices.Clone(states[n:])
	}
	for uid, life := range h.lives {
		if !life.Gone.IsZero() && life.Gone.Before(start) {
			delete(h.lives, uid)
		}
	}
	slices.SortStableFunc(h.decisions, func(a, b decided) int { return a.at.Compare(b.at) })
	h.decisions = slices.DeleteFunc(h.decisions, func(d decided) bool { return d.at.Before(start) })
	if more := len(h.decisions) - mostDecisions; more > 0 {
		h.decisions = slices.Delete(h.decisions, 0, more)
	}
}

// owners find the variant of a pod.
type owners struct {
	byTarget  map[target]types.NamespacedName
	selectors map[string][]selected
}

// target is a scale target.
type target struct{ namespace, kind, name string }

// newOwners are those of the variants. Selectors find the pods of targets whose pods are
// not owned by the target or by a ReplicaSet of it.
func newOwners(variants []*v1alpha1.VariantAutoscaling, selectors map[string][]selected) *owners {
	o := &owners{byTarget: map[target]types.NamespacedName{}, selectors: selectors}
	for _, v := range variants {
		ref := v.Spec.ScaleTargetRef
		o.byTarget[target{v.Namespace, cmp.Or(ref.Kind, v1alpha1.DefaultTargetKind), ref.Name}] = keyOf(v)
	}
	return o
}

const (
	templateHash      = "pod-template-hash"
	leaderWorkerSet   = "LeaderWorkerSet"
	leaderWorkerLabel = "leaderworkerset.sigs.k8s.io/name"
)

// of is the variant of a pod; false for other pods. A ReplicaSet of a Deployment has the
// Deployment's name and the hash of its pods' template.
func (o *owners) of(pod *corev1.Pod) (types.NamespacedName, bool) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner != nil {
		if key, ok := o.byTarget[target{pod.Namespace, owner.Kind, owner.Name}]; ok {
			return key, true
		}
		suffix := "-" + pod.Labels[templateHash]
		if n := len(owner.Name) - len(suffix); owner.Kind == "ReplicaSet" && len(suffix) > 1 && n > 0 && owner.Name[n:] == suffix {
			if key, ok := o.byTarget[target{pod.Namespace, "Deployment", owner.Name[:n]}]; ok {
				return key, true
			}
		}
	}
	if key, ok := o.byTarget[target{pod.Namespace, leaderWorkerSet, pod.Labels[leaderWorkerLabel]}]; ok {
		return key, true
	}
	for _, s := range o.selectors[pod.Namespace] {
		if s.matches(pod) {
			return s.variant, true
		}
	}
	return types.NamespacedName{}, false
}
