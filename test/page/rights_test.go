package page_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// rights is what manifests/rbac gives to whom, as the table of docs/operate/security.md shows it.
type rights struct {
	// roles are all of them, and to whom each is bound, by kind and name.
	roles []rbacv1.ClusterRole
	bound map[string]string
}

func readRights(t *testing.T, folder string) rights {
	t.Helper()
	r := rights{bound: map[string]string{}}
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for decoder := yaml.NewYAMLOrJSONDecoder(bufio.NewReader(bytes.NewReader(text)), 4096); ; {
			var object struct {
				rbacv1.ClusterRole `json:",inline"`

				RoleRef  rbacv1.RoleRef   `json:"roleRef"`
				Subjects []rbacv1.Subject `json:"subjects"`
			}
			err := decoder.Decode(&object)
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, file)
			switch object.Kind {
			case "ClusterRole", "Role":
				r.roles = append(r.roles, object.ClusterRole)
			case "ClusterRoleBinding", "RoleBinding":
				require.Len(t, object.Subjects, 1, file)
				require.Equal(t, "workload-variant-autoscaler-controller-manager", object.Subjects[0].Name, file)
				where := "the cluster"
				if object.Kind == "RoleBinding" {
					where = "its own namespace"
				}
				r.bound[object.RoleRef.Kind+" "+object.RoleRef.Name] = "the manager | " + where
			}
		}
	}
	return r
}

// who has a role, and where.
func (r rights) who(role *rbacv1.ClusterRole) string {
	if who := r.bound[role.Kind+" "+role.Name]; who != "" {
		return who
	}
	var people []string
	for _, standard := range []string{"view", "edit", "admin"} {
		if role.Labels["rbac.authorization.k8s.io/aggregate-to-"+standard] == "true" {
			people = append(people, "`"+standard+"`")
		}
	}
	if len(people) > 0 {
		return "people with " + strings.Join(people, " or ") + " | their namespaces"
	}
	return "whom you bind to `" + role.Name + "` | the cluster"
}

// table is that of the page: one row for all that somebody may do with the same verbs.
func (r rights) table() string {
	rows := map[string][]string{}
	for i := range r.roles {
		role := &r.roles[i]
		for _, rule := range role.Rules {
			row := fmt.Sprintf("| %s | %s |", r.who(role), strings.Join(rule.Verbs, ", "))
			rows[row] = append(rows[row], whatOf(rule)...)
		}
	}
	lines := []string{"| who | where | may | what |", "|---|---|---|---|"}
	for _, row := range slices.Sorted(maps.Keys(rows)) {
		slices.Sort(rows[row])
		lines = append(lines, row+" "+strings.Join(slices.Compact(rows[row]), ", ")+" |")
	}
	return strings.Join(lines, "\n")
}

func whatOf(rule rbacv1.PolicyRule) (what []string) {
	only := ""
	if len(rule.ResourceNames) > 0 {
		only = " named " + strings.Join(rule.ResourceNames, ", ")
	}
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			if group != "" {
				resource += "." + group
			}
			what = append(what, "`"+resource+"`"+only)
		}
	}
	for _, url := range rule.NonResourceURLs {
		what = append(what, "`"+url+"`")
	}
	return what
}

// The table of the page says what the roles say, and nothing else.
func TestTheTableOfRightsIsThatOfTheRoles(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/operate/security.md")
	require.NoError(t, err)
	want := readRights(t, "../../manifests/rbac").table()
	assert.Contains(t, string(text), "\n\n"+want+"\n\n", "write this table:\n%s", want)
}
