package output_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/output"
)

// A tenant's text may hold anything; the operator who reads it sees it, and nothing happens.
func TestTextOfOthersActsOnNoTerminal(t *testing.T) {
	t.Parallel()
	var beneath bytes.Buffer
	out := output.ForPeople(&beneath)
	require.NoError(t, output.Rows(out, []string{"NAME", "MODEL"}, [][]string{{"a", "llama\nb     llama\x1b[2J"}, {"b", ""}}))
	n, err := fmt.Fprintln(out, "note: \x1b]0;owned\a")
	require.NoError(t, err)
	assert.Equal(t, len("note: \x1b]0;owned\a\n"), n, "as many bytes as were given")
	assert.Equal(t, `NAME  MODEL
a     llama\nb     llama\x1b[2J
b     -
note: \x1b]0;owned\a
`, beneath.String())
}

func TestProgramsGetTheTextItself(t *testing.T) {
	t.Parallel()
	var beneath bytes.Buffer
	var form output.Form
	form.Add(&cobra.Command{}, output.JSON)
	require.NoError(t, form.Write(output.ForPeople(&beneath), map[string]string{"model": "a\x1b\u202eb"}))
	assert.JSONEq(t, "{\"model\": \"a\\u001b\u202eb\"}", beneath.String())
	assert.Contains(t, beneath.String(), "\u202e", "JSON shows it as it is")
}

// A note is one line, whatever it quotes.
func TestANoteIsOneLine(t *testing.T) {
	var out bytes.Buffer
	output.Note(&out, "the object a\r\n\x1b[31mnote: b\u2028c\nof chat\n")
	assert.Equal(t, "note: the object a\\r; \\x1b[31mnote: b\\u2028c; of chat\n", out.String())
}
