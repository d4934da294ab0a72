package child

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/configuration"
)

// Labels and annotations of children.
const (
	LabelManagedBy = "app.kubernetes.io/managed-by"
	LabelPartOf    = "app.kubernetes.io/part-of"
	LabelInstance  = "app.kubernetes.io/instance"
	LabelComponent = "app.kubernetes.io/component"
	// LabelWatch is on what the operator follows: its own objects, and ConfigMaps of
	// users whose changes are to count at once.
	LabelWatch = "llamastack.io/watch"
	// LabelConfigFor is on generated configurations, with the name of their object.
	LabelConfigFor = "llamastack.io/config-for"

	// ManagedBy and GeneratedConfig are values of the labels above.
	ManagedBy       = "llama-stack-operator"
	GeneratedConfig = "generated-config"

	annotationUserConfig = "configmap.hash/user-config"
	annotationBundle     = "configmap.hash/ca-bundle"
	annotationSecrets    = "secret.hash/environment"
)

// AnyUID is the ClusterRole of OpenShift that lets a pod run as the user of its image.
const AnyUID = "system:openshift:scc:anyuid"

// Object is an object of Kubernetes.
type Object interface {
	metav1.Object
	runtime.Object
}

// Input is what the children are made of.
type Input struct {
	Object *v1alpha2.LlamaStackDistribution
	// Image is what runs.
	Image string
	// Configuration is the mounted configuration, nil where the image's own counts.
	Configuration *Configuration
	// Secrets are variables of the environment, and SecretsHash changes with their
	// values.
	Secrets     []configuration.Secret
	SecretsHash string
	// Postgres are the parts of the connection string that the server needs, nil where
	// it needs none.
	Postgres map[string]string
	// Bundle are certificate authorities beside those of the image, nil for none.
	Bundle []byte
	// NetworkPolicies says whether the server is to be protected by one, and
	// OperatorNamespace who is always let in.
	NetworkPolicies   bool
	OperatorNamespace string
	// AnyUID says whether the cluster has the ClusterRole of that name, and servers are to have it.
	AnyUID bool
	// Rolling are the ports of pods that are still to be replaced.
	Rolling Rolling
}

// Rolling is what is kept for pods of before while new ones take their place.
type Rolling struct {
	// Unnamed says that there are pods whose port has no name yet, because an earlier version made
	// them. A Service that leads to the name would not find them.
	Unnamed bool
	// Ports are those on which pods listen, beside the one of the object.
	Ports []int32
}

// PortName is the name of the server's port, in pods and in the Service. By its name the Service leads
// to the port that each pod has, also while a change of it is rolled out.
const PortName = "http"

// Configuration is a configuration that is mounted.
type Configuration struct {
	// ConfigMap is its name, and Hash changes with its content.
	ConfigMap, Hash string
	// Text is the content where the operator makes the ConfigMap; Generated says whether
	// it was generated rather than copied from another namespace.
	Text      []byte
	Generated bool
}

// Objects are the children that the input asks for, in the order in which they are to be
// written: the Deployment last, because its pods need the others.
func Objects(in Input) []Object {
	objects := []Object{serviceAccount(in), service(in)}
	if in.AnyUID {
		objects = append(objects, roleBinding(in))
	}
	if in.Configuration != nil && in.Configuration.Text != nil {
		objects = append(objects, configMap(in))
	}
	if in.Bundle != nil {
		objects = append(objects, bundle(in))
	}
	if in.Postgres != nil {
		objects = append(objects, postgres(in))
	}
	w := workload(in)
	if w.Storage != nil {
		objects = append(objects, volumeClaim(in, w.Storage))
	}
	if w.PodDisruptionBudget != nil || replicas(in) > 1 {
		objects = append(objects, disruptionBudget(in, w.PodDisruptionBudget))
	}
	if in.NetworkPolicies {
		objects = append(objects, networkPolicy(in))
	}
	if exposure := v1alpha2.ExposureOf(networking(in).Expose); exposure.Enabled {
		objects = append(objects, ingress(in, exposure.Hostname))
	}
	if w.Autoscaling != nil {
		objects = append(objects, autoscaler(in, w.Autoscaling))
	}
	return append(objects, deployment(in))
}

// Name is a child by its kind and name.
type Name struct {
	schema.GroupVersionKind
	Name string
}

// Revocable are the children that are to go when they are no longer wanted. The volume
// is not among them, because of the data in it; a generated configuration has a name that
// changes, and goes when no pod uses it.
func Revocable(object string) []Name {
	kind := func(group, version, kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: group, Version: version, Kind: kind}
	}
	return []Name{
		{kind("autoscaling", "v2", "HorizontalPodAutoscaler"), object + "-hpa"},
		{kind("policy", "v1", "PodDisruptionBudget"), object + "-pdb"},
		{kind("networking.k8s.io", "v1", "NetworkPolicy"), object + "-network-policy"},
		{kind("networking.k8s.io", "v1", "Ingress"), object + "-ingress"},
		{kind("", "v1", "ConfigMap"), object + "-ca-bundle"},
		{kind("", "v1", "ConfigMap"), UserConfigName(object)},
		{kind("", "v1", "Secret"), configuration.PostgresSecretName(object)},
		{kind("rbac.authorization.k8s.io", "v1", "RoleBinding"), object + "-rb"},
	}
}

// ConfigName is the name of the ConfigMap of a generated configuration.
func ConfigName(object, hash string) string { return object + "-config-" + hash[:8] }

// UserConfigName is the name of the copy of a configuration of another namespace.
func UserConfigName(object string) string { return object + "-user-config" }

// Selector are the labels of the pods of an object.
func Selector(object string) map[string]string {
	return map[string]string{"app": "llama-stack", LabelInstance: object}
}

// Port is where the server of an object listens.
func Port(object *v1alpha2.LlamaStackDistribution) int32 {
	if n := object.Spec.Networking; n != nil && n.Port != 0 {
		return n.Port
	}
	return v1alpha2.DefaultPort
}

func workload(in Input) v1alpha2.Workload {
	return ptr.Deref(in.Object.Spec.Workload, v1alpha2.Workload{})
}

func networking(in Input) v1alpha2.Networking {
	return ptr.Deref(in.Object.Spec.Networking, v1alpha2.Networking{})
}

func replicas(in Input) int32 { return ptr.Deref(workload(in).Replicas, v1alpha2.DefaultReplicas) }

// meta is the metadata of a child of that name.
func meta(in Input, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: in.Object.Namespace,
		Name:      name,
		Labels: map[string]string{
			LabelManagedBy: ManagedBy, LabelPartOf: "llama-stack", LabelWatch: "true", LabelInstance: in.Object.Name,
		},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(in.Object, v1alpha2.GroupVersion.WithKind(v1alpha2.Kind))},
	}
}

func kind(apiVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
}

func serviceAccount(in Input) Object {
	return &corev1.ServiceAccount{TypeMeta: kind("v1", "ServiceAccount"), ObjectMeta: meta(in, in.Object.Name+"-sa")}
}

func roleBinding(in Input) Object {
	return &rbacv1.RoleBinding{
		TypeMeta:   kind("rbac.authorization.k8s.io/v1", "RoleBinding"),
		ObjectMeta: meta(in, in.Object.Name+"-rb"),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: AnyUID},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: in.Object.Namespace, Name: in.Object.Name + "-sa"}},
	}
}

// configMap is a generated configuration, which never changes under its name, or the
// copy of one.
func configMap(in Input) Object {
	c := in.Configuration
	m := &corev1.ConfigMap{
		TypeMeta:   kind("v1", "ConfigMap"),
		ObjectMeta: meta(in, c.ConfigMap),
		Data:       map[string]string{"config.yaml": string(c.Text)},
	}
	if c.Generated {
		m.Immutable = ptr.To(true)
		m.Labels[LabelComponent], m.Labels[LabelConfigFor] = GeneratedConfig, in.Object.Name
	}
	return m
}

func bundle(in Input) Object {
	m := &corev1.ConfigMap{
		TypeMeta:   kind("v1", "ConfigMap"),
		ObjectMeta: meta(in, in.Object.Name+"-ca-bundle"),
		Data:       map[string]string{bundleFile: string(in.Bundle)},
	}
	m.Labels[LabelComponent] = "ca-bundle"
	return m
}

func postgres(in Input) Object {
	s := &corev1.Secret{
		TypeMeta:   kind("v1", "Secret"),
		ObjectMeta: meta(in, configuration.PostgresSecretName(in.Object.Name)),
		Data:       map[string][]byte{},
	}
	for part, value := range in.Postgres {
		s.Data[part] = []byte(value)
	}
	return s
}
