package chart

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	cli "helm.sh/helm/v3/pkg/cli/values"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const installer = "../../hack/install.sh"

// installed runs the installer with variables and gives the words of the command that it
// printed, and those that a helm was started with.
func installed(t *testing.T, variables map[string]string) (printed, run []string) {
	t.Helper()
	folder := t.TempDir()
	// It stands for helm, and writes down how it was called.
	called := filepath.Join(folder, "called")
	require.NoError(t, os.WriteFile(filepath.Join(folder, "helm"), []byte("#!/bin/sh\necho helm \"$@\" >"+called+"\n"), 0o700))
	command := exec.CommandContext(t.Context(), "bash", installer)
	command.Env = []string{"PATH=" + folder + ":" + os.Getenv("PATH")}
	for name, value := range variables {
		command.Env = append(command.Env, name+"="+value)
	}
	out, err := command.CombinedOutput()
	require.NoError(t, err, string(out))
	text, err := os.ReadFile(called)
	if variables["DRY_RUN"] == "true" {
		require.ErrorIs(t, err, os.ErrNotExist)
	} else {
		require.NoError(t, err)
	}
	return strings.Fields(string(out)), strings.Fields(string(text))
}

func TestTheInstallerIsTheCommandThatItPrints(t *testing.T) {
	printed, run := installed(t, map[string]string{"HPA_STABILIZATION_SECONDS": "30", "WVA_NS": "wva"})
	assert.Equal(t, printed, run)
	assert.Subset(t, printed, []string{"--take-ownership", "wva", "hpa.behavior.scaleUp.stabilizationWindowSeconds=30", "hpa.behavior.scaleDown.stabilizationWindowSeconds=30"})
	printed, _ = installed(t, map[string]string{"DRY_RUN": "true"})
	assert.Equal(t, "helm", printed[0])
}

// Whoever calls it from another folder names files from there.
func TestFilesAreThoseOfTheCallersFolder(t *testing.T) {
	script, err := filepath.Abs(installer)
	require.NoError(t, err)
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "mine.yaml"), nil, 0o600))
	command := exec.CommandContext(t.Context(), "bash", script, "--values", "more.yaml")
	command.Dir = folder
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "DRY_RUN=true", "VALUES_FILE=mine.yaml"}
	out, err := command.CombinedOutput()
	require.NoError(t, err, string(out))
	words := strings.Fields(string(out))
	for i, word := range words {
		if word == "--values" {
			assert.Contains(t, []string{"mine.yaml", "more.yaml"}, words[i+1])
		}
	}
	chart := words[slices.IndexFunc(words, func(word string) bool { return strings.HasSuffix(word, "/charts/workload-variant-autoscaler") })]
	assert.FileExists(t, filepath.Join(chart, "Chart.yaml"), "the chart is found from every folder")
}

// TestEveryVariableOfTheInstallerBecomesAValue sets each of those that its header names.
func TestEveryVariableOfTheInstallerBecomesAValue(t *testing.T) {
	text, err := os.ReadFile(installer)
	require.NoError(t, err)
	header, _, _ := strings.Cut(string(text), "set -euo")
	authority := filepath.Join(t.TempDir(), "ca.crt")
	require.NoError(t, os.WriteFile(authority, []byte("-----BEGIN CERTIFICATE-----"), 0o600))
	given := map[string]string{
		"WVA_NS": "ns", "WVA_RELEASE_NAME": "blue", "ENVIRONMENT": "openshift", "VALUES_FILE": "../../charts/workload-variant-autoscaler/values-llm-d.yaml",
		"WVA_IMAGE_REPO": "mirror/manager", "WVA_IMAGE_TAG": "9", "WVA_IMAGE_PULL_POLICY": "Never", "CONTROLLER_INSTANCE": "7", "NAMESPACE_SCOPED": "false",
		"PROMETHEUS_URL": "https://thanos:9091", "PROMETHEUS_CA_CERT_FILE": authority, "SKIP_TLS_VERIFY": "true", "MONITORING_NAMESPACE": "m",
		"ENABLE_SCALE_TO_ZERO": "true", "WVA_LOG_LEVEL": "4", "WVA_RECONCILE_INTERVAL": "30s", "WVA_METRICS_SECURE": "false",
		"LLMD_NS": "serving", "LLM_D_MODELSERVICE_NAME": "llama", "MODEL_ID": "meta/llama", "ACCELERATOR_TYPE": "L40S", "SLO_TPOT": "20", "SLO_TTFT": "500", "VARIANT_COST": "40",
		"DEPLOY_WVA": "true", "DEPLOY_VA": "true", "DEPLOY_HPA": "true", "HPA_MIN_REPLICAS": "2", "HPA_MAX_REPLICAS": "5", "HPA_STABILIZATION_SECONDS": "30",
		"VLLM_SVC_ENABLED": "true", "VLLM_SVC_NODEPORT": "30001", "VLLM_SVC_PORT": "8000", "DRY_RUN": "true",
	}
	// The variables that become no value of their own; the next test has them.
	others := []string{"INFRA_ONLY", "SCALER_BACKEND", "DEPLOY_PROMETHEUS", "DEPLOY_PROMETHEUS_ADAPTER", "DEPLOY_LLM_D"}
	for _, name := range regexp.MustCompile(`\b[A-Z][A-Z_]+_[A-Z_]+\b|\bENVIRONMENT\b`).FindAllString(header, -1) {
		if !slices.Contains(others, name) {
			assert.Contains(t, given, name)
		}
	}
	printed, _ := installed(t, given)
	var options cli.Options
	for i, word := range printed {
		switch word {
		case "--set":
			options.Values = append(options.Values, printed[i+1])
		case "--set-string":
			options.StringValues = append(options.StringValues, printed[i+1])
		case "--set-file":
			options.FileValues = append(options.FileValues, printed[i+1])
		case "--values":
			options.ValueFiles = append(options.ValueFiles, printed[i+1])
		}
	}
	merged, err := options.MergeValues(nil)
	require.NoError(t, err)
	all := render(t, release{name: "blue", namespace: "ns", values: merged})
	hpa := all.get(t, "HorizontalPodAutoscaler", "blue-workload-variant-autoscaler-hpa")
	most, _, _ := unstructured.NestedInt64(hpa.Object, "spec", "maxReplicas")
	assert.EqualValues(t, 5, most)
	va := all.get(t, "VariantAutoscaling", "blue-workload-variant-autoscaler-va")
	cost, _, _ := unstructured.NestedString(va.Object, "spec", "variantCost")
	assert.Equal(t, "40", cost)
	assert.Equal(t, "mirror/manager:9", container(t, all.get(t, "Deployment", "blue-workload-variant-autoscaler-controller-manager"))["image"])
}

// TestWhatThePublishedInstallerDidBeside: nothing that was asked for is passed over in silence.
func TestWhatThePublishedInstallerDidBeside(t *testing.T) {
	for name, c := range map[string]struct {
		given map[string]string
		has   []string
		says  string
	}{
		"no objects of a model": {
			given: map[string]string{"INFRA_ONLY": "true", "DEPLOY_VA": "true", "DEPLOY_HPA": "true"},
			has:   []string{"va.enabled=false", "hpa.enabled=false"},
		},
		"an HPA by an adapter": {
			given: map[string]string{"SCALER_BACKEND": "prometheus-adapter"},
			has:   []string{"wva.actuation=Metric"},
			says:  "SCALER_BACKEND: this script does not install prometheus-adapter",
		},
		"a ScaledObject of one's own": {
			given: map[string]string{"SCALER_BACKEND": "keda"},
			has:   []string{"wva.actuation=Metric", "hpa.enabled=false"},
			says:  "SCALER_BACKEND: this script does not install keda",
		},
		"a backend that is there": {given: map[string]string{"SCALER_BACKEND": "none"}},
		"Prometheus": {
			given: map[string]string{"DEPLOY_PROMETHEUS": "true", "DEPLOY_LLM_D": "false"},
			says:  "DEPLOY_PROMETHEUS: this script does not install Prometheus",
		},
		"an adapter": {given: map[string]string{"DEPLOY_PROMETHEUS_ADAPTER": "true"}, says: "does not install the Prometheus adapter"},
		"llm-d":      {given: map[string]string{"DEPLOY_LLM_D": "true"}, says: "DEPLOY_LLM_D: this script does not install llm-d"},
	} {
		t.Run(name, func(t *testing.T) {
			c.given["DRY_RUN"] = "true"
			out, err := installing(t, c.given)
			require.NoError(t, err, out)
			notes, command, _ := strings.Cut(out, "helm upgrade ")
			for _, value := range c.has {
				assert.Contains(t, command, "--set "+value)
			}
			// What comes later counts.
			merged := cli.Options{}
			words := strings.Fields(command)
			for i, word := range words {
				if word == "--set" {
					merged.Values = append(merged.Values, words[i+1])
				}
			}
			values, err := merged.MergeValues(nil)
			require.NoError(t, err)
			for _, value := range c.has {
				path, want, _ := strings.Cut(value, "=")
				found, _, err := unstructured.NestedFieldNoCopy(values, strings.Split(path, ".")...)
				require.NoError(t, err)
				assert.Equal(t, want, fmt.Sprint(found), path)
			}
			if c.says == "" {
				assert.Empty(t, notes)
			}
			assert.Contains(t, notes, c.says)
		})
	}
	for variable, says := range map[string]string{
		"INFRA_ONLY": "INFRA_ONLY is 'yes': expected true or false", "SCALER_BACKEND": "SCALER_BACKEND is 'yes': expected prometheus-adapter, keda or none",
		"ENVIRONMENT": "ENVIRONMENT is 'yes': expected kubernetes, openshift or kind-emulator",
	} {
		out, err := installing(t, map[string]string{variable: "yes", "DRY_RUN": "true"})
		require.Error(t, err)
		assert.Contains(t, out, says)
	}
}

// installing runs the installer with variables, where helm must not be.
func installing(t *testing.T, variables map[string]string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", installer)
	command.Env = []string{"PATH=" + os.Getenv("PATH")}
	for name, value := range variables {
		command.Env = append(command.Env, name+"="+value)
	}
	out, err := command.CombinedOutput()
	return string(out), err
}

// It finds the chart from wherever it is called, and through a link.
func TestTheInstallerFindsItsChart(t *testing.T) {
	script, err := filepath.Abs(installer)
	require.NoError(t, err)
	link := filepath.Join(t.TempDir(), "install")
	require.NoError(t, os.Symlink(script, link))
	for _, c := range []struct{ folder, call string }{
		{filepath.Dir(script), "./install.sh"}, {filepath.Dir(script), "install.sh"}, {filepath.Dir(filepath.Dir(script)), "hack/install.sh"}, {t.TempDir(), script}, {t.TempDir(), link},
	} {
		command := exec.CommandContext(t.Context(), "bash", c.call)
		command.Dir, command.Env = c.folder, append(os.Environ(), "DRY_RUN=true")
		out, err := command.CombinedOutput()
		require.NoError(t, err, string(out))
		words := strings.Fields(string(out))
		require.Greater(t, len(words), 4, string(out))
		assert.FileExists(t, filepath.Join(words[4], "Chart.yaml"), c.call)
	}
}
