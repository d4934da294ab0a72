package operator

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/child"
	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/configuration"
)

func data(t *testing.T, text string) any {
	t.Helper()
	var value any
	require.NoError(t, yaml.Unmarshal([]byte(text), &value))
	return value
}

func TestCovers(t *testing.T) {
	for name, c := range map[string]struct {
		live, wanted string
		want         bool
	}{
		"the same":                        {"{a: 1, b: [x]}", "{a: 1, b: [x]}", true},
		"more fields":                     {"{a: 1, b: 2}", "{a: 1}", true},
		"another value":                   {"{a: 1}", "{a: 2}", false},
		"a zero in place of a value":      {"{a: 1}", "{a: 0}", false},
		"a field that is missing":         {"{}", "{a: 1}", false},
		"nothing in an empty parent":      {"{}", "{a: {}}", true},
		"nothing is wanted":               {"{a: 1}", "{a: null}", true},
		"a list that grew":                {"{a: [x, y]}", "{a: [x]}", false},
		"a list in another order":         {"{a: [y, x]}", "{a: [x, y]}", false},
		"objects that somebody added":     {"{a: [{n: 1}, {n: 2, more: 3}]}", "{a: [{n: 2}]}", true},
		"an object that is missing":       {"{a: [{n: 1}]}", "{a: [{n: 2}]}", false},
		"an object in place of a text":    {"{a: x}", "{a: {b: 1}}", false},
		"an empty list that is not there": {"{}", "{a: []}", true},
	} {
		assert.Equal(t, c.want, covers(data(t, c.live), data(t, c.wanted), false), name)
	}
}

// The peers of a network policy, the rules of an Ingress and the metrics of an autoscaler.
func TestCoversWholeLists(t *testing.T) {
	for name, c := range map[string]struct {
		live, wanted string
		want         bool
	}{
		"the same":                       {"{a: [{n: 1}, {m: {}}]}", "{a: [{n: 1}, {m: {}}]}", true},
		"defaults":                       {"{a: [{n: 1, default: 2}], b: 3}", "{a: [{n: 1}]}", true},
		"an object that somebody added":  {"{a: [{n: 1}, {n: 2}]}", "{a: [{n: 1}]}", false},
		"an object in place of another":  {"{a: [{n: 1}, {n: 2}]}", "{a: [{n: 1}, {m: {}}]}", false},
		"more than an empty selector":    {"{a: [{m: {only: these}}]}", "{a: [{m: {}}]}", false},
		"objects that somebody took out": {"{}", "{a: [{n: 1}]}", false},
	} {
		assert.Equal(t, c.want, covers(data(t, c.live), data(t, c.wanted), true), name)
	}
}

func TestParseSettings(t *testing.T) {
	s, err := parseSettings(map[string]string{"featureFlags": "enableNetworkPolicy: {enabled: true}", "image-overrides": "starter: a/b:1"})
	require.NoError(t, err)
	assert.Equal(t, settings{overrides: map[string]string{"starter": "a/b:1"}, networkPolicies: true}, s)
	s, err = parseSettings(map[string]string{"featureFlags": "redisPasswordInHost: {enabled: true}"})
	require.NoError(t, err)
	assert.Equal(t, settings{overrides: map[string]string{}, options: configuration.Options{RedisPasswordInHost: true}}, s)
	s, err = parseSettings(nil)
	require.NoError(t, err)
	assert.False(t, s.networkPolicies)
	_, err = parseSettings(map[string]string{"featureFlags": "enableNetworkPolicies: true", "image-overrides": "["})
	assert.ErrorContains(t, err, "write it as enableNetworkPolicy: {enabled: true}")
	assert.ErrorContains(t, err, "image-overrides is no map")
}

// Defaults would delete the network policies of all servers and change their images.
func TestSettingsThatCannotBeRead(t *testing.T) {
	for name, data := range map[string]map[string]string{
		"YAML that ends too soon": {"featureFlags": "enableNetworkPolicy: {enabled: true}\nredisPasswordInHost: {enabled: false"},
		"an unknown flag":         {"featureFlags": "enableNetworkPolicies: {enabled: true}"},
		"an image that is none":   {"image-overrides": "starter: 'not an image'"},
	} {
		t.Run(name, func(t *testing.T) {
			found := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: settingsName}, Data: data}
			recorder := events.NewFakeRecorder(1)
			o := &operator{Options: Options{Namespace: "home"}, api: fake.NewClientBuilder().WithObjects(found).Build(), recorder: recorder}
			object := &v1alpha2.LlamaStackDistribution{Spec: v1alpha2.LlamaStackDistributionSpec{Distribution: v1alpha2.Distribution{Name: "starter"}}}
			_, err := o.gather(t.Context(), object)
			require.ErrorContains(t, err, "the ConfigMap home/llama-stack-operator-config cannot be used, and nothing is changed until it is corrected")
			assert.Contains(t, <-recorder.Events, "Warning InvalidConfiguration the ConfigMap home/llama-stack-operator-config cannot be used")
		})
	}
}

// still is a clock that stands.
type still struct{ now time.Time }

func (s still) Now() time.Time                  { return s.now }
func (s still) Since(t time.Time) time.Duration { return s.now.Sub(t) }

func newStatus(now time.Time) *status {
	object := &v1alpha2.LlamaStackDistribution{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "demo", Generation: 3}}
	object.Status.DistributionConfig = &v1alpha2.DistributionConfig{}
	return &status{object: object, clock: still{now}, recorder: events.NewFakeRecorder(100)}
}

func TestThePhaseOfADeployment(t *testing.T) {
	deployment := func(wanted, all, updated, ready int32) *appsv1.Deployment {
		return &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: &wanted}, Status: appsv1.DeploymentStatus{Replicas: all, UpdatedReplicas: updated, ReadyReplicas: ready}}
	}
	for name, c := range map[string]struct {
		deployment *appsv1.Deployment
		phase      v1alpha2.Phase
		available  string
	}{
		"not there":         {nil, v1alpha2.PhasePending, "ReplicasUnavailable"},
		"none ready":        {deployment(2, 2, 2, 0), v1alpha2.PhaseInitializing, "ReplicasUnavailable"},
		"some ready":        {deployment(2, 2, 2, 1), v1alpha2.PhaseInitializing, "MinimumReplicasAvailable"},
		"all ready":         {deployment(2, 2, 2, 2), v1alpha2.PhaseReady, "MinimumReplicasAvailable"},
		"a rollout":         {deployment(2, 3, 1, 2), v1alpha2.PhaseInitializing, "RolloutInProgress"},
		"one too many":      {deployment(1, 2, 2, 2), v1alpha2.PhaseInitializing, "MinimumReplicasAvailable"},
		"scaled to nothing": {deployment(0, 0, 0, 0), v1alpha2.PhaseReady, "MinimumReplicasAvailable"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStatus(time.Unix(1, 0))
			s.deployed(c.deployment)
			assert.Equal(t, c.phase, s.object.Status.Phase)
			available := apimeta.FindStatusCondition(s.object.Status.Conditions, conditionAvailable)
			assert.Equal(t, c.available, available.Reason)
			assert.EqualValues(t, 3, available.ObservedGeneration)
		})
	}
}

// The pods that are missing say nothing; the Deployment knows why they are.
func TestWhyThereAreNoPods(t *testing.T) {
	for name, c := range map[string]struct {
		condition appsv1.DeploymentCondition
		want      string
	}{
		"a quota": {
			appsv1.DeploymentCondition{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "exceeded quota"}, "0 of 1 pods are ready: exceeded quota",
		},
		"no progress": {
			appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Message: "it timed out progressing."}, "0 of 1 pods are ready: it timed out progressing.",
		},
		"progress": {
			appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Message: "it is progressing."}, "0 of 1 pods are ready",
		},
	} {
		s := newStatus(time.Unix(1, 0))
		s.deployed(&appsv1.Deployment{Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{c.condition}}})
		assert.Equal(t, c.want, apimeta.FindStatusCondition(s.object.Status.Conditions, conditionDeployment).Message, name)
	}
}

// Times move only with what they are about.
func TestTimesOfTheStatus(t *testing.T) {
	s := newStatus(time.Unix(100, 0))
	object, generated := &v1alpha2.LlamaStackDistribution{}, &configuration.Generated{Providers: 1, Version: 2}
	p := &plan{Input: child.Input{Object: object, Image: "i", Configuration: &child.Configuration{ConfigMap: "demo-config-1"}}, generated: generated, source: "embedded", hash: "h"}
	s.gathered(p, "v1", nil)
	first := s.object.Status.DeepCopy()
	assert.EqualValues(t, 100, first.ConfigGeneration.GeneratedAt.Unix())
	s.clock = still{time.Unix(200, 0)}
	s.gathered(p, "v1", nil)
	assert.Equal(t, first, &s.object.Status)
	p.Configuration = &child.Configuration{ConfigMap: "demo-config-2"}
	s.gathered(p, "v2", nil)
	assert.EqualValues(t, 200, s.object.Status.ConfigGeneration.GeneratedAt.Unix())
	assert.EqualValues(t, 200, s.object.Status.Version.LastUpdated.Unix())
	assert.Equal(t, "v2", s.object.Status.Version.OperatorVersion)
}

func TestWhatAServerSays(t *testing.T) {
	s := newStatus(time.Unix(1, 0))
	providers := []v1alpha2.ProviderInfo{{API: "inference"}}
	s.answered(Answer{Providers: providers, Version: "0.5.0"})
	assert.Equal(t, providers, s.object.Status.DistributionConfig.Providers)
	assert.Equal(t, "0.5.0", s.object.Status.Version.LlamaStackServerVersion)
	s.answered(Answer{ProvidersErr: errors.New("refused"), VersionErr: errors.New("refused")})
	assert.Empty(t, s.object.Status.DistributionConfig.Providers)
	assert.Equal(t, "0.5.0", s.object.Status.Version.LlamaStackServerVersion, "the last that was known")
	health := apimeta.FindStatusCondition(s.object.Status.Conditions, conditionHealth)
	assert.Equal(t, "HealthCheckFailed", health.Reason)
	assert.Equal(t, "refused", health.Message)
	s.silent()
	assert.Equal(t, "Deployment not ready", apimeta.FindStatusCondition(s.object.Status.Conditions, conditionHealth).Message)
}

// What asks for another turn: whatever changes, but for what a server said of itself.
func TestAnUpdateThatSaysMore(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha2.LlamaStackDistribution)
		want   bool
	}{
		"nothing":       {func(*v1alpha2.LlamaStackDistribution) {}, false},
		"an annotation": {func(o *v1alpha2.LlamaStackDistribution) { o.Annotations = map[string]string{"a": "b"} }, true},
		"the spec":      {func(o *v1alpha2.LlamaStackDistribution) { o.Generation++ }, true},
		"the phase":     {func(o *v1alpha2.LlamaStackDistribution) { o.Status.Phase = v1alpha2.PhaseReady }, true},
		"another answer": {func(o *v1alpha2.LlamaStackDistribution) {
			o.Status.DistributionConfig.Providers = []v1alpha2.ProviderInfo{{}}
		}, false},
		"no answer at all": {func(o *v1alpha2.LlamaStackDistribution) { o.Status.Conditions[0].Message = "refused" }, false},
	} {
		s := newStatus(time.Unix(1, 0))
		s.answered(Answer{Version: "1"})
		was := s.object
		is := was.DeepCopy()
		is.ResourceVersion = "2"
		c.change(is)
		assert.Equal(t, c.want, saysMore(event.UpdateEvent{ObjectOld: was, ObjectNew: is}), name)
	}
}

func TestAVolume(t *testing.T) {
	claim := func(phase corev1.PersistentVolumeClaimPhase, size string) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "demo-pvc"}, Status: corev1.PersistentVolumeClaimStatus{Phase: phase}}
		c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
		return c
	}
	size := func(text string) *resource.Quantity { return ptr.To(resource.MustParse(text)) }
	for name, c := range map[string]struct {
		claim  *corev1.PersistentVolumeClaim
		size   *resource.Quantity
		status metav1.ConditionStatus
		want   string
	}{
		"not there yet":       {&corev1.PersistentVolumeClaim{}, nil, "False", "the volume is not bound (Pending)"},
		"lost":                {claim(corev1.ClaimLost, "1Gi"), nil, "False", "the volume is not bound (Lost)"},
		"bound":               {claim(corev1.ClaimBound, "10Gi"), nil, "True", "the volume is bound"},
		"of the size":         {claim(corev1.ClaimBound, "1024Mi"), size("1Gi"), "True", "the volume is bound"},
		"of another size":     {claim(corev1.ClaimBound, "10Gi"), size("20Gi"), "True", "the volume is bound; it has 10Gi and not the 20Gi of spec.workload.storage.size, because a volume stays as it was made: enlarge the PersistentVolumeClaim demo-pvc yourself"},
		"of another, and not": {claim(corev1.ClaimPending, "10Gi"), size("20Gi"), "False", "the volume is not bound (Pending); it has 10Gi and not the 20Gi"},
	} {
		s := newStatus(time.Unix(1, 0))
		s.volume(c.claim, c.size)
		condition := apimeta.FindStatusCondition(s.object.Status.Conditions, conditionStorage)
		assert.Equal(t, c.status, condition.Status, name)
		assert.Contains(t, condition.Message, c.want, name)
	}
}

func TestWhenAServerIsLookedAtAgain(t *testing.T) {
	s := newStatus(time.Unix(1, 0))
	one, none := int32(1), int32(0)
	s.deployed(&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: &one}})
	assert.Equal(t, 10*time.Second, s.next(), "it starts")
	s.deployed(&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: &one}, Status: appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1}})
	s.answered(Answer{ProvidersErr: errors.New("refused")})
	assert.Equal(t, time.Minute, s.next(), "it runs and does not answer")
	s.answered(Answer{})
	assert.Equal(t, 5*time.Minute, s.next())
	s.deployed(&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: &none}})
	s.silent()
	assert.Equal(t, 5*time.Minute, s.next(), "there is nobody to answer")
}

func TestReasonsOfRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		err             error
		config, secrets string
	}{
		"a Secret":        {&secretError{reasonSecretNotFound, errors.New("gone")}, "ConfigGenerationFailed", "SecretNotFound"},
		"an entry":        {&secretError{reasonKeyMissing, errors.New("gone")}, "ConfigGenerationFailed", "SecretKeyMissing"},
		"a configuration": {&configuration.Error{Reason: configuration.ReasonBaseRequired, Err: errors.New("none")}, "BaseConfigRequired", ""},
		"anything else":   {errors.New("unknown distribution"), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStatus(time.Unix(1, 0))
			s.gathered(&plan{}, "v1", c.err)
			assert.Equal(t, v1alpha2.PhaseFailed, s.object.Status.Phase)
			reason := func(kind string) string {
				if found := apimeta.FindStatusCondition(s.object.Status.Conditions, kind); found != nil {
					return found.Reason
				}
				return ""
			}
			assert.Equal(t, c.config, reason(conditionConfig))
			assert.Equal(t, c.secrets, reason(conditionSecrets))
			assert.Equal(t, "DeploymentUpdateSkipped", reason(conditionUpdated))
			assert.Equal(t, "DeploymentFailed", reason(conditionDeployment))
		})
	}
}

// The API server refuses an event of more than 1,024 bytes, and writes another text in place
// of half a letter: a status that is compared with what was read would differ for ever.
func TestLongMessages(t *testing.T) {
	long := strings.Repeat("a", 999) + strings.Repeat("ü", 5000)
	s := newStatus(time.Unix(1, 0))
	s.tell("Warning", "Reason", "Action", long)
	note := strings.TrimPrefix(<-s.recorder.(*events.FakeRecorder).Events, "Warning Reason ")
	assert.LessOrEqual(t, len(note), 1024)
	assert.True(t, utf8.ValidString(note))
	s.fail(errors.New(long))
	message := s.object.Status.Conditions[0].Message
	assert.Greater(t, len(message), 1024)
	assert.True(t, utf8.ValidString(message))
	assert.False(t, s.isNews(conditionDeployment, "DeploymentFailed", long))
}

// The object is the same, so that what came with the operator or the image is why.
func TestAnUpgradeThatCannotGenerateTheConfiguration(t *testing.T) {
	s := newStatus(time.Unix(1, 0))
	reason := func() string { return apimeta.FindStatusCondition(s.object.Status.Conditions, conditionConfig).Reason }
	failed := &configuration.Error{Reason: configuration.ReasonMissingProvider, Err: errors.New("none")}
	s.gathered(&plan{Input: child.Input{Configuration: &child.Configuration{ConfigMap: "c"}}, generated: &configuration.Generated{}}, "v1", nil)
	assert.Equal(t, "ConfigGenerationSucceeded", reason())
	for range 2 {
		s.gathered(&plan{}, "v2", failed)
		assert.Equal(t, "UpgradeConfigFailure", reason())
	}
	s.object.Generation++
	s.gathered(&plan{}, "v2", failed)
	assert.Equal(t, "MissingProviderForResource", reason(), "the object was edited")
	s.gathered(&plan{}, "v2", failed)
	assert.Equal(t, "MissingProviderForResource", reason())
}

func TestTheAddressOfAnIngress(t *testing.T) {
	ingress := &networkingv1.Ingress{}
	assert.Empty(t, address(ingress))
	ingress.Spec.Rules = []networkingv1.IngressRule{{Host: "rule"}}
	assert.Equal(t, "http://rule", address(ingress))
	ingress.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "1.2.3.4"}}
	assert.Equal(t, "http://1.2.3.4", address(ingress))
	ingress.Status.LoadBalancer.Ingress[0].IP = "2001:db8::1"
	assert.Equal(t, "http://[2001:db8::1]", address(ingress))
	ingress.Status.LoadBalancer.Ingress[0].Hostname = "balancer"
	assert.Equal(t, "http://balancer", address(ingress))
}
