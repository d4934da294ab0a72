package adopt

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/output"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

func TestTheModelThatAContainerServes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ container, want string }{
		"serve MODEL":                 {`{name: s, command: [vllm, serve, meta/llama, --port, "8000"]}`, "meta/llama"},
		"in arguments alone":          {`{name: s, image: "vllm/vllm-openai:v1", args: [--model, meta/llama]}`, "meta/llama"},
		"with an equals sign":         {`{name: s, image: vllm, args: ["--model=meta/llama"]}`, "meta/llama"},
		"a served name counts first":  {`{name: s, command: [vllm, serve, /models/llama], args: [--served-model-name, llama, other]}`, "llama"},
		"with underscores":            {`{name: s, image: vllm, args: ["--served_model_name=llama"]}`, "llama"},
		"a script":                    {`{name: s, command: [sh, -c, "exec vllm serve meta/llama \\\n --max-model-len 4096"]}`, "meta/llama"},
		"the API server's module":     {`{name: s, command: [python3, -m, vllm.entrypoints.openai.api_server], args: [--model, m]}`, "m"},
		"SGLang":                      {`{name: s, command: [python3, -m, sglang.launch_server, --model-path, meta/llama]}`, "meta/llama"},
		"SGLang with a name":          {`{name: s, image: lmsysorg/sglang, args: [--model-path, /m, --served-model-name, "a,b"]}`, "a"},
		"a variable":                  {`{name: s, image: vllm, args: [--model, $(MODEL)], env: [{name: MODEL, value: meta/llama}]}`, "meta/llama"},
		"a variable of a shell":       {`{name: s, command: [sh, -c, "vllm serve ${ORG}/$MODEL"], env: [{name: ORG, value: meta}, {name: MODEL, value: llama}]}`, "meta/llama"},
		"a variable of a Secret":      {`{name: s, image: vllm, args: [--model, $(MODEL)], env: [{name: MODEL, valueFrom: {}}]}`, "!takes its model from $(MODEL), whose value is not in the template: give it with --model"},
		"a computed value":            {`{name: s, command: [sh, -c, "vllm serve $(cat)"]}`, "!whose value is not in the template"},
		"none":                        {`{name: s, image: vllm, args: [--port, "1"]}`, "!container s does not name its model in its arguments: give it with --model"},
		"a flag without a value":      {`{name: s, image: vllm, args: [--model]}`, "!does not name its model"},
		"a flag in place of a model":  {`{name: s, command: [vllm, serve, --port, "1"]}`, "!does not name its model"},
		"no model server":             {`{name: s, image: nginx}`, "!none of its containers starts vLLM or SGLang"},
		"two model servers":           {`{name: s, image: vllm}, {name: t, image: sglang}`, "!2 of its containers are model servers"},
		"a proxy beside":              {`{name: p, image: envoy}, {name: s, command: [vllm, serve, m]}`, "m"},
		"an empty served name counts": {`{name: s, command: [vllm, serve, m, "--served-model-name="]}`, "m"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var spec corev1.PodSpec
			require.NoError(t, yaml.UnmarshalStrict([]byte("containers: ["+c.container+"]"), &spec))
			got, err := servedModel(&spec)
			if complaint, bad := strings.CutPrefix(c.want, "!"); bad {
				require.ErrorContains(t, err, complaint)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
		})
	}
}

const deployment = `
metadata: {name: llama, namespace: chat}
spec:
  template:
    spec:
      nodeSelector: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}
      containers:
      - {name: s, command: [vllm, serve, meta/llama], resources: {limits: {nvidia.com/gpu: "2"}}}
`

func deploymentOf(t *testing.T, text string) *appsv1.Deployment {
	t.Helper()
	var d appsv1.Deployment
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &d))
	return &d
}

// written is what users get of a Deployment, and the notes about it.
func written(t *testing.T, d *appsv1.Deployment, autoscalers []Autoscaler, w wishes) (text, notes string) {
	t.Helper()
	a, err := adopt(d, autoscalers, &inventory.Names{}, w)
	require.NoError(t, err)
	o := &options{}
	var out bytes.Buffer
	o.form.Add(&cobra.Command{}, output.YAML, output.JSON)
	require.NoError(t, o.write(&out, []*Adoption{a}, &corev1.ConfigMap{}))
	return out.String(), strings.Join(a.Notes, "\n")
}

func TestADeploymentWithAnAutoscaler(t *testing.T) {
	t.Parallel()
	text, notes := written(t, deploymentOf(t, deployment), []Autoscaler{{Kind: "HorizontalPodAutoscaler", Name: "h", Min: 1, Max: 8}},
		wishes{actuation: v1alpha1.ActuationOff, instance: "blue", prices: pricesOf(t, "H100")})
	assert.Equal(t, `apiVersion: llmd.ai/v1alpha1
kind: VariantAutoscaling
metadata:
  labels:
    wva.llmd.ai/controller-instance: blue
  name: llama
  namespace: chat
spec:
  accelerator: H100
  acceleratorCount: 2
  actuation: "Off"
  maxReplicas: 8
  minReplicas: 1
  modelID: meta/llama
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: llama
`, text)
	assert.Empty(t, notes, "nothing is missing")
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	t.Parallel()
	without := strings.Replace(deployment, "nodeSelector: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}", "", 1)
	text, notes := written(t, deploymentOf(t, without), nil, wishes{})
	assert.NotContains(t, text, "accelerator: ")
	assert.Contains(t, text, "acceleratorCount: 2")
	assert.Contains(t, notes, "its template names no type of accelerator")
	assert.Contains(t, notes, "set spec.maxReplicas for one")

	text, notes = written(t, deploymentOf(t, without), []Autoscaler{{Kind: "ScaledObject", Name: "k", Max: 3}, {Kind: "HorizontalPodAutoscaler", Name: "h"}}, wishes{model: "other", accelerator: "L40S"})
	assert.Contains(t, text, "accelerator: L40S")
	assert.Contains(t, text, "modelID: other")
	assert.Contains(t, text, "minReplicas: 0")
	assert.Contains(t, notes, "2 autoscalers are on it, and the bounds of ScaledObject k count")

	bare := deploymentOf(t, strings.Replace(without, `, resources: {limits: {nvidia.com/gpu: "2"}}`, "", 1))
	bare.OwnerReferences = deploymentOf(t, `metadata: {ownerReferences: [{apiVersion: v1, kind: InferenceService, name: i, uid: u, controller: true}]}`).OwnerReferences
	_, notes = written(t, bare, nil, wishes{})
	assert.Contains(t, notes, "its pods ask for no accelerator")
	assert.Contains(t, notes, "it belongs to InferenceService i")
}

// What is asked for is held against the template, the nodes and the prices.
func TestAnAcceleratorIsChecked(t *testing.T) {
	t.Parallel()
	without := strings.Replace(deployment, "nodeSelector: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}", "", 1)
	differs, noNode, noPrice := "the pod template selects H100", "no node has one: the nodes have A100, H100", "there is no price for"
	for name, c := range map[string]struct {
		deployment string
		wish       wishes
		want       []string
	}{
		"the template selects another one":       {deployment, wishes{accelerator: "L40S", prices: pricesOf(t, "L40S")}, []string{differs}},
		"the template selects it":                {deployment, wishes{accelerator: "NVIDIA-H100-80GB-HBM3", prices: pricesOf(t, "H100"), onNodes: []capacity.Accelerator{"A100", "H100"}}, nil},
		"no node has it":                         {without, wishes{accelerator: "FOO", prices: pricesOf(t, "FOO"), onNodes: []capacity.Accelerator{"A100", "H100"}}, []string{noNode}},
		"nobody knows what the nodes have":       {without, wishes{accelerator: "FOO", prices: pricesOf(t, "FOO")}, nil},
		"nobody gave its price":                  {deployment, wishes{}, []string{noPrice + " H100"}},
		"nobody gave the price of what is asked": {without, wishes{accelerator: "L40S"}, []string{noPrice + " L40S"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, notes := written(t, deploymentOf(t, c.deployment), []Autoscaler{{Kind: "HorizontalPodAutoscaler", Name: "h", Min: 1, Max: 8}}, c.wish)
			for _, note := range []string{differs, noNode, noPrice} {
				assert.Equal(t, slices.ContainsFunc(c.want, func(w string) bool { return strings.HasPrefix(w, note) }), strings.Contains(notes, note), "%q in %s", note, notes)
			}
			for _, w := range c.want {
				assert.Contains(t, notes, w)
			}
		})
	}
}

// pricesOf are those of some accelerators.
func pricesOf(t *testing.T, names ...string) config.UnitCosts {
	t.Helper()
	data := map[string]string{}
	for _, name := range names {
		data[name] = "{cost: 1}"
	}
	prices, warnings, err := config.ParseUnitCosts(data)
	require.NoError(t, err)
	require.Empty(t, warnings)
	return prices
}

func TestBounds(t *testing.T) {
	t.Parallel()
	var h autoscalingv2.HorizontalPodAutoscaler
	require.NoError(t, yaml.Unmarshal([]byte(`{metadata: {name: h}, spec: {maxReplicas: 4, scaleTargetRef: {kind: Deployment, name: llama}}}`), &h))
	name, a := ofHPA(&h)
	assert.Equal(t, "llama", name)
	assert.Equal(t, Autoscaler{"HorizontalPodAutoscaler", "h", 1, 4, nil}, a, "without a lower bound it is 1")
	h.Spec.ScaleTargetRef.Kind = "StatefulSet"
	name, _ = ofHPA(&h)
	assert.Empty(t, name)
	require.NoError(t, yaml.Unmarshal([]byte(`{metadata: {ownerReferences: [{kind: ScaledObject}]}, spec: {scaleTargetRef: {kind: Deployment}}}`), &h))
	name, _ = ofHPA(&h)
	assert.Empty(t, name, "KEDA's own")

	scaled := func(text string) (string, Autoscaler, error) {
		object := &unstructured.Unstructured{Object: map[string]any{}}
		require.NoError(t, yaml.Unmarshal([]byte(text), &object.Object))
		return ofScaledObject(object)
	}
	name, a, err := scaled(`{metadata: {name: k}, spec: {scaleTargetRef: {name: llama}}}`)
	require.NoError(t, err)
	assert.Equal(t, "llama", name)
	assert.Equal(t, Autoscaler{"ScaledObject", "k", 0, 100, nil}, a, "KEDA's own defaults")
	name, _, err = scaled(`{metadata: {name: k}, spec: {scaleTargetRef: {kind: StatefulSet, name: llama}}}`)
	require.NoError(t, err)
	assert.Empty(t, name)
	_, _, err = scaled(`{metadata: {name: k}, spec: {minReplicaCount: few}}`)
	require.ErrorContains(t, err, "ScaledObject k: ")
}

func TestWhoIsAdoptedAlready(t *testing.T) {
	t.Parallel()
	var there v1alpha1.VariantAutoscalingList
	require.NoError(t, yaml.Unmarshal([]byte(`items:
- {metadata: {name: va}, spec: {scaleTargetRef: {name: llama}}}
- {metadata: {name: taken}, spec: {scaleTargetRef: {kind: LeaderWorkerSet, name: taken}}}`), &there))
	has, err := adopted(&there, "llama")
	require.NoError(t, err)
	assert.Equal(t, "va", has.Name)
	has, err = adopted(&there, "new")
	require.NoError(t, err)
	assert.Nil(t, has)
	_, err = adopted(&there, "taken")
	require.ErrorContains(t, err, "VariantAutoscaling taken is there already and scales taken")
}

func TestTheCommandLine(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"a --actuation=on": `--actuation is "on": expected Off, Metric or Scale`,
		"a b --model=m":    "--model is for one Deployment",
		"statefulset/a":    `"statefulset/a" is no Deployment`,
		"a b deploy/a":     `"a" is given twice: expected each Deployment once`,
		"a --slo-itl=-1s":  "--slo-itl is -1s: expected a time above 0, such as 50ms",
	} {
		words := strings.Fields(line)
		o := &options{written: "Off"}
		var names []string
		for _, word := range words {
			switch name, value, _ := strings.Cut(word, "="); name {
			case "--actuation":
				o.written = value
			case "--model":
				o.wishes.model = value
			case "--slo-itl":
				o.slo.itl = -time.Second
			default:
				names = append(names, word)
			}
		}
		require.ErrorContains(t, o.check(names), want)
	}
	o, names := &options{written: "Scale"}, []string{"deploy/a", "b"}
	require.NoError(t, o.check(names))
	assert.Equal(t, []string{"a", "b"}, names)
}

// The way goes on in the order that is safe: watch, compare, scale, and then remove what
// scaled before.
func TestHowToGoOn(t *testing.T) {
	t.Parallel()
	a, err := adopt(deploymentOf(t, deployment), []Autoscaler{{Kind: "HorizontalPodAutoscaler", Name: "h", Max: 2}, {Kind: "ScaledObject", Name: "k", Max: 2}}, &inventory.Names{}, wishes{})
	require.NoError(t, err)
	text := goOn([]*Adoption{a}, slo{ttft: 1500 * time.Millisecond}, false)
	at := 0
	for _, step := range []string{"adopt llama -n chat --slo-ttft 1.5s --apply", "explain llama", "shadow llama", `patch va llama -n chat --type merge -p '{"spec":{"actuation":"Scale"}}'`, "delete horizontalpodautoscaler h -n chat", "delete scaledobject k -n chat"} {
		next := strings.Index(text[at:], step)
		require.GreaterOrEqual(t, next, 0, step)
		at += next
	}
	assert.NotContains(t, goOn([]*Adoption{a}, slo{}, true), "--apply")
	assert.Empty(t, goOn(nil, slo{}, false))
}

// The object names the accelerator as the prices do, so that the two can be held side by side.
func TestAnAcceleratorHasTheNameOfItsPrice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		product string
		prices  map[string]string
		want    string
	}{
		"a short name":            {"NVIDIA-H100-80GB-HBM3", map[string]string{"H100": "{cost: 1}", "A100": "{cost: 1}"}, "H100"},
		"the narrower of two":     {"NVIDIA-A100-SXM4-80GB", map[string]string{"A100": "{cost: 1}", "A100-80GB": "{cost: 2}"}, "A100-80GB"},
		"a price of another size": {"NVIDIA-A100-SXM4-40GB", map[string]string{"A100-80GB": "{cost: 2}"}, "A100-40GB"},
		"no price":                {"NVIDIA-L40S", nil, "L40S"},
		"a slice":                 {"NVIDIA-A100-SXM4-80GB-MIG-3g.40gb", map[string]string{"A100": "{cost: 1}"}, "A100-80GB-MIG-3g.40gb"},
		"a product of one's own":  {"our-card", map[string]string{"OUR-CARD": "{cost: 1}"}, "OUR-CARD"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prices, warnings, err := config.ParseUnitCosts(c.prices)
			require.NoError(t, err)
			require.Empty(t, warnings)
			d := deploymentOf(t, strings.Replace(deployment, "NVIDIA-H100-80GB-HBM3", c.product, 1))
			text, _ := written(t, d, nil, wishes{prices: prices})
			assert.Contains(t, text, "  accelerator: "+c.want+"\n")
		})
	}
}
