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
metadata: {name: keeper}
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
		{User: us, Verb: "list", Resource: "pods"},
		{User: us, Verb: "get", Resource: "pods", Code: http.StatusNotFound},
		{User: us, Verb: "get", Group: "apps", Resource: "deployments", Subresource: "scale"},
		{User: us, Verb: "update", Group: "apps", Resource: "deployments", Subresource: "scale"},
		{User: us, Verb: "get", Resource: "secrets", Name: "ours"},
	}
	said := func(requests ...localcluster.Request) (found []string) {
		for _, r := range unused(rights, requests, us) {
			found = append(found, r.String())
		}
		return found
	}
	twice := []string{"reader: list pods", "keeper: list pods"}
	assert.Equal(t, twice, said(all...), "without either of them the other one suffices")
	for name, c := range map[string]struct {
		instead localcluster.Request
		want    string
	}{
		"somebody else asked":   {localcluster.Request{User: "them", Verb: "get", Resource: "secrets", Name: "ours"}, "keeper: get secrets ours"},
		"of another object":     {localcluster.Request{User: us, Verb: "get", Resource: "secrets", Name: "theirs"}, "keeper: get secrets ours"},
		"it was refused anyway": {localcluster.Request{User: us, Verb: "get", Resource: "secrets", Name: "ours", Code: http.StatusForbidden}, "keeper: get secrets ours"},
	} {
		assert.ElementsMatch(t, append([]string{c.want}, twice...), said(append(all[:5:5], c.instead)...), name)
	}
	assert.Contains(t, said(all[0], all[4]), "reader: get deployments/scale.apps")
}
