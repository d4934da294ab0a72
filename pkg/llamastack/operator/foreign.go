package operator

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// AnnotationAllowedNamespaces is on a ConfigMap that servers of other namespaces may read: it
// names these namespaces, separated by commas, or is *. Whoever may write the ConfigMap decides,
// and not who names it.
const AnnotationAllowedNamespaces = "llamastack.io/allowed-namespaces"

// forbiddenError is that a server names a ConfigMap of another namespace that allows it nothing.
type forbiddenError struct{ error }

// readConfigMap reads a ConfigMap that a field of an object names. The operator reads every
// namespace, and the author of the object may not. So a ConfigMap of another namespace that is
// missing, or that does not name the namespace of the object, gives one and the same error.
func (o *operator) readConfigMap(ctx context.Context, reader string, key types.NamespacedName, field string) (*corev1.ConfigMap, error) {
	found := &corev1.ConfigMap{}
	err := o.api.Get(ctx, key, found)
	foreign := key.Namespace != reader
	switch {
	case foreign && (apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || err == nil && !allows(found, reader)):
		return nil, forbiddenError{fmt.Errorf(
			"the ConfigMap %s of %s is in another namespace, and either it is missing or it does not allow the namespace %s to read it: add the annotation %s: %s to it, or name a ConfigMap of the namespace %s",
			key, field, reader, AnnotationAllowedNamespaces, reader, reader)}
	case err != nil:
		return nil, fmt.Errorf("reading the ConfigMap %s of %s: %w", key, field, err)
	}
	return found, nil
}

// allows says whether a ConfigMap lets the servers of a namespace read it.
func allows(configMap *corev1.ConfigMap, namespace string) bool {
	for name := range strings.SplitSeq(configMap.Annotations[AnnotationAllowedNamespaces], ",") {
		if name = strings.TrimSpace(name); name == "*" || name == namespace {
			return true
		}
	}
	return false
}

// isForbidden says whether an error is about a ConfigMap of another namespace.
func isForbidden(err error) bool {
	var forbidden forbiddenError
	return errors.As(err, &forbidden)
}
