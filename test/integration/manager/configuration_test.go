package manager_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"
)

// Whatever is wrong, and wherever, is said at once, and the program does not start.
func TestTheProgramNamesAllThatIsWrongAndEnds(t *testing.T) {
	kubeconfig, err := cluster.KubeconfigFor(t.Context(), home, account)
	require.NoError(t, err)
	broken := configMap(t, "broken-settings", map[string]string{"GLOBAL_OPT_INTERVAL": "soon", "config.yaml": "WVA_SLO_PERCENTILE: 99\n"})
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte("a: b: c\n"), 0o600))
	program := exec.CommandContext(t.Context(), filepath.Join(programs, "manager"),
		"--kubeconfig="+kubeconfig, "--config-map-name="+broken.Name, "--config-file="+file, "--wva-limited-mode=perhaps",
		"--prometheus-ca-cert-path=/nowhere/ca.crt", "--controller-instance=not a label!", "--metrics-bind-address=8443")
	program.Env = []string{"PROMETHEUS_BASE_URL=http://prometheus:9090", "LOG_LEVEL=loud"}
	var said bytes.Buffer
	program.Stderr = &said
	var ended *exec.ExitError
	err = program.Run()
	require.ErrorAs(t, err, &ended, said.String())
	assert.Equal(t, 1, ended.ExitCode())
	for _, want := range []string{
		file + ": ",
		"GLOBAL_OPT_INTERVAL in ConfigMap " + home + `/broken-settings is "soon": write a duration with its unit`,
		"WVA_SLO_PERCENTILE in config.yaml of ConfigMap " + home + `/broken-settings is "99": write a share`,
		`flag --wva-limited-mode is "perhaps": write true or false`,
		`flag --prometheus-ca-cert-path is "/nowhere/ca.crt", which cannot be read (no such file or directory): mount the file`,
		`flag --controller-instance is "not a label!": write the value of a label`,
		`flag --metrics-bind-address is "8443": write an address such as :8443`,
		`environment variable LOG_LEVEL is "loud": write error, warn, info or debug`,
		`environment variable PROMETHEUS_BASE_URL is "http://prometheus:9090", which has no TLS: use https, or set PROMETHEUS_ALLOW_HTTP to true`,
	} {
		assert.Equal(t, 1, strings.Count(said.String(), want), "%s is not once in\n%s", want, said.String())
	}
}

// A manager that is told only where its ConfigMap is takes everything else from there, in
// either layout, at the start and while it runs.
func TestTheMainConfigMapInBothLayouts(t *testing.T) {
	for layout, data := range map[string]func(settings map[string]string) map[string]string{
		"entries": func(settings map[string]string) map[string]string { return settings },
		"file": func(settings map[string]string) map[string]string {
			var file strings.Builder
			for name, value := range settings {
				fmt.Fprintf(&file, "%s: %q\n", name, value)
			}
			return map[string]string{"config.yaml": file.String()}
		},
	} {
		t.Run(layout, func(t *testing.T) {
			serveModels(t)
			instance := "layout-" + layout
			metrics, err := cluster.FreeAddress()
			require.NoError(t, err)
			health, err := cluster.FreeAddress()
			require.NoError(t, err)
			settings := map[string]string{
				"PROMETHEUS_BASE_URL": prometheus.URL, "PROMETHEUS_ALLOW_HTTP": "true", "METRICS_ADDR": metrics, "METRICS_SECURE": "false", "PROBE_ADDR": health,
				"CONTROLLER_INSTANCE": instance, "GLOBAL_OPT_INTERVAL": "10m", "WVA_LIMITED_MODE": "true", "LOG_LEVEL": "info", "PROMETHEUS_METRICS_CACHE_TTL": "30s",
			}
			object := configMap(t, "settings-"+layout, data(settings))
			kubeconfig, err := cluster.KubeconfigFor(t.Context(), home, account)
			require.NoError(t, err)
			name := "manager-" + instance
			require.NoError(t, cluster.StartProcess(t.Context(), localcluster.Process{
				Name: name, Path: filepath.Join(programs, "manager"),
				Args: []string{"--kubeconfig=" + kubeconfig, "--config-map-name=" + object.Name}, Ready: localcluster.Healthy("http://" + health + "/readyz"),
			}))
			t.Cleanup(func() { assert.NoError(t, cluster.Terminate(name)) })
			metricsOf[instance] = "http://" + metrics + "/metrics"
			says := func(what string) {
				t.Helper()
				conditiontest.Eventually(t, patience, "the line "+what, func() (string, bool) {
					text, err := os.ReadFile(filepath.Join(cluster.Logs(), name+".log"))
					return fmt.Sprint(err, string(text)), strings.Contains(string(text), what)
				})
			}
			says(`interval="10m0s" limited=true`)
			says("PROMETHEUS_METRICS_CACHE_TTL in ")
			says("has no effect: no metrics are cached")

			// What may change does, and what may not is refused, in one edit.
			settings["GLOBAL_OPT_INTERVAL"], settings["WVA_LIMITED_MODE"], settings["METRICS_ADDR"] = "1s", "false", ":1"
			settings["PROMETHEUS_BEARER_TOKEN"], settings["PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD"] = "hush-hush", "50s"
			object.Data = data(settings)
			require.NoError(t, api.Update(t.Context(), object))
			roundsLater(t, instance, 2)
			says(`"Updated optimization interval"`)
			says(` old="10m" new="1s"`)
			says(`"Updated prometheus cache config"`)
			says("Attempted to change immutable parameters")
			says(`WVA_LIMITED_MODE (old: \"true\", new: \"false\")`)
			says(`PROMETHEUS_BEARER_TOKEN (old: \"\", new: \"(a secret, which is not shown)\")`)
			conditiontest.Eventually(t, patience, "an event that refuses it", func() (string, bool) {
				reasons := told(t, object)
				return fmt.Sprint(reasons), count(reasons, "ImmutableConfigChangeRejected") > 0
			})

			// A bad edit changes nothing.
			good := settings["GLOBAL_OPT_INTERVAL"]
			settings["GLOBAL_OPT_INTERVAL"] = "1"
			object.Data = data(settings)
			require.NoError(t, api.Update(t.Context(), object))
			conditiontest.Eventually(t, patience, "an event that refuses it", func() (string, bool) {
				reasons := told(t, object)
				return fmt.Sprint(reasons), count(reasons, "InvalidConfiguration") > 0
			})
			roundsLater(t, instance, 2)

			// With a restart all of it counts.
			settings["GLOBAL_OPT_INTERVAL"], settings["METRICS_ADDR"] = good, metrics
			object.Data = data(settings)
			require.NoError(t, api.Update(t.Context(), object))
			require.NoError(t, cluster.Restart(t.Context(), name))
			says(`interval="1s" limited=false`)
			text, err := os.ReadFile(filepath.Join(cluster.Logs(), name+".log"))
			require.NoError(t, err)
			assert.NotContains(t, string(text), "hush-hush")
		})
	}
}

// The layout and the name of the published guide, beside a class that lists the model too.
func TestThePublishedListOfServiceClasses(t *testing.T) {
	serveModels(t)
	namespace := space(t)
	v := variant(namespace, "llama-h100", "server", brisk)
	create(t, deployment(namespace, "server", 1), v)
	shows(t, patience, v, v1alpha1.ConditionTargetResolved, v1alpha1.ReasonTargetFound)
	published := configMap(t, "serviceclass", map[string]string{"serviceClasses": `
- name: Standard
  model: llama
  priority: 5
  slo-itl: 50
  slo-ttw: 1000

- name: Premium
  model: llama
  priority: 1
  slo-itl: 24        # Time per output token (ms)
  slo-ttw: 500       # Time to first token (ms)
`})
	class := func(want string) {
		t.Helper()
		conditiontest.Eventually(t, patience, "service class "+want, func() (string, bool) {
			return describe(read(t, v)), v.Status.ServiceClass == want
		})
	}
	class("Premium")
	configMap(t, "wva-service-classes-config", map[string]string{"gold": "{name: Gold, priority: 9, data: [{model: llama, slo-ttft: 5}]}"})
	class("Gold")
	conditiontest.Eventually(t, patience, "an event that it does not count", func() (string, bool) {
		reasons := told(t, published)
		return fmt.Sprint(reasons), count(reasons, "ConfigMapIgnored") > 0
	})
}

// Who gives a model an SLO has it sized for that, without a restart and without any other setting; and no
// longer once the class says that saturation alone is to size it.
func TestAnSLOCountsAsSoonAsItIsGiven(t *testing.T) {
	servers := serveModels(t)
	namespace := space(t)
	servers.ask(namespace, 0.5*serves)
	v := variant(namespace, "llama-h100", "server", brisk)
	v.Spec.VariantProfile = &v1alpha1.VariantProfile{MaxBatchSize: new(int32(128)), PerfParms: &v1alpha1.PerfParms{
		DecodeParms: &v1alpha1.DecodeParms{Alpha: "8", Beta: "0.1"}, PrefillParms: &v1alpha1.PrefillParms{Gamma: "10", Delta: "0.01"},
	}}
	create(t, deployment(namespace, "server", 1), v)
	shows(t, patience, v, v1alpha1.ConditionOptimizationReady, v1alpha1.ReasonSaturationOnlyMode)
	gold := func(only bool) map[string]string {
		return map[string]string{"gold": fmt.Sprintf(
			"{name: Gold, priority: 9, namespaces: [%s], data: [{model: llama, slo-ttft: 1000, slo-tpot: 50, capacity-only: %v}]}", namespace, only)}
	}
	classes := configMap(t, "wva-service-classes-config", gold(false))
	shows(t, patience, v, v1alpha1.ConditionOptimizationReady, v1alpha1.ReasonOptimizationSucceeded)
	classes.Data = gold(true)
	require.NoError(t, api.Update(t.Context(), classes))
	shows(t, patience, v, v1alpha1.ConditionOptimizationReady, v1alpha1.ReasonSaturationOnlyMode)
}
