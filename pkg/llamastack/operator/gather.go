package operator

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/child"
	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/configuration"
	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/distribution"
	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/validation"
)

const (
	configEntry = "config.yaml"
	bundleEntry = "ca-bundle.crt"
	// trustedBundle is a ConfigMap that some platforms put into every namespace.
	trustedBundle = "odh-trusted-ca-bundle"
)

// Reasons of conditions about what an object needs and does not find.
const (
	reasonSecretNotFound = "SecretNotFound"
	reasonKeyMissing     = "SecretKeyMissing"
)

// plan is what an object asks for, and what is told of it.
type plan struct {
	child.Input
	resolved  distribution.Resolved
	images    map[string]string
	options   configuration.Options
	generated *configuration.Generated
	// source and hash say where the configuration is from.
	source, hash string
}

// secretError is about a Secret that a configuration needs.
type secretError struct {
	reason string
	err    error
}

func (e *secretError) Error() string { return e.err.Error() }
func (e *secretError) Unwrap() error { return e.err }

// gather finds out all that the children are made of. It writes nothing. The plan has
// what was found before an error.
func (o *operator) gather(ctx context.Context, object *v1alpha2.LlamaStackDistribution) (*plan, error) {
	p := &plan{Input: child.Input{Object: object, OperatorNamespace: o.Namespace}}
	s, err := o.readSettings(ctx)
	if err != nil {
		return p, err
	}
	p.images, p.NetworkPolicies, p.options = distribution.Images(s.overrides), s.networkPolicies, s.options
	var rest *v1alpha2.Rejected
	if p.Object, rest = validation.Effective(object); rest != nil {
		return p, fmt.Errorf("values of v1alpha1 that cannot be run: %w", validation.Rejected(rest).ToAggregate())
	}
	if p.resolved, err = distribution.Resolve(object.Spec.Distribution, s.overrides); err != nil {
		return p, err
	}
	p.Image = p.resolved.Image
	if err := o.gatherConfiguration(ctx, p); err != nil {
		return p, err
	}
	if p.Bundle, err = o.gatherBundle(ctx, object); err != nil {
		return p, err
	}
	if !s.anyUID {
		return p, nil
	}
	switch err := o.api.Get(ctx, client.ObjectKey{Name: child.AnyUID}, &rbacv1.ClusterRole{}); {
	case err == nil:
		p.AnyUID = true
	case !apierrors.IsNotFound(err):
		return p, fmt.Errorf("looking for the ClusterRole %s: %w", child.AnyUID, err)
	}
	return p, nil
}

func (o *operator) gatherConfiguration(ctx context.Context, p *plan) error {
	spec := &p.Object.Spec
	switch {
	case spec.OverrideConfig != nil:
		return o.gatherOverride(ctx, p)
	case configuration.Wanted(spec):
		p.source = v1alpha2.ConfigSourceEmbedded
		if err := o.gatherSecrets(ctx, p); err != nil {
			return err
		}
		generated, err := configuration.Generate(p.Object.Name, spec, p.resolved.Base, p.options)
		if err != nil {
			return err
		}
		p.generated, p.hash = &generated, configuration.Hash(p.resolved.Base)
		p.Configuration = &child.Configuration{
			ConfigMap: child.ConfigName(p.Object.Name, generated.Hash), Hash: generated.Hash, Text: generated.Text, Generated: true,
		}
	default:
		p.source = v1alpha2.ConfigSourceDefault
	}
	return nil
}

// overrideKey is the ConfigMap of an object with a whole configuration. An object that was
// written as v1alpha1 may name one of another namespace.
func overrideKey(object *v1alpha2.LlamaStackDistribution) types.NamespacedName {
	if object.Spec.OverrideConfig == nil {
		return types.NamespacedName{}
	}
	key := types.NamespacedName{Namespace: object.Namespace, Name: object.Spec.OverrideConfig.ConfigMapName}
	if carried, _ := v1alpha2.ReadV1alpha1Extras(object); carried.UserConfig != nil {
		key.Namespace = carried.UserConfig.Namespace
	}
	return key
}

// gatherOverride mounts the ConfigMap of the object; a pod can mount one of another
// namespace only as a copy, which that ConfigMap has to allow.
func (o *operator) gatherOverride(ctx context.Context, p *plan) error {
	key := overrideKey(p.Object)
	foreign := key.Namespace != p.Object.Namespace
	found, err := o.readConfigMap(ctx, p.Object.Namespace, key, "spec.overrideConfig")
	if err != nil {
		return err
	}
	text, ok := found.Data[configEntry]
	if !ok {
		return fmt.Errorf("the ConfigMap %s of spec.overrideConfig has no entry %s: add it", key, configEntry)
	}
	switch err := configuration.CheckOverride([]byte(text)); {
	case err != nil && foreign: // the error quotes what is there
		return fmt.Errorf("the entry %s of the ConfigMap %s of spec.overrideConfig is no configuration of version 1 or 2: correct it there", configEntry, key)
	case err != nil:
		return fmt.Errorf("the ConfigMap %s of spec.overrideConfig: %w", key, err)
	}
	p.source, p.hash = v1alpha2.ConfigSourceOverride, configuration.Hash([]byte(text))
	p.Configuration = &child.Configuration{ConfigMap: key.Name, Hash: p.hash}
	if foreign {
		p.Configuration.ConfigMap, p.Configuration.Text = child.UserConfigName(p.Object.Name), []byte(text)
	}
	return nil
}

// gatherSecrets looks whether every Secret is there that the configuration will refer to,
// and tells all that are missing. Values are looked at in one place only: the connection
// string of PostgreSQL.
func (o *operator) gatherSecrets(ctx context.Context, p *plan) error {
	secrets, err := configuration.Secrets(p.Object.Name, &p.Object.Spec)
	if err != nil {
		return err
	}
	p.Secrets = secrets
	var values []string
	var errs []error
	reason := reasonKeyMissing
	read := map[string]*corev1.Secret{}
	for _, secret := range secrets {
		if secret.Field == "" {
			continue // ours
		}
		found, seen := read[secret.From.Name]
		if !seen {
			found = &corev1.Secret{}
			switch err := o.api.Get(ctx, client.ObjectKey{Namespace: p.Object.Namespace, Name: secret.From.Name}, found); {
			case apierrors.IsNotFound(err):
				found = nil
			case err != nil:
				return fmt.Errorf("reading the Secret %s/%s of %s: %w", p.Object.Namespace, secret.From.Name, secret.Field, err)
			}
			read[secret.From.Name] = found
		}
		if found == nil {
			reason = reasonSecretNotFound
			errs = append(errs, fmt.Errorf("the Secret %s/%s of %s (variable %s) does not exist: create it", p.Object.Namespace, secret.From.Name, secret.Field, secret.Variable))
			continue
		}
		value, ok := found.Data[secret.From.Key]
		if !ok {
			errs = append(errs, fmt.Errorf("the Secret %s/%s of %s (variable %s) has no entry %q: add it", p.Object.Namespace, secret.From.Name, secret.Field, secret.Variable, secret.From.Key))
			continue
		}
		values = append(values, fingerprint(found, secret.From.Key))
		if secret.Field == "spec.storage.sql.connectionString" {
			if p.Postgres, err = configuration.Postgres(string(value)); err != nil {
				errs = append(errs, fmt.Errorf("the Secret %s/%s, entry %q: %w", p.Object.Namespace, secret.From.Name, secret.From.Key, err))
			}
		}
	}
	if len(errs) > 0 {
		return &secretError{reason, joined(errs)}
	}
	if len(values) > 0 {
		slices.Sort(values)
		p.SecretsHash = configuration.Hash([]byte(strings.Join(slices.Compact(values), "\n")))
	}
	return nil
}

// fingerprint changes with the value of an entry, and with nothing else of its Secret: labels and other
// entries are no reason to start a server anew. Its key is the Secret's UID, which only those know
// who may read the Secret anyway: nobody else can try short values until one fits.
func fingerprint(secret *corev1.Secret, entry string) string {
	mac := hmac.New(sha256.New, []byte(secret.UID))
	_, _ = mac.Write(secret.Data[entry]) // which never fails
	return fmt.Sprintf("%s/%s %x", secret.Name, entry, mac.Sum(nil))
}

// bundleKey is the ConfigMap of an object with certificate authorities, and its entries.
func bundleKey(object *v1alpha2.LlamaStackDistribution) (key types.NamespacedName, entries []string, ok bool) {
	n := object.Spec.Networking
	if n == nil || n.TLS == nil || n.TLS.CABundle == nil {
		return key, nil, false
	}
	key = types.NamespacedName{Namespace: object.Namespace, Name: n.TLS.CABundle.ConfigMapName}
	entries = []string{bundleEntry}
	if carried, _ := v1alpha2.ReadV1alpha1Extras(object); carried.CABundle != nil {
		key.Namespace = cmp.Or(carried.CABundle.Namespace, key.Namespace)
		if len(carried.CABundle.Keys) > 0 {
			entries = carried.CABundle.Keys
		}
	}
	return key, entries, true
}

// gatherBundle joins the certificate authorities of the object, which must be there, and
// those of the platform, of which those that cannot be read are left out.
func (o *operator) gatherBundle(ctx context.Context, object *v1alpha2.LlamaStackDistribution) ([]byte, error) {
	var sources []child.Source
	if key, entries, ok := bundleKey(object); ok {
		found, err := o.readConfigMap(ctx, object.Namespace, key, "spec.networking.tls.caBundle")
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			data, ok := found.Data[entry]
			if !ok || strings.Contains(entry, "..") || strings.Contains(entry, "/") {
				return nil, fmt.Errorf("the ConfigMap %s of spec.networking.tls.caBundle has no entry %q: add it", key, entry)
			}
			sources = append(sources, child.Source{Name: fmt.Sprintf("the entry %q of the ConfigMap %s", entry, key), Data: data, Foreign: key.Namespace != object.Namespace})
		}
	}
	var platform corev1.ConfigMap
	if err := o.api.Get(ctx, client.ObjectKey{Namespace: object.Namespace, Name: trustedBundle}, &platform); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading the ConfigMap %s/%s: %w", object.Namespace, trustedBundle, err)
	}
	entries := make([]string, 0, len(platform.Data))
	for entry := range platform.Data {
		entries = append(entries, entry)
	}
	slices.Sort(entries)
	for _, entry := range entries {
		source := child.Source{Name: entry, Data: platform.Data[entry]}
		if _, err := child.Bundle([]child.Source{source}); err == nil {
			sources = append(sources, source)
		}
	}
	if len(sources) == 0 {
		return nil, nil
	}
	return child.Bundle(sources)
}
