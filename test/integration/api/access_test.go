package api_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

const (
	home     = "workload-variant-autoscaler-system"
	manager  = "system:serviceaccount:" + home + ":workload-variant-autoscaler-controller-manager"
	anywhere = "team"
)

// attributes read "group/resource" or "group/resource/subresource"; the core group is
// an empty word.
func attributes(t *testing.T, verb, where, what string) *authorizationv1.ResourceAttributes {
	t.Helper()
	words := strings.Split(what, "/")
	require.GreaterOrEqual(t, len(words), 2, what)
	attributes := &authorizationv1.ResourceAttributes{Namespace: where, Verb: verb, Group: words[0], Resource: words[1]}
	if len(words) > 2 {
		attributes.Subresource = words[2]
	}
	return attributes
}

// may asks the API server whether a user may do something.
func may(ctx context.Context, t *testing.T, user string, what *authorizationv1.ResourceAttributes) bool {
	t.Helper()
	client, err := kubernetes.NewForConfig(cluster.Config())
	require.NoError(t, err)
	review, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: what},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	return review.Status.Allowed
}

func TestManagerMayDoItsWorkAndNoMore(t *testing.T) {
	const read = "list watch"
	tests := map[string]struct {
		allowed, denied string
		where           string
	}{
		"llmd.ai/variantautoscalings":        {allowed: read, denied: "get create update patch delete", where: anywhere},
		"llmd.ai/variantautoscalings/status": {allowed: "patch", denied: "get update delete", where: anywhere},
		"/nodes":                             {allowed: read, denied: "get update patch delete"},
		"/nodes/status":                      {denied: "get update patch"},
		"/pods":                              {allowed: read + " get patch", denied: "create update delete", where: anywhere},
		"/pods/status":                       {denied: "get update patch", where: anywhere},
		"/pods/exec":                         {denied: "create", where: anywhere},
		"/namespaces":                        {denied: read + " get create update delete"},
		"/secrets":                           {denied: "get " + read, where: home},
		"/configmaps":                        {allowed: "get " + read, denied: "create update patch delete", where: home},
		"/configmaps in other namespaces":    {denied: "get " + read, where: anywhere},
		"/events":                            {allowed: "create", denied: "patch list delete", where: home},
		"/events in other namespaces":        {denied: "create patch", where: anywhere},
		"events.k8s.io/events":               {allowed: "create patch", denied: "list delete", where: anywhere},
		"apps/deployments":                   {allowed: read, denied: "get create update patch delete", where: anywhere},
		"apps/statefulsets":                  {allowed: read, denied: "get create update patch delete", where: anywhere},
		"apps/replicasets":                   {allowed: read, denied: "get create update patch delete", where: anywhere},
		"apps/daemonsets":                    {denied: "get " + read, where: anywhere},
		"apps/deployments/scale":             {allowed: "get update", denied: "patch", where: anywhere},
		"apps/statefulsets/scale":            {allowed: "get update", denied: "patch", where: anywhere},
		"apps/replicasets/scale":             {allowed: "get update", denied: "patch", where: anywhere},
		"leaderworkerset.x-k8s.io/leaderworkersets":                {allowed: read, denied: "get create update patch delete", where: anywhere},
		"leaderworkerset.x-k8s.io/leaderworkersets/scale":          {allowed: "get update", denied: "patch", where: anywhere},
		"autoscaling/horizontalpodautoscalers":                     {allowed: read, denied: "get create update patch delete", where: anywhere},
		"keda.sh/scaledobjects":                                    {allowed: read, denied: "get create update patch delete", where: anywhere},
		"coordination.k8s.io/leases":                               {allowed: "get create update", denied: "delete", where: home},
		"coordination.k8s.io/leases in other namespaces":           {denied: "get create update", where: anywhere},
		"authentication.k8s.io/tokenreviews":                       {allowed: "create"},
		"authorization.k8s.io/subjectaccessreviews":                {allowed: "create"},
		"rbac.authorization.k8s.io/clusterroles":                   {denied: "get list create update bind escalate"},
		"apiextensions.k8s.io/customresourcedefinitions":           {denied: "create update patch delete"},
		"argoproj.io/rollouts/scale before anybody has granted it": {denied: "get update patch", where: anywhere},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			what, _, _ := strings.Cut(name, " ")
			for _, verb := range strings.Fields(test.allowed) {
				assert.True(t, may(t.Context(), t, manager, attributes(t, verb, test.where, what)), "%s must be allowed", verb)
			}
			for _, verb := range strings.Fields(test.denied) {
				assert.False(t, may(t.Context(), t, manager, attributes(t, verb, test.where, what)), "%s must be denied", verb)
			}
		})
	}
}

func TestFurtherKindsAreGrantedByALabel(t *testing.T) {
	client, err := kubernetes.NewForConfig(cluster.Config())
	require.NoError(t, err)
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{
			Name:   "scale-widgets",
			Labels: map[string]string{"llmd.ai/aggregate-to-workload-variant-autoscaler": "true"},
		},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{"example.com"}, Resources: []string{"widgets/scale"}, Verbs: []string{"get", "update", "patch"}}},
	}
	_, err = client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, client.RbacV1().ClusterRoles().Delete(context.Background(), role.Name, metav1.DeleteOptions{}))
	})
	what := attributes(t, "update", anywhere, "example.com/widgets/scale")
	err = wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		return may(ctx, t, manager, what), nil
	})
	require.NoError(t, err, "the label grants the kind")
}

func TestPeopleGetTheRightsOfTheirRoles(t *testing.T) {
	client, err := kubernetes.NewForConfig(cluster.Config())
	require.NoError(t, err)
	tests := map[string]struct{ allowed, denied string }{
		"view":  {allowed: "get list watch", denied: "create update patch delete"},
		"edit":  {allowed: "get list watch create update patch delete"},
		"admin": {allowed: "get list watch create update patch delete"},
	}
	for role, test := range tests {
		t.Run(role, func(t *testing.T) {
			user := "user-of-" + role
			_, err := client.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{GenerateName: role + "-"},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
			}, metav1.CreateOptions{})
			require.NoError(t, err)
			for _, verb := range strings.Fields(test.allowed) {
				what := attributes(t, verb, namespace, "llmd.ai/variantautoscalings")
				err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
					return may(ctx, t, user, what), nil
				})
				require.NoError(t, err, "%s must be allowed", verb)
			}
			for _, verb := range strings.Fields(test.denied) {
				assert.False(t, may(t.Context(), t, user, attributes(t, verb, namespace, "llmd.ai/variantautoscalings")), "%s must be denied", verb)
			}
			assert.False(t, may(t.Context(), t, user, attributes(t, "update", namespace, "llmd.ai/variantautoscalings/status")), "only the manager writes status")
		})
	}
}

func TestSamplesAreAccepted(t *testing.T) {
	samples, err := filepath.Glob(manifests + "/samples/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, samples)
	for _, sample := range samples {
		t.Run(filepath.Base(sample), func(t *testing.T) {
			require.NoError(t, cluster.Apply(t.Context(), sample))
			require.NoError(t, cluster.Apply(t.Context(), sample), "a second time changes nothing")
		})
	}
}
