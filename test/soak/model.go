package main

import (
	"fmt"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/emulation"
	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
)

// What every model server is and every request asks: an iteration takes 100 ms whatever is
// in it, so that a request of 28 tokens takes 2.8 s, and a replica, which holds ten of them,
// completes 3.57 a second. At the load that the published triggers allow, seven tenths of
// that, it carries 2.5.
const (
	iteration  = 100
	batchLimit = 10
	input      = 16
	output     = 28
	carries    = 2.5
	completes  = 1000.0 * batchLimit / (iteration * output)
	// kvTokens is far more than ten requests take: the batch is what limits.
	kvTokens = 4096
	// startup is how long a model server takes to answer.
	startup = 4 * time.Second
	// window in seconds is that of scale-down.
	window = 15
	// headroom is how much more than the demand stays after a scale-down: the distance of
	// the published thresholds, up at 0.85 and down at 0.70.
	headroom = 0.85 / 0.70
)

const (
	namespace       = "soak"
	modelAnnotation = "soak.llmd.ai/model"
)

// model is one model with its variants, and the rates in requests per second that it is
// asked at.
type model struct {
	id          string
	instance    string
	least, most float64
	variants    []variant
}

type variant struct {
	name    string
	product string
	devices int64
	cost    string
}

var models = []model{
	{id: "alpha", least: 1, most: 12, variants: []variant{{"alpha-h100", localcluster.EightH100.Product, 1, "10"}}},
	{id: "beta", least: 1, most: 9, variants: []variant{
		{"beta-l40s", localcluster.FourL40S.Product, 2, "8"}, {"beta-h100", localcluster.EightH100.Product, 2, "20"},
	}},
	{id: "gamma", instance: witness, least: 1, most: 8, variants: []variant{{"gamma-h100", localcluster.EightH100.Product, 1, "10"}}},
}

// modelOf is the model that a variant serves.
func modelOf(name string) (model, variant, bool) {
	for _, m := range models {
		for _, v := range m.variants {
			if v.name == name {
				return m, v, true
			}
		}
	}
	return model{}, variant{}, false
}

func (m model) deployment(v variant, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": v.name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v.name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{
					emulation.ServerAnnotation: "",
					modelAnnotation:            m.id,
					"prometheus.io/scrape":     "true",
					"prometheus.io/port":       strconv.Itoa(emulation.DefaultPort),
				}},
				Spec: corev1.PodSpec{
					SchedulerName:                 scheduler,
					TerminationGracePeriodSeconds: new(int64(30)),
					NodeSelector:                  map[string]string{"nvidia.com/gpu.product": v.product},
					Tolerations: []corev1.Toleration{
						{Key: localcluster.GPUTaint, Operator: corev1.TolerationOpExists},
						{Key: localcluster.OwnershipTaint, Operator: corev1.TolerationOpEqual, Value: scheduler},
					},
					Containers: []corev1.Container{{
						Name: "server", Image: "model-server",
						Args:  []string{"--model=" + m.id, "--max-num-seqs=" + strconv.Itoa(batchLimit)},
						Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: emulation.DefaultPort}},
						Resources: corev1.ResourceRequirements{
							Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")},
							Limits:   corev1.ResourceList{localcluster.GPUResource: *resource.NewQuantity(v.devices, resource.DecimalSI)},
						},
					}},
				},
			},
		},
	}
}

// autoscaling states what the model servers do, so that nothing has to be learned first.
func (m model) autoscaling(v variant) *v1alpha1.VariantAutoscaling {
	object := &v1alpha1.VariantAutoscaling{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v.name},
		Spec: v1alpha1.VariantAutoscalingSpec{
			ScaleTargetRef: v1alpha1.ScaleTargetReference{Name: v.name},
			ModelID:        m.id,
			VariantCost:    v.cost,
			VariantProfile: &v1alpha1.VariantProfile{
				MaxBatchSize: new(int32(batchLimit)),
				PerfParms: &v1alpha1.PerfParms{
					DecodeParms:  &v1alpha1.DecodeParms{Alpha: v1alpha1.ParameterMilliseconds(strconv.Itoa(iteration)), Beta: "0"},
					PrefillParms: &v1alpha1.PrefillParms{Gamma: "1", Delta: "0"},
				},
			},
			Behavior: &v1alpha1.Behavior{ScaleDown: &v1alpha1.ScalingRules{StabilizationWindowSeconds: new(int32(window))}},
		},
	}
	if m.instance != "" {
		object.Labels = map[string]string{v1alpha1.LabelControllerInstance: m.instance}
	}
	return object
}

// describe is the model server of a pod.
func describe(pod *corev1.Pod) (emulation.ServerOptions, error) {
	id := pod.Annotations[modelAnnotation]
	if id == "" {
		return emulation.ServerOptions{}, fmt.Errorf("pod %s has no annotation %s", pod.Name, modelAnnotation)
	}
	return emulation.ServerOptions{
		Model: id, Profile: serving.Profile{Base: iteration, BatchLimit: batchLimit, KVTokens: kvTokens}, Startup: startup,
	}, nil
}
