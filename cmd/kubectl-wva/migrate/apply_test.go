package migrate

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/cluster"
)

// definitionOf is a CRD that holds both forms.
const definitionOf = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: variantautoscalings.llmd.ai}
spec: {versions: [{name: v1alpha1, schema: {openAPIV3Schema: {properties: {spec: {properties: {modelProfile: {}, scaleTargetRef: {}}}}}}}]}
`

const shared = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: llama, namespace: chat}
spec: {replicas: 3, selector: {matchLabels: {app: llama}}, template: {metadata: {labels: {app: llama}}, spec: {containers: [{name: server}]}}}
`

// world is a cluster that fails some writes: those for which refuse has an error.
type world struct {
	client.Client
	refuse func(verb string, dry bool) error
}

func newWorld(t *testing.T, texts ...string) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	w := &world{refuse: func(string, bool) error { return nil }}
	var objects []client.Object
	for _, text := range append(texts, definitionOf) {
		object := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(text), &object.Object))
		if object.GetKind() != "Deployment" {
			unstructured.RemoveNestedField(object.Object, "metadata", "uid")
		}
		objects = append(objects, object)
	}
	w.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if err := w.refuse("create", len((&client.CreateOptions{}).ApplyOptions(options).DryRun) > 0); err != nil {
				return err
			}
			return c.Create(ctx, object, options...)
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			if err := w.refuse("update", len((&client.UpdateOptions{}).ApplyOptions(options).DryRun) > 0); err != nil {
				return err
			}
			return c.Update(ctx, object, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if err := w.refuse("delete", len((&client.DeleteOptions{}).ApplyOptions(options).DryRun) > 0); err != nil {
				return err
			}
			return c.Delete(ctx, object, options...)
		},
	}).Build()
	return w
}

// specs are the specs of what is there, by kind and name.
func (w *world) specs(t *testing.T) map[string]any {
	t.Helper()
	all := map[string]any{}
	for _, kind := range kinds {
		if kind.Group == "keda.sh" {
			continue
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		require.NoError(t, w.List(t.Context(), list))
		for i := range list.Items {
			all[kind.Kind+" "+list.Items[i].GetName()] = list.Items[i].Object["spec"]
		}
	}
	return all
}

// apply applies what becomes of texts, with a backup in a folder.
func (w *world) apply(t *testing.T, backup string, texts ...string) (string, error) {
	t.Helper()
	given, err := readFiles([]string{"-"}, strings.NewReader(strings.Join(texts, "---\n")))
	require.NoError(t, err)
	converted, err := convert(given, true)
	require.NoError(t, err)
	var out strings.Builder
	err = (&change{api: w, out: &out, backup: backup}).apply(t.Context(), converted)
	return out.String(), err
}

func (w *world) rollback(t *testing.T, backup string) error {
	t.Helper()
	return (&change{api: w, out: io.Discard, backup: backup}).rollback(t.Context())
}

// A write that the API server refuses leaves everything as it was, in both directions.
func TestAWriteThatIsRefusedLeavesEverythingAsItWas(t *testing.T) {
	t.Parallel()
	w := newWorld(t, multi, hpa, shared)
	before, backup := w.specs(t), filepath.Join(t.TempDir(), "backup")
	w.refuse = func(verb string, _ bool) error {
		if verb == "delete" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "horizontalpodautoscalers"}, "llama-hpa", nil)
		}
		return nil
	}
	_, err := w.apply(t, backup, multi, hpa, shared)
	require.ErrorContains(t, err, "`kubectl auth can-i delete variantautoscalings --namespace chat` tells when it is there; nothing was changed")
	assert.Equal(t, before, w.specs(t))
	assert.NoDirExists(t, backup)

	refuse := w.refuse
	w.refuse = func(string, bool) error { return nil }
	_, err = w.apply(t, backup, multi, hpa, shared)
	require.NoError(t, err)
	after := w.specs(t)
	w.refuse = refuse
	require.ErrorContains(t, w.rollback(t, backup), "nothing was changed")
	assert.Equal(t, after, w.specs(t))
}

// Wherever it ends early, another run ends in the same state as one without a break, and the way
// back in that of before, once and again.
func TestAnEndBetweenTwoWrites(t *testing.T) {
	t.Parallel()
	whole := newWorld(t, multi, hpa, shared)
	before := whole.specs(t)
	writes := 0
	whole.refuse = func(_ string, dry bool) error {
		if !dry {
			writes++
		}
		return nil
	}
	_, err := whole.apply(t, filepath.Join(t.TempDir(), "backup"), multi, hpa, shared)
	require.NoError(t, err)
	after := whole.specs(t)
	require.Equal(t, 8, writes)
	for last := range writes {
		w, folder := newWorld(t, multi, hpa, shared), t.TempDir()
		left := last
		w.refuse = func(_ string, dry bool) error {
			if !dry {
				left--
			}
			if left < 0 && !dry {
				return errors.New("the end")
			}
			return nil
		}
		_, err := w.apply(t, filepath.Join(folder, "first"), multi, hpa, shared)
		require.ErrorContains(t, err, "the end")
		w.refuse = func(string, bool) error { return nil }
		if last%2 == 0 {
			_, err = w.apply(t, filepath.Join(folder, "second"), multi, hpa, shared)
			require.NoError(t, err)
			assert.Equal(t, after, w.specs(t), last)
		}
		for range 2 {
			require.NoError(t, w.rollback(t, filepath.Join(folder, "first")))
			assert.Equal(t, before, w.specs(t), last)
		}
	}
}

// replicas sets those of a Deployment.
func (w *world) replicas(t *testing.T, name string, n int64) {
	t.Helper()
	d := &unstructured.Unstructured{}
	d.SetAPIVersion("apps/v1")
	d.SetKind("Deployment")
	require.NoError(t, w.Get(t.Context(), client.ObjectKey{Namespace: "chat", Name: name}, d))
	require.NoError(t, unstructured.SetNestedField(d.Object, n, "spec", "replicas"))
	require.NoError(t, w.Update(t.Context(), d))
}

// A Deployment that serves by now is neither set to no replicas by a second run nor deleted by the way
// back.
func TestADeploymentThatServesStays(t *testing.T) {
	t.Parallel()
	w, folder := newWorld(t, multi, hpa, shared), t.TempDir()
	before := w.specs(t)
	_, err := w.apply(t, filepath.Join(folder, "first"), multi, hpa, shared)
	require.NoError(t, err)
	w.replicas(t, "llama-h100", 2)
	serving := w.specs(t)
	told, err := w.apply(t, filepath.Join(folder, "second"), multi, hpa, shared)
	require.NoError(t, err)
	assert.Contains(t, told, "there already: Deployment chat/llama-h100\n")
	assert.Equal(t, serving, w.specs(t))

	require.ErrorContains(t, w.rollback(t, filepath.Join(folder, "first")), "Deployment chat/llama-h100 has 2 replicas and would be deleted, so nothing was changed")
	assert.Equal(t, serving, w.specs(t))
	w.replicas(t, "llama-h100", 0)
	require.NoError(t, w.rollback(t, filepath.Join(folder, "first")))
	assert.Equal(t, before, w.specs(t))
}

// The backup has an autoscaler as it was when it was deleted, and not as an older file has it.
func TestTheBackupHoldsWhatIsDeleted(t *testing.T) {
	t.Parallel()
	raised := strings.Replace(hpa, "maxReplicas: 9", "maxReplicas: 50", 1)
	require.NotEqual(t, hpa, raised)
	w, backup := newWorld(t, multi, raised, shared), filepath.Join(t.TempDir(), "backup")
	before := w.specs(t)
	_, err := w.apply(t, backup, multi, hpa, shared)
	require.NoError(t, err)
	require.NoError(t, w.rollback(t, backup))
	assert.Equal(t, before, w.specs(t))
}

// A label that an object got after the backup stays, such as that of the controller instance which
// handles it.
func TestALabelThatCameLaterStays(t *testing.T) {
	t.Parallel()
	single := strings.Replace(multi, "    - {acc: H100", "    # - {acc: H100", 1)
	labelled := strings.Replace(single, "team: blue", "team: red, wva.llmd.ai/controller-instance: blue", 1)
	w, backup := newWorld(t, labelled), filepath.Join(t.TempDir(), "backup")
	_, err := w.apply(t, backup, single)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"inference.optimization/acceleratorName": "A100", "team": "blue", "wva.llmd.ai/controller-instance": "blue"}, w.variant(t).GetLabels())
}

// variant is the object that is changed in its place.
func (w *world) variant(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	v := &unstructured.Unstructured{}
	v.SetGroupVersionKind(kinds[0])
	require.NoError(t, w.Get(t.Context(), client.ObjectKey{Namespace: "chat", Name: "llama"}, v))
	return v
}

// The way back leaves nothing of the change: neither a label that it added nor an owner that it took
// away. What somebody did to the object since stays.
func TestTheWayBackLeavesNothing(t *testing.T) {
	t.Parallel()
	single := strings.Replace(multi, "    - {acc: H100", "    # - {acc: H100", 1)
	single = strings.Replace(single, "inference.optimization/acceleratorName: A100, ", "", 1)
	older := strings.Replace(single, "team: blue", "team: green", 1)
	require.NotEqual(t, single, older)
	owner := strings.Replace(shared, "name: llama, namespace: chat", `name: llama, namespace: chat, uid: "1"`, 1)
	for name, runs := range map[string]int{"after one run": 1, "after two": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, folder := newWorld(t, single, owner), t.TempDir()
			before := w.variant(t)
			backup := ""
			for run := range runs {
				backup = filepath.Join(folder, strconv.Itoa(run))
				_, err := w.apply(t, backup, older)
				require.NoError(t, err)
			}
			v := w.variant(t)
			require.Equal(t, "A100", v.GetLabels()["inference.optimization/acceleratorName"])
			require.Empty(t, v.GetOwnerReferences())
			v.SetLabels(with(v.GetLabels(), "since", "then"))
			require.NoError(t, w.Update(t.Context(), v))

			require.NoError(t, w.rollback(t, backup))
			back := w.variant(t)
			assert.Equal(t, before.Object["spec"], back.Object["spec"])
			assert.NotContains(t, back.GetLabels(), "inference.optimization/acceleratorName")
			assert.Equal(t, "then", back.GetLabels()["since"])
			assert.Equal(t, before.GetOwnerReferences(), back.GetOwnerReferences())
			if runs == 1 {
				assert.Equal(t, "blue", back.GetLabels()["team"], "as the cluster had it, and not as an older file has it")
			}
		})
	}
}

// An object whose owner is gone would be deleted as soon as it names it again.
func TestAnOwnerThatIsGoneIsNotNamed(t *testing.T) {
	t.Parallel()
	w, backup := newWorld(t, multi, shared), filepath.Join(t.TempDir(), "backup") // the Deployment was made anew
	_, err := w.apply(t, backup, multi, shared)
	require.NoError(t, err)
	var told strings.Builder
	require.NoError(t, (&change{api: w, out: &told, backup: backup}).rollback(t.Context()))
	assert.Empty(t, w.variant(t).GetOwnerReferences())
	assert.Equal(t, map[string]string{"inference.optimization/acceleratorName": "A100", "team": "blue"}, w.variant(t).GetLabels())
	assert.Equal(t, 1, strings.Count(told.String(), "note: VariantAutoscaling chat/llama no longer belongs to Deployment llama"), told.String())
}

// Without a cluster, because nothing is asked of one.
func TestWhatIsNotApplied(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "backup.yaml")
	for name, c := range map[string]struct{ text, namespace, want string }{
		"objects of another namespace": {multi, "team", `VariantAutoscaling "llama": it is of namespace chat, and --namespace is team`},
		"servers of Llama Stack":       {server, "", `LlamaStackDistribution "a": --apply does not change it: write it without --apply`},
	} {
		require.NoError(t, os.WriteFile(file, []byte(c.text), 0o600))
		flags := cluster.NewFlags()
		command := NewCommand(flags)
		flags.Add(command.Flags())
		command.SetOut(io.Discard)
		command.SetErr(io.Discard)
		command.SetArgs([]string{"-f", file, "--apply", "--namespace", c.namespace})
		require.ErrorContains(t, command.Execute(), c.want, name)
	}
}
