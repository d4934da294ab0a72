package acceleratorplacement

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/config"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// cycle is one attempt to schedule a pod, once PreFilter has seen it.
type cycle struct {
	// state is the attempt's own: the same pod may be tried again.
	state fwk.CycleState
	pod   *corev1.Pod
	// asks is nil for a pod without devices.
	asks *preFilterState
	// invalid is set when PreFilter turned the request down.
	invalid bool
}

// Name is the plugin's name in a scheduler's configuration.
const Name = "AcceleratorPlacement"

// How long the first list of the variants is waited for: the plugin's start as long
// as firstList, then scheduling starts and pods with devices wait until listLimit.
const (
	firstList = 5 * time.Second
	listLimit = time.Minute
)

// Plugin implements the extension points.
type Plugin struct {
	handle  fwk.Handle
	args    config.AcceleratorPlacementArgs
	profile string

	names      *inventory.Names
	catalog    catalog
	nodes      corelisters.NodeLister
	owners     owners
	rules      *rules
	variants   *variants
	prices     prices
	waiting    *waiting
	reported   reported
	beforeLead beforeLead
	// lastBefore and lastAfter are the nodes of the last event.
	lastBefore, lastAfter atomic.Pointer[carried]
	// restock asks for stock to be taken.
	restock chan struct{}

	// current is the running scheduling cycle. It spares the cycle state's look-up,
	// which allocates, for every node.
	current atomic.Pointer[cycle]
	// scheduling is set once pods come by: the queue exists, and this scheduler is the
	// one that leads.
	scheduling atomic.Bool
}

var (
	_ fwk.PreFilterPlugin   = &Plugin{}
	_ fwk.FilterPlugin      = &Plugin{}
	_ fwk.PostFilterPlugin  = &Plugin{}
	_ fwk.PreScorePlugin    = &Plugin{}
	_ fwk.ScorePlugin       = &Plugin{}
	_ fwk.ScoreExtensions   = &Plugin{}
	_ fwk.EnqueueExtensions = &Plugin{}
	_ fwk.SignPlugin        = &Plugin{}
)

// Name is the plugin's name.
func (p *Plugin) Name() string { return Name }

// PreFilter finds out what the pod wants and narrows the nodes to those with devices
// that it accepts. They are never narrowed by what is free, so that preemption can
// still free it.
func (p *Plugin) PreFilter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	p.begin()
	// Once stored, a cycle never changes: a preemption may look at it.
	c := cycle{state: state, pod: pod}
	defer func() { p.current.Store(&c) }()
	if !inventory.UsesDevices(pod) {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	p.waiting.forget(pod.UID)
	w, status := p.preFilterStateOf(ctx, pod)
	if !status.IsSuccess() {
		c.invalid = status.IsRejected()
		return nil, status
	}
	nodesNow := p.catalog.snapshotOf(p.names, nodes)
	p.prices.refresh(nodesNow)
	w.table = p.prices.table.Load()
	if w.variant != nil && !w.any() {
		w.own = p.ownOf(w.variant, w.resource, nodesNow)
	}
	state.Write(Name, w)
	c.asks = w
	return &fwk.PreFilterResult{NodeNames: nodesNow.candidates(w)}, nil
}

// begin notes that pods come by, and so that this scheduler leads. It tells what was
// kept until that was known.
func (p *Plugin) begin() {
	if p.scheduling.Load() || p.scheduling.Swap(true) {
		return
	}
	p.soon()
	for _, pod := range p.beforeLead.take() {
		p.tellRefused(pod)
	}
}

// PreFilterExtensions is nil: the state says nothing about the pods on a node.
func (p *Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Filter is the capacity model's verdict on the node as it is handed in.
func (p *Plugin) Filter(_ context.Context, state fwk.CycleState, pod *corev1.Pod, info fwk.NodeInfo) *fwk.Status {
	w := p.wanted(state, pod)
	if w == nil {
		return nil
	}
	var scratch [pools]placement.Pool
	v := p.view(w, info, scratch[:])
	return statusOf(v.verdict())
}

// statusOf is the framework's word for a verdict.
func statusOf(v placement.Verdict) *fwk.Status {
	switch {
	case v == placement.Fits:
		return nil
	case v.Resolvable():
		return fwk.NewStatus(fwk.Unschedulable, v.String())
	default:
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, v.String())
	}
}

// PostFilter changes nothing. It says in the pod's event what was wanted and what
// the nodes lack, and remembers the pod for the hints.
func (p *Plugin) PostFilter(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	w := p.wanted(state, pod)
	if w == nil {
		if inventory.UsesDevices(pod) {
			p.waiting.add(turnedDown{pod: pod, reason: p.reasonBefore(state, pod)})
		}
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	nodes, err := p.handle.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return nil, fwk.AsStatus(fmt.Errorf("listing the nodes to explain where pod %s fits: %w", klog.KObj(pod), err))
	}
	said := explain(w, p.catalog.snapshotOf(p.names, nodes))
	p.waiting.add(turnedDown{pod: pod, asks: w, reason: said.reason})
	return nil, fwk.NewStatus(fwk.Unschedulable, said.text+w.contradiction(p.names))
}

// reasonBefore is why a pod with devices was turned down before it was known what it
// wants: by this plugin, or by another one whose turn came first.
func (p *Plugin) reasonBefore(state fwk.CycleState, pod *corev1.Pod) string {
	if c := p.running(state, pod); c != nil && c.invalid {
		return reasonInvalid
	}
	return reasonOthers
}

// running is the cycle of that attempt, or nil when it is not the one that runs.
func (p *Plugin) running(state fwk.CycleState, pod *corev1.Pod) *cycle {
	if c := p.current.Load(); c != nil && c.pod == pod && c.state == state {
		return c
	}
	return nil
}

// PreScore looks for the pod's mates. It skips the scores of pods without devices
// when they may go anywhere.
func (p *Plugin) PreScore(_ context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) *fwk.Status {
	w := p.wanted(state, pod)
	if w == nil {
		// Pods whose devices come by claims go where the devices are.
		if !p.args.KeepOthersOffAcceleratorNodes || len(pod.Spec.ResourceClaims) > 0 {
			return fwk.NewStatus(fwk.Skip)
		}
		return nil
	}
	if found := p.matesOf(pod, w.resource, nodes); found != nil {
		beside := *w
		beside.mates = found
		state.Write(Name, &beside)
		p.current.Store(&cycle{state: state, pod: pod, asks: &beside})
	}
	return nil
}

// Score is the capacity model's score of the node: a key that NormalizeScore ranks.
// For a pod without devices it only tells nodes with devices from the others.
func (p *Plugin) Score(_ context.Context, state fwk.CycleState, pod *corev1.Pod, info fwk.NodeInfo) (int64, *fwk.Status) {
	w := p.wanted(state, pod)
	if w == nil {
		if hasDevices(info) {
			return -1, nil
		}
		return 0, nil
	}
	var scratch [pools]placement.Pool
	v := p.view(w, info, scratch[:])
	return w.table.Score(&v.node, v.shape, v.tier(), w.mates[v.node.Name]), nil
}

// ScoreExtensions is the plugin itself.
func (p *Plugin) ScoreExtensions() fwk.ScoreExtensions { return p }

// NormalizeScore turns keys into ranks.
func (p *Plugin) NormalizeScore(_ context.Context, _ fwk.CycleState, _ *corev1.Pod, scores fwk.NodeScoreList) *fwk.Status {
	rank(scores)
	return nil
}

// wanted is what the pod wants, or nil for a pod without devices.
func (p *Plugin) wanted(state fwk.CycleState, pod *corev1.Pod) *preFilterState {
	if c := p.running(state, pod); c != nil {
		return c.asks
	}
	// A preemption asks with a copy of the state, in the background also about an
	// earlier pod; and another plugin may have turned the pod down before this one saw
	// it.
	data, err := state.Read(Name)
	if err != nil {
		return nil
	}
	w, _ := data.(*preFilterState)
	return w
}

// hasDevices says whether the node offers accelerators of any kind.
func hasDevices(info fwk.NodeInfo) bool {
	for resource, count := range info.GetAllocatable().GetScalarResources() {
		if count > 0 && inventory.IsDevice(resource) {
			return true
		}
	}
	return false
}

// argsOf checks the arguments' type.
func argsOf(arguments runtime.Object) (*config.AcceleratorPlacementArgs, error) {
	args, ok := arguments.(*config.AcceleratorPlacementArgs)
	if !ok {
		return nil, fmt.Errorf("the arguments of %s are %T and not AcceleratorPlacementArgs: check pluginConfig", Name, arguments)
	}
	return args, nil
}
