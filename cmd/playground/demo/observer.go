package demo

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
)

// observer watches the demo's Deployments, pods and VariantAutoscaling objects as
// the API server tells of them, and remembers what the report needs. It uses what
// any client sees and nothing of the autoscaler's or the scheduler's own.
type observer struct {
	// nodes are the accelerators of the nodes, as the demo made them.
	nodes map[string]capacity.Accelerator

	mu        sync.Mutex
	start     time.Time
	states    map[string][]replicaState
	pods      map[types.UID]*podState
	wanted    map[string]int
	decisions []decided
}

// replicaState is the state of a Deployment from at on.
type replicaState struct {
	at             time.Time
	desired, ready int
}

// podState is what was seen of one pod.
type podState struct {
	name, variant, node, scheduler string
	ready, leaving                 bool
	// When it was first seen, held by a node, Ready, on its way out, and gone; zero
	// means not yet.
	seen, bound, served, left, gone time.Time
}

// decided is a change of the replicas that the autoscaler wants.
type decided struct {
	at       time.Time
	variant  string
	from, to int
	reason   string
}

// observe starts to watch a namespace and returns once it has seen what is there.
func observe(ctx context.Context, config *rest.Config, namespace string, nodes map[string]capacity.Accelerator) (*observer, error) {
	o := &observer{
		nodes:  nodes,
		states: map[string][]replicaState{},
		pods:   map[types.UID]*podState{},
		wanted: map[string]int{},
	}
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("observing the demo: %w", err)
	}
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("observing the demo: %w", err)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(typed, 0, informers.WithNamespace(namespace))
	variants := dynamicinformer.NewFilteredDynamicSharedInformerFactory(untyped, 0, namespace, nil)
	resource := v1alpha1.GroupVersion.WithResource("variantautoscalings")
	for informer, handler := range map[cache.SharedIndexInformer]cache.ResourceEventHandler{
		factory.Apps().V1().Deployments().Informer(): handle(o.deployment, o.deploymentGone),
		factory.Core().V1().Pods().Informer():        handle(o.pod, o.podGone),
		variants.ForResource(resource).Informer():    handle(o.variant, nil),
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return nil, fmt.Errorf("observing the demo: %w", err)
		}
	}
	factory.Start(ctx.Done())
	variants.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	variants.WaitForCacheSync(ctx.Done())
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("observing the demo: %w", err)
	}
	return o, nil
}

// handle calls seen with every state of an object and gone when it is deleted.
func handle[T any](seen, gone func(T)) cache.ResourceEventHandler {
	call := func(do func(T), object any) {
		if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = last.Obj
		}
		if typed, ok := object.(T); ok && do != nil {
			do(typed)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { call(seen, object) },
		UpdateFunc: func(_, object any) { call(seen, object) },
		DeleteFunc: func(object any) { call(gone, object) },
	}
}

func (o *observer) deployment(d *appsv1.Deployment) {
	desired := 1
	if d.Spec.Replicas != nil {
		desired = int(*d.Spec.Replicas)
	}
	o.replicas(d.Name, desired, int(d.Status.ReadyReplicas))
}

func (o *observer) deploymentGone(d *appsv1.Deployment) { o.replicas(d.Name, 0, 0) }

func (o *observer) replicas(variant string, desired, ready int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	states := o.states[variant]
	if n := len(states); n > 0 && states[n-1].desired == desired && states[n-1].ready == ready {
		return
	}
	o.states[variant] = append(states, replicaState{at: time.Now(), desired: desired, ready: ready})
}

// pod leaves out those of the Llama Stack server, which is no variant: they need neither
// an accelerator nor our scheduler.
func (o *observer) pod(p *corev1.Pod) {
	if p.Labels[variantLabel] == stackName {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	state := o.pods[p.UID]
	if state == nil {
		state = &podState{name: p.Name, variant: p.Labels[variantLabel], seen: time.Now()}
		o.pods[p.UID] = state
	}
	if state.node == "" && p.Spec.NodeName != "" {
		state.node, state.bound = p.Spec.NodeName, time.Now()
	}
	state.scheduler = p.Spec.SchedulerName
	state.leaving = p.DeletionTimestamp != nil
	if state.leaving && state.left.IsZero() {
		state.left = time.Now()
	}
	state.ready = false
	for _, c := range p.Status.Conditions {
		state.ready = state.ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	}
	if state.ready && state.served.IsZero() {
		state.served = time.Now()
	}
	if p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded {
		o.ended(state)
	}
}

func (o *observer) podGone(p *corev1.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if state := o.pods[p.UID]; state != nil {
		o.ended(state)
	}
}

// ended notes when a pod gave its node back.
func (o *observer) ended(state *podState) {
	if state.gone.IsZero() {
		state.gone = time.Now()
	}
}

func (o *observer) variant(u *unstructured.Unstructured) {
	var v v1alpha1.VariantAutoscaling
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &v); err != nil {
		// The API server has checked the object against the same schema.
		return
	}
	desired := v.Status.DesiredOptimizedAlloc
	if desired == nil || desired.NumReplicas == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	to := int(*desired.NumReplicas)
	from, known := o.wanted[v.Name]
	if current := v.Status.CurrentAlloc; !known && current != nil && current.NumReplicas != nil {
		from, known = int(*current.NumReplicas), true
	}
	o.wanted[v.Name] = to
	if known && from != to {
		o.decisions = append(o.decisions, decided{at: time.Now(), variant: v.Name, from: from, to: to, reason: reasonOf(v.Status.Decision)})
	}
}

func reasonOf(d *v1alpha1.Decision) string {
	switch {
	case d == nil:
		return ""
	case d.Message == "":
		return d.Reason
	}
	return d.Reason + ": " + d.Message
}

// begin says when the traffic started.
func (o *observer) begin(at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.start = at
}

// counts are a variant's replicas now: wanted, Ready, and pods that are neither
// Ready nor leaving.
func (o *observer) counts(variant string) (desired, ready, pending int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if states := o.states[variant]; len(states) > 0 {
		last := states[len(states)-1]
		desired, ready = last.desired, last.ready
	}
	for _, p := range o.pods {
		if p.variant == variant && p.gone.IsZero() && !p.ready && !p.leaving {
			pending++
		}
	}
	return desired, ready, pending
}

// variantOf are the variants of the pods that were seen, by the pods' names.
func (o *observer) variantOf() map[string]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	names := make(map[string]string, len(o.pods))
	for _, p := range o.pods {
		names[p.name] = p.variant
	}
	return names
}

// decisionsSoFar are the decisions in their order.
func (o *observer) decisionsSoFar() []report.Decision {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := make([]report.Decision, 0, len(o.decisions))
	for _, d := range o.decisions {
		out = append(out, report.Decision{T: d.at.Sub(o.start).Round(time.Millisecond).Seconds(), Variant: d.variant, From: d.from, To: d.to, Reason: d.reason})
	}
	return out
}

// observedVariants is what was seen of the variants, in the order of the models.
func (o *observer) observedVariants(models []model) []report.ObservedVariant {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []report.ObservedVariant
	for _, m := range models {
		for _, v := range m.Variants {
			seen := report.ObservedVariant{Name: v.Name, Model: m.ID, Accelerator: v.Accelerator, Devices: v.Devices, Cost: v.cost()}
			for _, s := range o.states[v.Name] {
				seen.Replicas = append(seen.Replicas, report.ReplicaState{At: s.at.Sub(o.start), Desired: s.desired, Ready: s.ready})
			}
			for _, p := range o.pods {
				if p.variant == v.Name && !p.bound.IsZero() {
					seen.Held = append(seen.Held, report.Span{From: p.bound.Sub(o.start), To: p.gone.Sub(o.start), Open: p.gone.IsZero()})
				}
			}
			out = append(out, seen)
		}
	}
	return out
}

// moves are the steps in the lives of the pods in the order of time.
func (o *observer) moves() []report.ObservedMove {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []report.ObservedMove
	for _, p := range o.pods {
		out = append(out, p.moves(o.start)...)
	}
	sortMoves(out)
	return out
}

// placements are the pods that a node was found for.
func (o *observer) placements() []report.Placement {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []report.Placement
	for _, p := range o.pods {
		if p.node != "" {
			out = append(out, report.Placement{Pod: p.name, Variant: p.variant, Node: p.node, Accelerator: string(o.nodes[p.node]), Scheduler: p.scheduler})
		}
	}
	return out
}
