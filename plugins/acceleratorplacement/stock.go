package acceleratorplacement

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// How often stock is taken: after this long, and sooner when variants change, but
// not again before the pause has passed.
const (
	stockEvery = 10 * time.Second
	stockPause = 2 * time.Second
)

// watchStock takes stock until the context ends. It is what goes on beside the
// scheduling of pods, and is the only place that builds a table anew.
func (p *Plugin) watchStock(ctx context.Context) {
	ticker := time.NewTicker(stockEvery)
	defer ticker.Stop()
	for {
		p.takeStock(ctx)
		pause := time.NewTimer(stockPause)
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-p.restock:
		}
	}
}

// soon asks for stock to be taken, and does not wait for it.
func (p *Plugin) soon() {
	select {
	case p.restock <- struct{}{}:
	default:
	}
}

// takeStock looks at the whole cluster through the scheduler's caches: what is
// expected, what that makes of the nodes, and what is out of order.
func (p *Plugin) takeStock(ctx context.Context) {
	nodes, err := p.nodes.List(labels.Everything())
	if err != nil {
		klog.FromContext(ctx).Error(err, "The nodes could not be listed, so the metrics of devices are not updated")
		return
	}
	pods, err := p.owners.pods.List(labels.Everything())
	if err != nil {
		klog.FromContext(ctx).Error(err, "The pods could not be listed, so the metrics of devices are not updated")
		return
	}
	withDevices := slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool { return !inventory.UsesDevices(pod) })
	variants := p.variants.list()
	outlook, shapes := outlookOf(p.names, variants, p.count(withDevices))
	objects := p.rules.objects()
	objects.Nodes, objects.Pods, objects.Known = nodes, pods, p.carried
	inv := p.names.Read(objects)
	p.prices.expect(outlook, inv.Cluster)

	foreign := p.foreign(nodes, pods)
	p.tellForeign(foreign)
	p.visitWaiting(ctx, withDevices)
	// Whoever only stands by would report the same once more.
	if p.scheduling.Load() {
		cluster.report(p.profile, p.sum(inv.Cluster, p.slots(inv, withDevices, variants, shapes), len(foreign)))
	}
}

// carried is what the node carries, which the scheduling of pods has read already.
func (p *Plugin) carried(node *corev1.Node) *inventory.Carried {
	return p.catalog.of(p.names, node).Carried
}

// visitWaiting drops the waiting pods that are gone or placed, and wakes those whose
// annotation was corrected, of which the queue tells no plugin.
func (p *Plugin) visitWaiting(ctx context.Context, pods []*corev1.Pod) {
	present := make(map[string]*corev1.Pod)
	for _, pod := range pods {
		if pod.Spec.NodeName == "" {
			present[string(pod.UID)] = pod
		}
	}
	for _, t := range p.waiting.list() {
		now := present[string(t.pod.UID)]
		if now == nil {
			p.waiting.forget(t.pod.UID)
			continue
		}
		if now.Annotations[v1alpha1.AnnotationAccelerators] != t.pod.Annotations[v1alpha1.AnnotationAccelerators] {
			p.handle.Activate(klog.FromContext(ctx), map[string]*corev1.Pod{now.Namespace + "/" + now.Name: now})
		}
	}
}

// sum adds up the gauges.
func (p *Plugin) sum(c *placement.Cluster, slots map[capacity.Shape]int, foreign int) *stock {
	s := &stock{
		slots:       slots,
		free:        freeBy(c),
		fragmented:  p.prices.table.Load().Fragmentation(c),
		unplaceable: map[string]int{},
		foreign:     foreign,
	}
	for _, t := range p.waiting.list() {
		s.unplaceable[t.reason]++
	}
	return s
}

// freeBy is the free devices of the nodes that take pods, by their type.
func freeBy(c *placement.Cluster) map[capacity.Accelerator]int {
	free := map[capacity.Accelerator]int{}
	add := func(a capacity.Accelerator, count int) {
		if a != "" {
			free[a] += max(count, 0)
		}
	}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if n.Out != "" {
			continue
		}
		add(n.Accelerator, n.Free.Devices)
		for _, p := range n.Beside {
			add(p.Device.Accelerator, p.Free)
		}
	}
	return free
}
