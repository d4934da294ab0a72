package controller

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/controller/settings"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/forecast"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
	"llmd.ai/workload-variant-autoscaler/pkg/report/status"
	"llmd.ai/workload-variant-autoscaler/pkg/round"
)

// observer turns the cluster and the samples into a snapshot.
type observer struct {
	reader  client.Reader
	targets *targetFinder
	// access is what is permitted in this round.
	access Access
	// instance is the controller instance whose objects are handled.
	instance string
	// namespace is the only one whose objects are handled, or empty for all.
	namespace string
	// names reads the accelerators of nodes and objects.
	names *inventory.Names
	// scheduler is that of the variants' pods where our webhook says where they go.
	scheduler string
	// locals are nil where namespaces have no say of their own.
	locals   *settings.Locals
	startups *round.Startups
	// history is what is known of earlier days in this round.
	history map[decision.ModelKey][]forecast.History
	// met is the share of requests that kept the promise, as far as it is known.
	met map[decision.ModelKey]decision.Kept
	// trusted are the namespaces whose gateways count for the models of all namespaces.
	trusted []string
	// adapters are the names that servers showed.
	adapters adapters
	// toldStrange and toldDistrust are the models of which was told what gateways count and nobody
	// can use.
	toldStrange, toldDistrust toldOf
}

// observation is a snapshot and what of the cluster it stands for.
type observation struct {
	snapshot decision.Snapshot
	policy   decision.Policy
	variants map[decision.Key]*variant
	// metricsErr is what went wrong with reading metrics; dark: nothing is known for that.
	metricsErr error
	dark       bool
	// asksPods is set where metrics are asked of the pods themselves; metricsErr names
	// pods then, of any namespace.
	asksPods bool
	// unreadable names the permissions without which nobody knows what is free.
	unreadable string
	// unlisted counts the nodes by product name that no rule knows.
	unlisted map[string]int
	// hearing says what gateways count for whom.
	hearing hearing
	// believed is what was remembered before the round.
	believed decision.Memory
	// undecoded are the objects that could not be read.
	undecoded []*v1alpha1.VariantAutoscaling
	// strays are the pods with our mark that belong to no object any more.
	strays []*corev1.Pod
}

// variant is one object with what was found out about it.
type variant struct {
	object *v1alpha1.VariantAutoscaling
	key    decision.Key
	target target
	// notes are what the decision is not told in words, for the plan.
	notes []decision.Fact
	// warnings are what is odd about the variant and keeps it from nothing.
	warnings []decision.Fact
	// Variant is what its status shows of it.
	status.Variant
	// devices are those of a replica, also while the target is missing.
	devices int
	// pods are the target's pods, those that end and have ended included.
	pods []*corev1.Pod
	// picks is set when which replicas go is our choice, and priced where somebody gave their price.
	picks, priced bool
}

// priced are the variants of whose replicas somebody gave the price.
func (seen *observation) priced() map[decision.Key]bool {
	all := make(map[decision.Key]bool, len(seen.variants))
	for key, v := range seen.variants {
		all[key] = v.priced
	}
	return all
}

// replicas are the pods of all variants that serve or are to serve.
func (seen *observation) replicas() []*corev1.Pod {
	var pods []*corev1.Pod
	for _, v := range seen.variants {
		pods = append(pods, only(v.pods, counts)...)
	}
	return pods
}

// observe reads the cache, and live only the targets of kinds that it does not hold.
func (o *observer) observe(ctx context.Context, now time.Time, d *config.Dynamic, r readings) (*observation, error) {
	seen := &observation{
		snapshot:   decision.Snapshot{Time: now},
		policy:     d.Policy(),
		variants:   map[decision.Key]*variant{},
		metricsErr: r.err, dark: r.err != nil && len(r.pods)+len(r.models) == 0,
		unreadable: o.access.Missing,
	}
	seen.policy.Window = d.MetricsWindow
	seen.policy.Variants = map[decision.Key]decision.VariantPolicy{}
	variants, err := o.variants(ctx, seen)
	if err != nil {
		return nil, err
	}
	stock, err := o.inventory(ctx)
	if err != nil {
		return nil, err
	}
	stock.costs = d.UnitCosts
	seen.promise(d, variants, o.ofNamespaces(ctx, variants))
	if o.access.Capacity {
		seen.snapshot.Cluster, seen.unlisted = stock.inventory.Cluster, stock.inventory.Unlisted
	}
	if err := o.targets.find(ctx, variants); err != nil {
		return nil, err
	}
	givePods(stock.pods, variants)
	o.startups.Begin(now)
	models := map[decision.ModelKey]*decision.Model{}
	for _, v := range variants {
		seen.variants[v.key] = v
		seen.policy.Variants[v.key] = v.policy()
		fact := o.factsOf(v, &seen.policy, stock, r)
		key := v.model()
		if models[key] == nil {
			models[key] = &decision.Model{Namespace: key.Namespace, ID: key.ID}
		}
		v.warnOfWaking(d, &seen.policy, fact.Startup)
		models[key].Variants = append(models[key].Variants, fact)
		addNames(models[key], v.object.Spec.AlsoServes)
	}
	o.adapters.see(variants, r.adapters, r.at)
	o.adapters.name(models)
	seen.hearing = hear(slices.Collect(maps.Values(models)), o.trusted)
	warnOfNames(variants, seen.hearing.names)
	warnOfPrices(variants)
	var unused odd
	seen.snapshot.Models, unused = join(models, seen.hearing, r.models, o.history, o.met)
	warnOfGateways(variants, unused.distrusted)
	o.tellOdd(ctx, models, unused)
	if seen.strays, err = o.strays(ctx, seen, stock.pods); err != nil {
		return nil, err
	}
	o.startups.End(func(key decision.Key) bool { return seen.variants[key] != nil })
	return seen, nil
}

// ofNamespaces is what the namespaces of the variants say for themselves. It warns those
// variants whose namespace may have a say that is not known.
func (o *observer) ofNamespaces(ctx context.Context, variants []*variant) map[string]config.Local {
	namespaces := make([]string, len(variants))
	for i, v := range variants {
		namespaces[i] = v.key.Namespace
	}
	own := o.locals.Read(ctx, slices.Values(namespaces))
	for _, v := range variants {
		if unread := o.locals.Unread(v.key.Namespace, o.access.Local); unread != "" {
			v.warn(v1alpha1.ReasonNamespaceConfigUnread, "%s", unread)
		}
	}
	return own
}

// variants are the objects that this controller handles, sorted by namespace and
// name. Those that could not be read stand aside, so that they stop no other.
func (o *observer) variants(ctx context.Context, seen *observation) ([]*variant, error) {
	var list v1alpha1.VariantAutoscalingList
	if err := o.reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing VariantAutoscaling objects: %w", err)
	}
	variants := make([]*variant, 0, len(list.Items))
	for _, object := range pointers(list.Items) {
		if object.DeletionTimestamp != nil || object.Labels[v1alpha1.LabelControllerInstance] != o.instance || o.locals.Excludes(object.Namespace) {
			continue
		}
		if object.Annotations[v1alpha1.AnnotationUndecodable] != "" {
			seen.undecoded = append(seen.undecoded, object)
			continue
		}
		variants = append(variants, &variant{
			object: object, key: decision.Key{Namespace: object.Namespace, Name: object.Name},
			Variant: status.Variant{Generation: object.Generation},
		})
	}
	slices.SortFunc(variants, func(a, b *variant) int {
		return cmp.Or(cmp.Compare(a.key.Namespace, b.key.Namespace), cmp.Compare(a.key.Name, b.key.Name))
	})
	return variants, nil
}

// stock is the inventory, its nodes by name, and the pods that it was made of, so that
// what the replicas are and what they hold is of one instant.
type stock struct {
	names     *inventory.Names
	inventory *inventory.Inventory
	nodes     map[string]*corev1.Node
	pods      []*corev1.Pod
	// memory is that of the smallest device of each type, in GiB.
	memory map[capacity.Accelerator]int
	// costs are the prices of accelerators, for variants that give none.
	costs config.UnitCosts
	// sends are the namespaces in which our webhook says where the pods of variants go,
	// and sending is what it says.
	sends   map[string]bool
	sending *inventory.Sending
}

// inventory reads what there is and what is free, and of the kinds that may be read the objects
// that say what pods will be and how many there may be.
func (o *observer) inventory(ctx context.Context) (stock, error) {
	var (
		pods       corev1.PodList
		namespaces corev1.NamespaceList
		nodes      corev1.NodeList
		runtimes   nodev1.RuntimeClassList
		priorities schedulingv1.PriorityClassList
		budgets    policyv1.PodDisruptionBudgetList
		quotas     corev1.ResourceQuotaList
	)
	counts, unread := o.access.Capacity, o.access.Unread
	for _, kind := range []struct {
		read bool
		name string
		list client.ObjectList
	}{
		{true, "pods", &pods},
		{o.access.Namespaces, "namespaces", &namespaces},
		{counts, "nodes", &nodes},
		{counts && !unread.RuntimeClasses, "runtime classes", &runtimes},
		{counts && !unread.PriorityClasses, "priority classes", &priorities},
		{counts && !unread.Budgets, "disruption budgets", &budgets},
		{counts && !unread.Quotas, "resource quotas", &quotas},
	} {
		if !kind.read {
			continue
		}
		if err := o.reader.List(ctx, kind.list, client.UnsafeDisableDeepCopy); err != nil {
			return stock{}, fmt.Errorf("listing %s: %w", kind.name, err)
		}
	}
	s := stock{names: o.names, nodes: map[string]*corev1.Node{}, pods: pointers(pods.Items), sends: map[string]bool{}}
	var objects inventory.Objects
	if counts {
		objects = inventory.Objects{
			Nodes: pointers(nodes.Items), Pods: s.pods, Unread: unread,
			RuntimeClasses: pointers(runtimes.Items), PriorityClasses: pointers(priorities.Items),
			Budgets: pointers(budgets.Items), Quotas: pointers(quotas.Items),
		}
	}
	s.inventory = o.names.Read(objects)
	s.sending = inventory.NewSending(o.scheduler, o.names, objects.Nodes)
	s.memory = inventory.LeastMemory(s.inventory.Cluster.Nodes)
	for _, node := range objects.Nodes {
		s.nodes[node.Name] = node
	}
	for _, n := range pointers(namespaces.Items) {
		s.sends[n.Name] = n.Labels[v1alpha1.LabelPlacePods] == "true"
	}
	return s, nil
}

func pointers[T any](items []T) []*T {
	p := make([]*T, len(items))
	for i := range items {
		p[i] = &items[i]
	}
	return p
}

// factsOf is one variant as the decision sees it.
func (o *observer) factsOf(v *variant, policy *decision.Policy, s stock, r readings) decision.Variant {
	v.picks = v.leftToUs(policy.Variants[v.key], o.access)
	ready, starting := statesOf(v.pods)
	var fact decision.Variant
	if scale := v.target.scale; scale != nil {
		fact = v.target.told
		fact.Current, fact.TargetUID = int(scale.Spec.Replicas), string(scale.UID)
		fact.Surge = v.target.rollout.More(fact.Current, len(ready)+len(starting))
	}
	fact.Name, fact.Target, fact.Before = v.key.Name, v.target.state, v.before()
	// A spec that its controller has not seen yet may be the beginning of an update.
	fact.ChoosesVictims = v.picks && !v.target.rollout.Unobserved
	fact.Ready, fact.Starting = len(ready), starting
	fact.Replicas = replicas(ready, r.pods)
	fact.Startup = o.startups.Of(v.key, startsOf(v.pods), policy.StartupDeadline)
	v.resolve(&fact, s)
	return fact
}

// before is what the status shows was wanted last; nil where it shows nothing.
func (v *variant) before() *int {
	desired := v.object.Status.DesiredOptimizedAlloc
	if desired == nil || desired.NumReplicas == nil {
		return nil
	}
	return ptr.To(int(*desired.NumReplicas))
}

// replicas are the serving pods with their samples, of which one from before a pod's
// creation belongs to an earlier pod of the same name.
func replicas(ready []*corev1.Pod, samples map[types.NamespacedName]decision.Replica) []decision.Replica {
	all := make([]decision.Replica, 0, len(ready))
	for _, pod := range ready {
		replica := samples[client.ObjectKeyFromObject(pod)]
		replica.Name, replica.Node, replica.Marked = pod.Name, pod.Spec.NodeName, isMarked(pod)
		replica.Since = condition(pod, corev1.PodReady).LastTransitionTime.Time
		samplesOf(&replica).keep(pod.CreationTimestamp.Add(-time.Nanosecond))
		all = append(all, replica)
	}
	return all
}
