package acceleratorplacement

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// byTarget is the index of the variants by what they scale.
const byTarget = "target"

// variants are the VariantAutoscaling objects, as far as the API server serves
// them.
type variants struct {
	informer cache.SharedIndexInformer
	source   *source
	// overdue is set when the first answer has been waited for in vain.
	overdue atomic.Bool
	// synced reports whether all events of the first list are behind us.
	synced func() bool
	// changed is called for every variant whose pods may now fit elsewhere, and with
	// nil when that is so for the pods of all.
	changed func(*v1alpha1.VariantAutoscaling)
	// expected is called when what is still expected may have changed.
	expected func()
}

// sourceOf lists and watches all variants, and decodes them one by one: one that does not fit
// the Go type has no target, and stops no other.
func sourceOf(base *rest.Config) (cache.ListerWatcher, error) {
	client, err := dynamic.NewForConfig(base)
	if err != nil {
		return nil, err
	}
	objects := client.Resource(v1alpha1.GroupVersion.WithResource(v1alpha1.Resource))
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			stored, err := objects.List(ctx, options)
			if err != nil {
				return nil, err
			}
			return v1alpha1.DecodeList(stored), nil
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			stored, err := objects.Watch(ctx, options)
			if err != nil {
				return nil, err
			}
			return v1alpha1.DecodeWatch(stored), nil
		},
	}, nil
}

func newVariants(from cache.ListerWatcher, every time.Duration, changed func(*v1alpha1.VariantAutoscaling), expected func()) (*variants, error) {
	v := &variants{changed: changed, expected: expected}
	v.source = newSource(from, every, v.accessChanged)
	v.informer = cache.NewSharedIndexInformer(v.source, &v1alpha1.VariantAutoscaling{}, 0, cache.Indexers{byTarget: indexByTarget})
	if err := v.informer.SetTransform(slim); err != nil {
		return nil, err
	}
	handler, err := v.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { v.event(nil, object) },
		UpdateFunc: func(before, after any) { v.event(before, after) },
		DeleteFunc: func(object any) { v.event(object, nil) },
	})
	if err != nil {
		return nil, err
	}
	v.synced = handler.HasSynced
	return v, nil
}

// slim drops what nobody here reads.
func slim(object any) (any, error) {
	if v, ok := object.(*v1alpha1.VariantAutoscaling); ok {
		v.ManagedFields, v.Annotations = nil, nil
		v.Status = v1alpha1.VariantAutoscalingStatus{
			CurrentAlloc: v.Status.CurrentAlloc, DesiredOptimizedAlloc: v.Status.DesiredOptimizedAlloc, Placement: v.Status.Placement,
		}
	}
	return object, nil
}

func indexByTarget(object any) ([]string, error) {
	v, ok := object.(*v1alpha1.VariantAutoscaling)
	if !ok {
		return nil, nil
	}
	of := targetOf(v)
	if of.kind.Empty() {
		// The object's own conditions tell its user; it has no pods that we could find.
		return nil, nil
	}
	return []string{of.key()}, nil
}

// targetOf is what the variant scales.
func targetOf(v *v1alpha1.VariantAutoscaling) target {
	return target{namespace: v.Namespace, kind: kindOf(v), name: v.Spec.ScaleTargetRef.Name}
}

func (t target) key() string {
	return t.namespace + "/" + t.kind.Group + "/" + t.kind.Kind + "/" + t.name
}

// start runs the informer until the context ends, and waits for its first answer,
// but not longer than the patience. Pods with devices wait longer, until the limit.
func (v *variants) start(ctx context.Context, patience, limit time.Duration) {
	go v.informer.RunWithContext(ctx)
	if v.await(ctx, v.known, patience) {
		return
	}
	klog.FromContext(ctx).Info("The VariantAutoscaling objects were not read yet; pods with devices wait", "waited", patience, "limit", limit)
	go v.late(ctx, limit-patience)
}

// await waits for the condition, but not longer than so long.
func (v *variants) await(ctx context.Context, condition func() bool, limit time.Duration) bool {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return cache.WaitForCacheSync(limited.Done(), condition)
}

// late lets the pods go without variants after the time given: an API server that
// cannot list these objects must not stop every pod with devices. When they come
// after all, whatever waits is tried again.
func (v *variants) late(ctx context.Context, limit time.Duration) {
	if v.await(ctx, v.known, limit) || ctx.Err() != nil {
		return
	}
	logger := klog.FromContext(ctx).WithName(Name)
	v.overdue.Store(true)
	logger.Error(nil, "The VariantAutoscaling objects were still not read; pods with devices are placed without them until they are. See what the API server answers to a list of "+
		v1alpha1.Resource+"."+v1alpha1.GroupName)
	v.changed(nil)
	if cache.WaitForCacheSync(ctx.Done(), v.synced) {
		logger.Info("The VariantAutoscaling objects were read; pods with devices are placed by them")
		v.overdue.Store(false)
		v.changed(nil)
		v.expected()
	}
}

// known reports whether pods can be placed by what is known: the objects were read
// once, or are not to be had, or have been waited for long enough.
func (v *variants) known() bool { return v.synced() || v.source.none() || v.overdue.Load() }

// current reports whether what is known of the variants is what the API server has.
func (v *variants) current() bool {
	now := v.source.now()
	return now == absent || now == served && v.synced()
}

// accessChanged tells a CRD that is not there (it may come later, and may go again)
// from objects that may not be read. Without the CRD no pod has a variant, whatever
// was read before; a refusal leaves what was read.
func (v *variants) accessChanged(ctx context.Context, now access, err error) {
	logger := klog.FromContext(ctx).WithName(Name)
	const grant = "Grant list and watch on " + v1alpha1.Resource + "." + v1alpha1.GroupName
	switch now {
	case served:
		logger.Info("The VariantAutoscaling objects can be read")
	case absent:
		logger.Info("The VariantAutoscaling CRD is not installed; pods with devices are placed without it")
	case denied:
		logger.Error(err, "VariantAutoscaling objects may not be read; pods with devices are placed without them. "+grant)
	case kept:
		logger.Error(err, "VariantAutoscaling objects may not be read any more; the last known ones are used. "+grant)
		return
	}
	v.changed(nil)
	v.expected()
}

// event takes note of a change that can matter to pods. Most updates are of the
// status, several times a minute.
func (v *variants) event(before, after any) {
	old, _ := variantIn(before)
	now, _ := variantIn(after)
	if old != nil && now != nil && sameExpected(old, now) {
		return
	}
	v.expected()
	if old != nil && now != nil && sameForPods(old, now) {
		return
	}
	if now != nil {
		v.changed(now)
	}
	if old != nil && (now == nil || old.Spec.ScaleTargetRef != now.Spec.ScaleTargetRef) {
		v.changed(old)
	}
}

func variantIn(object any) (*v1alpha1.VariantAutoscaling, bool) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	v, ok := object.(*v1alpha1.VariantAutoscaling)
	return v, ok
}

// sameForPods reports whether both say the same about where pods go.
func sameForPods(a, b *v1alpha1.VariantAutoscaling) bool {
	found := func(v *v1alpha1.VariantAutoscaling) (string, capacity.Device) {
		last, device := "", capacity.Device{}
		if s := observed(v); s != nil {
			device = s.Device()
		} else if now := v.Status.CurrentAlloc; now != nil && v.Spec.Accelerator == "" && v.Labels[v1alpha1.LabelAcceleratorName] == "" {
			// What was found last only counts where nothing else says it.
			last = now.Accelerator
		}
		return last, device
	}
	lastA, deviceA := found(a)
	lastB, deviceB := found(b)
	return lastA == lastB && deviceA == deviceB &&
		a.Labels[v1alpha1.LabelAcceleratorName] == b.Labels[v1alpha1.LabelAcceleratorName] &&
		equality.Semantic.DeepEqual(a.Spec, b.Spec)
}

// sameExpected reports whether both say the same about where pods go and how many of
// them are wanted.
func sameExpected(a, b *v1alpha1.VariantAutoscaling) bool {
	return equality.Semantic.DeepEqual(observed(a), observed(b)) && replicasWanted(a) == replicasWanted(b) && sameForPods(a, b)
}

// list are all variants.
func (v *variants) list() []*v1alpha1.VariantAutoscaling {
	if v.source.none() {
		return nil
	}
	var found []*v1alpha1.VariantAutoscaling
	for _, object := range v.informer.GetIndexer().List() {
		if variant, ok := variantIn(object); ok {
			found = append(found, variant)
		}
	}
	return found
}

// of is the variant that scales one of the owners, the nearest first. Of two that
// claim the same target the older counts, until their user has settled it.
func (v *variants) of(owners []target) *v1alpha1.VariantAutoscaling {
	if v.source.none() {
		return nil
	}
	for _, owner := range owners {
		objects, err := v.informer.GetIndexer().ByIndex(byTarget, owner.key())
		if err != nil {
			continue
		}
		var first *v1alpha1.VariantAutoscaling
		for _, object := range objects {
			if variant, ok := variantIn(object); ok && (first == nil || v1alpha1.Older(variant, first)) {
				first = variant
			}
		}
		if first != nil {
			return first
		}
	}
	return nil
}

// kindOf is the kind of a variant's target; the zero kind is of no object.
func kindOf(v *v1alpha1.VariantAutoscaling) schema.GroupKind {
	gvk, err := v.Spec.ScaleTargetRef.GroupVersionKind()
	if err != nil {
		return schema.GroupKind{}
	}
	return gvk.GroupKind()
}
