package manager_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"
)

const root = "../../.."

// atHome gives the manager's account in another namespace what it has in its own.
func atHome(t *testing.T, namespace string) {
	t.Helper()
	role := read(t, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: roles + "home"}})
	create(t, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: role.Name}, Rules: role.Rules},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: role.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: home, Name: account}},
		})
}

// statement is one of what a published guide says, and how it is held against the manager:
// by what follows on a block of it, by a test of its own, or as a deviation on purpose.
type statement struct {
	Says string `json:"says"`

	// Object is a block of the guide, which is written as it stands, over what was written
	// before.
	Object string `json:"object"`
	// Logs are lines of the manager that follow, and Silent are some that do not. Event is the
	// reason of an event on the object, and Shows are reasons of its conditions.
	Logs   []string          `json:"logs"`
	Silent []string          `json:"silent"`
	Event  string            `json:"event"`
	Shows  map[string]string `json:"shows"`
	// Status are fields that follow: currentAlloc.accelerator and the like.
	Status map[string]any `json:"status"`
	// Refused is what the API server says against the block.
	Refused string `json:"refused"`

	// Tried are tests that try it: FOLDER:NAME.
	Tried []string `json:"tried"`
	// Deviation begins a row of docs/deviations.md.
	Deviation string `json:"deviation"`
}

// guide is one guide as it is tried: a manager with a namespace of its own, which has the
// ConfigMaps that the guide names.
type guide struct {
	instance, namespace string
	log                 string
}

// startGuide starts a manager that is told only where its ConfigMap is.
func startGuide(t *testing.T, name string) *guide {
	t.Helper()
	serveModels(t)
	g := &guide{instance: "guide-" + name, namespace: space(t)}
	atHome(t, g.namespace)
	return g
}

func (g *guide) start(t *testing.T) {
	t.Helper()
	kubeconfig, err := cluster.KubeconfigFor(t.Context(), home, account)
	require.NoError(t, err)
	health, err := cluster.FreeAddress()
	require.NoError(t, err)
	process := localcluster.Process{
		Name: g.instance, Path: filepath.Join(programs, "manager"),
		Args: []string{"--kubeconfig=" + kubeconfig},
		// What the Deployment of the guide sets beside the ConfigMap.
		Env:   []string{"POD_NAMESPACE=" + g.namespace, "CONTROLLER_INSTANCE=" + g.instance, "PROBE_ADDR=" + health, "PROMETHEUS_ALLOW_HTTP=true"},
		Ready: localcluster.Healthy("http://" + health + "/readyz"),
	}
	g.log = filepath.Join(cluster.Logs(), g.instance+".log")
	require.NoError(t, cluster.StartProcess(t.Context(), process))
	t.Cleanup(func() { assert.NoError(t, cluster.Terminate(g.instance)) })
}

// statements are those of a guide. Each says how it is tried.
func statements(t *testing.T, name string) []statement {
	t.Helper()
	text, err := os.ReadFile("testdata/guide/" + name + ".yaml")
	require.NoError(t, err)
	var all []statement
	require.NoError(t, yaml.UnmarshalStrict(text, &all))
	require.NotEmpty(t, all)
	return all
}

// hold tries every statement of a guide, in its order. The manager starts after the first
// block, which is its ConfigMap.
func (g *guide) hold(t *testing.T, all []statement) {
	t.Helper()
	deviations, err := os.ReadFile(root + "/docs/deviations.md")
	require.NoError(t, err)
	for _, s := range all {
		ways := 0
		for _, way := range []bool{s.Object != "", len(s.Tried) > 0, s.Deviation != ""} {
			if way {
				ways++
			}
		}
		require.Equal(t, 1, ways, "%q is tried in one way", s.Says)
		ok := t.Run(s.Says, func(t *testing.T) {
			switch {
			case s.Deviation != "":
				assert.Contains(t, string(deviations), "\n| "+s.Deviation)
			case len(s.Tried) > 0:
				for _, test := range s.Tried {
					exists(t, test)
				}
			default:
				g.try(t, s)
			}
		})
		if !ok && s.Object != "" {
			return // the blocks that follow stand on this one
		}
		if g.log == "" && s.Object != "" {
			g.start(t)
		}
	}
}

// try writes a block and waits for what follows.
func (g *guide) try(t *testing.T, s statement) {
	t.Helper()
	object := &unstructured.Unstructured{}
	text := strings.NewReplacer("${PROMETHEUS}", prometheus.URL, "${INSTANCE}", g.instance).Replace(s.Object)
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &object.Object))
	object.SetNamespace(g.namespace)
	from := int64(0)
	if g.log != "" {
		info, err := os.Stat(g.log)
		require.NoError(t, err)
		from = info.Size()
	}
	err := put(t.Context(), object)
	if s.Refused != "" {
		require.ErrorContains(t, err, s.Refused)
		return
	}
	require.NoError(t, err)
	logged := func() string {
		text, err := os.ReadFile(g.log)
		require.NoError(t, err)
		return string(text[from:])
	}
	for _, line := range s.Logs {
		conditiontest.Eventually(t, patience, "the line "+line, func() (string, bool) { l := logged(); return l, strings.Contains(l, line) })
	}
	if s.Event != "" {
		conditiontest.Eventually(t, patience, "event "+s.Event, func() (string, bool) {
			reasons := told(t, object)
			return fmt.Sprint(reasons), count(reasons, s.Event) > 0
		})
	}
	for condition, reason := range s.Shows {
		v := &v1alpha1.VariantAutoscaling{ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace, Name: object.GetName()}}
		shows(t, patience, v, condition, reason)
	}
	for field, want := range s.Status {
		conditiontest.Eventually(t, patience, fmt.Sprint("status.", field, " ", want), func() (string, bool) {
			now := object.DeepCopy()
			require.NoError(t, api.Get(t.Context(), client.ObjectKeyFromObject(object), now))
			found, _, err := unstructured.NestedFieldNoCopy(now.Object, append([]string{"status"}, strings.Split(field, ".")...)...)
			return fmt.Sprint(found, err), fmt.Sprint(found) == fmt.Sprint(want)
		})
	}
	for _, line := range s.Silent {
		assert.NotContains(t, logged(), line)
	}
}

// put creates an object, or writes it over the one that is there.
func put(ctx context.Context, object *unstructured.Unstructured) error {
	err := api.Create(ctx, object)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	now := object.DeepCopy()
	if err := api.Get(ctx, client.ObjectKeyFromObject(object), now); err != nil {
		return err
	}
	object.SetResourceVersion(now.GetResourceVersion())
	return api.Update(ctx, object)
}

// exists fails unless there is a test of that name: FOLDER:NAME.
func exists(t *testing.T, test string) {
	t.Helper()
	folder, name, ok := strings.Cut(test, ":")
	require.True(t, ok, "%s: write FOLDER:NAME", test)
	files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
	require.NoError(t, err)
	require.NotEmpty(t, files, "folder %s has no tests", folder)
	for _, file := range files {
		parsed, err := parser.ParseFile(gotoken.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, declared := range parsed.Decls {
			if f, ok := declared.(*ast.FuncDecl); ok && f.Name.Name == name {
				return
			}
		}
	}
	t.Errorf("there is no test %s in %s", name, folder)
}

func TestTheConfigurationGuide(t *testing.T) {
	g := startGuide(t, "configuration")
	create(t, deployment(g.namespace, "vllm-llama", 1))
	g.hold(t, statements(t, "configuration"))
}

func TestTheMigrationGuide(t *testing.T) {
	g := startGuide(t, "migration")
	for _, name := range []string{"llama-h100", "llama-a100"} {
		create(t, deployment(g.namespace, name, 1))
	}
	g.hold(t, statements(t, "migration"))
}

func TestTheChartReference(t *testing.T) {
	g := startGuide(t, "chart")
	create(t, deployment(g.namespace, "ms-workload-autoscaler-llm-d-modelservice-decode", 1))
	g.hold(t, statements(t, "chart"))
}
