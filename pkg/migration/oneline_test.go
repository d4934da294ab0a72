package migration

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// lineBreaks are those that end a comment for some reader of YAML.
var lineBreaks = regexp.MustCompile("\r\n|[\n\r\v\f\u0085\u2028\u2029]")

// Whatever an object of somebody else holds, what is made of it is one document with that object alone:
// an administrator applies it.
func TestPropertyAConvertedDocumentIsOne(t *testing.T) {
	pieces := []string{"\n", "\r", "\u0085", "\u2028", "\u2029", "\x00", "\v", "\f", "\n---\n", "---", "# ", ": ", "{apiVersion: v1, kind: ConfigMap}", `"`, "'", "\\", "A100", "é", "\xff", "\u202e", "\ufeff"}
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 46))
		text := func() string {
			var b strings.Builder
			for range random.IntN(8) {
				b.WriteString(pieces[random.IntN(len(pieces))])
			}
			return b.String()
		}
		d := Document{Object: map[string]any{"kind": "VariantAutoscaling", "spec": map[string]any{"modelID": strings.ToValidUTF8(text(), "")}}, Notes: []string{text(), fmt.Sprintf("accelerator %q", text())}}
		made, err := d.YAML()
		require.NoError(t, err)
		lines := lineBreaks.Split(string(made), -1)
		for i := range d.Notes {
			require.True(t, strings.HasPrefix(lines[i], "# "), "seed %d: %q", seed, made)
		}
		rest := strings.Join(strings.Split(string(made), "\n")[len(d.Notes):], "\n")
		own, err := Marshal(d.Object)
		require.NoError(t, err)
		require.Equal(t, string(own), rest, "seed %d", seed)
		var read map[string]any
		require.NoError(t, yaml.Unmarshal(made, &read), "seed %d: %q", seed, made)
		require.Equal(t, d.Object, read, "seed %d", seed)
	}
}

// The tenant's object of the report: what the administrator applies has no other object in it.
func TestAnAcceleratorAddsNoDocument(t *testing.T) {
	d := Document{Object: map[string]any{"kind": "VariantAutoscaling"}, Notes: []string{"no price of A\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: evil}}\n---\n#"}}
	made, err := d.YAML()
	require.NoError(t, err)
	assert.Equal(t, `# no price of A\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: evil}}\n---\n#`+"\nkind: VariantAutoscaling\n", string(made))
}
