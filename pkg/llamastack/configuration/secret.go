package configuration

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
)

// Names of variables and fields of secrets.
const (
	apiKeyField      = "api_key"
	redisPassword    = "LLSD_KV_REDIS_PASSWORD"
	connectionString = "LLSD_SQL_POSTGRES_CONNECTIONSTRING"
)

// Secret is a variable of the server's environment whose value is an entry of a Secret.
type Secret struct {
	// Variable is its name.
	Variable string
	// From is the entry.
	From v1alpha2.SecretKeySelector
	// Field is where the object names the entry. It is empty where the operator keeps
	// the Secret itself, and nobody else has to.
	Field string
}

// PostgresSecretName is the name of the Secret that the operator keeps of the connection
// string of an object.
func PostgresSecretName(object string) string { return object + "-sql-postgres" }

// Secrets are the variables of an object, in a fixed order. All errors are joined.
func Secrets(object string, spec *v1alpha2.LlamaStackDistributionSpec) ([]Secret, error) {
	var all []Secret
	var errs []error
	for _, group := range spec.Providers.Groups() {
		list, isList, err := group.List()
		if err != nil {
			errs = append(errs, fmt.Errorf("spec.providers.%s: %w", group.Field, err))
			continue
		}
		for i, provider := range list {
			field := "spec.providers." + group.Field
			if isList {
				field = fmt.Sprintf("%s[%d]", field, i)
			}
			more, err := secretsOf(provider, field)
			all, errs = append(all, more...), append(errs, err)
		}
	}
	all = append(all, storageSecrets(object, spec.Storage)...)
	targets := map[string]Secret{}
	unique := all[:0]
	for _, s := range all {
		other, found := targets[s.Variable]
		switch {
		case !found:
			targets[s.Variable] = s
			unique = append(unique, s)
		case other.From != s.From:
			errs = append(errs, fmt.Errorf("%s and %s would both be the variable %s: give one of the providers another id", other.Field, s.Field, s.Variable))
		}
	}
	return unique, errors.Join(errs...)
}

func secretsOf(p v1alpha2.Provider, field string) ([]Secret, error) {
	var all []Secret
	add := func(name, at string, from v1alpha2.SecretKeySelector) {
		all = append(all, Secret{variable(p.EffectiveID(), name), from, field + at})
	}
	if p.APIKey != nil {
		add(apiKeyField, ".apiKey", p.APIKey.Selector())
		if _, ok := p.SecretRefs[apiKeyField]; ok {
			return nil, fmt.Errorf("%s: apiKey and secretRefs.%s are the same setting: remove one of them", field, apiKeyField)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(p.SecretRefs)) {
		add(key, ".secretRefs."+key, p.SecretRefs[key].Selector())
	}
	for _, key := range slices.Sorted(maps.Keys(p.Settings)) {
		if from, ok := secretIn(p.Settings[key]); ok {
			if _, twice := p.SecretRefs[key]; twice || key == apiKeyField && p.APIKey != nil {
				continue // the field of its own wins
			}
			add(key, ".settings."+key, from)
		}
	}
	return all, nil
}

// hidden stands for the value of a secret.
const hidden = "********"

// WithoutSecrets is the configuration of a provider as the server shows it, without the
// settings that the object takes from Secrets, whatever these are called: the server writes
// out what its variables hold.
func WithoutSecrets(spec *v1alpha2.LlamaStackDistributionSpec, id string, shown []byte) []byte {
	var config map[string]any
	if json.Unmarshal(shown, &config) != nil {
		return shown
	}
	changed := false
	for _, group := range spec.Providers.Groups() {
		list, _, err := group.List()
		if err != nil {
			continue // nothing is generated of it, so that no server has it
		}
		for _, p := range list {
			if p.EffectiveID() != id {
				continue
			}
			for key := range config {
				_, secret := p.SecretRefs[key]
				if _, wrapped := secretIn(p.Settings[key]); secret || wrapped || key == apiKeyField && p.APIKey != nil {
					config[key], changed = hidden, true
				}
			}
		}
	}
	if !changed {
		return shown
	}
	text, err := json.Marshal(config)
	if err != nil {
		return []byte("{}")
	}
	return text
}

func storageSecrets(object string, s *v1alpha2.StateStorage) []Secret {
	var all []Secret
	if s == nil {
		return nil
	}
	if s.KV != nil && s.KV.Type == v1alpha2.KVRedis && s.KV.Password != nil {
		all = append(all, Secret{redisPassword, s.KV.Password.Selector(), "spec.storage.kv.password"})
	}
	if s.SQL != nil && s.SQL.Type == v1alpha2.SQLPostgres && s.SQL.ConnectionString != nil {
		all = append(all, Secret{connectionString, s.SQL.ConnectionString.Selector(), "spec.storage.sql.connectionString"})
		for _, part := range PostgresParts {
			all = append(all, Secret{Variable: postgresVariable(part), From: v1alpha2.SecretKeySelector{Name: PostgresSecretName(object), Key: part}})
		}
	}
	return all
}

// secretIn reads a setting that is exactly {secretKeyRef: {name, key}}. Any other form is
// a setting like others.
func secretIn(value any) (v1alpha2.SecretKeySelector, bool) {
	wrapper, _ := value.(map[string]any)
	ref, ok := wrapper["secretKeyRef"].(map[string]any)
	if !ok || len(wrapper) != 1 || len(ref) != 2 {
		return v1alpha2.SecretKeySelector{}, false
	}
	name, _ := ref["name"].(string)
	key, _ := ref["key"].(string)
	return v1alpha2.SecretKeySelector{Name: name, Key: key}, name != "" && key != ""
}

// VariablePrefix is what the variables of a provider begin with.
func VariablePrefix(id string) string { return "LLSD_" + normal(id) + "_" }

func variable(id, field string) string { return VariablePrefix(id) + normal(field) }

func postgresVariable(part string) string { return "LLSD_SQL_POSTGRES_" + normal(part) }

// normal has only what the server expands: capitals, digits and underscores.
func normal(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(name))
}

func placeholder(variable string) string { return "${env." + variable + "}" }
