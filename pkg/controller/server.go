package controller

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
)

// serverLimits fills in the batch limit and the tokens in the KV cache as far as they
// follow from the arguments of a template's server, or from the memory of the replica's
// devices and the size of the model that the arguments, or else the object, name.
func (v *variant) serverLimits(fact *decision.Variant, name inventory.Name, s stock) {
	template := v.target.template
	if template == nil {
		return
	}
	containers := template.Spec.Containers
	arguments := make([]serving.Arguments, len(containers))
	standard, unread := 0, false
	for i := range containers {
		c := &containers[i]
		arguments[i] = serving.ParseArguments(commandLine(c))
		fact.BatchLimit = cmp.Or(fact.BatchLimit, arguments[i].MaxSequences)
		unread = unread || arguments[i].SequencesUnread()
		standard = cmp.Or(standard, modelserver.EngineOf(c).BatchLimit())
		if fact.KVTokens == 0 {
			fact.KVTokens, fact.KVSource = serving.KVCapacity(serving.CacheConfig{}, arguments[i], serving.Memory{})
		}
	}
	for i := range containers {
		// What one server's arguments fix comes before what another's memory has room for.
		if c := &containers[i]; fact.KVTokens == 0 && asksForDevices(c) {
			fact.KVTokens, fact.KVSource = serving.KVCapacity(serving.CacheConfig{}, arguments[i], v.memory(c, arguments[i], name, s))
		}
	}
	if !unread {
		fact.BatchLimit = cmp.Or(fact.BatchLimit, standard)
	}
}

// warnOfName says that the template's model server calls its model otherwise than
// spec.modelID. Of several model servers nobody knows which one clients ask.
func (v *variant) warnOfName() {
	if v.target.template == nil {
		return
	}
	var servers []*corev1.Container
	for i := range v.target.template.Spec.Containers {
		if c := &v.target.template.Spec.Containers[i]; modelserver.EngineOf(c) != modelserver.EngineUnknown && showsArguments(c) {
			servers = append(servers, c)
		}
	}
	if len(servers) != 1 {
		return
	}
	names, given := modelserver.ServedNames(commandLine(servers[0])), v.object.Spec.ModelID
	if len(names) == 0 || slices.Contains(names, given) {
		return
	}
	v.warnings = append(v.warnings, decision.Fact{Reason: v1alpha1.ReasonModelNameDiffers, Detail: fmt.Sprintf(
		"spec.modelID is %s and container %s serves %s, so that the model's requests at a gateway, its service class and its other variants may not be found: correct one of them",
		given, servers[0].Name, strings.Join(names, ", "))})
}

// asksForDevices says whether a container has devices for itself. A proxy beside the
// server has none, whatever the name of its image.
func asksForDevices(c *corev1.Container) bool {
	for _, list := range [...]corev1.ResourceList{c.Resources.Requests, c.Resources.Limits} {
		for resource, quantity := range list {
			if inventory.IsDevice(resource) && quantity.Sign() > 0 {
				return true
			}
		}
	}
	return false
}

// memory is that of a replica, with the model that the container's server loads. It is
// unknown for a server whose use of it is not known, or whose arguments are not all seen.
func (v *variant) memory(c *corev1.Container, a serving.Arguments, name inventory.Name, s stock) serving.Memory {
	switch engine := modelserver.EngineOf(c); {
	case v.shape == nil || engine == modelserver.EngineUnknown || !showsArguments(c):
		return serving.Memory{}
	case engine == modelserver.SGLang && !a.Static:
		// Its default differs from version to version.
		return serving.Memory{}
	case v.shape.Accelerator != name.Short:
		// A part of a device, whose memory nothing says.
		return serving.Memory{}
	}
	device := v.shape.Device()
	device.MemoryGiB = cmp.Or(device.MemoryGiB, s.memory[device.Accelerator])
	model := serving.FiguresOf(a.Model, a)
	if model.Layers == 0 && model.Parameters == 0 {
		// A path such as /models names no model.
		model = serving.FiguresOf(v.object.Spec.ModelID, a)
	}
	return serving.MemoryOf(model, a, serving.DeviceGiB(device), v.shape.Devices*v.shape.Pods)
}

// showsArguments says whether a container's words are the arguments of its server: they
// start an engine, or go to what the image starts. A script may give it others.
func showsArguments(c *corev1.Container) bool {
	if len(c.Command) == 0 && (len(c.Args) == 0 || strings.HasPrefix(c.Args[0], "-")) {
		return true
	}
	return modelserver.EngineIn(commandLine(c)) != modelserver.EngineUnknown
}

// commandLine is a container's command and arguments, with the variables in them that
// the container gives a value. Of several with one name the last counts, as it does for
// Kubernetes.
func commandLine(c *corev1.Container) []string {
	words := slices.Concat(c.Command, c.Args)
	if !slices.ContainsFunc(words, func(word string) bool { return strings.Contains(word, "$") }) {
		return words
	}
	env := slices.Clone(c.Env)
	slices.Reverse(env)
	slices.SortStableFunc(env, func(a, b corev1.EnvVar) int {
		return cmp.Compare(len(b.Name), len(a.Name)) // $TP is also the beginning of $TP_SIZE
	})
	var pairs []string // of which the replacer takes the first that fits
	for _, e := range env {
		for _, word := range [...]string{"$(" + e.Name + ")", "${" + e.Name + "}", "$" + e.Name} {
			value := e.Value
			if e.ValueFrom != nil {
				value = word // nobody here knows it
			}
			pairs = append(pairs, word, value)
		}
	}
	replacer := strings.NewReplacer(pairs...)
	for i := range words {
		words[i] = replacer.Replace(words[i])
	}
	return words
}

// leastMemory is the memory of one device of each type, in GiB, of the nodes whose
// devices have least of it. A type of which some nodes do not say it is left out.
func leastMemory(nodes []placement.Node) map[capacity.Accelerator]int {
	least := map[capacity.Accelerator]int{}
	add := func(d capacity.Device) {
		if d.Accelerator == "" {
			return
		}
		if known, seen := least[d.Accelerator]; !seen || d.MemoryGiB < known {
			least[d.Accelerator] = d.MemoryGiB
		}
	}
	for i := range nodes {
		n := &nodes[i]
		add(capacity.Device{Accelerator: n.Accelerator, MemoryGiB: n.MemoryGiB})
		for _, pool := range n.Beside {
			add(pool.Device)
		}
	}
	return least
}
