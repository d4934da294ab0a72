package api_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// each verb as kubectl has it: the request that a person makes.
var requests = map[string]func(context.Context, dynamic.ResourceInterface) error{
	"get": func(ctx context.Context, o dynamic.ResourceInterface) error {
		_, err := o.Get(ctx, "of-people", metav1.GetOptions{})
		return err
	},
	"list": func(ctx context.Context, o dynamic.ResourceInterface) error {
		_, err := o.List(ctx, metav1.ListOptions{})
		return err
	},
	"watch": func(ctx context.Context, o dynamic.ResourceInterface) error {
		changes, err := o.Watch(ctx, metav1.ListOptions{})
		if err == nil {
			changes.Stop()
		}
		return err
	},
	"patch": func(ctx context.Context, o dynamic.ResourceInterface) error {
		_, err := o.Patch(ctx, "of-people", types.MergePatchType, []byte(`{"spec":{"maxReplicas":3}}`), metav1.PatchOptions{})
		return err
	},
	"update": func(ctx context.Context, o dynamic.ResourceInterface) error {
		object, err := objects.Get(ctx, "of-people", metav1.GetOptions{})
		if err == nil {
			_, err = o.Update(ctx, object, metav1.UpdateOptions{})
		}
		return err
	},
	// What goes is not what the other requests need.
	"create": func(ctx context.Context, o dynamic.ResourceInterface) error {
		object, err := objects.Get(ctx, "of-people", metav1.GetOptions{})
		if err == nil {
			object.SetName("of-people-too")
			object.SetResourceVersion("")
			_, err = o.Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		}
		return err
	},
	"delete": func(ctx context.Context, o dynamic.ResourceInterface) error {
		return o.Delete(ctx, "of-people", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	},
	"deletecollection": func(ctx context.Context, o dynamic.ResourceInterface) error {
		return o.DeleteCollection(ctx, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}, metav1.ListOptions{})
	},
}

// TestPeopleNeedEveryRightOfTheirRoles makes a request for each right, which only that right
// lets through, and finds no right without one.
func TestPeopleNeedEveryRightOfTheirRoles(t *testing.T) {
	object := variant(t, "modelID: m\nscaleTargetRef: {name: m}")
	object.SetName("of-people")
	object.SetGenerateName("")
	_, err := create(t, object)
	require.NoError(t, err)
	client, err := kubernetes.NewForConfig(cluster.Config())
	require.NoError(t, err)
	ours := v1alpha1.GroupVersion.WithResource(v1alpha1.Resource)

	roles := rolesOfPeople(t)
	require.Len(t, roles, 2)
	for _, role := range roles {
		t.Run(role.Name, func(t *testing.T) {
			require.Len(t, role.Rules, 1)
			assert.Equal(t, []string{ours.Group}, role.Rules[0].APIGroups)
			assert.Equal(t, []string{ours.Resource}, role.Rules[0].Resources)
			_, err := client.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{GenerateName: role.Name + "-"},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: role.Name}},
			}, metav1.CreateOptions{})
			require.NoError(t, err)
			config := cluster.Config()
			config.Impersonate = rest.ImpersonationConfig{UserName: role.Name}
			people, err := dynamic.NewForConfig(config)
			require.NoError(t, err)
			theirs := people.Resource(ours).Namespace(namespace)
			require.NoError(t, wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
				return requests["get"](ctx, theirs) == nil, nil
			}), "the binding counts")
			assert.Subset(t, slices.Collect(maps.Keys(requests)), role.Rules[0].Verbs, "a right that nobody needs")
			for verb, request := range requests {
				err := request(t.Context(), theirs)
				if slices.Contains(role.Rules[0].Verbs, verb) {
					assert.NoError(t, err, verb)
				} else {
					assert.True(t, apierrors.IsForbidden(err), "%s: %v", verb, err)
				}
			}
		})
	}
}

// rolesOfPeople are the ClusterRoles for people.
func rolesOfPeople(t *testing.T) (roles []rbacv1.ClusterRole) {
	t.Helper()
	text, err := os.ReadFile(manifests + "/rbac/user-roles.yaml")
	require.NoError(t, err)
	for decoder := yaml.NewYAMLOrJSONDecoder(bufio.NewReader(bytes.NewReader(text)), 4096); ; {
		var role rbacv1.ClusterRole
		err := decoder.Decode(&role)
		if errors.Is(err, io.EOF) {
			return roles
		}
		require.NoError(t, err)
		roles = append(roles, role)
	}
}
