package acceleratorplacement

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/config"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// configMap lists and watches one ConfigMap alone.
func configMap(client kubernetes.Interface, r *config.ConfigMapReference) cache.ListerWatcher {
	only := "metadata.name=" + r.Name
	configMaps := client.CoreV1().ConfigMaps(r.Namespace)
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = only
			return configMaps.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = only
			return configMaps.Watch(ctx, options)
		},
	}, client)
}

// newNames prepares an informer that takes the names of accelerators over from the
// ConfigMap, also while it changes. Names that cannot be read leave those that were
// there, and so does a ConfigMap that may not be read any more; one that is gone says
// nothing.
func (p *Plugin) newNames(ctx context.Context, from cache.ListerWatcher, r *config.ConfigMapReference) (*namesSource, error) {
	logger := klog.FromContext(ctx).WithValues("configMap", klog.KRef(r.Namespace, r.Name))
	served := newSource(from, askAgain, func(_ context.Context, now access, err error) {
		const grant = "Grant list and watch on this ConfigMap"
		switch now {
		case denied, absent:
			logger.Error(err, "The ConfigMap of accelerator names may not be read; the built-in names are used. "+grant)
		case kept:
			logger.Error(err, "The ConfigMap of accelerator names may not be read any more; the last known names are used. "+grant)
		case served:
			logger.Info("The ConfigMap of accelerator names can be read")
		}
	})
	informer := cache.NewSharedIndexInformer(served, &corev1.ConfigMap{}, 0, nil)
	handler, err := informer.AddEventHandler(cache.FilteringResourceEventHandler{
		FilterFunc: func(object any) bool {
			found, ok := object.(*corev1.ConfigMap)
			return !ok || found.Namespace == r.Namespace && found.Name == r.Name
		},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { p.takeNames(logger, object) },
			UpdateFunc: func(_, object any) { p.takeNames(logger, object) },
			DeleteFunc: func(any) { p.setNames(logger, nil) },
		},
	})
	if err != nil {
		return nil, err
	}
	return &namesSource{informer: informer, source: served, synced: handler.HasSynced}, nil
}

// namesSource is where the names come from.
type namesSource struct {
	informer cache.SharedIndexInformer
	source   *source
	// synced reports whether the names of the first list are taken over.
	synced func() bool
}

// start runs the informer until the context ends, and waits for its first answer, but
// not longer than the patience: until then the names that are built in count, by
// which a pod may go to another type of device than the ConfigMap says.
func (n *namesSource) start(ctx context.Context, patience time.Duration) {
	go n.informer.RunWithContext(ctx)
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if !cache.WaitForCacheSync(limited.Done(), func() bool { return n.synced() || n.source.none() }) {
		klog.FromContext(ctx).Info("The ConfigMap of accelerator names was not read yet; the built-in names are used until it is", "waited", patience)
	}
}

func (p *Plugin) takeNames(logger klog.Logger, object any) {
	found, ok := object.(*corev1.ConfigMap)
	if !ok {
		return
	}
	overrides, err := inventory.ParseOverrides(found.Data)
	if err != nil {
		logger.Error(err, "The ConfigMap of accelerator names cannot be used; the last valid names stay: correct it")
		return
	}
	p.setNames(logger, overrides)
}

// setNames takes the names over and wakes whoever may now fit.
func (p *Plugin) setNames(logger klog.Logger, overrides inventory.Overrides) {
	p.names.SetOverrides(overrides)
	logger.V(2).Info("Updated the accelerator names", "names", len(overrides))
	p.wakeAll(logger)
	p.soon()
}
