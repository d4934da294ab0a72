package localcluster

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStartSaysWhichProgramIsMissing(t *testing.T) {
	empty := t.TempDir()
	withPlayground := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(withPlayground, "playground"), nil, 0o600))
	tests := []struct {
		name    string
		options Options
		missing string
	}{
		{"no program at all", Options{Programs: empty}, "playground"},
		{"the variant scheduler needs its own", Options{Programs: withPlayground, Components: Components{VariantScheduler: &VariantScheduler{}}}, "scheduler"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Start(t.Context(), test.options)
			require.Error(t, err)
			assert.Contains(t, err.Error(), "the program "+test.missing+" is missing")
			assert.Contains(t, err.Error(), "make build")
		})
	}
}

func TestProgramsAreFoundByVariableAndBesideGoMod(t *testing.T) {
	t.Setenv(ProgramsVariable, "")
	module := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(module, "go.mod"), nil, 0o600))
	below := filepath.Join(module, "pkg", "deep")
	require.NoError(t, os.MkdirAll(below, 0o700))
	t.Chdir(below)
	found, err := Programs()
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(module, "bin"), found)

	t.Setenv(ProgramsVariable, "/built/elsewhere")
	found, err = Programs()
	require.NoError(t, err)
	assert.Equal(t, "/built/elsewhere", found)
}

func TestTooLongADirectoryIsOneClearError(t *testing.T) {
	long := filepath.Join(t.TempDir(), "a-directory-whose-name-leaves-no-room-for-the-name-of-a-socket-within-what-the-kernel-takes-as-a-path")
	_, err := Start(t.Context(), Options{Dir: long})
	require.ErrorContains(t, err, "choose a shorter directory")
}
