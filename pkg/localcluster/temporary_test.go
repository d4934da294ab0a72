package localcluster

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOnlyWhatNobodyHoldsIsSweptAway(t *testing.T) {
	temporary, elsewhere := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temporary)
	add := func(name string, files ...string) string {
		path := filepath.Join(temporary, name)
		require.NoError(t, os.Mkdir(path, 0o700))
		for _, file := range files {
			require.NoError(t, os.WriteFile(filepath.Join(path, file), []byte("x"), 0o600))
		}
		return path
	}
	abandoned := add("wva-demo-logs-1", lockName, "manager.log")
	withoutLock := add("wva-2", "ca.key")
	beingMade := add("wva-3", lockName+".new")
	ofOthers := add("other-4", lockName)
	link := filepath.Join(temporary, "wva-5")
	require.NoError(t, os.WriteFile(filepath.Join(elsewhere, lockName), nil, 0o600))
	require.NoError(t, os.Symlink(elsewhere, link))

	held, removeHeld, err := TemporaryDirectory("")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(held, "service-account.key"), []byte("x"), 0o600))
	assert.NoDirExists(t, abandoned)

	second, removeSecond, err := TemporaryDirectory("demo-logs-")
	require.NoError(t, err)
	assert.NotEqual(t, held, second)
	for _, path := range []string{held, withoutLock, beingMade, ofOthers, elsewhere} {
		assert.DirExists(t, path)
	}
	assert.FileExists(t, filepath.Join(elsewhere, lockName))

	require.NoError(t, removeSecond())
	require.NoError(t, removeHeld())
	assert.NoDirExists(t, second)
	assert.NoDirExists(t, held)
}
