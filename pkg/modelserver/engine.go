package modelserver

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Engine is a model server of which this package knows the words.
type Engine string

// The engines. A container of which none is known, such as a proxy, has the empty one.
const (
	EngineUnknown Engine = ""
	VLLM          Engine = "vLLM"
	SGLang        Engine = "SGLang"
)

const (
	// vLLM takes manySequences on devices of at least largeGiB, but for those that are called
	// A100, and fewSequences on others: get_batch_defaults in vllm/engine/arg_utils.py, 0.9 to
	// 0.29, for its API server. (0.8 took 1024 everywhere, version 0 of its engine 256.) A
	// device's own 79.2 GiB are called 80.
	manySequences, fewSequences = 1024, 256
	largeGiB                    = 70
)

// pluggedIn are the devices that vLLM serves by plug-ins which take their own number.
var pluggedIn = []string{"Gaudi", "TPU", "Trainium", "Inferentia"}

// BatchLimit is the largest number of requests that one engine takes into service at once on a
// device when nothing says how many; 0 means unknown. SGLang's follows from what its cache has
// room for, and vLLM's plug-ins for other devices have their own.
func (e Engine) BatchLimit(d capacity.Device) int {
	switch {
	case e != VLLM || d.MemoryGiB <= 0 || slices.ContainsFunc(pluggedIn, func(name string) bool { return strings.HasPrefix(string(d.Accelerator), name) }):
		return 0
	case d.MemoryGiB >= largeGiB && !strings.Contains(string(d.Accelerator), "A100"):
		return manySequences
	}
	return fewSequences
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
