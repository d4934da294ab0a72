package localcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
)

// fieldManager owns what Apply writes.
const fieldManager = "localcluster"

// establishDeadline bounds how long the API server may take to serve a new kind.
const establishDeadline = 30 * time.Second

var (
	definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	namespaceKind  = schema.GroupKind{Kind: "Namespace"}
)

// document is one object of a manifest and where it was read.
type document struct {
	object *unstructured.Unstructured
	path   string
}

// Apply writes every object of the files, and of the YAML and JSON files in the directories, by server-side
// apply, as `kubectl apply --server-side -R -f` does: definitions of custom resources first, waited for until
// they are served, then namespaces, then the rest in the order of the paths.
func (c *Cluster) Apply(ctx context.Context, paths ...string) error {
	return c.applyChanged(ctx, func(*unstructured.Unstructured) error { return nil }, paths...)
}

// applyChanged is Apply with a change of every object before.
func (c *Cluster) applyChanged(ctx context.Context, change func(*unstructured.Unstructured) error, paths ...string) error {
	documents, err := readDocuments(paths)
	if err != nil || len(documents) == 0 {
		return err
	}
	for _, one := range documents {
		if err := change(one.object); err != nil {
			return fmt.Errorf("change %s %s of %s: %w", one.object.GetKind(), one.object.GetName(), one.path, err)
		}
	}
	applier, err := c.newApplier()
	if err != nil {
		return err
	}
	slices.SortStableFunc(documents, func(a, b document) int { return rank(a.object) - rank(b.object) })
	definitions, _ := slices.BinarySearchFunc(documents, 1, func(d document, r int) int { return rank(d.object) - r })
	for _, one := range documents[:definitions] {
		if err := applier.apply(ctx, one); err != nil {
			return err
		}
	}
	for _, one := range documents[:definitions] {
		if err := applier.awaitEstablished(ctx, one); err != nil {
			return err
		}
	}
	for _, one := range documents[definitions:] {
		if err := applier.apply(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

func rank(object *unstructured.Unstructured) int {
	switch object.GroupVersionKind().GroupKind() {
	case definitionKind:
		return 0
	case namespaceKind:
		return 1
	default:
		return 2
	}
}

func readDocuments(paths []string) ([]document, error) {
	var documents []document
	for _, path := range paths {
		err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			extension := filepath.Ext(file)
			if entry.IsDir() || file != path && !slices.Contains([]string{".yaml", ".yml", ".json"}, extension) {
				return nil
			}
			more, err := readFile(file)
			documents = append(documents, more...)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read the manifests of %s: %w", path, err)
		}
	}
	return documents, nil
}

func readFile(path string) ([]document, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	var documents []document
	decoder := yaml.NewYAMLOrJSONDecoder(file, 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(object); errors.Is(err, io.EOF) {
			return documents, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		switch {
		case len(object.Object) == 0: // nothing between two separators
		case object.IsList():
			err := object.EachListItem(func(item runtime.Object) error {
				documents = append(documents, document{item.(*unstructured.Unstructured), path})
				return nil
			})
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
		default:
			documents = append(documents, document{object, path})
		}
	}
}

type applier struct {
	client dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

func (c *Cluster) newApplier() (*applier, error) {
	client, err := dynamic.NewForConfig(c.admin)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	served, err := discovery.NewDiscoveryClientForConfig(c.admin)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return &applier{client, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(served))}, nil
}

func (a *applier) apply(ctx context.Context, one document) error {
	kind, name := one.object.GroupVersionKind(), one.object.GetName()
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return fmt.Errorf("apply %s %s of %s: %w", kind.Kind, name, one.path, err)
	}
	var into dynamic.ResourceInterface = a.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		namespace := one.object.GetNamespace()
		if namespace == "" {
			namespace = metav1.NamespaceDefault
		}
		into = a.client.Resource(mapping.Resource).Namespace(namespace)
	}
	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
	if _, err := into.Apply(ctx, name, one.object, options); err != nil {
		return fmt.Errorf("apply %s %s of %s: %w", kind.Kind, name, one.path, err)
	}
	return nil
}

// awaitEstablished waits until the kind of a definition is served and discovery lists it.
func (a *applier) awaitEstablished(ctx context.Context, one document) error {
	ctx, cancel := context.WithTimeout(ctx, establishDeadline)
	defer cancel()
	ticker := time.NewTicker(readyInterval)
	defer ticker.Stop()
	for {
		established, err := a.established(ctx, one.object)
		if err == nil && established {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the definition %s of %s is not established (%w, %w)", one.object.GetName(), one.path, ctx.Err(), err)
		case <-ticker.C:
		}
	}
}

func (a *applier) established(ctx context.Context, definition *unstructured.Unstructured) (bool, error) {
	mapping, err := a.mapper.RESTMapping(definitionKind)
	if err != nil {
		return false, err
	}
	now, err := a.client.Resource(mapping.Resource).Get(ctx, definition.GetName(), metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	conditions, _, err := unstructured.NestedSlice(now.Object, "status", "conditions")
	if err != nil {
		return false, err
	}
	isEstablished := slices.ContainsFunc(conditions, func(one any) bool {
		condition, _ := one.(map[string]any)
		return condition["type"] == "Established" && condition["status"] == "True"
	})
	if !isEstablished {
		return false, nil
	}
	group, _, _ := unstructured.NestedString(now.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(now.Object, "spec", "names", "kind")
	a.mapper.Reset()
	if _, err := a.mapper.RESTMapping(schema.GroupKind{Group: group, Kind: kind}); err != nil {
		return false, err
	}
	return true, nil
}
