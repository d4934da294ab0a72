package rightstest

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
)

const manifest = `
kind: ClusterRole
metadata: {name: reader}
rules:
- {apiGroups: [""], resources: [pods], verbs: [list, watch]}
- {apiGroups: [apps], resources: [deployments/scale], verbs: [get, update]}
---
kind: ClusterRoleBinding
metadata: {name: reader}
---
kind: Role
metadata: {name: keeper, namespace: home}
rules:
- {apiGroups: [""], resources: [secrets], resourceNames: [ours], verbs: [get]}
- {apiGroups: [""], resources: [pods], verbs: [list, get]}
`

func TestRightsThatNothingNeeds(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "rights.yaml")
	require.NoError(t, os.WriteFile(file, []byte(manifest), 0o600))
	rights, err := of(file)
	require.NoError(t, err)
	require.Len(t, rights, 7)

	const us = "us"
	all := []localcluster.Request{
		{User: us, Verb: "watch", Resource: "pods"},
		{User: us, Verb: "list", Resource: "pods", Namespace: "home"},
		{User: us, Verb: "get", Resource: "pods", Namespace: "home", Code: http.StatusNotFound},
		{User: us, Verb: "get", Group: "apps", Resource: "deployments", Subresource: "scale"},
		{User: us, Verb: "update", Group: "apps", Resource: "deployments", Subresource: "scale"},
		{User: us, Verb: "get", Resource: "secrets", Namespace: "home", Name: "ours"},
	}
	names := func(rights []Right) (found []string) {
		for _, r := range rights {
			found = append(found, r.String())
		}
		return found
	}
	said := func(requests ...localcluster.Request) []string { return names(unused(rights, nil, requests, us)) }
	twice := []string{"reader: list pods", "keeper: list pods"}
	assert.Equal(t, twice, said(all...), "without either of them the other one suffices")
	for name, c := range map[string]struct {
		instead localcluster.Request
		want    string
	}{
		"somebody else asked":   {localcluster.Request{User: "them", Verb: "get", Resource: "secrets", Namespace: "home", Name: "ours"}, "keeper: get secrets ours"},
		"of another object":     {localcluster.Request{User: us, Verb: "get", Resource: "secrets", Namespace: "home", Name: "theirs"}, "keeper: get secrets ours"},
		"in another namespace":  {localcluster.Request{User: us, Verb: "get", Resource: "secrets", Namespace: "away", Name: "ours"}, "keeper: get secrets ours"},
		"it was refused anyway": {localcluster.Request{User: us, Verb: "get", Resource: "secrets", Namespace: "home", Name: "ours", Code: http.StatusForbidden}, "keeper: get secrets ours"},
	} {
		assert.ElementsMatch(t, append([]string{c.want}, twice...), said(append(all[:5:5], c.instead)...), name)
	}
	assert.Contains(t, said(all[0], all[4]), "reader: get deployments/scale.apps")
	assert.Equal(t, []string{"keeper: create secrets"}, names(unused(
		[]Right{{Role: "keeper", Verb: "patch", Resource: "secrets"}, {Role: "keeper", Verb: "create", Resource: "secrets"}}, nil,
		[]localcluster.Request{{User: us, Verb: "patch", Resource: "secrets", Code: http.StatusOK}}, us)), "a patch of what is there")
	assert.Empty(t, unused(
		[]Right{{Role: "keeper", Verb: "patch", Resource: "secrets"}, {Role: "keeper", Verb: "create", Resource: "secrets"}}, nil,
		[]localcluster.Request{{User: us, Verb: "patch", Resource: "secrets", Code: http.StatusCreated}}, us), "and of what is not")
	assert.Len(t, unused(rights, rights, all, us), len(rights), "others permit all of it")
	away := localcluster.Request{User: us, Verb: "list", Resource: "pods", Namespace: "away"}
	assert.Equal(t, []string{"keeper: list pods"}, said(append(all, away)...), "a Role is for its namespace alone")
}
