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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// rights are what the folders of manifests give to whom, as the table of docs/operate/security.md shows it.
type rights struct {
	roles    []ofFolder[rbacv1.ClusterRole]
	bindings []ofFolder[rbacv1.ClusterRoleBinding]
}

type ofFolder[T any] struct {
	folder string
	object T
}

// home is the manager's own namespace.
const home = "workload-variant-autoscaler-system"

func readRights(t *testing.T, manifests string) (r rights) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(manifests, "*", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		folder := filepath.Base(filepath.Dir(file))
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
			one, err := reader.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, file)
			var kind metav1.TypeMeta
			require.NoError(t, yaml.Unmarshal(one, &kind), file)
			switch kind.Kind {
			case "ClusterRole", "Role":
				role := ofFolder[rbacv1.ClusterRole]{folder: folder}
				require.NoError(t, yaml.UnmarshalStrict(one, &role.object), file)
				r.roles = append(r.roles, role)
			case "ClusterRoleBinding", "RoleBinding":
				binding := ofFolder[rbacv1.ClusterRoleBinding]{folder: folder}
				require.NoError(t, yaml.UnmarshalStrict(one, &binding.object), file)
				r.bindings = append(r.bindings, binding)
			}
		}
	}
	return r
}

// holder is somebody who has a role, where, and by which folder.
type holder struct{ folder, who, where string }

// holders have the role by the bindings of one folder.
func (r rights) holders(ref rbacv1.RoleRef, folder string) (all []holder) {
	for _, b := range r.bindings {
		if b.folder != folder || b.object.RoleRef.Kind != ref.Kind || b.object.RoleRef.Name != ref.Name {
			continue
		}
		where := "the cluster"
		switch {
		case b.object.Kind == "RoleBinding" && b.object.Namespace == home:
			where = "its own namespace"
		case b.object.Kind == "RoleBinding":
			where = "`" + b.object.Namespace + "`"
		}
		for _, subject := range b.object.Subjects {
			who := "the account `" + subject.Name + "`"
			switch subject.Name {
			case "workload-variant-autoscaler-controller-manager":
				who = "the manager"
			case "variant-scheduler":
				who = "the scheduler"
			}
			all = append(all, holder{folder, who, where})
		}
	}
	return all
}

// byLabel are those who have a role that no binding beside it gives to anybody.
func byLabel(folder string, role *rbacv1.ClusterRole) holder {
	if role.Labels["llmd.ai/aggregate-to-workload-variant-autoscaler"] == "true" {
		return holder{folder, "the manager", "the cluster"}
	}
	var people []string
	for _, standard := range []string{"view", "edit", "admin"} {
		if role.Labels["rbac.authorization.k8s.io/aggregate-to-"+standard] == "true" {
			people = append(people, "`"+standard+"`")
		}
	}
	if len(people) > 0 {
		return holder{folder, "people with " + strings.Join(people, " or "), "their namespaces"}
	}
	return holder{folder, "whom you bind to `" + role.Name + "`", "the cluster"}
}

// table is that of the page: one row for all that somebody may do with the same verbs by the same folder.
func (r rights) table() string {
	rows := map[string][]string{}
	add := func(h holder, verbs string, what ...string) {
		row := fmt.Sprintf("| `%s` | %s | %s | %s |", h.folder, h.who, h.where, verbs)
		rows[row] = append(rows[row], what...)
	}
	shipped := map[string][]rbacv1.PolicyRule{}
	for i := range r.roles {
		role := &r.roles[i].object
		shipped[role.Kind+" "+role.Name] = role.Rules
		if role.AggregationRule == nil && len(r.holders(rbacv1.RoleRef{Kind: role.Kind, Name: role.Name}, r.roles[i].folder)) == 0 {
			for _, rule := range role.Rules {
				add(byLabel(r.roles[i].folder, role), strings.Join(rule.Verbs, ", "), whatOf(rule)...)
			}
		}
	}
	for _, b := range r.bindings {
		ref := b.object.RoleRef
		rules, ours := shipped[ref.Kind+" "+ref.Name]
		for _, h := range r.holders(ref, b.folder) {
			for _, rule := range rules {
				add(h, strings.Join(rule.Verbs, ", "), whatOf(rule)...)
			}
			if !ours {
				add(h, "what the cluster's own role says", "`"+ref.Name+"`")
			}
		}
	}
	lines := []string{"| folder | who | where | may | what |", "|---|---|---|---|---|"}
	// What every installation has comes first.
	always := func(row string) bool { return strings.HasPrefix(row, "| `rbac` |") }
	sorted := slices.Sorted(maps.Keys(rows))
	sorted = slices.Concat(slices.DeleteFunc(slices.Clone(sorted), func(row string) bool { return !always(row) }), slices.DeleteFunc(sorted, always))
	for _, row := range sorted {
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
	want := readRights(t, "../../manifests").table()
	assert.Contains(t, string(text), "\n\n"+want+"\n\n", "write this table:\n%s", want)
}
