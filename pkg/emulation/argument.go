package emulation

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// The arguments of a model server that an emulated one obeys, by their names in
// vLLM.
const (
	batchLimitArgument  = "max-num-seqs"
	tokenBudgetArgument = "max-num-batched-tokens"
)

// Argument is the value of an argument of a pod's containers, of its commands and
// argument lists alike: "--name=value" or "--name value", with hyphens or
// underscores in the name. As on a command line, the last one wins.
func Argument(pod *corev1.Pod, name string) (value string, found bool) {
	wanted := strings.ReplaceAll(name, "_", "-")
	for _, container := range pod.Spec.Containers {
		words := append(append([]string{}, container.Command...), container.Args...)
		for i, w := range words {
			given, v, inline := strings.Cut(w, "=")
			given, isFlag := strings.CutPrefix(given, "--")
			if !isFlag || strings.ReplaceAll(given, "_", "-") != wanted {
				continue
			}
			if !inline {
				if i+1 == len(words) {
					continue
				}
				v = words[i+1]
			}
			value, found = v, true
		}
	}
	return value, found
}

// obey lets the pod's arguments override the options that the caller gave.
func obey(pod *corev1.Pod, options ServerOptions) (ServerOptions, error) {
	for name, target := range map[string]*int{
		batchLimitArgument:  &options.Profile.BatchLimit,
		tokenBudgetArgument: &options.TokenBudget,
	} {
		text, ok := Argument(pod, name)
		if !ok {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return options, fmt.Errorf("argument --%s is %q; expected a whole number of at least 1", name, text)
		}
		*target = n
	}
	return options, nil
}
