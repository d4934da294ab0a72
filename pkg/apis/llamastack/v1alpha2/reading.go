package v1alpha2

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Provider is one provider of spec.providers.
//
// +kubebuilder:object:generate=false
type Provider struct {
	// ID names the provider among all of the server; a lone provider may go without.
	ID string `json:"id,omitempty"`
	// Provider is its type: a name such as vllm, or one with a prefix, such as
	// inline::faiss.
	Provider string `json:"provider"`
	// Endpoint is the URL that it is reached at.
	Endpoint string `json:"endpoint,omitempty"`
	// APIKey is the Secret with its credential.
	APIKey *SecretKeyRef `json:"apiKey,omitempty"`
	// SecretRefs are further settings that come from Secrets, by the setting.
	SecretRefs map[string]SecretKeyRef `json:"secretRefs,omitempty"`
	// Settings are merged into the provider's configuration, as they are.
	Settings map[string]any `json:"settings,omitempty"`
}

// EffectiveID is the ID, or where none is given the last part of the type.
func (p Provider) EffectiveID() string {
	if p.ID != "" {
		return p.ID
	}
	return p.Provider[strings.LastIndex(p.Provider, ":")+1:]
}

// Type is the type as the server's configuration has it: with a prefix.
func (p Provider) Type() string {
	if strings.Contains(p.Provider, "::") {
		return p.Provider
	}
	return "remote::" + p.Provider
}

// Group is one group of spec.providers.
//
// +kubebuilder:object:generate=false
type Group struct {
	// Field is the group's field in spec.providers, and API the server's API that it
	// backs.
	Field, API string
	// Value is what was written, nil where nothing was.
	Value *apiextensionsv1.JSON
}

// Groups are the five groups in a fixed order.
func (p *Providers) Groups() []Group {
	if p == nil {
		p = &Providers{}
	}
	return []Group{
		{"inference", "inference", p.Inference},
		{"safety", "safety", p.Safety},
		{"vectorIo", "vector_io", p.VectorIo},
		{"toolRuntime", "tool_runtime", p.ToolRuntime},
		{"telemetry", "telemetry", p.Telemetry},
	}
}

// List are the providers of a group, and whether they were written as a list. An error
// says what is wrong with which of them, and what is expected.
func (g Group) List() (providers []Provider, isList bool, err error) {
	if g.Value == nil {
		return nil, false, nil
	}
	raw := bytes.TrimSpace(g.Value.Raw)
	switch {
	case bytes.HasPrefix(raw, []byte("{")):
		provider, err := readProvider(raw)
		if err != nil {
			return nil, false, err
		}
		return []Provider{provider}, false, nil
	case bytes.HasPrefix(raw, []byte("[")):
		var items []json.RawMessage
		if err := json.Unmarshal(raw, &items); err != nil {
			return nil, true, err
		}
		for i, item := range items {
			provider, err := readProvider(item)
			if err != nil {
				return nil, true, &ItemError{i, err}
			}
			providers = append(providers, provider)
		}
		if len(items) == 0 {
			return nil, true, errors.New("an empty list: remove it, or add a provider")
		}
		return providers, true, nil
	}
	return nil, false, errors.New("neither an object nor a list: write one provider, or a list of them")
}

// ItemError is an error in one item of a list.
//
// +kubebuilder:object:generate=false
type ItemError struct {
	Index int
	Err   error
}

func (e *ItemError) Error() string { return fmt.Sprintf("[%d]: %s", e.Index, e.Err) }
func (e *ItemError) Unwrap() error { return e.Err }

func readProvider(raw []byte) (Provider, error) {
	var p Provider
	if err := readStrictly(raw, &p, "id, provider, endpoint, apiKey, secretRefs or settings"); err != nil {
		return p, err
	}
	var written map[string]json.RawMessage
	if err := json.Unmarshal(raw, &written); err != nil {
		return p, err
	}
	for _, field := range []string{"id", "endpoint"} {
		if value, ok := written[field]; ok && string(value) == `""` {
			return p, fmt.Errorf("%s is empty: give it a value, or remove it", field)
		}
	}
	if p.Provider == "" {
		return p, errors.New("provider is missing: name its type, such as vllm or inline::faiss")
	}
	if p.EffectiveID() == "" {
		return p, fmt.Errorf("provider %q has no name after its prefix: write it as remote::name or inline::name", p.Provider)
	}
	if p.APIKey != nil {
		if err := p.APIKey.check(); err != nil {
			return p, fmt.Errorf("apiKey: %w", err)
		}
	}
	if _, ok := written["secretRefs"]; ok && len(p.SecretRefs) == 0 {
		return p, errors.New("secretRefs is empty: add a reference, or remove it")
	}
	for _, key := range sortedKeys(p.SecretRefs) {
		if err := p.SecretRefs[key].check(); err != nil {
			return p, fmt.Errorf("secretRefs.%s: %w", key, err)
		}
	}
	return p, nil
}

// check says what the schema says of references that it sees.
func (r SecretKeyRef) check() error {
	if r.SecretKeyRef != nil && (r.Name != "" || r.Key != "") {
		return errors.New("both forms of a reference at once: write either {name, key} or {secretKeyRef: {name, key}}")
	}
	if s := r.Selector(); s.Name == "" || s.Key == "" {
		return errors.New("name or key of the Secret is missing: write {name: <Secret>, key: <entry>}")
	}
	return nil
}

// Model is one model of spec.resources.models.
//
// +kubebuilder:object:generate=false
type Model struct {
	Name string `json:"name"`
	// Provider is the ID of the provider that serves it, else the first one.
	Provider string `json:"provider,omitempty"`
	// ContextLength is in tokens.
	ContextLength *int64 `json:"contextLength,omitempty"`
	ModelType     string `json:"modelType,omitempty"`
	Quantization  string `json:"quantization,omitempty"`
}

// ReadModel reads a model, which is a name or an object.
func ReadModel(value apiextensionsv1.JSON) (Model, error) {
	raw := bytes.TrimSpace(value.Raw)
	var m Model
	switch {
	case bytes.HasPrefix(raw, []byte(`"`)):
		if err := json.Unmarshal(raw, &m.Name); err != nil {
			return m, err
		}
	case bytes.HasPrefix(raw, []byte("{")):
		if err := readStrictly(raw, &m, "name, provider, contextLength, modelType or quantization"); err != nil {
			return m, err
		}
		var written map[string]json.RawMessage
		if err := json.Unmarshal(raw, &written); err != nil {
			return m, err
		}
		for _, field := range []string{"provider", "modelType", "quantization"} {
			if value, ok := written[field]; ok && string(value) == `""` {
				return m, fmt.Errorf("%s is empty: give it a value, or remove it", field)
			}
		}
	default:
		return m, errors.New("neither a name nor an object: write the model's name, or an object with the field name")
	}
	if m.Name == "" {
		return m, errors.New("name is missing: write the name by which clients ask for the model")
	}
	if m.ContextLength != nil && *m.ContextLength <= 0 {
		return m, fmt.Errorf("contextLength is %d: it must be at least 1 token", *m.ContextLength)
	}
	return m, nil
}

// Exposure is what spec.networking.expose says.
//
// +kubebuilder:object:generate=false
type Exposure struct {
	Enabled  bool
	Hostname string
}

// ExposureOf is what the value says; nothing where it cannot be read.
func ExposureOf(value *apiextensionsv1.JSON) Exposure {
	exposure, err := ReadExposure(value)
	if err != nil {
		return Exposure{}
	}
	return exposure
}

// ReadExposure reads true, false, or an object with the fields enabled, which is true
// unless it is given, and hostname.
func ReadExposure(value *apiextensionsv1.JSON) (Exposure, error) {
	if value == nil {
		return Exposure{}, nil
	}
	raw := bytes.TrimSpace(value.Raw)
	switch {
	case string(raw) == "true":
		return Exposure{Enabled: true}, nil
	case string(raw) == "false":
		return Exposure{}, nil
	case !bytes.HasPrefix(raw, []byte("{")):
		return Exposure{}, errors.New("neither true nor false nor an object: write true, or an object with the fields enabled and hostname")
	}
	var written struct {
		Enabled  *bool   `json:"enabled"`
		Hostname *string `json:"hostname"`
	}
	if err := readStrictly(raw, &written, "enabled or hostname"); err != nil {
		return Exposure{}, err
	}
	exposure := Exposure{Enabled: written.Enabled == nil || *written.Enabled}
	if written.Hostname != nil {
		if *written.Hostname == "" {
			return Exposure{}, errors.New("hostname is empty: give it a value, or remove it")
		}
		exposure.Hostname = *written.Hostname
	}
	return exposure, nil
}

// readStrictly reads one JSON value and refuses fields that it does not know. Numbers
// keep their digits.
func readStrictly(raw []byte, into any, known string) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	decoder.UseNumber()
	err := decoder.Decode(into)
	var wrongType *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrongType):
		return fmt.Errorf("%s is %s where %s is expected", cmp.Or(wrongType.Field, "it"), written(wrongType.Value), expected(wrongType.Type.Kind()))
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		return fmt.Errorf("unknown field %s: write %s", strings.TrimPrefix(err.Error(), "json: unknown field "), known)
	}
	return err
}

// written is what a reader of JSON calls a value, in the words of YAML.
func written(value string) string {
	switch value {
	case "array":
		return "a list"
	case "object":
		return "an object"
	}
	return "a " + value
}

// expected is what is to be written for a type.
func expected(kind reflect.Kind) string {
	switch kind {
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Bool:
		return "true or false"
	case reflect.Int64:
		return "a whole number"
	}
	return "a " + kind.String()
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
