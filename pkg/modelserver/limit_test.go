package modelserver

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

var h100 = capacity.Device{Accelerator: "H100", MemoryGiB: 80}

func limitsOn(d capacity.Device, c corev1.Container) Limits {
	c.Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}
	return LimitsOf([]corev1.Container{c}, "m", Devices{Device: d, Count: 8})
}

// What vLLM takes by default follows from the device, and nobody stated it.
func TestTheBatchLimitThatNothingStates(t *testing.T) {
	for _, c := range []struct {
		device capacity.Device
		want   int
	}{
		{h100, 1024},
		{capacity.Device{Accelerator: "H200", MemoryGiB: 141}, 1024},
		{capacity.Device{Accelerator: "B200", MemoryGiB: 192}, 1024},
		{capacity.Device{Accelerator: "GH200", MemoryGiB: 96}, 1024},
		{capacity.Device{Accelerator: "MI300X", MemoryGiB: 192}, 1024},
		{capacity.Device{Accelerator: "A800", MemoryGiB: 80}, 1024},
		{capacity.Device{Accelerator: "A100", MemoryGiB: 80}, 256},
		{capacity.Device{Accelerator: "A100", MemoryGiB: 40}, 256},
		{capacity.Device{Accelerator: "L40S", MemoryGiB: 48}, 256},
		{capacity.Device{Accelerator: "H100", MemoryGiB: 20}, 256}, // a slice of one
		{capacity.Device{Accelerator: "H100"}, 0},
		{capacity.Device{Accelerator: "Gaudi3", MemoryGiB: 128}, 0},
		{capacity.Device{Accelerator: "Trainium2", MemoryGiB: 96}, 0},
		{capacity.Device{Accelerator: "MAX1550", MemoryGiB: 128}, 1024},
	} {
		l := limitsOn(c.device, corev1.Container{Image: "vllm/vllm-openai:v0.19.0", Args: []string{"--model=m"}})
		assert.Equal(t, c.want, l.Batch, c.device)
		assert.Equal(t, serving.BatchAssumed, l.BatchSource, c.device)
	}
	assert.Zero(t, LimitsOf([]corev1.Container{{Image: "vllm/vllm-openai"}}, "m", Devices{}).Batch, "of no known device")
}

// However a server is told, and where it is told what nobody sees here.
func TestTheBatchLimitOfAServer(t *testing.T) {
	const stated, assumed = serving.BatchStated, serving.BatchAssumed
	vllm := func(words ...string) corev1.Container {
		return corev1.Container{Image: "vllm/vllm-openai:v0.19.0", Args: words}
	}
	run := func(words ...string) corev1.Container { return corev1.Container{Image: "acme/llm", Command: words} }
	variable := func(c corev1.Container, env ...corev1.EnvVar) corev1.Container {
		c.Env = env
		return c
	}
	for name, c := range map[string]struct {
		container corev1.Container
		want      int
		source    serving.BatchSource
	}{
		"--x=y":                   {vllm("--max-num-seqs=128"), 128, stated},
		"--x y":                   {vllm("--max-num-seqs", "128"), 128, stated},
		"underscores":             {vllm("--max_num_seqs=128"), 128, stated},
		"a shell":                 {run("sh", "-c", "exec vllm serve m --max-num-seqs 128"), 128, stated},
		"python -m":               {run("python3", "-m", "vllm.entrypoints.openai.api_server", "--max-num-seqs=128"), 128, stated},
		"the subcommand":          {run("vllm", "serve", "m", "--max-num-seqs=128"), 128, stated},
		"the last of two":         {vllm("--max-num-seqs=64", "--max-num-seqs=128"), 128, stated},
		"a variable":              {variable(vllm("--max-num-seqs=$(N)"), corev1.EnvVar{Name: "N", Value: "128"}), 128, stated},
		"a variable that is told": {variable(vllm("--max-num-seqs=$(N)"), corev1.EnvVar{Name: "N", ValueFrom: &corev1.EnvVarSource{}}), 0, assumed},
		"no number":               {vllm("--max-num-seqs=auto"), 0, assumed},

		"eight engines":                     {vllm("--data-parallel-size=8", "--enable-expert-parallel", "--max-num-seqs=128"), 1024, stated},
		"eight engines, in short":           {vllm("-dp", "8", "--max-num-seqs", "128"), 1024, stated},
		"eight engines, with underscores":   {vllm("--data_parallel_size=8", "--max_num_seqs=128"), 1024, stated},
		"eight engines in a shell":          {run("bash", "-c", "vllm serve m --data-parallel-size 8 --max-num-seqs 128"), 1024, stated},
		"eight engines by default":          {vllm("--data-parallel-size=8"), 8192, assumed},
		"engines by a variable":             {variable(vllm("-dp", "$(DP)", "--max-num-seqs=128"), corev1.EnvVar{Name: "DP", ValueFrom: &corev1.EnvVarSource{}}), 0, assumed},
		"engines by vLLM's own variables":   {variable(vllm("--max-num-seqs=128"), corev1.EnvVar{Name: "VLLM_DP_SIZE", Value: "8"}), 0, assumed},
		"two nodes, balanced by the server": {vllm("--data-parallel-size=16", "--data-parallel-size-local=8", "--max-num-seqs=64"), 1024, stated},
		"two nodes, balanced before them":   {vllm("--data-parallel-size=16", "--data-parallel-size-local=8", "--data-parallel-hybrid-lb", "--max-num-seqs=64"), 512, stated},
		"one rank for each server":          {vllm("--data-parallel-size=16", "--data-parallel-rank=3", "--max-num-seqs=64"), 64, stated},
		"one rank, balanced elsewhere":      {vllm("--data-parallel-size=16", "--data-parallel-external-lb", "--max-num-seqs=64"), 64, stated},

		// llm-d's guide of wide expert parallelism (router 0.9): vLLM 0.22 and newer serve each rank of a pod at a port of its own.
		"a port for each rank of a node":             {vllm("--data-parallel-size=16", "--data-parallel-size-local=8", "--data-parallel-multi-port-external-lb", "--max-num-seqs=64"), 512, stated},
		"a port for each rank of the only node":      {vllm("--data-parallel-size=8", "--data-parallel-multi-port-external-lb", "--max-num-seqs=64"), 512, stated},
		"a port for each rank of the second node":    {run("bash", "-c", "START=$((LWS_WORKER_INDEX * 8)); exec vllm serve m --data-parallel-size 16 --data-parallel-start-rank $START --data-parallel-size-local 8 --data-parallel-multi-port-external-lb --max-num-seqs 64"), 512, stated},
		"no more requests than tokens":               {vllm("--max-num-batched-tokens=512"), 512, assumed},
		"no more requests than tokens, in thousands": {vllm("--max-num-batched-tokens=0.5k"), 500, assumed},
		"many tokens":               {vllm("--max-num-batched-tokens=16384"), 1024, assumed},
		"many tokens, in thousands": {vllm("--max-num-batched-tokens=8K"), 1024, assumed},

		// Other programs that run these engines: NVIDIA's Dynamo 1.2 (-m dynamo.vllm), KServe 0.20's Hugging Face runtime.
		"Dynamo":                           {corev1.Container{Image: "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.2.0", Command: []string{"/bin/sh", "-c"}, Args: []string{"python3 -m dynamo.vllm --model m --max-num-seqs 64"}}, 64, stated},
		"Dynamo that states nothing":       {corev1.Container{Image: "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.2.0", Command: []string{"python3", "-m", "dynamo.vllm"}, Args: []string{"--model", "m"}}, 0, assumed},
		"Hugging Face's runtime in KServe": {corev1.Container{Image: "kserve/huggingfaceserver:v0.20.0-gpu", Args: []string{"--model_name=m", "--backend=vllm", "--max-num-seqs=64", "--data-parallel-size=2"}}, 128, stated},
		// KServe 0.17's LLMInferenceService: a shell, and further arguments in a variable.
		"a variable of arguments":                      {variable(run("/bin/bash", "-c", `eval "vllm serve /mnt/models --port 8000 ${VLLM_ADDITIONAL_ARGS} --enable-ssl-refresh"`), corev1.EnvVar{Name: "VLLM_ADDITIONAL_ARGS", Value: "--max-num-seqs 64 --data-parallel-size=2"}), 128, stated},
		"a variable of arguments, told":                {variable(run("/bin/bash", "-c", `eval "vllm serve /mnt/models ${VLLM_ADDITIONAL_ARGS}"`), corev1.EnvVar{Name: "VLLM_ADDITIONAL_ARGS", ValueFrom: &corev1.EnvVarSource{}}), 0, assumed},
		"a variable of arguments that a ConfigMap has": {run("bash", "-c", "vllm serve m --max-num-seqs 64 $VLLM_ARGS"), 0, assumed},
		"after an argument without a value":            {run("bash", "-c", "vllm serve m --trust-remote-code ${EXTRA_ARGS:-} --max-num-seqs 64"), 0, assumed},
		"an array":                                     {run("bash", "-c", `ARGS=(--max-num-seqs 32); exec vllm serve m "${ARGS[@]}"`), 0, assumed},
		"all arguments of a script":                    {run("bash", "-c", `exec python3 -m vllm.entrypoints.openai.api_server --model=m "$@"`, "--max-num-seqs=64"), 0, assumed},
		"what another command prints":                  {run("bash", "-c", "vllm serve m $(cat /etc/vllm/args)"), 0, assumed},
		"what another command prints, as of old":       {run("bash", "-c", "vllm serve m `cat /etc/vllm/args`"), 0, assumed},
		"values in variables":                          {run("bash", "-c", `cd $HOME && . $ENV; vllm serve $MODEL --port $PORT -tp "${TP}" --max-num-seqs 64 >> $LOG 2>&1 | tee $LOG`), 64, stated},

		"the model in a variable":       {variable(run("vllm", "serve", "$(MODEL)", "--max-num-seqs=64"), corev1.EnvVar{Name: "MODEL", ValueFrom: &corev1.EnvVarSource{}}), 64, stated},
		"a variable that nobody sets":   {run("sh", "-c", "vllm serve m --max-num-seqs ${MAX_NUM_SEQS:-64}"), 0, assumed},
		"a variable beside its default": {variable(run("sh", "-c", "vllm serve m --max-num-seqs ${MAX_NUM_SEQS:-64}"), corev1.EnvVar{Name: "MAX_NUM_SEQS", Value: "32"}), 0, assumed},
		"lines that go on":              {run("/bin/sh", "-c", "vllm serve m \\\n  --max-num-seqs \\\n  128 \\\n"), 128, stated},

		"a file":                             {vllm("--model=m", "--config=/etc/vllm.yaml"), 0, assumed},
		"a file, in two words":               {run("vllm", "serve", "--config", "config.yaml"), 0, assumed},
		"a file may tell of further engines": {vllm("--config=/etc/vllm.yaml", "--max-num-seqs=128"), 0, assumed},
		"a file that can tell no more":       {vllm("--config=/etc/vllm.yaml", "--max-num-seqs=128", "--data-parallel-size=2"), 256, stated},
		"a script":                           {corev1.Container{Image: "vllm/vllm-openai", Command: []string{"bash", "/scripts/start.sh"}}, 0, assumed},
		"for throughput, twice as many":      {vllm("--performance-mode=throughput"), 0, assumed},
		"nothing":                            {vllm("--model=m"), 1024, assumed},

		"SGLang":                                {run("python3", "-m", "sglang.launch_server", "--max-running-requests=48"), 48, stated},
		"SGLang, by its memory":                 {run("python3", "-m", "sglang.launch_server", "--tp=8"), 0, assumed},
		"SGLang's workers":                      {run("python3", "-m", "sglang.launch_server", "--dp-size=4", "--max-running-requests=48"), 192, stated},
		"SGLang's workers that share the limit": {run("python3", "-m", "sglang.launch_server", "--dp-size=4", "--enable-dp-attention", "--max-running-requests=48"), 48, stated},
		"something else":                        {corev1.Container{Image: "nginx"}, 0, assumed},
	} {
		l := limitsOn(h100, c.container)
		assert.Equal(t, c.want, l.Batch, name)
		assert.Equal(t, c.source, l.BatchSource, name)
	}
}

// A variable that is long and named often stands for more than fits into any memory. Such a container does not
// start, and its arguments are read as they are written.
func TestArgumentsThatNoProgramStartsWith(t *testing.T) {
	long := corev1.EnvVar{Name: "A", Value: strings.Repeat("x", 500<<10)}
	c := corev1.Container{Image: "vllm/vllm-openai", Env: []corev1.EnvVar{long, {Name: "N", Value: "64"}}, Args: []string{"--max-num-seqs", "$(N)", "--chat-template", strings.Repeat("$(A)", 100_000)}}
	words := commandLine(&c)
	assert.Equal(t, []string{"--max-num-seqs", "64"}, words[:2])
	assert.Len(t, words[3], 400_000)
	l := LimitsOf([]corev1.Container{c}, "m", Devices{})
	assert.Equal(t, 64, l.Batch)

	// Many words that are each short enough.
	c.Env[0].Value, c.Args = strings.Repeat("x", 100<<10), slices.Repeat([]string{"$(A)"}, 1000)
	total := 0
	for _, word := range commandLine(&c) {
		total += len(word)
	}
	assert.LessOrEqual(t, total, longestLine+4*1000)
}
