package modelserver

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// Limits are how much a replica takes into service at once.
type Limits struct {
	// Batch is the largest number of requests, of all engines of a server together, and
	// BatchSource says who told it; 0 means unknown.
	Batch       int
	BatchSource serving.BatchSource
	// KVTokens is the number of tokens in its KV cache, and KVSource says what tells it; 0
	// means unknown.
	KVTokens capacity.Tokens
	KVSource serving.CacheSource
}

// Devices are those of one replica. No Count means that they, or their memory, are unknown.
type Devices struct {
	Device capacity.Device
	Count  int
}

// LimitsOf are those that follow from the arguments of the server among the containers, or
// from the memory of the replica's devices and the size of the model that the arguments, or
// else modelID, name.
func LimitsOf(containers []corev1.Container, modelID string, devices Devices) (l Limits) {
	arguments := make([]serving.Arguments, len(containers))
	assumed, unread := 0, false
	for i := range containers {
		c := &containers[i]
		arguments[i] = serving.ParseArguments(commandLine(c))
		a := &arguments[i]
		if EngineOf(c) != EngineUnknown && (a.SequencesUnread() || paralleledByVariables(c) || hidesArguments(c)) {
			unread = true
		} else if l.Batch == 0 && !a.SequencesUnread() {
			l.Batch, l.BatchSource = a.MaxSequences*a.Engines(), serving.BatchStated
		}
		if showsArguments(c) && !a.Tuned && devices.Count > 0 {
			assumed = cmp.Or(assumed, a.Engines()*untold(EngineOf(c), a, devices.Device))
		}
		if l.KVTokens == 0 {
			l.KVTokens, l.KVSource = serving.KVCapacity(serving.CacheConfig{}, arguments[i], serving.Memory{})
		}
	}
	for i := range containers {
		// What one server's arguments fix comes before what another's memory has room for.
		if c := &containers[i]; l.KVTokens == 0 && asksForDevices(c) {
			l.KVTokens, l.KVSource = serving.KVCapacity(serving.CacheConfig{}, arguments[i], memory(c, arguments[i], modelID, devices))
		}
	}
	switch {
	case l.Batch > 0:
	case unread:
		l.BatchSource = serving.BatchAssumed
	default:
		l.Batch, l.BatchSource = assumed, serving.BatchAssumed
	}
	return l
}

// untold is what one engine takes when nothing says how much: no more requests than tokens
// (get_batch_defaults and what follows it in vllm/engine/arg_utils.py, 0.9 to 0.29).
func untold(e Engine, a *serving.Arguments, d capacity.Device) int {
	limit := e.BatchLimit(d)
	if a.MaxBatchedTokens > 0 {
		limit = min(limit, a.MaxBatchedTokens)
	}
	return limit
}

// paralleledByVariables says whether variables tell vLLM how many engines there are: it reads
// them where the arguments do not (vllm/config/parallel.py, 0.9 to 0.29).
func paralleledByVariables(c *corev1.Container) bool {
	return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "VLLM_DP_SIZE" })
}

// hidesArguments says whether a shell puts arguments into the place of a word that nobody here sees: of a
// variable whose value is told elsewhere, as KServe's VLLM_ADDITIONAL_ARGS may be, of an array, or of what another
// command prints. It is no value of an argument, and not the model.
func hidesArguments(c *corev1.Container) bool {
	words := strings.Fields(strings.Join(commandLine(c), " "))
	starts := func(word string) bool { return EngineIn([]string{word}) != EngineUnknown }
	within, before := !slices.ContainsFunc(words, starts), "serve"
	for _, word := range words {
		bare := strings.Trim(word, `\"';`)
		hidden := strings.HasPrefix(bare, "$") || strings.HasPrefix(bare, "`")
		switch {
		case starts(word):
			within = true
		case slices.Contains([]string{"&&", "||", "|", "&", ";"}, word):
			within = false
		case !within || !hidden || before == "serve" || strings.HasSuffix(before, ">"):
		case !strings.HasPrefix(before, "-") || strings.Contains(before, "=") || namesArguments(bare):
			return true
		}
		within = within && !strings.HasSuffix(word, ";")
		before = bare
	}
	return false
}

// namesArguments says whether a word of a shell stands for arguments by its name, also after one that may
// have a value.
func namesArguments(word string) bool {
	return slices.ContainsFunc([]string{"[@]", "[*]", "$@", "$*", "ARG", "OPT", "FLAG", "PARAM", "EXTRA"}, func(part string) bool {
		return strings.Contains(word, part)
	})
}

// wordsFor are the ways in which Kubernetes and a shell name a variable.
func wordsFor(variable string) []string {
	return []string{"$(" + variable + ")", "${" + variable + "}", "$" + variable}
}

// OtherNames are the names under which the only model server among the containers serves its
// model, where modelID is none of them, and the container. Of several nobody knows which one
// clients ask.
func OtherNames(containers []corev1.Container, modelID string) (names []string, container string) {
	var servers []*corev1.Container
	for i := range containers {
		if c := &containers[i]; EngineOf(c) != EngineUnknown && showsArguments(c) {
			servers = append(servers, c)
		}
	}
	if len(servers) != 1 {
		return nil, ""
	}
	names = ServedNames(commandLine(servers[0]))
	if slices.Contains(names, modelID) {
		return nil, ""
	}
	return names, servers[0].Name
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
func memory(c *corev1.Container, a serving.Arguments, modelID string, devices Devices) serving.Memory {
	switch engine := EngineOf(c); {
	case devices.Count == 0 || engine == EngineUnknown || !showsArguments(c):
		return serving.Memory{}
	case engine == SGLang && !a.Static:
		// Its default differs from version to version.
		return serving.Memory{}
	}
	model := serving.FiguresOf(a.Model, a)
	if model.Layers == 0 && model.Parameters == 0 {
		// A path such as /models names no model.
		model = serving.FiguresOf(modelID, a)
	}
	return serving.MemoryOf(model, a, serving.DeviceGiB(devices.Device), devices.Count)
}

// showsArguments says whether a container's words are the arguments of its server: they
// start an engine, or go to what the image starts. A script may give it others.
func showsArguments(c *corev1.Container) bool {
	if len(c.Command) == 0 && (len(c.Args) == 0 || strings.HasPrefix(c.Args[0], "-")) {
		return true
	}
	return EngineIn(commandLine(c)) != EngineUnknown
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
		for _, word := range wordsFor(e.Name) {
			value := e.Value
			if e.ValueFrom != nil {
				value = word // nobody here knows it
			}
			pairs = append(pairs, word, value)
		}
	}
	replacer, left := strings.NewReplacer(pairs...), longestLine
	for i, word := range words {
		out := boundedText{left: min(longestWord, left)}
		if _, err := replacer.WriteString(&out, word); err == nil {
			words[i], left = out.text.String(), left-out.text.Len()
		}
	}
	return words
}

// longestWord and longestLine are how long an argument, and all of them together, are at most with which Linux
// starts a program (MAX_ARG_STRLEN, and a quarter of the usual stack of 8 MiB), in bytes. Whoever may create
// a Deployment can name a long variable thousands of times, which stands for more than there is memory.
const (
	longestWord = 128 << 10
	longestLine = 2 << 20
)

// boundedText takes no more than is left.
type boundedText struct {
	text strings.Builder
	left int
}

var errTooLong = errors.New("no program starts with arguments of this length")

// Write implements io.Writer.
func (b *boundedText) Write(p []byte) (int, error) {
	if len(p) > b.left {
		return 0, errTooLong
	}
	b.left -= len(p)
	return b.text.Write(p)
}
