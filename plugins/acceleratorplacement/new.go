package acceleratorplacement

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/config"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/config/validation"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// New makes the plugin from its arguments, config.AcceleratorPlacementArgs. What it
// needs beyond the scheduler's own caches it reads through informers of its own,
// because the scheduler waits for its informers to sync, and the CRD may not be
// installed.
func New(ctx context.Context, arguments runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	args, err := argsOf(arguments)
	if err != nil {
		return nil, err
	}
	if err := validation.AcceleratorPlacementArgs(field.NewPath("pluginConfig", Name), args); err != nil {
		return nil, fmt.Errorf("reading the arguments of %s: %w", Name, err)
	}
	registerMetrics()
	p := newPlugin(args, handle, handle.ClientSet())
	source, err := sourceOf(handle.KubeConfig())
	if err != nil {
		return nil, fmt.Errorf("making a client of VariantAutoscaling objects: %w", err)
	}
	if p.variants, err = newVariants(source, askAgain, p.variantChanged, p.soon); err != nil {
		return nil, fmt.Errorf("watching VariantAutoscaling objects: %w", err)
	}
	failed, err := p.newFailed(failedPods(handle.ClientSet()))
	if err != nil {
		return nil, fmt.Errorf("watching failed pods: %w", err)
	}
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName(Name))
	if args.AcceleratorNames != nil {
		names, err := p.newNames(ctx, configMap(handle.ClientSet(), args.AcceleratorNames), args.AcceleratorNames)
		if err != nil {
			return nil, fmt.Errorf("watching the ConfigMap of accelerator names: %w", err)
		}
		names.start(ctx, firstList)
	}
	go failed.RunWithContext(ctx)
	p.rules.start(ctx)
	cluster.watch(p.profile, p.variants.current)
	p.variants.start(ctx, firstList, listLimit)
	go p.afterSync(ctx)
	return p, nil
}

func newPlugin(args *config.AcceleratorPlacementArgs, handle fwk.Handle, client kubernetes.Interface) *Plugin {
	factory := handle.SharedInformerFactory()
	return &Plugin{
		handle: handle, args: *args, profile: handle.ProfileName(),
		names:   &inventory.Names{},
		nodes:   factory.Core().V1().Nodes().Lister(),
		owners:  listOwners(factory),
		rules:   newRules(client),
		waiting: newWaiting(),
		restock: make(chan struct{}, 1),
	}
}

// afterSync takes stock from when the scheduler's caches are filled until the context
// ends.
func (p *Plugin) afterSync(ctx context.Context) {
	core := p.handle.SharedInformerFactory().Core().V1()
	if cache.WaitForCacheSync(ctx.Done(), core.Nodes().Informer().HasSynced, core.Pods().Informer().HasSynced) {
		p.watchStock(ctx)
	}
}
