package settings

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
)

// Locals are what namespaces say for themselves: ConfigMaps of their own, and whether they
// are left alone. Only objects of the known names are asked for, so that the Role can name
// them. A nil *Locals is that of a manager in which namespaces have no say. But for Start,
// all of it belongs to the goroutine of the loop.
type Locals struct {
	// home is the namespace of the manager, whose ConfigMaps are not local.
	home   string
	teller teller
	kinds  []localKind
	// named are the ConfigMaps of each name, and namespaces the Namespaces; that one is nil
	// where one namespace alone is watched, which then has its say in any case.
	named      map[string]toolscache.Store
	namespaces toolscache.Store
	informers  []toolscache.SharedIndexInformer

	// known is what was understood last of each namespace, and from which version of what.
	known map[string]*local
}

// local is what one namespace says.
type local struct {
	config.Local
	// versions and entries are those of the ConfigMap that counts, by kind.
	versions map[string]string
	entries  map[string]int
}

// localKind is one kind of settings that namespaces may have.
type localKind struct {
	what  string
	names []string
	// use puts the data of a ConfigMap, nil for none, into what the namespace says.
	use func(l *config.Local, namespace string, data map[string]string) ([]string, error)
}

func localKinds() []localKind {
	return []localKind{
		{"saturation", config.LocalSaturationConfigMaps(), func(l *config.Local, namespace string, data map[string]string) ([]string, error) {
			return takeLocal(&l.Saturation, config.ParseLocalSaturation, namespace, data)
		}},
		{kindScaleToZero, config.LocalScaleToZeroConfigMaps(), func(l *config.Local, namespace string, data map[string]string) ([]string, error) {
			return takeLocal(&l.ScaleToZero, config.ParseLocalScaleToZero, namespace, data)
		}},
	}
}

func takeLocal[T any](to **T, parse func(string, map[string]string) (T, []string, error), namespace string, data map[string]string) ([]string, error) {
	if data == nil {
		*to = nil
		return nil, nil
	}
	parsed, warnings, err := parse(namespace, data)
	if err == nil {
		*to = &parsed
	}
	return warnings, err
}

// NewLocals makes the informers for a manager that watches the namespace, or all when that is
// empty. What is wrong with a ConfigMap is told as component; changed is called when something
// may have changed.
func NewLocals(mgr ctrl.Manager, component, home, watched string, changed func()) (*Locals, error) {
	api, err := corev1client.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making a client for the ConfigMaps of namespaces: %w", err)
	}
	from, l := api.RESTClient(), emptyLocals(home, newTeller(mgr.GetEventRecorder(component), nil))
	for _, name := range config.LocalConfigMaps() {
		store, err := l.watch(from, "configmaps", watched, name, &corev1.ConfigMap{}, changed)
		if err != nil {
			return nil, err
		}
		l.named[name] = store
	}
	if watched == "" {
		l.namespaces, err = l.watch(from, "namespaces", "", "", &corev1.Namespace{}, changed)
	}
	return l, err
}

func emptyLocals(home string, teller teller) *Locals {
	return &Locals{
		home: home, teller: teller, kinds: localKinds(),
		named: map[string]toolscache.Store{}, known: map[string]*local{},
	}
}

// watch makes an informer of the objects of one name, or of all when it is empty.
func (l *Locals) watch(from toolscache.Getter, resource, namespace, name string, object client.Object, changed func()) (toolscache.Store, error) {
	selector := fields.Everything()
	if name != "" {
		selector = fields.OneTermEqualSelector(metav1.ObjectNameField, name)
	}
	informer := toolscache.NewSharedIndexInformer(toolscache.NewListWatchFromClient(from, resource, namespace, selector), object, 0, toolscache.Indexers{})
	one := func(any) { changed() }
	handler := toolscache.ResourceEventHandlerFuncs{AddFunc: one, DeleteFunc: one, UpdateFunc: func(_, _ any) { changed() }}
	if _, err := informer.AddEventHandler(handler); err != nil {
		return nil, fmt.Errorf("watching %s for what namespaces say for themselves: %w", resource, err)
	}
	if err := informer.SetTransform(cache.TransformStripManagedFields()); err != nil {
		return nil, fmt.Errorf("watching %s for what namespaces say for themselves: %w", resource, err)
	}
	// One that is refused says so in the conditions, and is asked for again.
	if err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *toolscache.Reflector, err error) {
		klog.FromContext(ctx).V(2).Info("The ConfigMaps in the namespaces of models could not be watched", "resource", resource, "name", name, "err", err)
	}); err != nil {
		return nil, fmt.Errorf("watching %s for what namespaces say for themselves: %w", resource, err)
	}
	l.informers = append(l.informers, informer)
	return informer.GetStore(), nil
}

// NeedLeaderElection lets every replica follow, so that a new leader knows.
func (l *Locals) NeedLeaderElection() bool { return false }

// Start watches until the context ends.
func (l *Locals) Start(ctx context.Context) error {
	var group sync.WaitGroup
	for _, informer := range l.informers {
		group.Go(func() { informer.RunWithContext(ctx) })
	}
	group.Wait()
	return nil
}

// Wait returns when everything was read once, or with the context.
func (l *Locals) Wait(ctx context.Context) {
	if l != nil {
		toolscache.WaitForCacheSync(ctx.Done(), l.synced)
	}
}

func (l *Locals) synced() bool {
	return !slices.ContainsFunc(l.informers, func(i toolscache.SharedIndexInformer) bool { return !i.HasSynced() })
}

// Excludes reports whether a namespace is left alone.
func (l *Locals) Excludes(namespace string) bool {
	n := l.namespace(namespace)
	return n != nil && n.Annotations[v1alpha1.AnnotationExclude] == "true"
}

// namespace is nil where it is not known.
func (l *Locals) namespace(name string) *corev1.Namespace {
	if l == nil || l.namespaces == nil {
		return nil
	}
	object, _, _ := l.namespaces.GetByKey(name)
	n, _ := object.(*corev1.Namespace)
	return n
}

// Read is what those namespaces say. It also reads those with LabelConfigEnabled, so that what
// is wrong there is told before there is a variant.
func (l *Locals) Read(ctx context.Context, namespaces iter.Seq[string]) map[string]config.Local {
	if l == nil {
		return nil
	}
	counts := l.enabled()
	for namespace := range namespaces {
		counts[namespace] = true
	}
	delete(counts, l.home)
	said := map[string]config.Local{}
	for _, namespace := range slices.Sorted(maps.Keys(counts)) {
		of := l.known[namespace]
		if of == nil {
			of = &local{versions: map[string]string{}, entries: map[string]int{}}
			l.known[namespace] = of
		}
		for _, kind := range l.kinds {
			l.follow(ctx, namespace, kind, of)
		}
		said[namespace] = of.Local
	}
	maps.DeleteFunc(l.known, func(namespace string, _ *local) bool { return !counts[namespace] })
	return said
}

// enabled are the namespaces with LabelConfigEnabled that are not left alone.
func (l *Locals) enabled() map[string]bool {
	enabled := map[string]bool{}
	if l.namespaces == nil {
		return enabled
	}
	for _, object := range l.namespaces.List() {
		if n, ok := object.(*corev1.Namespace); ok && n.Labels[v1alpha1.LabelConfigEnabled] == "true" && !l.Excludes(n.Name) {
			enabled[n.Name] = true
		}
	}
	return enabled
}

// follow puts one ConfigMap of a namespace into force. One that cannot be used changes
// nothing, and an event on it says why.
func (l *Locals) follow(ctx context.Context, namespace string, kind localKind, of *local) {
	// Of the names, the first counts that has any entry.
	object, _ := l.teller.first(kind.names, func(name string) (*corev1.ConfigMap, error) {
		found, _, err := l.named[name].GetByKey(namespace + "/" + name)
		if object, ok := found.(*corev1.ConfigMap); ok && len(object.Data)+len(object.BinaryData) > 0 {
			return object, nil
		}
		return nil, err
	})
	version := ""
	if object != nil {
		version = versionOf(object)
	}
	if of.versions[kind.what] == version {
		return
	}
	of.versions[kind.what] = version
	log := klog.FromContext(ctx).WithValues("namespace", namespace)
	if object != nil {
		log = log.WithValues("configMap", object.Name)
	}
	data, err := config.Entries(object)
	if err == nil {
		var warnings []string
		warnings, err = kind.use(&of.Local, namespace, data)
		warn(log, warnings)
	}
	if _, understood := of.entries[kind.what]; err != nil {
		if l.teller.refuse(log, object, kind.what, understood, err) {
			of.ScaleToZero = new(config.NoneSleeps())
		}
		return
	}
	log.Info("Updated "+kind.what+" config", "oldEntries", of.entries[kind.what], "newEntries", len(data))
	of.entries[kind.what] = len(data)
}

// Unread says what is not known of a namespace that may have a say; missing names the
// permissions that lack. Empty means nothing.
func (l *Locals) Unread(namespace, missing string) string {
	if l == nil || missing == "" && l.synced() || namespace == l.home {
		return ""
	}
	return fmt.Sprintf("what namespace %s says for itself is not known, and the settings beside the manager count: %s",
		namespace, cmp.Or(missing, "they could not be read yet, see the log of the manager"))
}
