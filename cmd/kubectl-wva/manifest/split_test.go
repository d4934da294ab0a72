package manifest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSplit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"nothing":                        {"", nil},
		"YAML":                           {"# of a\na: 1\n---\nb: 2\n", []string{"# of a\na: 1\n", "b: 2\n"}},
		"one value of JSON as it stands": {"{\n \"a\": 1\n}", []string{"{\n \"a\": 1\n}\n"}},
		"values one after the other":     {"{\n \"a\": 1\n}\n{\"b\": 2} {\"c\": 3}", []string{"{\n \"a\": 1\n}\n", "{\"b\": 2}\n", "{\"c\": 3}\n"}},
		"values and YAML":                {"{\"a\": 1}\n{\"b\": 2}\n---\nc: 3\n", []string{"{\"a\": 1}\n", "{\"b\": 2}\n", "c: 3\n"}},
		"YAML that begins like JSON":     {"{\"a\": b}\n", []string{"{\"a\": b}\n"}},
		"one value and something":        {"{\"a\": 1}\nb: 2\n", []string{"{\"a\": 1}\nb: 2\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, err := Split("file", []byte(c.text))
			require.NoError(t, err)
			var texts []string
			for _, d := range all {
				texts = append(texts, string(d.Text))
			}
			assert.Equal(t, c.want, texts)
			if len(all) > 1 {
				assert.Equal(t, "file, document 2", all[1].Place)
			}
		})
	}
}
