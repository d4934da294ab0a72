package scheduler

import (
	"context"
	"fmt"
	"path/filepath"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
	"llmd.ai/workload-variant-autoscaler/test/performance/harness"
)

const (
	namespace      = "bench"
	devicesPerNode = 8
	// variantsWithPods share the pods with devices evenly.
	variantsWithPods = 20
)

// expectedSizes are further variants, of which no pod is there: what the packer
// spares room for.
var expectedSizes = []int32{2, 4, 8}

// startCluster starts etcd and an API server, and makes the nodes and the variants. No
// controller runs: nodes stay as they are made.
func startCluster(ctx context.Context, o options, root string) (*localcluster.Cluster, *kubernetes.Clientset, error) {
	cluster, err := localcluster.Start(ctx, localcluster.Options{
		Logs: o.logs, Manifests: []string{filepath.Join(root, "manifests", "crd")},
	})
	if err != nil {
		return nil, nil, err
	}
	client, err := fill(ctx, cluster, o)
	if err != nil {
		cluster.Stop()
		return nil, nil, fmt.Errorf("fill the cluster: %w", err)
	}
	return cluster, client, nil
}

func fill(ctx context.Context, cluster *localcluster.Cluster, o options) (*kubernetes.Clientset, error) {
	client, objects, err := harness.Clients(cluster)
	if err != nil {
		return nil, err
	}
	if _, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	if err := createVariants(ctx, objects, client); err != nil {
		return nil, err
	}
	return client, harness.Each(ctx, o.nodes, func(ctx context.Context, i int) error {
		shape := localcluster.CPUOnly
		// Spread among the others, as names and zones of real nodes are.
		if i*o.acceleratorNodes/o.nodes != (i+1)*o.acceleratorNodes/o.nodes {
			shape = localcluster.EightH100
		}
		node := shape.Node(fmt.Sprintf("node-%05d", i), fmt.Sprintf("zone-%d", i%3))
		// The alternative to taints: one process has both profiles, and so all nodes.
		node.Spec.Taints = nil
		node.Status.Conditions = harness.Ready()
		_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		return err
	})
}

// createVariants makes the objects that say who the pods with devices belong to.
func createVariants(ctx context.Context, objects ctrlclient.Client, client *kubernetes.Clientset) error {
	for i := range variantsWithPods + len(expectedSizes) {
		size := int32(1)
		if i >= variantsWithPods {
			size = expectedSizes[i-variantsWithPods]
		}
		variant := &v1alpha1.VariantAutoscaling{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: variantName(i)},
			Spec: v1alpha1.VariantAutoscalingSpec{
				ModelID: "model", Accelerator: "H100", AcceleratorCount: ptr.To(size),
				ScaleTargetRef: v1alpha1.ScaleTargetReference{Name: variantName(i)},
			},
		}
		if err := objects.Create(ctx, variant); err != nil {
			return err
		}
		if _, err := client.AppsV1().ReplicaSets(namespace).Create(ctx, replicaSet(i, size), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func variantName(i int) string { return fmt.Sprintf("server-%02d", i) }

// replicaSet is what a Deployment of that name would have made. Nobody acts on it.
func replicaSet(i int, devices int32) *appsv1.ReplicaSet {
	labels := map[string]string{"app": variantName(i)}
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: variantName(i) + "-1",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: variantName(i), UID: "none", Controller: ptr.To(true)}},
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To[int32](0),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec(int64(devices))},
		},
	}
}
