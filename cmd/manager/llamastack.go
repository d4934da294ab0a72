package main

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"llmd.ai/workload-variant-autoscaler/pkg/adapters/llamaserver"
	"llmd.ai/workload-variant-autoscaler/pkg/admission"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/operator"
	"llmd.ai/workload-variant-autoscaler/pkg/release"
)

// llamaStackOperator is the feature of running Llama Stack servers. It is on wherever the
// cluster has the kind and the manager may handle it.
const llamaStackOperator featuregate.Feature = "LlamaStackOperator"

// newFeatures has every feature with its default.
func newFeatures() featuregate.MutableFeatureGate {
	features := featuregate.NewFeatureGate()
	if err := features.Add(map[featuregate.Feature]featuregate.FeatureSpec{
		llamaStackOperator: {Default: true, PreRelease: featuregate.Beta},
	}); err != nil {
		panic(err) // a name twice in the lines above
	}
	return features
}

// llamaStackWebhooks are those of Llama Stack servers, whose operator starts with them; none,
// which is said, where they are not wanted.
func llamaStackWebhooks(ctx context.Context, mgr ctrl.Manager, c config.Config, features featuregate.FeatureGate) ([]webhooks, error) {
	if why, err := llamaStackOff(ctx, mgr, c.WatchNamespace, features); err != nil {
		return nil, err
	} else if why != "" {
		klog.InfoS("LlamaStackDistribution objects are not handled", "why", why)
		return nil, nil
	}
	start := func() error {
		if err := admission.LlamaStack(mgr); err != nil {
			return err
		}
		return operator.Add(mgr, operator.Options{
			Server: asker{llamaserver.New(c.LlamaStackServerAddress)}, Clock: clock.RealClock{}, Version: release.This().Version,
			Namespace: c.PodNamespace, WatchNamespace: c.WatchNamespace,
		})
	}
	return []webhooks{{admission.LlamaStackConfigurations(c.Webhook.Configuration), start}}, nil
}

// llamaStackOff says why Llama Stack servers are not run in a namespace, or in all; empty where they are.
func llamaStackOff(ctx context.Context, mgr ctrl.Manager, namespace string, features featuregate.FeatureGate) (string, error) {
	if !features.Enabled(llamaStackOperator) {
		return "the feature gate LlamaStackOperator is off", nil
	}
	kind := v1alpha2.GroupVersion.WithKind(v1alpha2.Kind)
	if _, err := mgr.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version); apimeta.IsNoMatchError(err) {
		return "the cluster has no such kind, which manifests/llamastack installs", nil
	} else if err != nil {
		return "", fmt.Errorf("looking for the kind %s: %w", kind.Kind, err)
	}
	reviews, err := authorizationclient.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return "", fmt.Errorf("making a client: %w", err)
	}
	review, err := reviews.SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: "update", Group: v1alpha2.GroupName, Resource: v1alpha2.Resource, Subresource: "status",
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("looking at what the manager may do with %s: %w", kind.Kind, err)
	}
	if !review.Status.Allowed {
		return "the manager may not write their status, which manifests/llamastack/rbac.yaml grants", nil
	}
	return "", nil
}

// asker lets the operator ask servers.
type asker struct{ client *llamaserver.Client }

// Look implements operator.Server.
func (a asker) Look(ctx context.Context, url string) operator.Answer {
	var answer operator.Answer
	if answer.Providers, answer.ProvidersErr = a.client.Providers(ctx, url); answer.ProvidersErr != nil {
		answer.VersionErr = answer.ProvidersErr // who does not answer is not waited for twice
		return answer
	}
	answer.Version, answer.VersionErr = a.client.Version(ctx, url)
	return answer
}
