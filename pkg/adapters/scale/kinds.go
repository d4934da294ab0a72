package scale

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"golang.org/x/sync/singleflight"
)

// lookAgain is how often the API server is asked for its kinds while somebody names one that it did
// not serve. However many objects name such kinds, it is one look for all of them; and so long after
// its CRD, a kind is found.
const lookAgain = 10 * time.Second

// served is what the API server serves of one kind.
type served struct {
	resource   schema.GroupVersionResource
	namespaced bool
	// scale is the kind of the scale subresource; empty where there is none.
	scale schema.GroupVersionKind
}

// kinds are all kinds that the API server serves, as one look found them. A look is made where a kind
// is asked for that is not among them, and never twice within lookAgain.
type kinds struct {
	discover func() ([]*metav1.APIResourceList, error)
	now      func() time.Time
	looks    singleflight.Group

	mu sync.Mutex
	// looked is when the last look began; err is its error, if it found nothing.
	looked time.Time
	err    error
	known  map[schema.GroupVersionKind]served
	// preferred are the versions by which the scale client asks.
	preferred map[schema.GroupResource]served
	// unread are groups that did not answer: an APIService whose server is away.
	unread map[schema.GroupVersion]error
}

func newKinds(client discovery.DiscoveryInterface) *kinds {
	return &kinds{now: time.Now, discover: func() ([]*metav1.APIResourceList, error) {
		_, lists, err := client.ServerGroupsAndResources()
		return lists, err
	}}
}

// find is what is served of a kind. The error is a NoKindMatchError where the API server serves no
// such kind; any other one may pass.
func (k *kinds) find(ctx context.Context, gvk schema.GroupVersionKind) (served, error) {
	if found, ok, _ := k.lookup(gvk); ok {
		return found, nil
	}
	return k.anew(ctx, gvk)
}

// anew is find after a new look, if the last one is not from just now.
func (k *kinds) anew(ctx context.Context, gvk schema.GroupVersionKind) (served, error) {
	if err := k.look(ctx); err != nil {
		return served{}, err
	}
	found, ok, err := k.lookup(gvk)
	switch {
	case ok:
		return found, nil
	case err != nil:
		return served{}, fmt.Errorf("the API server could not say which kinds of %s it serves: %w", gvk.GroupVersion(), err)
	}
	return served{}, &apimeta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
}

// lookup is find in what the last look found.
func (k *kinds) lookup(gvk schema.GroupVersionKind) (found served, ok bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	found, ok = k.known[gvk]
	return found, ok, k.unread[gvk.GroupVersion()]
}

// look asks the API server for its kinds, unless that was done just now, and waits for the answer as
// long as the context allows. Discovery itself knows no context.
func (k *kinds) look(ctx context.Context) error {
	if recent, err := k.recent(); recent {
		return err
	}
	answer := k.looks.DoChan("", func() (any, error) {
		// Another look may have ended since.
		if recent, err := k.recent(); recent {
			return nil, err
		}
		return nil, k.ask()
	})
	select {
	case got := <-answer:
		return got.Err
	case <-ctx.Done():
		return fmt.Errorf("the API server does not say which kinds it serves: %w", context.Cause(ctx))
	}
}

// recent reports whether a look was made just now, and its error.
func (k *kinds) recent() (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.looked.IsZero() && k.now().Sub(k.looked) < lookAgain, k.err
}

// ask is one look. What it finds replaces what was known, except for groups that did not answer.
func (k *kinds) ask() error {
	began := k.now()
	lists, err := k.discover()
	var partly *discovery.ErrGroupDiscoveryFailed
	k.mu.Lock()
	defer k.mu.Unlock()
	k.looked, k.err = began, nil
	switch {
	case errors.As(err, &partly):
		k.unread = partly.Groups
	case err != nil:
		k.err = err
		return err
	default:
		k.unread = nil
	}
	known, preferred := map[schema.GroupVersionKind]served{}, map[schema.GroupResource]served{}
	for gvk, was := range k.known {
		if k.unread[gvk.GroupVersion()] != nil {
			known[gvk], preferred[was.resource.GroupResource()] = was, was
		}
	}
	for _, list := range lists {
		read(list, known, preferred)
	}
	k.known, k.preferred = known, preferred
	return nil
}

// read adds the kinds of one group and version. The API server lists the preferred version of a group first.
func read(list *metav1.APIResourceList, known map[schema.GroupVersionKind]served, preferred map[schema.GroupResource]served) {
	gv, err := schema.ParseGroupVersion(list.GroupVersion)
	if err != nil {
		return
	}
	scales := map[string]schema.GroupVersionKind{}
	for _, r := range list.APIResources {
		if name, ok := strings.CutSuffix(r.Name, "/scale"); ok {
			scales[name] = schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
		}
	}
	for _, r := range list.APIResources {
		if strings.Contains(r.Name, "/") {
			continue
		}
		one := served{resource: gv.WithResource(r.Name), namespaced: r.Namespaced, scale: scales[r.Name]}
		known[gv.WithKind(r.Kind)] = one
		if _, ok := preferred[one.resource.GroupResource()]; !ok {
			preferred[one.resource.GroupResource()] = one
		}
	}
}

// byResource answers the scale client from what was found, without a look.
func (k *kinds) byResource(resource schema.GroupResource) (served, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	found, ok := k.preferred[resource]
	if !ok {
		return served{}, &apimeta.NoResourceMatchError{PartialResource: resource.WithVersion("")}
	}
	return found, nil
}

// ResourceFor implements scale.PreferredResourceMapper.
func (k *kinds) ResourceFor(resource schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	found, err := k.byResource(resource.GroupResource())
	return found.resource, err
}

// ScaleForResource implements scale.ScaleKindResolver.
func (k *kinds) ScaleForResource(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	found, err := k.byResource(resource.GroupResource())
	if err == nil && found.scale.Empty() {
		err = &apimeta.NoResourceMatchError{PartialResource: resource.GroupVersion().WithResource(resource.Resource + "/scale")}
	}
	return found.scale, err
}
