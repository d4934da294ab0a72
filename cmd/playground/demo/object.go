package demo

import (
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/emulation"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
)

const (
	// namespace is where the models are.
	namespace = "demo"
	// variantLabel is by what a Deployment finds its pods.
	variantLabel = "app"
	// schedulerName is the profile that the plugin runs in.
	schedulerName = localcluster.Owner
	// fieldManager owns what the demo creates.
	fieldManager = "playground"
	// productLabel is where GPU feature discovery writes the type of a node's GPUs.
	productLabel = "nvidia.com/gpu.product"
	// scaleDownWindow in seconds is short, so that a few minutes show a full rise and
	// fall; the default is 300.
	scaleDownWindow = 30
	// gracePeriod in seconds lets the longest requests finish on a replica that is
	// removed. One without requests is gone at once.
	gracePeriod = 60
)

// node is the accelerator of a new node, beside it.
type node struct {
	*corev1.Node
	accelerator capacity.Accelerator
}

// nodes makes the nodes of all groups, spread over two zones.
func nodes() []node {
	var all []node
	for _, group := range nodeGroups {
		all = append(all, nodesOf(group)...)
	}
	return all
}

func nodesOf(group nodeGroup) []node {
	var all []node
	for i := range group.Count {
		name := fmt.Sprintf("%s-%d", group.Name, i)
		zone := fmt.Sprintf("zone-%c", 'a'+rune(i%2))
		all = append(all, node{Node: group.Shape.Node(name, zone), accelerator: group.Accelerator})
	}
	return all
}

// deployment is the scale target of a variant, as a user would write it for vLLM.
// The hard rules stand in the pod: the number of devices by a limit; their product by
// affinity and the scheduler by its name, unless the webhook fills those in.
func deployment(m model, v variant, replicas int32) *appsv1.Deployment {
	labels := map[string]string{variantLabel: v.Name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v.Name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(replicas),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels: labels,
					Annotations: map[string]string{
						emulation.ServerAnnotation: "true",
						"prometheus.io/scrape":     "true",
						"prometheus.io/port":       strconv.Itoa(emulation.DefaultPort),
					},
				},
				Spec: podSpec(m, v),
			},
		},
	}
}

func podSpec(m model, v variant) corev1.PodSpec {
	spec := corev1.PodSpec{
		TerminationGracePeriodSeconds: new(int64(gracePeriod)),
		Containers: []corev1.Container{{
			Name:      "vllm",
			Image:     "vllm/vllm-openai:v0.11.0",
			Args:      serverArguments(m, v),
			Ports:     []corev1.ContainerPort{{Name: "http", ContainerPort: emulation.DefaultPort}},
			Resources: podResources(v),
		}},
		Tolerations: []corev1.Toleration{{Key: localcluster.GPUTaint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}},
	}
	if m.Placed {
		return spec
	}
	spec.SchedulerName = schedulerName
	spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: productLabel, Operator: corev1.NodeSelectorOpIn, Values: []string{v.Product},
			}},
		}}},
	}}
	spec.Tolerations = append(spec.Tolerations,
		corev1.Toleration{Key: localcluster.OwnershipTaint, Operator: corev1.TolerationOpEqual, Value: schedulerName})
	return spec
}

// admitted is the template of a variant's pods as they are made: with what the webhook
// fills in.
func admitted(m model, v variant) *corev1.PodTemplateSpec {
	template := &deployment(m, v, 0).Spec.Template
	labels := []corev1.NodeSelectorRequirement{{Key: productLabel, Operator: corev1.NodeSelectorOpIn, Values: []string{v.Product}}}
	sent, _ := new(inventory.Names).Send(&template.Spec, inventory.Destination{
		Scheduler: schedulerName, Accelerator: inventory.Normalize(string(v.Accelerator)), Labels: labels,
	})
	if sent != nil {
		template.Spec = *sent
	}
	return template
}

func serverArguments(m model, v variant) []string {
	args := []string{
		"--model=" + m.ID,
		"--port=" + strconv.Itoa(emulation.DefaultPort),
		"--tensor-parallel-size=" + strconv.Itoa(v.Devices),
		"--max-num-seqs=" + strconv.Itoa(v.Profile.BatchLimit),
		"--max-num-batched-tokens=" + strconv.Itoa(v.TokenBudget),
	}
	if v.Quantization != "" {
		args = append(args, "--quantization="+v.Quantization)
	}
	return args
}

// podResources asks for 8 cores and 64 GiB beside each device, which every
// node of the demo has for all of its devices.
func podResources(v variant) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewQuantity(int64(8*v.Devices), resource.DecimalSI),
			corev1.ResourceMemory: *resource.NewQuantity(int64(64*v.Devices)<<30, resource.BinarySI),
		},
		Limits: corev1.ResourceList{
			localcluster.GPUResource: *resource.NewQuantity(int64(v.Devices), resource.DecimalSI),
		},
	}
}

// autoscaling is the VariantAutoscaling object of a variant.
func autoscaling(m model, v variant) *v1alpha1.VariantAutoscaling {
	four := fourParameters(v.Profile, m.tokens())
	return &v1alpha1.VariantAutoscaling{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v.Name},
		Spec: v1alpha1.VariantAutoscalingSpec{
			ScaleTargetRef:   v1alpha1.ScaleTargetReference{APIVersion: "apps/v1", Kind: "Deployment", Name: v.Name},
			ModelID:          m.ID,
			VariantID:        v.variantID(m),
			Accelerator:      string(v.Accelerator),
			AcceleratorCount: new(int32(v.Devices)),
			VariantCost:      strconv.FormatFloat(float64(v.cost()), 'f', 3, 64),
			VariantProfile: &v1alpha1.VariantProfile{
				PerfParms: &v1alpha1.PerfParms{
					DecodeParms:  &v1alpha1.DecodeParms{Alpha: parameter(four.Alpha), Beta: parameter(four.Beta)},
					PrefillParms: &v1alpha1.PrefillParms{Gamma: parameter(four.Gamma), Delta: parameter(four.Delta)},
				},
				MaxBatchSize: new(int32(four.MaxBatchSize)),
			},
			Behavior: &v1alpha1.Behavior{
				ScaleDown: &v1alpha1.ScalingRules{StabilizationWindowSeconds: new(int32(scaleDownWindow))},
			},
		},
	}
}

func parameter(ms capacity.Milliseconds) v1alpha1.ParameterMilliseconds {
	return v1alpha1.ParameterMilliseconds(strconv.FormatFloat(float64(ms), 'g', 6, 64))
}

// promises is the ConfigMap with the service class of every model, which the manager reads.
func promises(models []model) *corev1.ConfigMap {
	data := map[string]string{}
	for i, m := range models {
		data[fmt.Sprintf("class-%d.yaml", i+1)] = fmt.Sprintf("name: class-%d\npriority: 1\ndata:\n- model: %s\n  slo-ttft: %g\n  slo-tpot: %g\n",
			i+1, m.ID, float64(m.SLO.TTFT), float64(m.SLO.ITL))
	}
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: "service-classes-config"}, Data: data}
}
