package admission_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
)

// With the webhooks come the rights to keep one Secret and to put its authority into two
// named objects, and to read labels of namespaces.
func TestTheRightsThatComeWithTheWebhooks(t *testing.T) {
	const configurations = "admissionregistration.k8s.io"
	for name, c := range map[string]struct {
		what            authorizationv1.ResourceAttributes
		allowed, denied []string
	}{
		"its Secret": {
			authorizationv1.ResourceAttributes{Namespace: home, Resource: "secrets", Name: secret},
			[]string{"get", "update"}, []string{"create", "delete", "patch"},
		},
		"other Secrets beside it":   {authorizationv1.ResourceAttributes{Namespace: home, Resource: "secrets", Name: "other"}, nil, []string{"get", "create", "update", "delete"}},
		"Secrets elsewhere":         {authorizationv1.ResourceAttributes{Namespace: "default", Resource: "secrets"}, nil, []string{"get", "list", "watch", "update"}},
		"its validation":            {authorizationv1.ResourceAttributes{Group: configurations, Resource: "validatingwebhookconfigurations", Name: "workload-variant-autoscaler-variants"}, []string{"list", "watch", "update"}, []string{"get", "create", "delete"}},
		"its filling in":            {authorizationv1.ResourceAttributes{Group: configurations, Resource: "mutatingwebhookconfigurations", Name: "workload-variant-autoscaler-pods"}, []string{"list", "watch", "update"}, []string{"get", "create", "delete"}},
		"the validation of others":  {authorizationv1.ResourceAttributes{Group: configurations, Resource: "validatingwebhookconfigurations", Name: "other"}, nil, []string{"get", "create", "update", "delete"}},
		"the filling in of others":  {authorizationv1.ResourceAttributes{Group: configurations, Resource: "mutatingwebhookconfigurations", Name: "other"}, nil, []string{"get", "create", "update", "delete"}},
		"namespaces":                {authorizationv1.ResourceAttributes{Resource: "namespaces"}, []string{"list", "watch"}, []string{"create", "update", "patch", "delete"}},
		"pods, which it only fills": {authorizationv1.ResourceAttributes{Namespace: "default", Resource: "pods"}, nil, []string{"create", "update", "delete"}},
	} {
		t.Run(name, func(t *testing.T) {
			may := func(verb string) bool {
				what := c.what
				what.Verb = verb
				review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
					User: "system:serviceaccount:" + home + ":" + account, ResourceAttributes: &what,
				}}
				require.NoError(t, api.Create(t.Context(), review))
				return review.Status.Allowed
			}
			for _, verb := range c.allowed {
				assert.True(t, may(verb), "%s must be allowed", verb)
			}
			for _, verb := range c.denied {
				assert.False(t, may(verb), "%s must be denied", verb)
			}
		})
	}
}
