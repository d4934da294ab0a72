package harness

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func flagsOf(args ...string) *Flags {
	return (&Call{Args: args, Out: io.Discard, Log: io.Discard}).Flags("made")
}

func TestWhatCannotBeWrittenIsSaidBeforeTheWork(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out.json")
	require.ErrorIs(t, flagsOf("--out", filepath.Join(file, "missing")).Parse(), os.ErrNotExist)

	f := flagsOf("--out", file)
	require.NoError(t, f.Parse())
	assert.NoFileExists(t, file, "a call that fails leaves no empty file")
	require.NoError(t, f.Save([]int{1}))
	require.NoError(t, f.Parse())
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "[\n  1\n]\n", string(text), "looking changes nothing")
}

func TestNoFileIsWrittenWhereNoneIsNamed(t *testing.T) {
	t.Chdir(t.TempDir())
	f := flagsOf("--out", "")
	require.NoError(t, f.Parse())
	require.NoError(t, f.Save(1))
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	assert.Empty(t, entries)
}

func TestABenchmarkTakesFlagsOnly(t *testing.T) {
	assert.ErrorContains(t, flagsOf("more").Parse(), `what is "more"?`)
}

func TestAFileIsFoundAsItIsAndWithinTheData(t *testing.T) {
	data := t.TempDir()
	inner := filepath.Join(data, "run")
	require.NoError(t, os.Mkdir(inner, 0o700))
	assert.Equal(t, inner, Within(data, "run"))
	assert.Equal(t, inner, Within("elsewhere", inner))
	assert.Equal(t, "run", Within("", "run"))
}

func TestAVerdictIsThatOfAllFigures(t *testing.T) {
	var v Verdict
	v.Printf("of %d:", 2)
	v.Ask(true, "first")
	require.NoError(t, v.Err())
	v.Ask(false, "second")
	v.Ask(true, "third")
	require.ErrorIs(t, v.Err(), ErrMissed)
	assert.Equal(t, 1, strings.Count(v.String(), "MISSED"))
	assert.Equal(t, 4, strings.Count(v.String(), "\n"))
}

func TestNobodyWhoReadsAFileSeesACounter(t *testing.T) {
	var log strings.Builder
	told := (&Call{Log: &log}).Counter(1)
	told("a")
	assert.Empty(t, log.String())
}
