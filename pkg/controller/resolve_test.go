package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
	"llmd.ai/workload-variant-autoscaler/pkg/report/sentence"
	"llmd.ai/workload-variant-autoscaler/pkg/report/status"
	"llmd.ai/workload-variant-autoscaler/pkg/round"
)

func templateOf(containers ...corev1.Container) *corev1.PodTemplateSpec {
	return &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: containers}}
}

func TestWhatTheArgumentsOfAServerFix(t *testing.T) {
	cases := []struct {
		name     string
		template *corev1.PodTemplateSpec
		batch    int
		cache    capacity.Tokens
	}{
		{"no template", nil, 0, 0},
		{"nothing is known", templateOf(corev1.Container{Args: []string{"--port=8000"}}), 0, 0},
		{"vLLM without words about it, on a device that nobody knows", templateOf(corev1.Container{Image: "vllm/vllm-openai"}), 0, 0},
		{"vLLM", templateOf(corev1.Container{Args: []string{"--max-num-seqs=64", "--num-gpu-blocks-override", "1000", "--block-size=32"}}), 64, 32000},
		{"SGLang", templateOf(corev1.Container{Args: []string{"--max-running-requests=48", "--max-total-tokens=20000"}}), 48, 20000},
		{"a shell's command line behind a proxy", templateOf(
			corev1.Container{Name: "proxy", Args: []string{"--port=1"}},
			corev1.Container{Command: []string{"sh", "-c", "vllm serve m --num-gpu-blocks-override=10"}},
		), 0, 160},
		{"the container's own variables", templateOf(corev1.Container{
			Env:  []corev1.EnvVar{{Name: "BLOCK", Value: "5"}, {Name: "BLOCKS", Value: "700"}, {Name: "SIZE", ValueFrom: &corev1.EnvVarSource{}}},
			Args: []string{"--num-gpu-blocks-override=$(BLOCKS)", "--block-size=$(BLOCK)"},
		}), 0, 3500},
		{"a variable that the template does not tell", templateOf(corev1.Container{
			Env:  []corev1.EnvVar{{Name: "SIZE", ValueFrom: &corev1.EnvVarSource{}}},
			Args: []string{"--num-gpu-blocks-override=700", "--block-size=$(SIZE)"},
		}), 0, 0},
		{"a shell's variables", templateOf(corev1.Container{
			Env:     []corev1.EnvVar{{Name: "BLOCK", Value: "32"}, {Name: "BLOCKS", Value: "700"}},
			Command: []string{"sh", "-c", "vllm serve m --num-gpu-blocks-override $BLOCKS --block-size ${BLOCK}"},
		}), 0, 22400},
		{"a batch limit by a variable", templateOf(corev1.Container{
			Image: "vllm/vllm-openai", Env: []corev1.EnvVar{{Name: "MAX", Value: "64"}}, Args: []string{"--max-num-seqs=$(MAX)"},
		}), 64, 0},
		{"SGLang's, beside an image of vLLM", templateOf(
			corev1.Container{Image: "acme/vllm-proxy"},
			corev1.Container{Image: "lmsysorg/sglang", Env: []corev1.EnvVar{{Name: "MAX", Value: "48"}}, Args: []string{"--max-running-requests", "$(MAX)"}},
		), 48, 0},
		{"a batch limit that the template does not tell", templateOf(corev1.Container{
			Image: "vllm/vllm-openai", Env: []corev1.EnvVar{{Name: "MAX", ValueFrom: &corev1.EnvVarSource{}}}, Args: []string{"--max-num-seqs=$(MAX)"},
		}), 0, 0},
		{"a batch limit that is no number", templateOf(corev1.Container{Image: "vllm", Args: []string{"--max-num-seqs", "many"}}), 0, 0},
		{"the last of several variables with one name", templateOf(corev1.Container{
			Env:  []corev1.EnvVar{{Name: "MAX", Value: "64"}, {Name: "MAX", Value: "32"}},
			Args: []string{"--max-num-seqs=$(MAX)"},
		}), 32, 0},
		{"the last of several variables, which nobody tells", templateOf(corev1.Container{
			Image: "vllm", Env: []corev1.EnvVar{{Name: "MAX", Value: "64"}, {Name: "MAX", ValueFrom: &corev1.EnvVarSource{}}},
			Args: []string{"--max-num-seqs=$(MAX)"},
		}), 0, 0},
		{"a variable whose name begins like another", templateOf(corev1.Container{
			Env:     []corev1.EnvVar{{Name: "MAX", Value: "6"}, {Name: "MAX4", ValueFrom: &corev1.EnvVarSource{}}},
			Command: []string{"sh", "-c", "vllm serve m --max-num-seqs $MAX4"},
		}), 0, 0},
		{"a batch limit in a shell", templateOf(corev1.Container{
			Command: []string{"/bin/sh", "-c"}, Args: []string{"exec vllm serve m \\\n  --max-num-seqs 16 --port 8000"},
		}), 16, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			v := &variant{object: &v1alpha1.VariantAutoscaling{}, target: target{template: c.template}}
			var fact decision.Variant
			v.serverLimits(&fact, inventory.Name{}, stock{})
			assert.Equal(t, c.batch, fact.BatchLimit)
			assert.Equal(t, c.cache, fact.KVTokens)
			assert.Equal(t, c.cache > 0, fact.KVSource == serving.CacheArguments)
		})
	}
}

func TestAModelServerWithAnotherName(t *testing.T) {
	vllm := func(args ...string) corev1.Container {
		return corev1.Container{Name: "server", Image: "vllm/vllm-openai", Args: args}
	}
	for name, c := range map[string]struct {
		template *corev1.PodTemplateSpec
		serves   string
	}{
		"the same name":                   {templateOf(vllm("--model=llama")), ""},
		"another name":                    {templateOf(vllm("--model=llamma")), "llamma"},
		"one of several names":            {templateOf(vllm("--model=/models/x", "--served-model-name", "chat", "llama")), ""},
		"none of several names":           {templateOf(vllm("--model=llama", "--served-model-name", "chat", "code")), "chat, code"},
		"a variable of the container":     {templateOf(corev1.Container{Name: "server", Image: "vllm", Env: []corev1.EnvVar{{Name: "M", Value: "x"}}, Args: []string{"--model=$(M)"}}), "x"},
		"a variable that nobody tells":    {templateOf(vllm("--model=$(M)")), ""},
		"no name":                         {templateOf(vllm("--port=1")), ""},
		"a proxy beside":                  {templateOf(corev1.Container{Name: "proxy", Args: []string{"--model=x"}}, vllm("--model=llama")), ""},
		"two servers":                     {templateOf(vllm("--model=x"), vllm("--model=y")), ""},
		"a script, which may change them": {templateOf(corev1.Container{Name: "server", Image: "vllm", Command: []string{"run.sh", "--model=x"}}), ""},
		"no template":                     {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := &variant{object: &v1alpha1.VariantAutoscaling{Spec: v1alpha1.VariantAutoscalingSpec{ModelID: "llama"}}, target: target{template: c.template}}
			v.warnOfName()
			if c.serves == "" {
				assert.Empty(t, v.warnings)
				return
			}
			require.Len(t, v.warnings, 1)
			assert.Equal(t, decision.Reason(v1alpha1.ReasonModelNameDiffers), v.warnings[0].Reason)
			assert.Contains(t, sentence.Of(v.warnings[0].Detail), "spec.modelID is llama and container server serves "+c.serves+",")
		})
	}
}

// onH100 is what Llama-3.1-8B has on one H100 of 80 GiB, in tokens: 0.9 of 79.2 GiB,
// less 1.7625 and weights of 14.9575, at 8,192 in a GiB.
const onH100 = (71.28 - 1.7625 - 14.9575) * 8192

func TestTheKVCacheFromMemoryAndModelSize(t *testing.T) {
	const name, model = "NVIDIA-H100-80GB-HBM3", "meta-llama/Llama-3.1-8B-Instruct"
	// It has no devices, and no say.
	beside := corev1.Container{Image: "acme/vllm-proxy"}
	serve := func(args ...string) corev1.Container {
		return corev1.Container{Command: append([]string{"vllm", "serve"}, args...)}
	}
	cases := map[string]struct {
		modelID     string
		accelerator string
		devices     int
		pods        int
		nodes       map[capacity.Accelerator]int
		container   corev1.Container
		want        float64
	}{
		"of the server's arguments":         {modelID: "chat", container: serve(model), want: onH100},
		"of the object":                     {modelID: model, container: serve("--port=8000"), want: onH100},
		"of the object, by a path":          {modelID: model, container: serve("/models"), want: onH100},
		"another model than the object's":   {modelID: model, container: serve("acme/Anvil-8B")},
		"an image's arguments":              {modelID: "chat", container: corev1.Container{Image: "vllm/vllm-openai", Args: []string{"--model", model}}, want: onH100},
		"two devices":                       {modelID: model, devices: 2, container: serve("-tp=2"), want: (2*(71.28-1.7625) - 14.9575) * 8192},
		"two pods":                          {modelID: model, pods: 2, container: serve("--pipeline-parallel-size", "2"), want: (2*(71.28-1.7625) - 14.9575) * 8192},
		"a type with one memory":            {modelID: model, accelerator: "H100", container: serve(model), want: onH100},
		"the memory of the nodes":           {modelID: model, accelerator: "A100", nodes: map[capacity.Accelerator]int{"A100": 40}, container: serve(model), want: (0.9*39.6 - 1.340625 - 14.9575) * 8192},
		"SGLang's share":                    {modelID: model, container: corev1.Container{Image: "lmsysorg/sglang", Args: []string{"--mem-fraction-static=0.9"}}, want: (71.28 - 14.9575) * 8192},
		"SGLang without a share":            {modelID: model, container: corev1.Container{Image: "lmsysorg/sglang"}},
		"a type with several":               {modelID: model, accelerator: "A100", container: serve(model)},
		"nodes that do not say it":          {modelID: model, accelerator: "A100", nodes: map[capacity.Accelerator]int{"A100": 0}, container: serve(model)},
		"a slice of a device":               {modelID: model, accelerator: "A100-MIG-3g.40gb", container: serve(model)},
		"a share of a device":               {modelID: model, accelerator: name + "-SHARED", container: serve(model)},
		"another server":                    {modelID: model, container: corev1.Container{Image: "acme/server", Args: []string{"--model", model}}},
		"a model that nobody knows":         {modelID: "chat", container: serve("/models")},
		"a size alone":                      {modelID: "acme/Anvil-8B", container: serve("acme/Anvil-8B")},
		"a device that the layout has not":  {modelID: model, devices: 2, container: serve(model)},
		"a share that nobody tells":         {modelID: model, container: serve(model, "--gpu-memory-utilization=$(UTIL)")},
		"blocks that nobody tells":          {modelID: model, container: serve(model, "--num-gpu-blocks-override=$(BLOCKS)")},
		"a length that it may choose":       {modelID: model, container: serve(model, "--max-model-len=auto"), want: onH100},
		"an image without arguments":        {modelID: model, container: corev1.Container{Image: "vllm/vllm-openai"}, want: onH100},
		"a script in a server's image":      {modelID: model, container: corev1.Container{Image: "vllm/vllm-openai", Command: []string{"bash", "/scripts/start.sh"}}},
		"a script for an image's shell":     {modelID: model, container: corev1.Container{Image: "vllm/vllm-openai", Args: []string{"/scripts/start.sh"}}},
		"a configuration that is not there": {modelID: model, container: serve("--config", "/etc/vllm.yaml")},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			accelerator := c.accelerator
			if accelerator == "" {
				accelerator = "NVIDIA-H100-80GB-HBM3"
			}
			c.container.Resources = bigResources()
			n := inventory.Normalize(accelerator)
			device := n.Device()
			v := &variant{
				object: &v1alpha1.VariantAutoscaling{Spec: v1alpha1.VariantAutoscalingSpec{ModelID: c.modelID}},
				target: target{template: templateOf(beside, c.container)},
				Variant: status.Variant{Shape: &capacity.Shape{
					Accelerator: device.Accelerator, MemoryGiB: device.MemoryGiB, Form: device.Form, Devices: max(1, c.devices), Pods: max(1, c.pods),
				}},
			}
			var fact decision.Variant
			v.serverLimits(&fact, n, stock{memory: c.nodes})
			if c.want == 0 {
				assert.Zero(t, fact.KVTokens, "unknown")
				assert.Equal(t, serving.CacheUnknown, fact.KVSource)
				return
			}
			assert.InEpsilon(t, c.want, float64(fact.KVTokens), 1e-4)
			assert.Equal(t, serving.CacheComputed, fact.KVSource)
		})
	}
}

// What arguments fix counts in whichever container they are.
func TestArgumentsComeBeforeMemoryInAllContainers(t *testing.T) {
	const model = "meta-llama/Llama-3.1-8B-Instruct"
	first := corev1.Container{Command: []string{"vllm", "serve", model}, Resources: bigResources()}
	second := corev1.Container{Args: []string{"--num-gpu-blocks-override=1000"}, Resources: bigResources()}
	device := inventory.Normalize("NVIDIA-H100-80GB-HBM3")
	shape := &capacity.Shape{Accelerator: device.Short, MemoryGiB: device.Device().MemoryGiB, Form: device.Device().Form, Devices: 1, Pods: 1}
	tokens := func(containers ...corev1.Container) capacity.Tokens {
		v := &variant{object: &v1alpha1.VariantAutoscaling{}, target: target{template: templateOf(containers...)}, Variant: status.Variant{Shape: shape}}
		var fact decision.Variant
		v.serverLimits(&fact, device, stock{})
		return fact.KVTokens
	}
	assert.InEpsilon(t, onH100, float64(tokens(first)), 1e-4)
	assert.Equal(t, capacity.Tokens(16000), tokens(first, second))
	first.Resources = corev1.ResourceRequirements{}
	assert.Zero(t, tokens(first), "without devices")
}

// A replica's KV cache is as large as it says itself; before that, as its arguments
// fix it; before that, as memory and model make it. From the objects in the cluster to
// the plan.
func TestTheKVCacheComesFromTheSurestSource(t *testing.T) {
	const said = 111_000
	// A request of 10,000 and 1,000 tokens holds 10,500 of them in the mean, and the
	// rate of a replica without latency's growth is as many requests as it holds.
	const byMemory, byArguments, byReplica = onH100 / 10_500, 320_000 / 10_500.0, said / 10_500.0
	override := "--num-gpu-blocks-override=20000"
	cases := []struct {
		name   string
		args   []string
		says   bool
		source string
		holds  float64
	}{
		{"memory and model size", nil, false, "446955 tokens from memory and model size", byMemory},
		{"the arguments before them", []string{override}, false, "320000 tokens from the server's arguments", byArguments},
		{"the replica before the memory", nil, true, "", byReplica},
		{"the replica before both", []string{override}, true, "", byReplica},
	}
	var first float64
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			variant, tokens := served(t, append([]string{"vllm", "serve", "meta-llama/Llama-3.1-8B-Instruct"}, c.args...), c.says, 1)
			serves, told := supplied(t, variant)
			if c.source == "" {
				assert.Empty(t, told)
			} else {
				assert.Contains(t, told, c.source)
				assert.Positive(t, tokens)
			}
			if i == 0 {
				first = serves
			}
			// The steps tell the rate in hundredths.
			assert.InDelta(t, c.holds/byMemory, serves/first, 0.02)
		})
	}
	// Before the first replica is there, memory and model say it as well.
	_, tokens := served(t, []string{"vllm", "serve", "meta-llama/Llama-3.1-8B-Instruct"}, false, 0)
	assert.InDelta(t, onH100, float64(tokens), 1)
}

// served is the plan for one variant with so many replicas of a server, seen through
// the objects of a cluster of one node; and the tokens in its cache that the snapshot
// has. The variant's latency hardly grows with its load.
func served(t *testing.T, command []string, says bool, replicas int) (decision.VariantPlan, capacity.Tokens) {
	t.Helper()
	x := indexed{}
	require.NoError(t, addIndexes(t.Context(), x, Access{}))
	d, set := bigTarget("team", "v")
	d.Spec.Replicas = ptr.To(int32(replicas))
	d.Spec.Template.Spec.Containers[0].Args = nil
	d.Spec.Template.Spec.Containers[0].Command = command
	object := &v1alpha1.VariantAutoscaling{}
	object.Namespace, object.Name, object.UID, object.Generation = "team", "v", "va", 1
	object.Spec = v1alpha1.VariantAutoscalingSpec{
		ScaleTargetRef: v1alpha1.ScaleTargetReference{Name: "v"}, ModelID: "chat",
		VariantProfile: &v1alpha1.VariantProfile{PerfParms: &v1alpha1.PerfParms{
			DecodeParms: &v1alpha1.DecodeParms{Alpha: "20", Beta: "0.000001"}, PrefillParms: &v1alpha1.PrefillParms{Gamma: "1", Delta: "0.000000001"},
		}},
	}
	require.NoError(t, x.of(d).Add(d))
	require.NoError(t, x.of(set).Add(set))
	require.NoError(t, x.of(object).Add(object))
	node := bigNode(0)
	require.NoError(t, x.of(node).Add(node))
	r := readings{at: noon, pods: map[types.NamespacedName]decision.Replica{}}
	for i := range replicas {
		pod := bigPod(d, set, i, 0)
		require.NoError(t, x.of(pod).Add(pod))
		reading := decision.Replica{
			Name: pod.Name, Running: sample(0.1, noon), Waiting: sample(0, noon), Served: sample(0.01, noon), KVUse: sample(0.01, noon),
			Input: sample(10_000, noon), Output: sample(1000, noon),
		}
		if says {
			reading.KVTokens = sample(111_000, noon)
		}
		r.pods[types.NamespacedName{Namespace: "team", Name: pod.Name}] = reading
	}
	access := Access{Capacity: true}
	o := &observer{
		reader: x, targets: &targetFinder{reader: x, access: access, overlay: newOverlay()}, access: access,
		names: &inventory.Names{}, startups: &round.Startups{},
	}
	seen, err := o.observe(t.Context(), noon, &config.Dynamic{Interval: time.Minute}, r)
	require.NoError(t, err)
	policy := decision.DefaultPolicy()
	policy.Variants = seen.policy.Variants
	plan, _ := decision.Decide(seen.snapshot, policy, decision.Memory{}, decision.RoundFull)
	require.Len(t, plan.Models, 1)
	require.Len(t, plan.Models[0].Variants, 1)
	return plan.Models[0].Variants[0], seen.snapshot.Models[0].Variants[0].KVTokens
}

// supplied is the rate that the plan reckons a replica to serve, and what it tells of
// the KV cache.
func supplied(t *testing.T, p decision.VariantPlan) (serves float64, cache string) {
	t.Helper()
	for _, step := range p.Steps {
		if strings.Contains(sentence.Of(step.Detail), "a replica serves") {
			_, err := fmt.Sscanf(sentence.Of(step.Detail), "a replica serves %f req/s", &serves)
			require.NoError(t, err)
		}
		if strings.Contains(sentence.Of(step.Detail), "KV cache") {
			cache = sentence.Of(step.Detail)
		}
	}
	require.Positive(t, serves)
	return serves, cache
}

func TestAVariantThatStartsMoreSlowlyThanTheGatewayWaits(t *testing.T) {
	const minute = time.Minute
	for name, c := range map[string]struct {
		startup, patience time.Duration
		least             int
		awake, warns      bool
	}{
		"slower":                       {startup: 200 * time.Second, patience: minute, warns: true},
		"as slow":                      {startup: minute, patience: minute},
		"faster":                       {startup: 30 * time.Second, patience: minute},
		"no start-up was seen":         {patience: minute},
		"a gateway without a limit":    {startup: time.Hour},
		"a model that does not sleep":  {startup: time.Hour, patience: minute, awake: true},
		"a variant that does not":      {startup: time.Hour, patience: minute, least: 1},
		"a gateway that waits as long": {startup: 200 * time.Second, patience: 10 * minute},
	} {
		t.Run(name, func(t *testing.T) {
			v := &variant{object: &v1alpha1.VariantAutoscaling{Spec: v1alpha1.VariantAutoscalingSpec{ModelID: "llama"}}, key: decision.Key{Namespace: "chat", Name: "v"}}
			policy := &decision.Policy{
				Idle:     decision.Idle{Enabled: !c.awake},
				Variants: map[decision.Key]decision.VariantPolicy{v.key: {Min: c.least}},
			}
			v.warnOfWaking(&config.Dynamic{GatewayPatience: c.patience}, policy, c.startup)
			if !c.warns {
				assert.Empty(t, v.warnings)
				return
			}
			require.Len(t, v.warnings, 1)
			assert.Equal(t, decision.Reason(v1alpha1.ReasonWakesTooLate), v.warnings[0].Reason)
			assert.Contains(t, sentence.Of(v.warnings[0].Detail), "a replica took 3m20s to start, and the gateway gives up a request that waits without one after 1m0s (WVA_GATEWAY_PATIENCE)")
		})
	}
}
