package modelserver

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Engine is a model server of which this package knows the words.
type Engine string

// The engines. A container of which none is known, such as a proxy, has the empty one.
const (
	EngineUnknown Engine = ""
	VLLM          Engine = "vLLM"
	SGLang        Engine = "SGLang"
)

// BatchLimit is the largest number of requests that the engine takes into service at once
// when nothing says how many; 0 means unknown.
func (e Engine) BatchLimit() int {
	if e == VLLM {
		return 256
	}
	return 0
}

// EngineOf is the engine that a container runs, by its command line and else by the
// name of its image: people build one into images of the other.
func EngineOf(c *corev1.Container) Engine {
	if engine := EngineIn(slices.Concat(c.Command, c.Args)); engine != EngineUnknown {
		return engine
	}
	image := strings.ToLower(c.Image)
	switch {
	case strings.Contains(image, "sglang"):
		return SGLang
	case strings.Contains(image, "vllm"):
		return VLLM
	}
	return EngineUnknown
}

// EngineIn is the engine that a command line starts in its own words. A script may start
// one too, and does not show it.
func EngineIn(command []string) Engine {
	for _, argument := range command {
		for word := range strings.FieldsFuncSeq(argument, separates) {
			program := word[strings.LastIndexByte(word, '/')+1:]
			switch {
			case program == "sglang" || strings.HasPrefix(program, "sglang.launch_server"):
				return SGLang
			case program == "vllm" || strings.HasPrefix(program, "vllm.entrypoints"):
				return VLLM
			}
		}
	}
	return EngineUnknown
}

// separates says whether a shell takes the rune for the end of a word.
func separates(r rune) bool { return strings.ContainsRune(" \t\r\n\\\"';", r) }
