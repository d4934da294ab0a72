package configuration

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
)

// Reasons why a configuration cannot be generated, as the condition ConfigGenerated has
// them.
const (
	ReasonFailed             = "ConfigGenerationFailed"
	ReasonBaseRequired       = "BaseConfigRequired"
	ReasonUnsupportedVersion = "UnsupportedConfigVersion"
	ReasonMissingProvider    = "MissingProviderForResource"
)

// Error is an error with the reason that a condition shows.
type Error struct {
	Reason string
	Err    error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

func failed(reason, format string, values ...any) error {
	return &Error{reason, fmt.Errorf(format, values...)}
}

// ReasonOf is the reason of an error, ReasonFailed where it has none of its own.
func ReasonOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return ReasonFailed
}

// Generated is a configuration.
type Generated struct {
	// Text is config.yaml.
	Text []byte
	// Hash is the SHA-256 of Text, in hexadecimal digits.
	Hash string
	// Secrets are the variables that the text refers to, with where their values are.
	Secrets []Secret
	// Providers is how many providers the object declares, or where it declares none how
	// many the base has. Resources is how many models, tools and shields it declares.
	Providers, Resources int
	// Version is that of the format.
	Version int
}

// Wanted says whether the object declares anything that a configuration is generated
// for.
func Wanted(spec *v1alpha2.LlamaStackDistributionSpec) bool {
	for _, group := range spec.Providers.Groups() {
		if group.Value != nil {
			return true
		}
	}
	resources, storage := spec.Resources, spec.Storage
	return resources != nil && len(resources.Models)+len(resources.Tools)+len(resources.Shields) > 0 ||
		storage != nil && (storage.KV != nil || storage.SQL != nil) ||
		len(spec.Disabled) > 0
}

// Options are choices for all servers.
type Options struct {
	// RedisPasswordInHost puts the password of Redis before the host. The server makes its
	// address of the host and the port, and takes no password by itself.
	RedisPasswordInHost bool
}

// Generate makes the configuration of an object of that name from the base of its
// distribution, which is nil where none is known. Errors are of type *Error.
func Generate(name string, spec *v1alpha2.LlamaStackDistributionSpec, base []byte, o Options) (Generated, error) {
	if base == nil {
		return Generated{}, failed(ReasonBaseRequired, "no configuration is known for the image %q, so none can be generated from providers, resources, storage or disabled: "+
			"use distribution.name, or give the whole configuration with overrideConfig", spec.Distribution.Image)
	}
	c, err := parse(base)
	if err != nil {
		return Generated{}, failed(ReasonFailed, "reading the configuration of the distribution: %w", err)
	}
	version, err := c.version()
	if err != nil {
		return Generated{}, err
	}
	secrets, err := Secrets(name, spec)
	if err != nil {
		return Generated{}, &Error{ReasonFailed, err}
	}
	declared, err := c.addProviders(spec.Providers)
	if err != nil {
		return Generated{}, err
	}
	if err := c.addResources(spec, declared); err != nil {
		return Generated{}, err
	}
	if err := c.setStorage(spec.Storage, o); err != nil {
		return Generated{}, err
	}
	providers := c.countProviders()
	if len(declared) > 0 {
		providers = len(declared)
	}
	c.disable(spec.Disabled)
	c.setServer(spec)
	text, err := c.render()
	if err != nil {
		return Generated{}, failed(ReasonFailed, "writing the configuration: %w", err)
	}
	return Generated{
		Text: text, Hash: Hash(text), Secrets: secrets,
		Providers: providers, Resources: countResources(spec.Resources), Version: version,
	}, nil
}

// Hash is the SHA-256 of a text in hexadecimal digits.
func Hash(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func countResources(r *v1alpha2.Resources) int {
	if r == nil {
		return 0
	}
	return len(r.Models) + len(r.Tools) + len(r.Shields)
}
