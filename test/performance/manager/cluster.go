package manager

import (
	"context"
	"fmt"
	"path/filepath"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
	"llmd.ai/workload-variant-autoscaler/test/performance/harness"
)

const (
	home      = "workload-variant-autoscaler-system"
	account   = "workload-variant-autoscaler-controller-manager"
	scheduler = "variant-scheduler"
)

// variant is one of the many; its number says all of it.
type variant int

func (o options) namespace(v variant) string {
	return fmt.Sprintf("team-%03d", int(v)/2%o.namespaces)
}
func (v variant) name() string       { return fmt.Sprintf("variant-%05d", int(v)) }
func (v variant) model() string      { return fmt.Sprintf("model-%05d", int(v)/2) }
func (v variant) pod(i int) string   { return fmt.Sprintf("%s-%03d", v.name(), i) }
func (v variant) cost() string       { return fmt.Sprint(10 + int(v)%2) }
func (v variant) replicaSet() string { return v.name() + "-1" }

// startCluster starts what is real. No controller runs: objects stay as they are made.
func startCluster(ctx context.Context, o options) (*localcluster.Cluster, error) {
	programs, err := localcluster.Programs()
	if err != nil {
		return nil, err
	}
	manifests := filepath.Join(filepath.Dir(programs), "manifests")
	return localcluster.Start(ctx, localcluster.Options{
		Programs: programs, Logs: o.logs, Audit: true,
		Manifests: []string{manifests + "/crd", manifests + "/rbac", manifests + "/scheduler/rbac.yaml"},
		Components: localcluster.Components{
			Prometheus: &localcluster.Prometheus{ScrapeInterval: o.scrape},
			VariantScheduler: &localcluster.VariantScheduler{
				Config: manifests + "/scheduler/config.yaml", Namespace: home, ServiceAccount: scheduler,
				// There is one. A lease that a busy API server does not renew in time would end it.
				Args: []string{"--leader-elect=false"},
			},
		},
	})
}

// fill writes the nodes, the workloads and the objects.
func (b *bench) fill(ctx context.Context) error {
	var err error
	if b.typed, b.api, err = harness.Clients(b.cluster); err != nil {
		return err
	}
	for i := range b.namespaces {
		object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("team-%03d", i)}}
		if _, err := b.typed.CoreV1().Namespaces().Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	if err := harness.Each(ctx, b.nodes, b.createNode); err != nil {
		return err
	}
	return harness.Each(ctx, b.variants, func(ctx context.Context, i int) error { return b.createVariant(ctx, variant(i)) })
}

func nodeName(i int) string { return fmt.Sprintf("node-%05d", i) }

func (b *bench) createNode(ctx context.Context, i int) error {
	shape := localcluster.EightH100
	shape.GPUs = devicesPerNode
	node := shape.Node(nodeName(i), fmt.Sprintf("zone-%d", i%3))
	node.Status.Conditions = harness.Ready()
	_, err := b.typed.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	return err
}

// createVariant writes what the controllers of a Deployment and kubelets would have left.
func (b *bench) createVariant(ctx context.Context, v variant) error {
	namespace, labels := b.namespace(v), map[string]string{"app": v.name()}
	replicas := int32(b.replicas) // #nosec G115: few
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec(v)}
	d, err := b.typed.AppsV1().Deployments(namespace).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v.name()},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas}
	if _, err := b.typed.AppsV1().Deployments(namespace).UpdateStatus(ctx, d, metav1.UpdateOptions{}); err != nil {
		return err
	}
	set, err := b.typed.AppsV1().ReplicaSets(namespace).Create(ctx, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: v.replicaSet(), Labels: labels, OwnerReferences: ownedBy("Deployment", d.Name, d)},
		Spec:       appsv1.ReplicaSetSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	for i := range b.replicas {
		if err := b.createPod(ctx, v, i, set); err != nil {
			return err
		}
	}
	return b.api.Create(ctx, &v1alpha1.VariantAutoscaling{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v.name()},
		Spec: v1alpha1.VariantAutoscalingSpec{
			ScaleTargetRef: v1alpha1.ScaleTargetReference{Name: v.name()}, ModelID: v.model(), VariantCost: v.cost(),
		},
	})
}

func ownedBy(kind, name string, object metav1.Object) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: object.GetUID(), Controller: ptr.To(true)}}
}

func (b *bench) createPod(ctx context.Context, v variant, i int, set *appsv1.ReplicaSet) error {
	pods := b.typed.CoreV1().Pods(set.Namespace)
	spec := podSpec(v)
	spec.NodeName = nodeName((int(v)*b.replicas + i) % b.nodes)
	pod, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: v.pod(i), Labels: set.Labels, OwnerReferences: ownedBy("ReplicaSet", set.Name, set)},
		Spec:       spec,
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	now := metav1.Now()
	pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &now
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	_, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}

func podSpec(v variant) corev1.PodSpec {
	return corev1.PodSpec{
		SchedulerName: scheduler,
		NodeSelector:  map[string]string{"nvidia.com/gpu.product": localcluster.EightH100.Product},
		Tolerations: []corev1.Toleration{
			{Key: localcluster.GPUTaint, Operator: corev1.TolerationOpExists},
			{Key: localcluster.OwnershipTaint, Operator: corev1.TolerationOpEqual, Value: scheduler},
		},
		Containers: []corev1.Container{{
			Name: "server", Image: "model-server", Args: []string{"--model=" + v.model(), "--max-num-seqs=64"},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")},
				Limits:   corev1.ResourceList{localcluster.GPUResource: resource.MustParse("1")},
			},
		}},
	}
}
