package rightstest

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
)

// Right is one verb on one resource, of one object if it names one: the least that can be
// taken from a role.
type Right struct {
	// Role is the role that has it.
	Role                  string
	Verb, Group, Resource string
	// Namespace is the only one whose objects it is for; empty for all.
	Namespace string
	// Name is that of the only object; empty for all.
	Name string
}

func (r Right) String() string {
	text := fmt.Sprintf("%s: %s %s", r.Role, r.Verb, r.Resource)
	if r.Group != "" {
		text += "." + r.Group
	}
	if r.Name != "" {
		text += " " + r.Name
	}
	return text
}

// permits says whether the right lets a request through.
func (r Right) permits(request *localcluster.Request) bool {
	resource := request.Resource
	if request.Subresource != "" {
		resource += "/" + request.Subresource
	}
	return r.Verb == request.Verb && r.Group == request.Group && r.Resource == resource &&
		(r.Name == "" || r.Name == request.Name) && (r.Namespace == "" || r.Namespace == request.Namespace)
}

// Proof is that an account has no right too many.
type Proof struct {
	Cluster *localcluster.Cluster
	// Namespace and Account name the service account, of whose namespace the cluster must
	// note every request (Options.AuditGroup).
	Namespace, Account string
	// Files are the manifests with its roles, and Roles the names of those that are judged;
	// empty: all.
	Files, Roles []string
	// Beside are manifests with roles that it has too, and that are not judged here.
	Beside []string
	// Elsewhere are the rights whose need the requests do not show, or not always, with the
	// reason.
	Elsewhere map[string]string
}

// Group is the group of users that the cluster must note.
func (p Proof) Group() string { return "system:serviceaccounts:" + p.Namespace }

// Check names the rights that no request needed, when all tests of a package have passed.
// Where only some of them ran, it says nothing.
func (p Proof) Check() error {
	if filter := flag.Lookup("test.run"); filter != nil && filter.Value.String() != "" {
		return nil
	}
	rights, err := of(p.Files...)
	if err != nil {
		return err
	}
	rights = slices.DeleteFunc(rights, func(r Right) bool { return len(p.Roles) > 0 && !slices.Contains(p.Roles, r.Role) })
	beside, err := of(p.Beside...)
	if err != nil {
		return err
	}
	requests, err := p.Cluster.Requests()
	if err != nil {
		return fmt.Errorf("reading what %s asked for: %w", p.Account, err)
	}
	var wrong []error
	for _, r := range unused(rights, beside, requests, "system:serviceaccount:"+p.Namespace+":"+p.Account) {
		if p.Elsewhere[r.String()] == "" {
			wrong = append(wrong, fmt.Errorf("no test needs this right of %s: %v", p.Account, r))
		}
	}
	for excused := range p.Elsewhere {
		if !slices.ContainsFunc(rights, func(r Right) bool { return r.String() == excused }) {
			wrong = append(wrong, fmt.Errorf("%s has no right that needs an excuse: %s", p.Account, excused))
		}
	}
	return errors.Join(wrong...)
}

// of are the rights of the Roles and ClusterRoles of manifests. Of other objects, and of
// roles that are made of others, there are none.
func of(files ...string) ([]Right, error) {
	var all []Right
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for decoder := yaml.NewYAMLOrJSONDecoder(bufio.NewReader(bytes.NewReader(text)), 4096); ; {
			var role rbacv1.ClusterRole
			if err := decoder.Decode(&role); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			for i := range role.Rules {
				all = append(all, each(role.Namespace, role.Name, &role.Rules[i])...)
			}
		}
	}
	return all, nil
}

// each are the rights of a rule of a role, which a Role has in its namespace alone.
func each(namespace, role string, rule *rbacv1.PolicyRule) (all []Right) {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				for _, name := range names {
					all = append(all, Right{Role: role, Verb: verb, Group: group, Resource: resource, Namespace: namespace, Name: name})
				}
			}
		}
	}
	return all
}

// unused are the rights without which no request of a user would have been refused: either
// no request needed them, or another right, which may be one beside them, permits the same.
func unused(rights, beside []Right, requests []localcluster.Request, user string) (found []Right) {
	var asked []localcluster.Request
	for _, r := range requests {
		if r.User != user || r.Code == http.StatusForbidden {
			continue
		}
		asked = append(asked, r)
		if r.Verb == "patch" && r.Code == http.StatusCreated {
			// What is applied and not there is created, for which the API server wants both rights.
			r.Verb = "create"
			asked = append(asked, r)
		}
	}
	for i, r := range rights {
		others := slices.Concat(rights[:i], rights[i+1:], beside)
		needed := slices.ContainsFunc(asked, func(request localcluster.Request) bool {
			return r.permits(&request) && !slices.ContainsFunc(others, func(o Right) bool { return o.permits(&request) })
		})
		if !needed {
			found = append(found, r)
		}
	}
	return found
}
