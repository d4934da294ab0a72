package migrate

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/cluster"
)

func migrated(t *testing.T, in string, arguments ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	command := NewCommand(cluster.NewFlags())
	command.SetIn(strings.NewReader(in))
	command.SetOut(&out)
	command.SetErr(&bytes.Buffer{})
	command.SetArgs(arguments)
	err := command.Execute()
	return out.String(), err
}

const server = "apiVersion: llamastack.io/v1alpha1\nkind: LlamaStackDistribution\nmetadata: {name: a}\nspec: {server: {distribution: {name: starter}, workers: 2}}\n"

const presentServer = `# spec.server.distribution.name -> spec.distribution.name
# spec.server.workers -> spec.workload.workers
apiVersion: llamastack.io/v1alpha2
kind: LlamaStackDistribution
metadata:
  name: a
spec:
  distribution:
    name: starter
  workload:
    replicas: 1
    workers: 2
`

func TestDocumentsAndLists(t *testing.T) {
	list := "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(server), "\n", "\n  ") + "\n"
	got, err := migrated(t, "# a comment\n---\n"+server+"---\n"+list, "-f", "-")
	require.NoError(t, err)
	assert.Equal(t, presentServer+"---\n"+presentServer, got)

	file := filepath.Join(t.TempDir(), "a.yaml")
	require.NoError(t, os.WriteFile(file, []byte(server), 0o600))
	got, err = migrated(t, "", "-f", file)
	require.NoError(t, err)
	assert.Equal(t, presentServer, got)
	again, err := migrated(t, got, "-f", "-")
	require.NoError(t, err)
	assert.Equal(t, got, again)
}

func TestWhatIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		in, want  string
		arguments []string
	}{
		"no file":                 {"", "no file is given: name one with -f", nil},
		"an empty file":           {"", `-f is "": expected a file with objects, or - for the standard input`, []string{"-f", ""}},
		"an empty folder":         {"", `-o is "": expected yaml, json or a folder`, []string{"-o", ""}},
		"no backup to go back to": {"", `--rollback is "": expected the folder of the backup that --apply named`, []string{"--rollback", ""}},
		"a backup without a name": {server, `--backup is "": expected a folder to write the backup to`, []string{"-f", "-", "--apply", "--backup", ""}},
		"a file that is not":      {"", "reading missing.yaml", []string{"-f", "missing.yaml"}},
		"another kind":            {server + "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\n", `-, document 2: Pod "p" of v1 has no earlier form that is known`, []string{"-f", "-"}},
		"a wrong field":           {strings.Replace(server, "workers", "worker", 1), `-, document 1: LlamaStackDistribution "a": it is no LlamaStackDistribution of v1alpha1`, []string{"-f", "-"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := migrated(t, c.in, c.arguments...)
			require.ErrorContains(t, err, c.want)
			assert.NotContains(t, got, "v1alpha2", "nothing is written")
		})
	}
}
