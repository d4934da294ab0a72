package adopt

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
)

// servedModel is the name under which the model server of a pod serves its model, which is
// what its metrics and its clients call it: the first served model name, else the model.
// The error says what is missing.
func servedModel(spec *corev1.PodSpec) (string, error) {
	servers := 0
	var server *corev1.Container
	for i := range spec.Containers {
		if modelserver.EngineOf(&spec.Containers[i]) != modelserver.EngineUnknown {
			servers++
			server = &spec.Containers[i]
		}
	}
	switch {
	case servers == 0:
		return "", fmt.Errorf("none of its containers starts vLLM or SGLang in a way that can be read: give the model with --model")
	case servers > 1:
		return "", fmt.Errorf("%d of its containers are model servers: give the model with --model", servers)
	}
	found := modelIn(words(server))
	if found == "" {
		return "", fmt.Errorf("container %s does not name its model in its arguments: give it with --model", server.Name)
	}
	return expanded(found, server)
}

// words are the command line of a container, with scripts taken apart.
func words(c *corev1.Container) []string {
	var all []string
	for _, argument := range slices.Concat(c.Command, c.Args) {
		all = append(all, strings.FieldsFunc(argument, func(r rune) bool { return strings.ContainsRune(" \t\r\n\\\"';", r) })...)
	}
	return all
}

// The flags of a model, by how much they count.
var (
	nameFlags  = []string{"--served-model-name"}
	modelFlags = []string{"--model", "--model-path"}
)

// modelIn is the model that a command line names: by a served name, by "serve MODEL", by a
// flag.
func modelIn(command []string) string {
	if name := valueOf(command, nameFlags); name != "" {
		return name
	}
	for i, word := range command[:max(0, len(command)-1)] {
		if word == "serve" && !strings.HasPrefix(command[i+1], "-") {
			return command[i+1]
		}
	}
	return valueOf(command, modelFlags)
}

// valueOf is the value of the first of the flags that is given. Engines take a flag with
// underscores too.
func valueOf(command, flags []string) string {
	for i, word := range command {
		name, value, ok := strings.Cut(word, "=")
		if !slices.Contains(flags, strings.ReplaceAll(name, "_", "-")) {
			continue
		}
		if !ok && i+1 < len(command) && !strings.HasPrefix(command[i+1], "-") {
			value = command[i+1]
		}
		// SGLang takes several served names in one word.
		value, _, _ = strings.Cut(value, ",")
		return value
	}
	return ""
}

// reference is a variable in an argument, as Kubernetes or a shell expands it.
var reference = regexp.MustCompile(`\$\(([A-Za-z_][A-Za-z0-9_]*)\)|\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\$([A-Za-z_][A-Za-z0-9_]*)`)

// expanded is a text with the variables of the container. One whose value is not in the
// template is an error.
func expanded(text string, c *corev1.Container) (string, error) {
	missing := ""
	whole := reference.ReplaceAllStringFunc(text, func(found string) string {
		name := strings.Trim(found, "$(){}")
		for _, e := range c.Env {
			if e.Name == name && e.ValueFrom == nil {
				return e.Value
			}
		}
		missing = name
		return found
	})
	if missing != "" || strings.Contains(whole, "$") {
		return "", fmt.Errorf("container %s takes its model from %s, whose value is not in the template: give it with --model", c.Name, text)
	}
	return whole, nil
}
