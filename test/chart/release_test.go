package chart

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// small stands for each program: it says its version as they do. Cross builds of the real
// ones take half an hour.
const small = `package main

import (
	"fmt"

	"k8s.io/component-base/version"
)

func main() { fmt.Println(version.Get().GitVersion) }
`

// run runs a command in a folder and returns what it said.
func run(t *testing.T, folder, name string, arguments ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, arguments...)
	command.Dir = folder
	command.Env = append(os.Environ(),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_AUTHOR_DATE=2030-01-02T03:04:05Z",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "GIT_COMMITTER_DATE=2030-01-02T03:04:05Z")
	said, err := command.CombinedOutput()
	return string(said), err
}

// must is run for what has to succeed.
func must(t *testing.T, folder, name string, arguments ...string) string {
	t.Helper()
	said, err := run(t, folder, name, arguments...)
	require.NoError(t, err, said)
	return said
}

// releasable is a repository of what a release is made of, with small programs, and two commits after the
// release before.
func releasable(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, path := range []string{"go.mod", "go.sum", "LICENSE", "Dockerfile", ".gitignore", "charts", "hack/release.sh", "hack/sbom"} {
		to := filepath.Join(folder, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o750))
		must(t, ".", "cp", "-r", filepath.Join("../..", path), to)
	}
	for _, program := range []string{"manager", "scheduler", "kubectl-wva"} {
		path := filepath.Join(folder, "cmd", program)
		require.NoError(t, os.MkdirAll(path, 0o750))
		require.NoError(t, os.WriteFile(filepath.Join(path, "main.go"), []byte(small), 0o600))
	}
	must(t, folder, "git", "init", "-q")
	must(t, folder, "git", "add", ".")
	must(t, folder, "git", "commit", "-q", "-m", "Begin")
	must(t, folder, "git", "tag", "v1.1.0")
	must(t, folder, "git", "commit", "-q", "--allow-empty", "-m", "Scale up sooner")
	must(t, folder, "git", "commit", "-q", "--allow-empty", "-m", "Name the node")
	return folder
}

func TestARelease(t *testing.T) {
	platform := "linux-" + runtime.GOARCH
	line := []string{"hack/release.sh", "v1.2.0", "mirror", "https://files.example", "linux/" + runtime.GOARCH}
	folder := releasable(t)
	must(t, folder, "bash", line...)
	dist := filepath.Join(folder, "dist")
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dist, name))
		require.NoError(t, err)
		return string(text)
	}
	sum := func(name string) string {
		of := sha256.Sum256([]byte(read(name)))
		return hex.EncodeToString(of[:])
	}
	plugin := "kubectl-wva_v1.2.0_" + platform + ".tar.gz"

	t.Run("every file has its checksum", func(t *testing.T) {
		var names []string
		entries, err := os.ReadDir(dist)
		require.NoError(t, err)
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
		assert.ElementsMatch(t, []string{
			"CHANGELOG_v1.2.0.md", "SHA256SUMS", "images_v1.2.0.tar.gz", plugin, "manager_v1.2.0_" + platform, "scheduler_v1.2.0_" + platform,
			"workload-variant-autoscaler-1.2.0.tgz", "workload-variant-autoscaler_v1.2.0.cdx.json", "wva.yaml",
		}, names)
		for _, name := range names {
			if name != "SHA256SUMS" {
				assert.Contains(t, read("SHA256SUMS"), sum(name)+"  "+name+"\n")
			}
		}
	})
	t.Run("the same commit gives the same bytes", func(t *testing.T) {
		again := releasable(t)
		// Another language sorts otherwise, and another processor would be built for.
		t.Setenv("LC_ALL", "en_US.UTF-8")
		t.Setenv("GOAMD64", "v3")
		t.Setenv("GOARM64", "v8.2")
		must(t, again, "bash", line...)
		sums, err := os.ReadFile(filepath.Join(again, "dist", "SHA256SUMS"))
		require.NoError(t, err)
		assert.Equal(t, read("SHA256SUMS"), string(sums))
	})
	t.Run("programs tell the version", func(t *testing.T) {
		assert.Equal(t, "v1.2.0\n", must(t, dist, filepath.Join(dist, "manager_v1.2.0_"+platform)))
		assert.Regexp(t, `^v1\.\d+\.\d+\+wva\.1\.2\.0\n$`, must(t, dist, filepath.Join(dist, "scheduler_v1.2.0_"+platform)))
		unpacked := t.TempDir()
		must(t, unpacked, "tar", "-xzf", filepath.Join(dist, plugin))
		assert.Equal(t, "v1.2.0\n", must(t, unpacked, filepath.Join(unpacked, "kubectl-wva")))
		assert.FileExists(t, filepath.Join(unpacked, "LICENSE"))
	})
	t.Run("the chart installs the images of the release", func(t *testing.T) {
		packed := plain
		packed.chart = filepath.Join(dist, "workload-variant-autoscaler-1.2.0.tgz")
		assert.Equal(t, "1.2.0", loadFrom(t, packed.chart).Metadata.Version)
		all := render(t, packed)
		assert.Equal(t, "mirror/manager:v1.2.0", container(t, all.get(t, "Deployment", plainName+"-controller-manager"))["image"])
		assert.Equal(t, "mirror/scheduler:v1.2.0", container(t, all.get(t, "Deployment", "variant-scheduler"))["image"])
		assert.Len(t, all, len(render(t, plain)), "nothing is missing in the package")
	})
	t.Run("krew finds the plugin", func(t *testing.T) {
		krew := valuesFile(t, filepath.Join(dist, "wva.yaml"))
		spec := krew["spec"].(map[string]any)
		assert.Equal(t, "v1.2.0", spec["version"])
		assert.Equal(t, []any{map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"os": "linux", "arch": runtime.GOARCH}},
			"uri":      "https://files.example/" + plugin, "sha256": sum(plugin), "bin": "kubectl-wva",
		}}, spec["platforms"])
	})
	t.Run("the modules that are linked", func(t *testing.T) {
		var bom struct {
			Format     string `json:"bomFormat"`
			Components []struct {
				Name, Version, PURL string
				Hashes              []struct{ Content string }
			} `json:"components"`
		}
		require.NoError(t, json.Unmarshal([]byte(read("workload-variant-autoscaler_v1.2.0.cdx.json")), &bom))
		assert.Equal(t, "CycloneDX", bom.Format)
		found := map[string]string{}
		for _, c := range bom.Components {
			found[c.Name] = c.Version
			if c.Name != "stdlib" {
				assert.NotEmpty(t, c.Hashes, c.Name)
			}
		}
		assert.Equal(t, runtime.Version(), found["stdlib"])
		assert.Equal(t, strings.TrimSpace(must(t, folder, "go", "list", "-m", "-f", "{{with .Replace}}{{.Version}}{{else}}{{.Version}}{{end}}", "k8s.io/component-base")), found["k8s.io/component-base"])
		assert.NotContains(t, found, "github.com/stretchr/testify", "only tests link it")
	})
	t.Run("what changed since the release before", func(t *testing.T) {
		assert.Equal(t, "# v1.2.0\n\n- Scale up sooner\n- Name the node\n", read("CHANGELOG_v1.2.0.md"))
	})
	t.Run("images are built of the commit, with the version", func(t *testing.T) {
		unpacked := t.TempDir()
		must(t, unpacked, "tar", "-xzf", filepath.Join(dist, "images_v1.2.0.tar.gz"))
		text, err := os.ReadFile(filepath.Join(unpacked, "Dockerfile"))
		require.NoError(t, err)
		assert.Contains(t, string(text), "\nARG VERSION=v1.2.0\n")
		assert.FileExists(t, filepath.Join(unpacked, "cmd", "manager", "main.go"))
	})
	t.Run("what is refused", func(t *testing.T) {
		said, err := run(t, folder, "bash", "hack/release.sh", "1.2", "mirror", "https://files.example")
		require.Error(t, err)
		assert.Equal(t, "VERSION is '1.2': expected one such as v1.2.3\n", said)
		require.NoError(t, os.WriteFile(filepath.Join(folder, "more"), nil, 0o600))
		said, err = run(t, folder, "bash", line...)
		require.Error(t, err)
		assert.Contains(t, said, "commit or stash them")
		assert.DirExists(t, dist, "the release before stays")
	})
}

// TestTheProgramsTellOneVersion: those of bin, which carry the version in the same place.
func TestTheProgramsTellOneVersion(t *testing.T) {
	var ours struct{ Version string }
	require.NoError(t, json.Unmarshal([]byte(must(t, programs, "./kubectl-wva", "version", "-o", "json")), &ours))
	assert.Regexp(t, `^v\d+\.\d+\.\d+`, ours.Version)
	assert.NotContains(t, ours.Version, "$", "the build filled it in")
	assert.Contains(t, must(t, programs, "./manager", "--version"), ours.Version)
	assert.Regexp(t, `^Kubernetes v1\.\d+\.\d+`, must(t, programs, "./scheduler", "--version"))
}
