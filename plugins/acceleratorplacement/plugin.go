package acceleratorplacement

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/config"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// Name is the plugin's name in a scheduler's configuration.
const Name = "AcceleratorPlacement"

// firstList is how long the plugin's start waits for the first list of the variants.
// When the API server takes longer, pods with devices wait and scheduling starts.
const firstList = 5 * time.Second

// Plugin implements the extension points.
type Plugin struct {
	handle   fwk.Handle
	args     config.AcceleratorPlacementArgs
	names    inventory.Names
	owners   owners
	variants *variants

	// current is what the pod of the running scheduling cycle wants. It spares the
	// cycle state's look-up, which allocates, for every node.
	current atomic.Pointer[want]
	// scheduling is set once pods come by, and so the queue exists.
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

// New makes the plugin from its arguments, config.AcceleratorPlacementArgs. It
// reads the variants through an informer of its own, because the scheduler's waits
// for its informers to sync and the CRD may not be installed.
func New(ctx context.Context, arguments runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	args, ok := arguments.(*config.AcceleratorPlacementArgs)
	if !ok {
		return nil, fmt.Errorf("the arguments of %s are %T and not AcceleratorPlacementArgs: check pluginConfig", Name, arguments)
	}
	p := &Plugin{handle: handle, args: *args, owners: listOwners(handle.SharedInformerFactory())}
	variants, err := watchVariants(handle.KubeConfig(), p.variantChanged)
	if err != nil {
		return nil, fmt.Errorf("watching VariantAutoscaling objects: %w", err)
	}
	p.variants = variants
	variants.start(klog.NewContext(ctx, klog.FromContext(ctx).WithName(Name)), firstList)
	return p, nil
}

// Name is the plugin's name.
func (p *Plugin) Name() string { return Name }

// PreFilter finds out what the pod wants and narrows the nodes to those with the
// variant's accelerator. They are never narrowed by what is free, so that
// preemption can still free it.
func (p *Plugin) PreFilter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	p.scheduling.Store(true)
	p.current.Store(&want{pod: pod})
	if !inventory.UsesDevices(pod) {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	takes, err := inventory.PodTakes(pod)
	if err != nil {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	}
	w, status := p.wantOf(ctx, pod, takes)
	if !status.IsSuccess() {
		return nil, status
	}
	state.Write(Name, w)
	p.current.Store(w)
	if !w.name.Known() {
		return nil, nil
	}
	return &fwk.PreFilterResult{NodeNames: p.candidates(w, nodes)}, nil
}

// PreFilterExtensions is nil: a want says nothing about the pods on a node.
func (p *Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Filter is the capacity model's verdict on the node as it is handed in.
func (p *Plugin) Filter(_ context.Context, state fwk.CycleState, pod *corev1.Pod, info fwk.NodeInfo) *fwk.Status {
	w := p.wanted(state, pod)
	if w == nil {
		return nil
	}
	node := p.view(w, info)
	return statusOf(node.Verdict(w.on(&node)))
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
// the nodes lack.
func (p *Plugin) PostFilter(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	w := p.wanted(state, pod)
	if w == nil {
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	nodes, err := p.handle.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return nil, fwk.AsStatus(fmt.Errorf("listing the nodes to explain where pod %s fits: %w", klog.KObj(pod), err))
	}
	return nil, fwk.NewStatus(fwk.Unschedulable, p.explain(w, pod, nodes).String())
}

// PreScore skips the scores of pods without devices when they may go anywhere.
func (p *Plugin) PreScore(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) *fwk.Status {
	if p.wanted(state, pod) == nil && !p.args.KeepOthersOffAcceleratorNodes {
		return fwk.NewStatus(fwk.Skip)
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
	node := p.view(w, info)
	shape := w.on(&node)
	return w.outlooks.table(shape.Accelerator).Score(&node, shape, 0, 0), nil
}

// ScoreExtensions is the plugin itself.
func (p *Plugin) ScoreExtensions() fwk.ScoreExtensions { return p }

// NormalizeScore turns keys into ranks.
func (p *Plugin) NormalizeScore(_ context.Context, _ fwk.CycleState, _ *corev1.Pod, scores fwk.NodeScoreList) *fwk.Status {
	rank(scores)
	return nil
}

// wanted is what the pod wants, or nil for a pod without devices.
func (p *Plugin) wanted(state fwk.CycleState, pod *corev1.Pod) *want {
	if w := p.current.Load(); w != nil && w.pod == pod {
		if w.resource == "" {
			return nil
		}
		return w
	}
	// A preemption in the background asks about an earlier pod.
	data, err := state.Read(Name)
	if err != nil {
		return nil
	}
	w, _ := data.(*want)
	return w
}
