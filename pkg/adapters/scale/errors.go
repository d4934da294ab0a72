package scale

import (
	"fmt"
	"regexp"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	settings "llmd.ai/workload-variant-autoscaler/pkg/config"
)

// target names a scale target in errors.
type target struct {
	namespace string
	ref       autoscalingv1.CrossVersionObjectReference
}

func (t target) String() string {
	return fmt.Sprintf("%s %s/%s", t.ref.Kind, t.namespace, t.ref.Name)
}

// NotFoundError says that there is no such object. For
// k8s.io/apimachinery/pkg/api/errors it is a NotFound.
type NotFoundError struct {
	target target
	err    error
}

func (e *NotFoundError) Error() string { return fmt.Sprintf("%s: it does not exist", e.target) }

// Unwrap gives the API server's error.
func (e *NotFoundError) Unwrap() error { return e.err }

// NotScalableError says that the kind of the target cannot be scaled: the API server
// does not serve it, or not with a scale subresource.
type NotScalableError struct {
	target target
	why    string
}

func (e *NotScalableError) Error() string { return fmt.Sprintf("%s: %s", e.target, e.why) }

// NotScalable tells it from other errors without its type.
func (e *NotScalableError) NotScalable() bool { return true }

// ForbiddenError says that a permission is missing, and which.
type ForbiddenError struct {
	target target
	rule   rbacv1.PolicyRule
	err    error
}

func (e *ForbiddenError) Error() string {
	return fmt.Sprintf("%s: the permission to %s %s in API group %q is missing (scaling needs get and update): %v",
		e.target, e.rule.Verbs[0], e.rule.Resources[0], e.rule.APIGroups[0], e.err)
}

// Unwrap gives the API server's error.
func (e *ForbiddenError) Unwrap() error { return e.err }

// MissingRule is the smallest rule that would have permitted the request.
func (e *ForbiddenError) MissingRule() rbacv1.PolicyRule { return e.rule }

// DeniedError says that admission refused a request that the permissions allow: a webhook or a
// policy of the cluster.
type DeniedError struct {
	target target
	verb   string
	err    error
}

func (e *DeniedError) Error() string {
	return fmt.Sprintf("%s: the cluster's admission refuses to %s its scale: %v", e.target, e.verb, e.err)
}

// ConflictError says that somebody else changed the target after it was read. For
// k8s.io/apimachinery/pkg/api/errors it is a Conflict.
type ConflictError struct {
	target      target
	read, found int32
	replaced    bool
}

func (e *ConflictError) Error() string {
	switch {
	case e.replaced:
		return fmt.Sprintf("%s: it was deleted and created again after it was read", e.target)
	case e.read == e.found:
		return fmt.Sprintf("%s: it changes faster than it can be written", e.target)
	}
	return fmt.Sprintf("%s: somebody else changed its replicas from %d to %d", e.target, e.read, e.found)
}

// Status makes it a Conflict for the helpers of apimachinery.
func (e *ConflictError) Status() metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonConflict, Message: e.Error()}
}

// unpermitted is how the API server says that a permission is missing, whoever it asked about it.
// Admission may refuse with the same code, in any other words.
var unpermitted = regexp.MustCompile(`cannot \S+ resource `)

// explain gives an error of a request its type and names the target in it.
func (t target) explain(err error, resource schema.GroupResource, verb string) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err) && !unpermitted.MatchString(err.Error()):
		// Its code says that a permission is missing, so that is not what it answers to.
		return &DeniedError{target: t, verb: verb, err: err}
	case apierrors.IsForbidden(err):
		return &ForbiddenError{target: t, err: err, rule: rbacv1.PolicyRule{
			APIGroups: []string{resource.Group},
			Resources: []string{resource.Resource + "/scale"},
			Verbs:     []string{verb},
		}}
	case apierrors.IsNotFound(err):
		return &NotFoundError{target: t, err: err}
	}
	return fmt.Errorf("%s: %s of its scale: %w", t, verb, settings.StableError(err))
}
