package dashboard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/cluster"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/installation"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// reader keeps up with the objects of the cluster by watches.
type reader struct {
	cache cache.Cache
	// pods and nodes say that they may be read.
	pods, nodes bool
	notes       []string
}

// newReader begins to watch what may be read. Not to be allowed to read variants is an
// error; without pods or nodes there is less to see, and the notes say what.
func newReader(ctx context.Context, api client.WithWatch, at *rest.Config, namespace string) (*reader, error) {
	if _, err := firstOf(ctx, api, &v1alpha1.VariantAutoscalingList{}, namespace); err != nil {
		return nil, cluster.Advise(err, "list", v1alpha1.Resource, namespace)
	}
	r := &reader{}
	podsOf := ""
	var err error
	if r.nodes, err = firstOf(ctx, api, &corev1.NodeList{}, ""); err != nil {
		return nil, cluster.Advise(err, "list", "nodes", "")
	} else if !r.nodes {
		r.note("nodes may not be read, so the map of nodes and devices is empty", "nodes", "")
	}
	if r.pods, err = firstOf(ctx, api, &corev1.PodList{}, ""); err != nil {
		return nil, cluster.Advise(err, "list", "pods", "")
	} else if !r.pods && namespace != "" {
		podsOf = namespace
		if r.pods, err = firstOf(ctx, api, &corev1.PodList{}, namespace); err != nil {
			return nil, cluster.Advise(err, "list", "pods", namespace)
		}
		r.note("the pods of other namespaces may not be read, so devices that they hold are shown as free", "pods", "")
	}
	if !r.pods {
		r.note("pods may not be read, so the nodes of the replicas are not known, and those that serve are told by the status of the variants", "pods", namespace)
	}
	return r, r.watch(ctx, api, at, namespace, podsOf)
}

func (r *reader) note(what, resource, namespace string) {
	scope := "--all-namespaces"
	if namespace != "" {
		scope = "--namespace " + namespace
	}
	r.notes = append(r.notes, fmt.Sprintf("%s: ask for the permission to list and watch them; \"kubectl auth can-i watch %s %s\" tells when it is there", what, resource, scope))
}

// firstOf reads one object of a list; false where that is forbidden, unless it is of the
// variants.
func firstOf(ctx context.Context, api client.Reader, list client.ObjectList, namespace string) (allowed bool, err error) {
	err = api.List(ctx, list, client.Limit(1), client.InNamespace(namespace))
	if _, variants := list.(*v1alpha1.VariantAutoscalingList); apierrors.IsForbidden(err) && !variants {
		return false, nil
	}
	return err == nil, err
}

// watch starts the watches and waits for the first listing.
func (r *reader) watch(ctx context.Context, api client.WithWatch, at *rest.Config, namespace, podsOf string) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	in := func(namespace string) cache.ByObject {
		if namespace == "" {
			return cache.ByObject{}
		}
		return cache.ByObject{Namespaces: map[string]cache.Config{namespace: {}}}
	}
	// What is listed is read and never changed.
	shared := true
	made, err := cache.New(at, cluster.EachByItself(cache.Options{
		Scheme: scheme, ReaderFailOnMissingInformer: true, DefaultTransform: cache.TransformStripManagedFields(), DefaultUnsafeDisableDeepCopy: &shared,
		ByObject: map[client.Object]cache.ByObject{&v1alpha1.VariantAutoscaling{}: in(namespace), &corev1.Pod{}: in(podsOf)},
	}, api, namespace))
	if err != nil {
		return fmt.Errorf("watching the cluster: %w", err)
	}
	r.cache = made
	objects := []client.Object{&v1alpha1.VariantAutoscaling{}}
	if r.pods {
		objects = append(objects, &corev1.Pod{})
	}
	if r.nodes {
		objects = append(objects, &corev1.Node{})
	}
	ended := make(chan error, 1)
	go func() { ended <- made.Start(ctx) }()
	for _, object := range objects {
		if _, err := made.GetInformer(ctx, object); err != nil {
			if apimeta.IsNoMatchError(err) {
				return cluster.Advise(err, "watch", v1alpha1.Resource, namespace)
			}
			return fmt.Errorf("watching the cluster: %w", err)
		}
	}
	if !made.WaitForCacheSync(ctx) {
		select {
		case err := <-ended:
			return errors.Join(err, ctx.Err())
		default:
			return ctx.Err()
		}
	}
	return nil
}

// list is what is there now.
func (r *reader) list(ctx context.Context, now time.Time) (listing, error) {
	l := listing{at: now, podsKnown: r.pods}
	var variants v1alpha1.VariantAutoscalingList
	if err := r.cache.List(ctx, &variants); err != nil {
		return l, fmt.Errorf("reading variants: %w", err)
	}
	l.variants, l.unreadable = cluster.Readable(&variants)
	var pods corev1.PodList
	if r.pods {
		if err := r.cache.List(ctx, &pods); err != nil {
			return l, fmt.Errorf("reading pods: %w", err)
		}
	}
	for i := range pods.Items {
		l.pods = append(l.pods, &pods.Items[i])
	}
	var nodes corev1.NodeList
	if r.nodes {
		if err := r.cache.List(ctx, &nodes); err != nil {
			return l, fmt.Errorf("reading nodes: %w", err)
		}
	}
	for i := range nodes.Items {
		l.nodes = append(l.nodes, &nodes.Items[i])
	}
	return l, nil
}

// readSurroundings reads prices, promises and names, as far as they may be read.
func readSurroundings(ctx context.Context, api client.Client, manager *installation.Manager, variants []*v1alpha1.VariantAutoscaling) *surroundings {
	s := &surroundings{selected: readSelectors(ctx, api, variants), notes: append([]string{}, manager.Notes...)}
	var notes []string
	s.costs, notes = manager.Prices(ctx, api)
	s.notes = append(s.notes, notes...)
	s.names, notes = manager.Names(ctx, api)
	s.notes = append(s.notes, notes...)
	for _, name := range manager.Config.ServiceClassConfigMaps() {
		var data corev1.ConfigMap
		err := api.Get(ctx, client.ObjectKey{Namespace: manager.AcceleratorNames().Namespace, Name: name}, &data)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err == nil {
			// What is only doubtful the manager says.
			s.classes, _, err = config.ParseServiceClasses(name, data.Data)
		}
		if err != nil {
			s.notes = append(s.notes, fmt.Sprintf("the SLOs in ConfigMap %s are not known: %s", name, strings.TrimSpace(err.Error())))
		}
		break
	}
	if s.names == nil {
		s.names = &inventory.Names{}
	}
	return s
}
