package operator

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/child"
	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/configuration"
	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/distribution"
)

// settingsName is the ConfigMap with the operator's settings.
const settingsName = "llama-stack-operator-config"

// Entries of that ConfigMap.
const (
	entryFlags     = "featureFlags"
	entryOverrides = "image-overrides"
)

// settings are what users choose for all servers.
type settings struct {
	// overrides are images of distributions by name.
	overrides map[string]string
	// networkPolicies says whether servers are protected by network policies.
	networkPolicies bool
	// anyUID says whether servers run as the user of their image on OpenShift.
	anyUID  bool
	options configuration.Options
}

func (o *operator) settingsKey() types.NamespacedName {
	return types.NamespacedName{Namespace: o.Namespace, Name: settingsName}
}

// createSettings makes the ConfigMap with the defaults, so that users find what there is
// to choose.
func (o *operator) createSettings(ctx context.Context) error {
	err := o.api.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: settingsName, Labels: map[string]string{child.LabelWatch: "true"}},
		Data:       map[string]string{entryFlags: "enableNetworkPolicy:\n  enabled: false\ngrantAnyUID:\n  enabled: false\nredisPasswordInHost:\n  enabled: false\n"},
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		klog.ErrorS(err, "The settings of Llama Stack servers could not be written, so the defaults are used", "configMap", o.settingsKey())
	}
	return nil
}

// readSettings has the defaults for what is missing. What cannot be read is an error, so that
// nothing changes until it is corrected: a typing error must not take protections and images
// away that somebody chose.
func (o *operator) readSettings(ctx context.Context) (settings, error) {
	var found corev1.ConfigMap
	if err := o.api.Get(ctx, o.settingsKey(), &found); apierrors.IsNotFound(err) {
		return settings{}, nil
	} else if err != nil {
		return settings{}, fmt.Errorf("reading the ConfigMap %s: %w", o.settingsKey(), err)
	}
	s, err := parseSettings(found.Data)
	if err != nil {
		err = fmt.Errorf("the ConfigMap %s cannot be used, and nothing is changed until it is corrected: %w", o.settingsKey(), err)
		o.recorder.Eventf(&found, nil, corev1.EventTypeWarning, "InvalidConfiguration", "Read", "%s", shortened(err.Error(), longestNote))
	}
	return s, err
}

func parseSettings(data map[string]string) (settings, error) {
	type flag struct {
		Enabled bool `json:"enabled"`
	}
	var flags struct {
		EnableNetworkPolicy flag `json:"enableNetworkPolicy"`
		GrantAnyUID         flag `json:"grantAnyUID"`
		RedisPasswordInHost flag `json:"redisPasswordInHost"`
	}
	flagsErr := yaml.UnmarshalStrict([]byte(data[entryFlags]), &flags)
	if flagsErr != nil {
		flagsErr = fmt.Errorf("%s: %w: write it as enableNetworkPolicy: {enabled: true}", entryFlags, flagsErr)
	}
	overrides, overridesErr := distribution.ParseOverrides(data[entryOverrides])
	return settings{
		overrides: overrides, networkPolicies: flags.EnableNetworkPolicy.Enabled, anyUID: flags.GrantAnyUID.Enabled,
		options: configuration.Options{RedisPasswordInHost: flags.RedisPasswordInHost.Enabled},
	}, errors.Join(flagsErr, overridesErr)
}
