package child_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/child"
	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/configuration"
)

// input is that of an object demo in the namespace ns.
func input(t *testing.T, spec string) child.Input {
	t.Helper()
	object := &v1alpha2.LlamaStackDistribution{}
	object.Namespace, object.Name, object.UID = "ns", "demo", "1"
	require.NoError(t, yaml.UnmarshalStrict([]byte(spec), &object.Spec), spec)
	return child.Input{Object: object, Image: "image:1", OperatorNamespace: "operator"}
}

// rendered is an object of a kind as YAML, without what every child has.
func rendered(t *testing.T, in child.Input, kind string) string {
	t.Helper()
	for _, object := range child.Objects(in) {
		if object.GetObjectKind().GroupVersionKind().Kind != kind {
			continue
		}
		text, err := yaml.Marshal(object)
		require.NoError(t, err)
		var content map[string]any
		require.NoError(t, yaml.Unmarshal(text, &content))
		metadata := content["metadata"].(map[string]any)
		delete(metadata, "ownerReferences")
		delete(metadata, "labels")
		delete(content, "status")
		delete(content, "apiVersion")
		delete(content, "kind")
		text, err = yaml.Marshal(content)
		require.NoError(t, err)
		return string(text)
	}
	return ""
}

func kinds(in child.Input) []string {
	var all []string
	for _, object := range child.Objects(in) {
		all = append(all, object.GetObjectKind().GroupVersionKind().Kind+" "+object.GetName())
	}
	return all
}

func TestWhichChildrenThereAre(t *testing.T) {
	least := []string{"ServiceAccount demo-sa", "Service demo-service", "Deployment demo"}
	with := func(more ...string) []string { return append(append([]string{}, least...), more...) }
	for name, c := range map[string]struct {
		spec   string
		change func(*child.Input)
		want   []string
	}{
		"the least":        {"{}", nil, least},
		"storage":          {"workload: {storage: {}}", nil, with("PersistentVolumeClaim demo-pvc")},
		"several replicas": {"workload: {replicas: 2}", nil, with("PodDisruptionBudget demo-pdb")},
		"a budget":         {"workload: {podDisruptionBudget: {minAvailable: 1}}", nil, with("PodDisruptionBudget demo-pdb")},
		"autoscaling":      {"workload: {autoscaling: {maxReplicas: 3}}", nil, with("HorizontalPodAutoscaler demo-hpa")},
		"exposed":          {"networking: {expose: true}", nil, with("Ingress demo-ingress")},
		"expressly not":    {"networking: {expose: {enabled: false, hostname: h}}", nil, least},
		"network policies": {"{}", func(in *child.Input) { in.NetworkPolicies = true }, with("NetworkPolicy demo-network-policy")},
		"authorities":      {"{}", func(in *child.Input) { in.Bundle = []byte("b") }, with("ConfigMap demo-ca-bundle")},
		"OpenShift":        {"{}", func(in *child.Input) { in.AnyUID = true }, with("RoleBinding demo-rb")},
		"PostgreSQL":       {"{}", func(in *child.Input) { in.Postgres = map[string]string{"host": "h"} }, with("Secret demo-sql-postgres")},
		"a configuration": {"{}", func(in *child.Input) {
			in.Configuration = &child.Configuration{ConfigMap: "demo-config-1", Text: []byte("c")}
		}, with("ConfigMap demo-config-1")},
		"one of the user": {"{}", func(in *child.Input) { in.Configuration = &child.Configuration{ConfigMap: "theirs"} }, least},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t, c.spec)
			if c.change != nil {
				c.change(&in)
			}
			assert.ElementsMatch(t, c.want, kinds(in))
			for _, object := range child.Objects(in) {
				assert.True(t, metav1.IsControlledBy(object, in.Object), object.GetName())
				assert.Equal(t, "ns", object.GetNamespace())
				assert.Subset(t, object.GetLabels(), map[string]string{
					"app.kubernetes.io/managed-by": "llama-stack-operator", "app.kubernetes.io/part-of": "llama-stack", "llamastack.io/watch": "true",
				})
			}
			all := kinds(in)
			assert.Equal(t, "Deployment demo", all[len(all)-1], "its pods need the others")
		})
	}
}

// The defaults are written out, so that they go again when a volume is asked for.
func TestTheStrategyOfADeployment(t *testing.T) {
	strategy := func(spec string) string {
		objects := child.Objects(input(t, spec))
		text, err := yaml.Marshal(objects[len(objects)-1].(*appsv1.Deployment).Spec.Strategy)
		require.NoError(t, err)
		return string(text)
	}
	assert.Equal(t, "rollingUpdate:\n  maxSurge: 25%\n  maxUnavailable: 25%\ntype: RollingUpdate\n", strategy(""))
	assert.Equal(t, "type: Recreate\n", strategy("workload: {storage: {}}"))
}

// A whole Deployment, as somebody reads it.
func TestTheDeployment(t *testing.T) {
	in := input(t, `
networking: {port: 9000}
workload:
  workers: 4
  storage: {size: 20Gi, mountPath: /data}
  overrides: {env: [{name: HF_HOME, value: /mine}, {name: A, value: first}, {name: A, value: last}], args: [--debug]}`)
	in.Object.Annotations = map[string]string{v1alpha2.PrefixV1alpha1 + "containerName": `"srv"`, v1alpha2.PrefixV1alpha1 + "terminationGracePeriod": "60"}
	in.Configuration = &child.Configuration{ConfigMap: "demo-config-12345678", Hash: "12345678", Text: []byte("c"), Generated: true}
	in.Secrets = []configuration.Secret{{Variable: "LLSD_VLLM_API_KEY", From: v1alpha2.SecretKeySelector{Name: "s", Key: "k"}}, {Variable: "A", From: v1alpha2.SecretKeySelector{Name: "s", Key: "k"}}}
	in.SecretsHash, in.Bundle = "abc", []byte("b")
	assert.Equal(t, strings.TrimPrefix(`
metadata:
  name: demo
  namespace: ns
spec:
  replicas: 1
  selector:
    matchLabels:
      app: llama-stack
      app.kubernetes.io/instance: demo
  strategy:
    type: Recreate
  template:
    metadata:
      annotations:
        configmap.hash/ca-bundle: 3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d
        configmap.hash/user-config: "12345678"
        secret.hash/environment: abc
      labels:
        app: llama-stack
        app.kubernetes.io/instance: demo
    spec:
      containers:
      - args:
        - --debug
        env:
        - name: SSL_CERT_FILE
          value: /etc/ssl/certs/ca-bundle/ca-bundle.crt
        - name: LLS_WORKERS
          value: "4"
        - name: LLS_PORT
          value: "9000"
        - name: LLAMA_STACK_PORT
          value: "9000"
        - name: LLAMA_STACK_CONFIG
          value: /etc/llama-stack/config.yaml
        - name: RUN_CONFIG_PATH
          value: /etc/llama-stack/config.yaml
        - name: HF_HOME
          value: /mine
        - name: A
          value: last
        - name: LLSD_VLLM_API_KEY
          valueFrom:
            secretKeyRef:
              key: k
              name: s
        image: image:1
        name: srv
        ports:
        - containerPort: 9000
          name: http
          protocol: TCP
        readinessProbe:
          httpGet:
            path: /v1/health
            port: 9000
          timeoutSeconds: 5
        resources:
          limits:
            cpu: "4"
            memory: 1Gi
          requests:
            cpu: "4"
            memory: 1Gi
        startupProbe:
          failureThreshold: 3
          httpGet:
            path: /v1/health
            port: 9000
          initialDelaySeconds: 15
          successThreshold: 1
          timeoutSeconds: 30
        volumeMounts:
        - mountPath: /data
          name: lls-storage
        - mountPath: /etc/ssl/certs/ca-bundle
          name: ca-bundle
          readOnly: true
        - mountPath: /etc/llama-stack/
          name: user-config
          readOnly: true
      securityContext:
        fsGroup: 1001
      serviceAccountName: demo-sa
      terminationGracePeriodSeconds: 60
      volumes:
      - name: lls-storage
        persistentVolumeClaim:
          claimName: demo-pvc
      - configMap:
          items:
          - key: ca-bundle.crt
            path: ca-bundle.crt
          name: demo-ca-bundle
        name: ca-bundle
      - configMap:
          name: demo-config-12345678
        name: user-config
`, "\n"), rendered(t, in, "Deployment"))
}

func TestReplicasAreLeftToAnAutoscaler(t *testing.T) {
	in := input(t, "workload: {replicas: 3, autoscaling: {minReplicas: 2, maxReplicas: 5, targetMemoryUtilizationPercentage: 70}}")
	assert.NotContains(t, rendered(t, in, "Deployment"), "replicas:")
	hpa := rendered(t, in, "HorizontalPodAutoscaler")
	assert.Contains(t, hpa, "minReplicas: 3\n")
	assert.Contains(t, hpa, "maxReplicas: 5\n")
	assert.Contains(t, hpa, "averageUtilization: 70\n")
	assert.NotContains(t, hpa, "cpu")
	assert.Contains(t, rendered(t, input(t, "workload: {autoscaling: {maxReplicas: 5}}"), "HorizontalPodAutoscaler"), "averageUtilization: 80\n")
	assert.Contains(t, rendered(t, input(t, "workload: {replicas: 9, autoscaling: {maxReplicas: 5}}"), "HorizontalPodAutoscaler"), "minReplicas: 5\n", "the API server takes no minimum above the maximum")
	assert.Contains(t, rendered(t, input(t, "workload: {replicas: 0}"), "Deployment"), "replicas: 0\n")
}

func TestSeveralPodsAreSpread(t *testing.T) {
	several := rendered(t, input(t, "workload: {replicas: 2}"), "Deployment")
	assert.Equal(t, 3, strings.Count(several, "whenUnsatisfiable: ScheduleAnyway"))
	assert.Contains(t, several, "podAntiAffinity")
	own := rendered(t, input(t, "workload: {replicas: 2, topologySpreadConstraints: [{maxSkew: 2, topologyKey: rack, whenUnsatisfiable: DoNotSchedule}]}"), "Deployment")
	assert.Equal(t, 1, strings.Count(own, "whenUnsatisfiable"))
	assert.NotContains(t, rendered(t, input(t, "{}"), "Deployment"), "topologySpread")
}

func TestResourcesThatAreGivenStay(t *testing.T) {
	in := input(t, "workload: {workers: 2, resources: {requests: {cpu: 500m}, limits: {memory: 4Gi}}}")
	before := in.Object.DeepCopy()
	container := containerOf(t, in)
	assert.Equal(t, "500m", container.Resources.Requests.Cpu().String())
	assert.Equal(t, "1Gi", container.Resources.Requests.Memory().String())
	assert.Equal(t, "500m", container.Resources.Limits.Cpu().String())
	assert.Equal(t, "4Gi", container.Resources.Limits.Memory().String())
	assert.Equal(t, before, in.Object, "the object was changed")
}

// The API server takes no request above its limit.
func TestALimitBoundsWhatIsFilledIn(t *testing.T) {
	container := containerOf(t, input(t, "workload: {resources: {limits: {cpu: 250m, memory: 512Mi}}}"))
	assert.Equal(t, "250m", container.Resources.Requests.Cpu().String())
	assert.Equal(t, "512Mi", container.Resources.Requests.Memory().String())
}

func containerOf(t *testing.T, in child.Input) corev1.Container {
	t.Helper()
	objects := child.Objects(in)
	return objects[len(objects)-1].(*appsv1.Deployment).Spec.Template.Spec.Containers[0]
}

func TestWhoMayReachAServer(t *testing.T) {
	policy := func(spec string, annotations map[string]string) string {
		in := input(t, spec)
		in.NetworkPolicies, in.Object.Annotations = true, annotations
		return rendered(t, in, "NetworkPolicy")
	}
	least := policy("{}", nil)
	assert.Contains(t, least, "kubernetes.io/metadata.name: operator")
	assert.NotContains(t, least, "openshift")
	assert.Contains(t, least, "port: 8321")
	some := policy("networking: {allowedFrom: {namespaces: [monitoring], labels: [team]}}", nil)
	for _, want := range []string{"kubernetes.io/metadata.name: monitoring", "key: team\n          operator: Exists", "network.openshift.io/policy-group: ingress", "podSelector: {}"} {
		assert.Contains(t, some, want)
	}
	all := policy("networking: {allowedFrom: {namespaces: ['*', monitoring]}}", nil)
	assert.Contains(t, all, "- namespaceSelector: {}")
	assert.NotContains(t, all, "monitoring")
	assert.Contains(t, policy("{}", map[string]string{v1alpha2.AnnotationV1alpha1Extras: `{"presence":["network"]}`}), "openshift", "v1alpha1 had an empty network")
}
