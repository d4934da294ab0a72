package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/child"
	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/configuration"
)

// Conditions of an object.
const (
	conditionDeployment = "DeploymentReady"
	conditionHealth     = "HealthCheck"
	conditionStorage    = "StorageReady"
	conditionService    = "ServiceReady"
	conditionConfig     = "ConfigGenerated"
	conditionSecrets    = "SecretsResolved"
	conditionUpdated    = "DeploymentUpdated"
	conditionAvailable  = "Available"
	conditionExternal   = "ExternalProvidersApplied"
	conditionConfigMaps = "ConfigMapsReadable"
)

// status writes the status of one object, in the order in which a turn finds it out.
type status struct {
	object   *v1alpha2.LlamaStackDistribution
	clock    clock.PassiveClock
	recorder events.EventRecorder
}

// set sets a condition. Its time moves only when its status does.
func (s *status) set(kind string, is bool, reason, message string) {
	value := metav1.ConditionFalse
	if is {
		value = metav1.ConditionTrue
	}
	apimeta.SetStatusCondition(&s.object.Status.Conditions, metav1.Condition{
		Type: kind, Status: value, Reason: reason, Message: shortened(message, longestMessage),
		ObservedGeneration: s.object.Generation, LastTransitionTime: metav1.NewTime(s.clock.Now()),
	})
}

func (s *status) drop(kind string) {
	apimeta.RemoveStatusCondition(&s.object.Status.Conditions, kind)
}

// Bounds in bytes. A condition takes 32 kB, and nobody reads that much; an event takes 1,024.
const longestMessage, longestNote = 2000, 1000

// shortened bounds a message, between two letters.
func shortened(message string, longest int) string {
	if len(message) <= longest {
		return message
	}
	return strings.ToValidUTF8(message[:longest], "") + "..."
}

// tell is an event, unless the condition said the same before.
func (s *status) tell(kind, reason, action, message string) {
	s.recorder.Eventf(s.object, nil, kind, reason, action, "%s", shortened(message, longestNote))
}

func (s *status) isNews(condition, reason, message string) bool {
	was := apimeta.FindStatusCondition(s.object.Status.Conditions, condition)
	return was == nil || was.Reason != reason || was.Message != shortened(message, longestMessage)
}

func (s *status) fail(err error) {
	s.object.Status.Phase = v1alpha2.PhaseFailed
	s.set(conditionDeployment, false, "DeploymentFailed", err.Error())
}

// gathered is what the object stands for, or why it stands for nothing that can run.
func (s *status) gathered(p *plan, version string, err error) {
	st := &s.object.Status
	s.version(func(v *v1alpha2.VersionInfo) { v.OperatorVersion = version })
	if st.DistributionConfig == nil {
		st.DistributionConfig = &v1alpha2.DistributionConfig{}
	}
	if p.images != nil { // else the settings cannot be read, and what runs is what ran
		st.DistributionConfig.AvailableDistributions = p.images
		st.DistributionConfig.ActiveDistribution = p.resolved.Name
	}
	st.Selector = labels.SelectorFromSet(child.Selector(s.object.Name)).String()
	st.ServiceURL = fmt.Sprintf("http://%s-service.%s.svc.cluster.local:%d", s.object.Name, s.object.Namespace, child.Port(s.object))
	if s.object.Spec.ExternalProviders != nil {
		s.set(conditionExternal, false, "NotImplemented", "external providers are stored and not injected into the server")
	} else {
		s.drop(conditionExternal)
	}
	if err != nil {
		s.refused(err)
		return
	}
	s.drop(conditionConfigMaps)
	st.ResolvedDistribution = &v1alpha2.ResolvedDistribution{Image: p.Image, ConfigSource: p.source, ConfigHash: p.hash}
	if len(p.Secrets) > 0 {
		s.set(conditionSecrets, true, "AllSecretsFound", "every Secret that the object names has the entry that it names")
	} else {
		s.drop(conditionSecrets)
	}
	s.generated(p.generated, p.Configuration)
}

// generated is the configuration that was generated, if one was.
func (s *status) generated(g *configuration.Generated, c *child.Configuration) {
	st := &s.object.Status
	if g == nil {
		st.ConfigGeneration = nil
		s.drop(conditionConfig)
		return
	}
	was := ptr.Deref(st.ConfigGeneration, v1alpha2.ConfigGeneration{})
	is := v1alpha2.ConfigGeneration{
		ConfigMapName: c.ConfigMap, GeneratedAt: was.GeneratedAt,
		ProviderCount: int32(g.Providers), ResourceCount: int32(g.Resources), ConfigVersion: int32(g.Version),
	}
	message := "the configuration is in the ConfigMap " + c.ConfigMap
	if was.ConfigMapName != c.ConfigMap {
		is.GeneratedAt = ptr.To(metav1.NewTime(s.clock.Now()).Rfc3339Copy())
		s.tell(corev1.EventTypeNormal, "ConfigGenerated", "Generate", message)
	}
	st.ConfigGeneration = &is
	s.set(conditionConfig, true, "ConfigGenerationSucceeded", message)
}

// refused says why an object cannot be run. Its children stay as they are.
func (s *status) refused(err error) {
	s.readable(err)
	var secret *secretError
	if errors.As(err, &secret) {
		if s.isNews(conditionSecrets, secret.reason, err.Error()) {
			s.tell(corev1.EventTypeWarning, "SecretResolutionFailed", "Generate", err.Error())
		}
		s.set(conditionSecrets, false, secret.reason, err.Error())
	}
	var generation *configuration.Error
	if secret != nil || errors.As(err, &generation) {
		reason := s.reasonOf(err)
		if s.isNews(conditionConfig, reason, err.Error()) {
			s.tell(corev1.EventTypeWarning, "ConfigGenerationFailed", "Generate", err.Error())
		}
		s.set(conditionConfig, false, reason, err.Error())
	}
	s.set(conditionUpdated, false, "DeploymentUpdateSkipped", "the Deployment stays as it is: "+err.Error())
	s.fail(err)
}

// reasonNotAllowed is that a ConfigMap of another namespace does not allow to be read.
const reasonNotAllowed = "NotAllowed"

// readable says what a ConfigMap of another namespace lacks; nothing where something else is
// wrong.
func (s *status) readable(err error) {
	if !isForbidden(err) {
		s.drop(conditionConfigMaps)
		return
	}
	if s.isNews(conditionConfigMaps, reasonNotAllowed, err.Error()) {
		s.tell(corev1.EventTypeWarning, "ConfigMapNotAllowed", "Read", err.Error())
	}
	s.set(conditionConfigMaps, false, reasonNotAllowed, err.Error())
}

// reasonUpgrade is that the configuration of an object could be generated, and cannot from
// what a later operator, or another image, brings.
const reasonUpgrade = "UpgradeConfigFailure"

// reasonOf is why no configuration is generated.
func (s *status) reasonOf(err error) string {
	reason := configuration.ReasonOf(err)
	was := apimeta.FindStatusCondition(s.object.Status.Conditions, conditionConfig)
	var secret *secretError
	unchanged := was != nil && was.ObservedGeneration == s.object.Generation && (was.Status == metav1.ConditionTrue || was.Reason == reasonUpgrade)
	if unchanged && !errors.As(err, &secret) {
		return reasonUpgrade
	}
	return reason
}

// applied is what became of writing the children.
func (s *status) applied(p *plan, deploymentChanged bool, err error) {
	if err != nil {
		s.set(conditionUpdated, false, "DeploymentUpdateFailed", err.Error())
		s.set(conditionService, false, "ServiceFailed", err.Error())
		s.fail(err)
		return
	}
	message := "the Deployment runs " + p.Image
	if deploymentChanged {
		s.tell(corev1.EventTypeNormal, "DeploymentUpdated", "Apply", message)
	}
	s.set(conditionUpdated, true, "DeploymentUpdateSucceeded", message)
	s.set(conditionService, true, "ServiceReady", "the Service leads to the pods")
}

// deployed is how far the Deployment is; nil for none yet.
func (s *status) deployed(d *appsv1.Deployment) {
	s.counted(d)
	st := &s.object.Status
	if d == nil {
		st.Phase = v1alpha2.PhasePending
		s.set(conditionDeployment, false, "DeploymentPending", "the Deployment is not there yet")
		return
	}
	wanted, message := wantedOf(d)
	switch {
	case d.Status.ReadyReplicas != wanted:
		st.Phase = v1alpha2.PhaseInitializing
		s.set(conditionDeployment, false, "DeploymentPending", message)
	case isRolling(d):
		st.Phase = v1alpha2.PhaseInitializing
		s.set(conditionDeployment, false, "DeploymentPending", "not all pods are new yet; "+message)
	default:
		st.Phase = v1alpha2.PhaseReady
		s.set(conditionDeployment, true, "DeploymentReady", message)
	}
}

// counted is how many pods the Deployment has; nil for none yet.
func (s *status) counted(d *appsv1.Deployment) {
	st := &s.object.Status
	if d == nil {
		st.AvailableReplicas, st.Replicas = 0, 0
		s.set(conditionAvailable, false, "ReplicasUnavailable", "no pod is ready")
		return
	}
	ready := d.Status.ReadyReplicas
	st.AvailableReplicas, st.Replicas = ready, d.Status.Replicas
	wanted, message := wantedOf(d)
	switch {
	case ready == wanted && isRolling(d):
		s.set(conditionAvailable, ready > 0, "RolloutInProgress", message)
	case ready == wanted || ready > 0:
		s.set(conditionAvailable, true, "MinimumReplicasAvailable", message)
	default:
		s.set(conditionAvailable, false, "ReplicasUnavailable", message)
	}
}

// wantedOf is how many pods a Deployment is to have, and how many of them are ready, with why
// the others are not as far as the Deployment knows.
func wantedOf(d *appsv1.Deployment) (wanted int32, message string) {
	wanted = ptr.Deref(d.Spec.Replicas, 1)
	message = fmt.Sprintf("%d of %d pods are ready", d.Status.ReadyReplicas, wanted)
	for _, c := range d.Status.Conditions {
		failed := c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue
		if stuck := c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse; failed || stuck {
			message += ": " + c.Message
		}
	}
	return wanted, message
}

func isRolling(d *appsv1.Deployment) bool {
	wanted, _ := wantedOf(d)
	return d.Status.ObservedGeneration < d.Generation || d.Status.UpdatedReplicas < wanted || d.Status.Replicas > wanted
}

func (s *status) withoutVolume() { s.drop(conditionStorage) }

// volume is how the claim is. Whoever asks for another size than it was made with is told.
func (s *status) volume(claim *corev1.PersistentVolumeClaim, size *resource.Quantity) {
	more := ""
	if has, ok := claim.Spec.Resources.Requests[corev1.ResourceStorage]; ok && size != nil && has.Cmp(*size) != 0 {
		more = fmt.Sprintf("; it has %s and not the %s of spec.workload.storage.size, because a volume stays as it was made: enlarge the PersistentVolumeClaim %s yourself where its class lets you",
			&has, size, claim.Name)
	}
	if claim.Status.Phase == corev1.ClaimBound {
		s.set(conditionStorage, true, "StorageReady", "the volume is bound"+more)
		return
	}
	s.set(conditionStorage, false, "StorageFailed", fmt.Sprintf("the volume is not bound (%s)", cmp.Or(claim.Status.Phase, corev1.ClaimPending))+more)
}

// answered is what the server says of itself. That it does not answer changes no phase:
// its pods are ready.
func (s *status) answered(a Answer) {
	for i := range a.Providers {
		p := &a.Providers[i]
		p.Config.Raw = configuration.WithoutSecrets(&s.object.Spec, p.ProviderID, p.Config.Raw)
	}
	s.object.Status.DistributionConfig.Providers = a.Providers
	if a.ProvidersErr != nil {
		s.object.Status.DistributionConfig.Providers = nil
		s.set(conditionHealth, false, "HealthCheckFailed", a.ProvidersErr.Error())
	} else {
		s.set(conditionHealth, true, "HealthCheckPassed", "the server lists its providers")
	}
	if a.VersionErr == nil {
		s.version(func(v *v1alpha2.VersionInfo) { v.LlamaStackServerVersion = a.Version })
	}
}

// next is when the server is looked at again.
func (s *status) next() time.Duration {
	st := &s.object.Status
	switch {
	case st.Phase != v1alpha2.PhaseReady:
		return soon
	case st.AvailableReplicas > 0 && !apimeta.IsStatusConditionTrue(st.Conditions, conditionHealth):
		return again
	}
	return later
}

// silent is that nobody was asked.
func (s *status) silent() {
	s.object.Status.DistributionConfig.Providers = nil
	s.set(conditionHealth, false, "HealthCheckFailed", "Deployment not ready")
}

// version changes the versions, and notes when.
func (s *status) version(change func(*v1alpha2.VersionInfo)) {
	was := ptr.Deref(s.object.Status.Version, v1alpha2.VersionInfo{})
	is := was
	change(&is)
	if is != was {
		is.LastUpdated = ptr.To(metav1.NewTime(s.clock.Now()).Rfc3339Copy())
	}
	s.object.Status.Version = &is
}

// observeRoute finds the address of the Ingress.
func (o *operator) observeRoute(ctx context.Context, s *status) error {
	st := &s.object.Status
	if n := s.object.Spec.Networking; n == nil || !v1alpha2.ExposureOf(n.Expose).Enabled {
		st.RouteURL = nil
		return nil
	}
	ingress := &networkingv1.Ingress{}
	err := o.cached.Get(ctx, client.ObjectKey{Namespace: s.object.Namespace, Name: s.object.Name + "-ingress"}, ingress)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	st.RouteURL = ptr.To(address(ingress))
	return nil
}

// address is that of the load balancer, by name or by number, else the host of the rule.
func address(ingress *networkingv1.Ingress) string {
	for _, balancer := range ingress.Status.LoadBalancer.Ingress {
		for _, host := range []string{balancer.Hostname, balancer.IP} {
			if strings.Contains(host, ":") {
				host = "[" + host + "]" // of IPv6
			}
			if host != "" {
				return "http://" + host
			}
		}
	}
	for _, rule := range ingress.Spec.Rules {
		if rule.Host != "" {
			return "http://" + rule.Host
		}
	}
	return ""
}
