package migration_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/migration"
)

const head = "apiVersion: llamastack.io/v1alpha1\nkind: LlamaStackDistribution\nmetadata:\n  name: my-llsd\n"

func TestMigrate(t *testing.T) {
	got, err := migration.Migrate([]byte(`
apiVersion: llamastack.io/v1alpha1
kind: LlamaStackDistribution
metadata:
  name: my-llsd
  namespace: team
  labels: {a: b}
  uid: "1"
  resourceVersion: "2"
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}", mine: stays}
spec:
  replicas: 2
  server:
    distribution: {name: starter}
    workers: 4
    containerSpec: {name: srv, env: [{name: OLLAMA_URL, value: http://o}]}
    storage: {size: 20Gi}
    podOverrides: {serviceAccountName: custom-sa, terminationGracePeriodSeconds: 60}
    autoscaling: {minReplicas: 2, maxReplicas: 10}
    userConfig: {configMapName: c, configMapNamespace: other}
  network: {exposeRoute: true}
status: {phase: Ready}`))
	require.NoError(t, err)
	assert.Equal(t, `apiVersion: llamastack.io/v1alpha2
kind: LlamaStackDistribution
metadata:
  annotations:
    mine: stays
    v1alpha1.llamastack.io/containerName: '"srv"'
    v1alpha1.llamastack.io/terminationGracePeriod: "60"
    v1alpha1.llamastack.io/userConfig: '{}'
    v1alpha1.llamastack.io/userConfig.name: '"c"'
    v1alpha1.llamastack.io/userConfig.namespace: '"other"'
  labels:
    a: b
  name: my-llsd
  namespace: team
spec:
  distribution:
    name: starter
  networking:
    expose: true
  overrideConfig:
    configMapName: c
  workload:
    autoscaling:
      maxReplicas: 10
      minReplicas: 2
    overrides:
      env:
      - name: OLLAMA_URL
        value: http://o
      serviceAccountName: custom-sa
    replicas: 2
    storage:
      size: 20Gi
    workers: 4
`, string(got.Text))
	assert.Equal(t, []string{
		"spec.replicas -> spec.workload.replicas",
		"spec.server.distribution.name -> spec.distribution.name",
		"spec.server.containerSpec.env -> spec.workload.overrides.env",
		"spec.server.containerSpec.name -> the annotations v1alpha1.llamastack.io/*",
		"spec.server.workers -> spec.workload.workers",
		"spec.server.storage.size -> spec.workload.storage.size",
		"spec.server.podOverrides.serviceAccountName -> spec.workload.overrides.serviceAccountName",
		"spec.server.podOverrides.terminationGracePeriodSeconds -> the annotations v1alpha1.llamastack.io/*",
		"spec.server.autoscaling -> spec.workload.autoscaling",
		"spec.server.userConfig.configMapName -> spec.overrideConfig.configMapName",
		"spec.server.userConfig.configMapNamespace -> the annotations v1alpha1.llamastack.io/*",
		"spec.network.exposeRoute -> spec.networking.expose",
	}, got.Moves)

	again, err := migration.Migrate(got.Text)
	require.NoError(t, err)
	assert.Equal(t, migration.Migrated{Text: got.Text}, again, "what was migrated stays")
}

func TestTheDefaultNumberOfReplicasIsWritten(t *testing.T) {
	got, err := migration.Migrate([]byte(head + "spec: {server: {distribution: {name: starter}}}"))
	require.NoError(t, err)
	assert.Contains(t, string(got.Text), "replicas: 1\n")
	assert.NotContains(t, string(got.Text), "annotations")
}

func TestWhatCannotBeMigrated(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no YAML":             {"a: [", "did not find expected"},
		"a field that is not": {head + "spec: {server: {distribution: {name: starter}, image: i}}", `unknown field "image"`},
		"a budget with both":  {head + "spec: {server: {distribution: {name: starter}, podDisruptionBudget: {minAvailable: 1, maxUnavailable: 1}}}", "v1alpha2 has no valid form for it: spec.server.podDisruptionBudget: Forbidden: minAvailable and maxUnavailable"},
		"a target over all":   {head + "spec: {server: {distribution: {name: starter}, autoscaling: {maxReplicas: 2, targetCPUUtilizationPercentage: 150}}}", "v1alpha2 has no valid form for it: spec.server.autoscaling: a target is 150, and may be at most 100"},
		"no distribution":     {head + "spec: {server: {distribution: {}}}", "v1alpha2 would refuse it: spec.distribution: Required value"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := migration.Migrate([]byte(c.text))
			assert.ErrorContains(t, err, c.want)
		})
	}
}

// The API server writes defaults out, which move nowhere; and an empty network, which admits
// an ingress, does so afterwards.
func TestDefaultsMoveNowhereAndAnEmptyNetworkStays(t *testing.T) {
	migrated, err := migration.Migrate([]byte(`
apiVersion: llamastack.io/v1alpha1
kind: LlamaStackDistribution
metadata: {name: demo}
spec:
  server:
    distribution: {name: starter}
    containerSpec: {name: llama-stack}
  network: {exposeRoute: false}
`))
	require.NoError(t, err)
	assert.Equal(t, []string{"spec.server.distribution.name -> spec.distribution.name"}, migrated.Moves)
	assert.Contains(t, string(migrated.Text), `v1alpha1.llamastack.io/presence.network: "true"`)
}

// v1alpha1 took these values, and what they meant has another form in v1alpha2.
func TestValuesThatMeanSomethingElseWritten(t *testing.T) {
	migrated, err := migration.Migrate([]byte(head + "spec: {server: {distribution: {name: starter}, podDisruptionBudget: {}, autoscaling: {minReplicas: 0, maxReplicas: 2}}}"))
	require.NoError(t, err)
	assert.Contains(t, string(migrated.Text), "podDisruptionBudget:\n      maxUnavailable: 1\n")
	assert.Contains(t, string(migrated.Text), "autoscaling:\n      maxReplicas: 2\n")
	assert.NotContains(t, string(migrated.Text), "rejected")
}
