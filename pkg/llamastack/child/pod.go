package child

import (
	"fmt"
	"path"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
)

// Where things are in a pod.
const (
	configDirectory = "/etc/llama-stack/"
	configFile      = configDirectory + "config.yaml"
	bundleDirectory = "/etc/ssl/certs/ca-bundle"
	bundleFile      = "ca-bundle.crt"

	// VolumeStorage is the one volume that every pod has.
	VolumeStorage = "lls-storage"
	volumeBundle  = "ca-bundle"
	volumeConfig  = "user-config"
)

// deployment leaves the replicas to the autoscaler where there is one. A volume that one
// node may mount at a time cannot be shared by an old pod and a new one.
func deployment(in Input) Object {
	w := workload(in)
	spec := appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: Selector(in.Object.Name)},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: Selector(in.Object.Name), Annotations: annotations(in)},
			Spec:       pod(in),
		},
	}
	if w.Autoscaling == nil {
		spec.Replicas = ptr.To(replicas(in))
	}
	// The default is written out: what the API server fills in belongs to nobody, and would
	// be in the way of another strategy later.
	share := ptr.To(intstr.FromString("25%"))
	spec.Strategy = appsv1.DeploymentStrategy{
		Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: share, MaxSurge: share},
	}
	if w.Storage != nil {
		spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	}
	return &appsv1.Deployment{TypeMeta: kind("apps/v1", "Deployment"), ObjectMeta: meta(in, in.Object.Name), Spec: spec}
}

// annotations change with what pods read when they start.
func annotations(in Input) map[string]string {
	all := map[string]string{}
	if in.Configuration != nil {
		all[annotationUserConfig] = in.Configuration.Hash
	}
	if in.Bundle != nil {
		all[annotationBundle] = hashOf(in.Bundle)
	}
	if in.SecretsHash != "" {
		all[annotationSecrets] = in.SecretsHash
	}
	return all
}

func pod(in Input) corev1.PodSpec {
	w := workload(in)
	overrides := ptr.Deref(w.Overrides, v1alpha2.Overrides{})
	carried, _ := v1alpha2.ReadV1alpha1Extras(in.Object)
	spec := corev1.PodSpec{
		ServiceAccountName:            overrides.ServiceAccountName,
		TerminationGracePeriodSeconds: carried.TerminationGracePeriod,
		SecurityContext:               &corev1.PodSecurityContext{FSGroup: ptr.To[int64](1001)},
		Containers:                    []corev1.Container{container(in, carried.ContainerName)},
		Volumes:                       append(volumes(in), overrides.Volumes...),
		TopologySpreadConstraints:     w.TopologySpreadConstraints,
	}
	if spec.ServiceAccountName == "" {
		spec.ServiceAccountName = in.Object.Name + "-sa"
	}
	if replicas(in) > 1 {
		spread(in, &spec)
	}
	return spec
}

// spread keeps several pods apart, as far as there are places.
func spread(in Input, spec *corev1.PodSpec) {
	instance := &metav1.LabelSelector{MatchLabels: map[string]string{LabelInstance: in.Object.Name}}
	if len(spec.TopologySpreadConstraints) == 0 {
		for _, key := range []string{corev1.LabelTopologyRegion, corev1.LabelTopologyZone, corev1.LabelHostname} {
			spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
				MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: instance,
			})
		}
	}
	spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
			Weight: 100, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: instance},
		}},
	}}
}

func container(in Input, name string) corev1.Container {
	w := workload(in)
	overrides := ptr.Deref(w.Overrides, v1alpha2.Overrides{})
	if name == "" {
		name = v1alpha2.DefaultContainerName
	}
	// Every file and model is loaded before the server answers.
	health := corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/v1/health", Port: intstr.FromInt32(Port(in.Object))}}
	return corev1.Container{
		Name:         name,
		Image:        in.Image,
		Command:      overrides.Command,
		Args:         overrides.Args,
		Ports:        []corev1.ContainerPort{{Name: PortName, ContainerPort: Port(in.Object), Protocol: corev1.ProtocolTCP}},
		Env:          environment(in, overrides.Env),
		Resources:    resources(w),
		VolumeMounts: append(mounts(in), overrides.VolumeMounts...),
		StartupProbe: &corev1.Probe{
			ProbeHandler: health, InitialDelaySeconds: 15, TimeoutSeconds: 30, FailureThreshold: 3, SuccessThreshold: 1,
		},
		ReadinessProbe: &corev1.Probe{ProbeHandler: health, TimeoutSeconds: 5},
	}
}

// resources fill what the object leaves out: one core for each worker, and 1Gi, but no more
// than a limit that it gives. With workers a pod gets no more than it requests, so that they
// do not take each other's.
func resources(w v1alpha2.Workload) corev1.ResourceRequirements {
	given := ptr.Deref(w.Resources, corev1.ResourceRequirements{})
	r := *given.DeepCopy()
	workers := ptr.Deref(w.Workers, 1)
	for name, quantity := range map[corev1.ResourceName]resource.Quantity{
		corev1.ResourceCPU: resource.MustParse(fmt.Sprint(workers)), corev1.ResourceMemory: resource.MustParse("1Gi"),
	} {
		if r.Requests == nil {
			r.Requests = corev1.ResourceList{}
		}
		if limit, ok := r.Limits[name]; ok && limit.Cmp(quantity) < 0 && !limit.IsZero() {
			quantity = limit
		}
		if requested, ok := r.Requests[name]; !ok || requested.IsZero() {
			r.Requests[name] = quantity
		}
		if _, ok := r.Limits[name]; !ok && w.Workers != nil {
			if r.Limits == nil {
				r.Limits = corev1.ResourceList{}
			}
			r.Limits[name] = r.Requests[name]
		}
	}
	return r
}

// MountPath is where that volume is mounted.
func MountPath(w v1alpha2.Workload) string {
	if w.Storage != nil && w.Storage.MountPath != "" {
		return w.Storage.MountPath
	}
	return v1alpha2.DefaultMountPath
}

// environment has each name once: a variable of the user wins over one of ours, and the
// last of several with one name over the others, as in a pod.
func environment(in Input, own []corev1.EnvVar) []corev1.EnvVar {
	w := workload(in)
	port := fmt.Sprint(Port(in.Object))
	ours := []corev1.EnvVar{{Name: "HF_HOME", Value: MountPath(w)}}
	if in.Bundle != nil {
		ours = append(ours, corev1.EnvVar{Name: "SSL_CERT_FILE", Value: path.Join(bundleDirectory, bundleFile)})
	}
	ours = append(ours,
		corev1.EnvVar{Name: "LLS_WORKERS", Value: fmt.Sprint(ptr.Deref(w.Workers, 1))},
		corev1.EnvVar{Name: "LLS_PORT", Value: port},
		// The server takes its port from here before it reads a configuration.
		corev1.EnvVar{Name: "LLAMA_STACK_PORT", Value: port},
		corev1.EnvVar{Name: "LLAMA_STACK_CONFIG", Value: configFile},
	)
	if in.Configuration != nil {
		ours = append(ours, corev1.EnvVar{Name: "RUN_CONFIG_PATH", Value: configFile})
	}
	last := map[string]int{}
	for i, variable := range own {
		last[variable.Name] = i
	}
	var all []corev1.EnvVar
	add := func(variables []corev1.EnvVar) {
		for _, variable := range variables {
			if _, given := last[variable.Name]; !given {
				all = append(all, variable)
			}
		}
	}
	add(ours)
	for i, variable := range own {
		if last[variable.Name] == i {
			all = append(all, variable)
		}
	}
	var secrets []corev1.EnvVar
	for _, secret := range in.Secrets {
		secrets = append(secrets, corev1.EnvVar{Name: secret.Variable, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: secret.From.Name}, Key: secret.From.Key,
		}}})
	}
	add(secrets)
	return all
}

func volumes(in Input) []corev1.Volume {
	storage := corev1.Volume{Name: VolumeStorage, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	if workload(in).Storage != nil {
		storage.VolumeSource = corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: in.Object.Name + "-pvc"}}
	}
	all := []corev1.Volume{storage}
	add := func(name, configMap string, items ...corev1.KeyToPath) {
		all = append(all, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: configMap}, Items: items,
		}}})
	}
	if in.Bundle != nil {
		add(volumeBundle, in.Object.Name+"-ca-bundle", corev1.KeyToPath{Key: bundleFile, Path: bundleFile})
	}
	if in.Configuration != nil {
		add(volumeConfig, in.Configuration.ConfigMap)
	}
	return all
}

func mounts(in Input) []corev1.VolumeMount {
	all := []corev1.VolumeMount{{Name: VolumeStorage, MountPath: MountPath(workload(in))}}
	if in.Bundle != nil {
		all = append(all, corev1.VolumeMount{Name: volumeBundle, MountPath: bundleDirectory, ReadOnly: true})
	}
	if in.Configuration != nil {
		all = append(all, corev1.VolumeMount{Name: volumeConfig, MountPath: configDirectory, ReadOnly: true})
	}
	return all
}
