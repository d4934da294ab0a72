package manager_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// diary is what happened to the pods of a namespace.
type diary struct {
	lock sync.Mutex
	// marked is the resource version at which each pod was marked first, and deleted
	// whether it was marked when it went.
	marked  map[string]int
	deleted map[string]bool
	// lowered is the resource version at which the Deployment asked for one replica.
	lowered int
}

// keepDiary writes down what happens from now on until the test ends.
func keepDiary(t *testing.T, namespace string) *diary {
	t.Helper()
	watching, err := client.NewWithWatch(cluster.Config(), client.Options{Scheme: scheme.Scheme})
	require.NoError(t, err)
	d := &diary{marked: map[string]int{}, deleted: map[string]bool{}}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	for _, list := range []client.ObjectList{&corev1.PodList{}, &appsv1.DeploymentList{}} {
		w, err := watching.Watch(ctx, list, client.InNamespace(namespace))
		require.NoError(t, err)
		done.Go(func() {
			for event := range w.ResultChan() {
				d.note(event)
			}
		})
		t.Cleanup(w.Stop)
	}
	t.Cleanup(func() {
		cancel()
		done.Wait()
	})
	return d
}

func (d *diary) note(event watch.Event) {
	d.lock.Lock()
	defer d.lock.Unlock()
	switch object := event.Object.(type) {
	case *corev1.Pod:
		_, marked := object.Annotations[v1alpha1.AnnotationVictim]
		if marked && d.marked[object.Name] == 0 {
			d.marked[object.Name], _ = strconv.Atoi(object.ResourceVersion)
		}
		if event.Type == watch.Deleted {
			d.deleted[object.Name] = marked
		}
	case *appsv1.Deployment:
		if *object.Spec.Replicas == 1 && d.lowered == 0 {
			d.lowered, _ = strconv.Atoi(object.ResourceVersion)
		}
	}
}

// gone waits until so many pods are deleted, and returns those and the marked ones.
func (d *diary) gone(t *testing.T, pods int) (deleted map[string]bool, marked map[string]int, lowered int) {
	t.Helper()
	conditiontest.Eventually(t, patience, fmt.Sprint(pods, " deleted pods"), func() (string, bool) {
		d.lock.Lock()
		defer d.lock.Unlock()
		deleted, marked, lowered = maps.Clone(d.deleted), maps.Clone(d.marked), d.lowered
		return fmt.Sprint(deleted), len(deleted) >= pods
	})
	return deleted, marked, lowered
}

func TestTheChosenReplicasGo(t *testing.T) {
	cases := []struct {
		name    string
		victims v1alpha1.VictimChoice
		account string
		marked  int
	}{
		{"they are marked before the scale is lowered", "", "", 2},
		{"unless the user leaves the choice to Kubernetes", v1alpha1.VictimsKubernetes, "", 0},
		{"or the manager may not patch pods", "", "unarmed", 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			servers := serveModels(t)
			instance := brisk
			if c.account != "" {
				instance = c.account
				lesser(t, c.account, map[string]string{"pods": "patch"})
				startAs(t, instance, c.account)
			}
			namespace := space(t)
			servers.ask(namespace, 1.8*serves)
			d, v := deployment(namespace, "server", 3), variant(namespace, "llama-h100", "server", instance)
			v.Spec.Victims = c.victims
			create(t, d, v)
			servers.settle(t, namespace, 3)
			diary := keepDiary(t, namespace)
			servers.ask(namespace, 0.1*serves)
			hasReplicas(t, patience, d, v, 1)

			deleted, marked, lowered := diary.gone(t, 2)
			assert.Len(t, deleted, 2)
			assert.Len(t, marked, c.marked)
			for pod, version := range marked {
				assert.True(t, deleted[pod], "%s was chosen and goes", pod)
				assert.Less(t, version, lowered, "%s was marked first", pod)
			}
			roundsLater(t, instance, 2)
			var left corev1.PodList
			require.NoError(t, api.List(t.Context(), &left, client.InNamespace(namespace)))
			require.Len(t, left.Items, 1)
			assert.NotContains(t, left.Items[0].Annotations, v1alpha1.AnnotationVictim)
			assert.NotContains(t, left.Items[0].Annotations, corev1.PodDeletionCost)
		})
	}
}

// keepChanging writes the pods of a namespace until the test ends.
func keepChanging(t *testing.T, namespace string, every time.Duration) {
	t.Helper()
	var pods corev1.PodList
	require.NoError(t, api.List(t.Context(), &pods, client.InNamespace(namespace)))
	conditiontest.Every(t, every, func(ctx context.Context, at time.Time) {
		patch := client.RawPatch(types.MergePatchType, []byte(fmt.Sprintf(`{"metadata":{"labels":{"written":"%d"}}}`, at.UnixMilli())))
		for i := range pods.Items {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pods.Items[i].Name}}
			if err := client.IgnoreNotFound(api.Patch(ctx, pod, patch)); err != nil && ctx.Err() == nil {
				t.Errorf("writing pod %s: %v", pod.Name, err)
			}
		}
	})
}

// costs are the deletion costs of the pods of a namespace, by what they are.
func costs(t *testing.T, namespace string) string {
	t.Helper()
	var pods corev1.PodList
	require.NoError(t, api.List(t.Context(), &pods, client.InNamespace(namespace)))
	var all []string
	for _, pod := range pods.Items {
		text := pod.Annotations[corev1.PodDeletionCost]
		if before, ours := pod.Annotations[v1alpha1.AnnotationVictim]; ours {
			text += " instead of " + before
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return fmt.Sprintf("%q", all)
}

func TestAScaleDownThatIsCalledOffLeavesNoTrace(t *testing.T) {
	const untouched, chosen = `["7" "7" "7"]`, `["-2147483648 instead of 7" "-2147483648 instead of 7" "7"]`
	servers := serveModels(t)
	namespace := space(t)
	labels := map[string]string{"app": "server"}
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "server"},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To[int32](3), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				// A cost of the user's own.
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{corev1.PodDeletionCost: "7"}},
				Spec:       podSpec(),
			},
		},
	}
	servers.ask(namespace, 1.8*serves)
	v := target(variant(namespace, "llama-h100", "server", brisk), "apps/v1", "ReplicaSet")
	v.Spec.MinReplicas = ptr.To[int32](3)
	create(t, set, v)
	servers.settle(t, namespace, 3)
	// Now that it is known what a replica serves, one would do, once the window of the
	// metrics has seen nothing else.
	servers.ask(namespace, 0.1*serves)
	roundsLater(t, brisk, 2*window.Seconds())
	// Nobody acts on the scale, as when its controller is slow.
	const controllers = "kube-controller-manager"
	require.NoError(t, cluster.Terminate(controllers))
	t.Cleanup(func() { require.NoError(t, cluster.Restart(context.Background(), controllers)) })
	// Others write the pods all the time, so that what the manager knows of them is old.
	keepChanging(t, namespace, 30*time.Millisecond)
	becomes := func(replicas int32, want string) {
		t.Helper()
		conditiontest.Eventually(t, patience, fmt.Sprintf("%d replicas and the costs %s", replicas, want), func() (string, bool) {
			asked, found := *read(t, set).Spec.Replicas, costs(t, namespace)
			return fmt.Sprintf("%d replicas, costs %s\n%s", asked, found, describe(read(t, v))), asked == replicas && found == want
		})
	}
	setSpec(t, v, `{"minReplicas":0}`)
	becomes(1, chosen)
	roundsLater(t, brisk, 3)
	becomes(1, chosen)

	setSpec(t, v, `{"minReplicas":3}`)
	becomes(3, untouched)
	setSpec(t, v, `{"minReplicas":0}`)
	becomes(1, chosen)
	setSpec(t, v, `{"victims":"Kubernetes"}`)
	becomes(1, untouched)

	setSpec(t, v, `{"minReplicas":3,"victims":"Packing"}`)
	becomes(3, untouched)
	setSpec(t, v, `{"minReplicas":0}`)
	becomes(1, chosen)
	require.NoError(t, api.Delete(t.Context(), v))
	conditiontest.Eventually(t, patience, "the end of the marks with that of the object", func() (string, bool) {
		found := costs(t, namespace)
		return found, found == untouched
	})
}

// A manager that ended between the mark and the write leaves marks that mean nothing.
func TestMarksThatWereLeftBehindAreTakenBack(t *testing.T) {
	servers := serveModels(t)
	namespace := space(t)
	servers.ask(namespace, 0.5*serves)
	create(t, deployment(namespace, "server", 1), variant(namespace, "llama-h100", "server", brisk))
	servers.settle(t, namespace, 1)
	var pods corev1.PodList
	require.NoError(t, api.List(t.Context(), &pods, client.InNamespace(namespace)))
	require.Len(t, pods.Items, 1)
	mark := fmt.Sprintf(`{"metadata":{"annotations":{%q:"-2147483648",%q:"5"}}}`, corev1.PodDeletionCost, v1alpha1.AnnotationVictim)
	require.NoError(t, api.Patch(t.Context(), &pods.Items[0], client.RawPatch(types.MergePatchType, []byte(mark))))
	conditiontest.Eventually(t, patience, "the cost of before", func() (string, bool) {
		found := costs(t, namespace)
		return found, found == `["5"]`
	})
}

// setSpec changes fields of an object's spec.
func setSpec(t *testing.T, v *v1alpha1.VariantAutoscaling, fields string) {
	t.Helper()
	require.NoError(t, api.Patch(t.Context(), v, client.RawPatch(types.MergePatchType, []byte(`{"spec":`+fields+`}`))))
}
