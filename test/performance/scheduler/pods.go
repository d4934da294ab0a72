package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
	"llmd.ai/workload-variant-autoscaler/test/performance/harness"
)

// patience is how long a run may go on without any pod being bound.
const patience = 90 * time.Second

func podSpec(devices int64) corev1.PodSpec {
	amounts := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("500m"),
		corev1.ResourceMemory: resource.MustParse("500Mi"),
	}
	if devices > 0 {
		amounts[localcluster.GPUResource] = *resource.NewQuantity(devices, resource.DecimalSI)
	}
	return corev1.PodSpec{Containers: []corev1.Container{{
		Name: "server", Image: "server", Resources: corev1.ResourceRequirements{Requests: amounts, Limits: amounts},
	}}}
}

// pod is the i-th pod of a run.
func (b *bench) pod(w workload, schedulerName string, i int) *corev1.Pod {
	of := i % variantsWithPods
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("pod-%05d", i)}, Spec: podSpec(w.devices)}
	pod.Spec.SchedulerName = schedulerName
	pod.Labels = map[string]string{"app": variantName(of)}
	if w.devices > 0 {
		pod.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "ReplicaSet", Name: variantName(of) + "-1", UID: b.owners[of], Controller: ptr.To(true),
		}}
	}
	return pod
}

func ownersOf(ctx context.Context, client kubernetes.Interface) ([]types.UID, error) {
	owners := make([]types.UID, variantsWithPods)
	for i := range owners {
		rs, err := client.AppsV1().ReplicaSets(namespace).Get(ctx, variantName(i)+"-1", metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("look for the owner of pods: %w", err)
		}
		owners[i] = rs.UID
	}
	return owners, nil
}

func (b *bench) createPods(ctx context.Context, w workload, schedulerName string, pods int) error {
	err := harness.Each(ctx, pods, func(ctx context.Context, i int) error {
		_, err := b.client.CoreV1().Pods(namespace).Create(ctx, b.pod(w, schedulerName, i), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("create the pods: %w", err)
	}
	return nil
}

// deletePods deletes the pods of a run at once and finally; there is no kubelet to wait
// for.
func (b *bench) deletePods(ctx context.Context, pods int) error {
	now := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}
	err := harness.Each(ctx, pods, func(ctx context.Context, i int) error {
		return b.client.CoreV1().Pods(namespace).Delete(ctx, fmt.Sprintf("pod-%05d", i), now)
	})
	if err != nil {
		return fmt.Errorf("delete the pods: %w", err)
	}
	return nil
}

// bindings is what a watch saw of the pods of a run.
type bindings struct {
	first, last time.Time
	nodes       map[string]int
}

// watchBindings begins to watch; the function that it returns waits until so many pods
// are bound.
func (b *bench) watchBindings(ctx context.Context, pods int) (wait func() (bindings, error), err error) {
	// With this selector a pod comes into view when it is bound.
	bound := metav1.ListOptions{FieldSelector: "spec.nodeName!="}
	now, err := b.client.CoreV1().Pods(namespace).List(ctx, bound)
	if err != nil {
		return nil, fmt.Errorf("list the bound pods: %w", err)
	}
	// An API server may end a watch whenever it likes.
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, now.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = bound.FieldSelector
			return b.client.CoreV1().Pods(namespace).Watch(ctx, options)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch the pods: %w", err)
	}
	return func() (bindings, error) {
		defer watcher.Stop()
		return b.await(ctx, watcher, pods)
	}, nil
}

func (b *bench) await(ctx context.Context, watcher watch.Interface, pods int) (bindings, error) {
	seen := bindings{nodes: map[string]int{}}
	idle := time.NewTimer(patience)
	defer idle.Stop()
	for count := 0; count < pods; {
		select {
		case event, open := <-watcher.ResultChan():
			if !open {
				return seen, errors.New("the watch of the pods ended")
			}
			if event.Type == watch.Error {
				return seen, fmt.Errorf("watch the pods: %w", apierrors.FromObject(event.Object))
			}
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || event.Type != watch.Added {
				continue
			}
			seen.last = time.Now()
			if count == 0 {
				seen.first = seen.last
			}
			seen.nodes[pod.Spec.NodeName]++
			count++
			idle.Reset(patience)
		case failure := <-b.cluster.Failed():
			return seen, failure
		case <-idle.C:
			return seen, fmt.Errorf("no pod was bound for %s, %d of %d are; see the logs of the scheduler in %s (--logs keeps them)",
				patience, count, pods, b.cluster.Logs())
		case <-ctx.Done():
			return seen, ctx.Err()
		}
	}
	return seen, nil
}
