package inventory

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// defaultBatchLimit is the batch limit of a vLLM server that was given none.
const defaultBatchLimit = 256

// BatchLimit is the largest number of requests that the template's server takes
// into service at once, by its --max-num-seqs: as one argument or two, with hyphens
// or underscores, among the arguments or inside one shell command line. A container
// that looks like vLLM and does not say has vLLM's default; 0 means unknown.
func BatchLimit(template *corev1.PodTemplateSpec) int {
	if template == nil {
		return 0
	}
	vllm := false
	for i := range template.Spec.Containers {
		c := &template.Spec.Containers[i]
		words := commandLine(c)
		if limit := flagValue(words, "max-num-seqs"); limit > 0 {
			return limit
		}
		vllm = vllm || strings.Contains(strings.ToLower(c.Image), "vllm") || slices.ContainsFunc(words, isVLLM)
	}
	if vllm {
		return defaultBatchLimit
	}
	return 0
}

// isVLLM says whether a word of a command line starts vLLM: its program, or one of
// its modules.
func isVLLM(word string) bool {
	return word == "vllm" || strings.HasSuffix(word, "/vllm") || strings.HasPrefix(word, "vllm.entrypoints")
}

// commandLine are the words of a container's command and arguments. An argument
// with blanks in it is a shell's command line, of which quotes, line continuations
// and separators are no part of a word.
func commandLine(c *corev1.Container) []string {
	var words []string
	for _, arg := range slices.Concat(c.Command, c.Args) {
		words = append(words, strings.FieldsFunc(arg, func(r rune) bool {
			return strings.ContainsRune(" \t\r\n\\\"';", r)
		})...)
	}
	return words
}

// flagValue is the positive number that the flag is given last, as a command line
// is read, or 0.
func flagValue(words []string, flag string) int {
	value := 0
	for i, word := range words {
		name, number, ok := strings.Cut(word, "=")
		if !strings.HasPrefix(name, "--") || strings.ReplaceAll(name[2:], "_", "-") != flag {
			continue
		}
		if !ok && i+1 < len(words) {
			number = words[i+1]
		}
		if n, err := strconv.Atoi(number); err == nil && n > 0 {
			value = n
		}
	}
	return value
}
