package configuration_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/configuration"
)

// What comes from a Secret is hidden by where it comes from, not by its name: the server shows
// what its variables hold.
func TestWhatComesFromASecretIsHidden(t *testing.T) {
	spec := readSpec(t, `
distribution: {name: starter}
providers:
  vectorIo:
    provider: pgvector
    id: vectors
    secretRefs: {host: {name: db, key: host}, port: {name: db, key: port}}
    settings:
      user: {secretKeyRef: {name: db, key: user}}
      db: plain
`)
	shown := `{"host": "10.0.0.7", "port": 5432, "user": "admin", "db": "plain"}`
	assert.JSONEq(t, `{"host": "********", "port": "********", "user": "********", "db": "plain"}`,
		string(configuration.WithoutSecrets(spec, "vectors", []byte(shown))))
	assert.JSONEq(t, shown, string(configuration.WithoutSecrets(spec, "another", []byte(shown))))
	assert.JSONEq(t, `{}`, string(configuration.WithoutSecrets(spec, "vectors", []byte(`{}`))))
}
