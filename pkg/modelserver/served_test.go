package modelserver

import (
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestServedNames(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		command []string
		want    []string
	}{
		"serve MODEL":                    {[]string{"vllm", "serve", "meta/llama", "--port", "8000"}, []string{"meta/llama"}},
		"a flag":                         {[]string{"--model", "meta/llama"}, []string{"meta/llama"}},
		"a flag with an equals sign":     {[]string{"--model=meta/llama_3"}, []string{"meta/llama_3"}},
		"a path of SGLang":               {[]string{"python3", "-m", "sglang.launch_server", "--model-path", "/models/llama"}, []string{"/models/llama"}},
		"served names count alone":       {[]string{"vllm", "serve", "/models/llama", "--served-model-name", "llama", "chat", "--port", "1"}, []string{"llama", "chat"}},
		"whatever the order":             {[]string{"--served_model_name=llama", "--model=/models/llama"}, []string{"llama"}},
		"several served names in a word": {[]string{"--served-model-name", "a,b"}, []string{"a", "b"}},
		"an empty served name":           {[]string{"vllm", "serve", "m", "--served-model-name="}, []string{"m"}},
		"in a script":                    {[]string{"sh", "-c", "exec vllm serve \"meta/llama\" \\\n --max-model-len 4096; sleep 1"}, []string{"meta/llama"}},
		"the last of several":            {[]string{"--model=a", "--model=b"}, []string{"b"}},
		"another flag's words":           {[]string{"--tokenizer", "serve-model", "--chat-template", "model"}, nil},
		"no model":                       {[]string{"--port", "8000"}, nil},
		"a flag without a value":         {[]string{"--model"}, nil},
		"a flag in place of the model":   {[]string{"vllm", "serve", "--port", "1"}, nil},
		"a variable":                     {[]string{"vllm", "serve", "$MODEL"}, nil},
		"a variable among the names":     {[]string{"vllm", "serve", "m", "--served-model-name", "a", "$(NAME)"}, nil},
		"adapters have names too":        {[]string{"vllm", "serve", "m", "--enable-lora", "--lora-modules", "chat=/adapters/chat"}, nil},
		"a file of arguments":            {[]string{"vllm", "serve", "m", "--config=/etc/vllm.yaml"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, ServedNames(c.command))
		})
	}
}

// Eight times as many words take eight times as much, and not 64 times: whoever may create a Deployment may
// write very many.
func TestManyWordsTakeNoMoreEach(t *testing.T) {
	takes := func(many int) float64 {
		words := slices.Repeat([]string{"serve", "a"}, many)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		ServedNames(words)
		runtime.ReadMemStats(&after)
		return float64(after.TotalAlloc - before.TotalAlloc)
	}
	assert.Less(t, takes(4000), 20*takes(500))
}
