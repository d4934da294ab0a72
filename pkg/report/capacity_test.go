package report

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// holders are pods with one device each.
func holders(variant string, pods ...string) []Holder {
	var all []Holder
	for _, pod := range pods {
		all = append(all, Holder{Pod: "demo/" + pod, Variant: variant, Devices: 1})
	}
	return all
}

func gpuNode(name, accelerator string, devices int, held ...Holder) NodeCapacity {
	free := devices
	for _, h := range held {
		free -= h.Devices
	}
	return NodeCapacity{
		Name: name, FreeMilliCPU: new(int64(96500)), FreeMemoryBytes: new(int64(1) << 39), FreePods: new(100),
		Pools: []PoolCapacity{{Accelerator: accelerator, Devices: devices, Free: &free, Holders: held}},
	}
}

// stock is a small cluster with everything in it that rendering treats specially.
func stock() Capacity {
	out := gpuNode("h100-10", "H100-80GB-HBM3", 8, holders("demo/llama-8b", "c")...)
	out.Out = "cordoned"
	sliced := gpuNode("a100-mig", "A100-40GB", 4)
	sliced.Pools = append(sliced.Pools, PoolCapacity{Accelerator: "A100-MIG-3g.20gb", Devices: 8, Free: new(7), Holders: holders("", "notebook")})
	return Capacity{
		Accelerators: []AcceleratorCapacity{
			{Accelerator: "H100", Nodes: 6, NodesOut: 1, Devices: 48, Free: new(26), Unusable: new(3), LargestHole: new(8)},
			{Accelerator: "A100", Nodes: 1, Devices: 4, Free: new(4), LargestHole: new(4)},
			{Nodes: 1, Devices: 2},
		},
		Variants: []VariantCapacity{
			{Namespace: "demo", Name: "llama-8b", Model: "meta-llama/Llama-3.1-8B-Instruct", Target: "Deployment/llama-8b",
				Shape:  &Shape{Text: "1xH100", Accelerator: "H100", Devices: 1, Pods: 1, MilliCPU: 8000, MemoryBytes: 64 << 30},
				Placed: new(4), Waiting: new(0), Slots: new(26), LargestHole: new(8)},
			{Namespace: "demo", Name: "llama-405b", Model: "meta-llama/Llama-3.1-405B-Instruct", Target: "Deployment/llama-405b",
				Shape:  &Shape{Text: "16xH100", Accelerator: "H100", Devices: 16, Pods: 1},
				Placed: new(0), Waiting: new(1), Slots: new(0), LargestHole: new(8),
				Explanation: "wants 16xH100: 5 H100 nodes have fewer than 16 devices, 1 node takes no pods, 4302 nodes are of another type"},
			{Namespace: "demo", Name: "mixtral", Model: "mixtral", Target: "StatefulSet/mixtral",
				Shape:  &Shape{Text: "4xH100", Accelerator: "H100", Devices: 4, Pods: 1, MilliCPU: 1500, MemoryBytes: 1 << 29},
				Placed: new(1), Waiting: new(0), Slots: new(5), SlotsBound: "pod anti-affinity, volumes", LargestHole: new(8)},
			{Namespace: "other", Name: "gemma", Model: "gemma", Target: "Server/gemma",
				Explanation: "what a replica takes is not known: set spec.accelerator and spec.acceleratorCount"},
		},
		Nodes: []NodeCapacity{
			gpuNode("h100-9", "H100-80GB-HBM3", 8, append(holders("demo/llama-8b", "a", "b"), Holder{Pod: "demo/x", Variant: "demo/mixtral", Devices: 4})...),
			out,
			gpuNode("h100-2", "H100-80GB-HBM3", 8), gpuNode("h100-3", "H100-80GB-HBM3", 8), gpuNode("h100-4", "H100-80GB-HBM3", 8),
			gpuNode("h100-1", "H100-80GB-HBM3", 8, append(holders("", "training"), holders("demo/llama-8b", "d")...)...),
			sliced,
			gpuNode("full", "L40S", 2, Holder{Pod: "demo/big", Devices: 3}),
			{Name: "fresh", Reason: "no label names the product of nvidia.com/gpu", Pools: []PoolCapacity{{Devices: 2}}},
			{Name: "cpu-1", FreeMilliCPU: new(int64(500)), FreeMemoryBytes: new(int64(0)), FreePods: new(3)},
			{Name: "cpu-2", Out: "not ready"},
		},
		Relocations: []Relocation{{Variant: "demo/mixtral", Shape: "4xH100", Node: "h100-1", Moves: []Move{
			{Pod: "demo/d", Variant: "demo/llama-8b", Shape: "1xH100", From: "h100-1", To: "h100-9"},
			{Pod: "demo/a-longer-name", Variant: "demo/llama-8b", Shape: "1xH100", From: "h100-1", To: "h100-9"},
		}}},
		Notes: []string{"the pods of StatefulSet other/gemma could not be read: " + strings.Repeat("a long reason ", 9)},
	}
}

func TestCapacityIsRendered(t *testing.T) {
	join := func(lines []string) string { return strings.Join(lines, "\n") + "\n" }
	var asJSON, asYAML bytes.Buffer
	require.NoError(t, stock().WriteJSON(&asJSON))
	require.NoError(t, stock().WriteYAML(&asYAML))
	tests := map[string]string{
		"capacity.txt":       join(stock().Table(Style{}, Detail{})),
		"capacity-color.txt": join(stock().Table(Style{Color: true}, Detail{})),
		"capacity-all.txt":   join(stock().Table(Style{}, Detail{All: true})),
		"capacity-wide.txt":  join(stock().Table(Style{}, Detail{Wide: true})),
		"capacity.json":      asJSON.String(),
		"capacity.yaml":      asYAML.String(),
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			golden(t, name, text)
			for line := range strings.Lines(text) {
				assert.Equal(t, strings.TrimRight(line, " \n"), strings.TrimSuffix(line, "\n"), "no blanks at the end")
			}
		})
	}
	colors := regexp.MustCompile("\x1b\\[[0-9;]*m")
	assert.Equal(t, tests["capacity.txt"], colors.ReplaceAllString(tests["capacity-color.txt"], ""), "colours change nothing else")
	fromYAML, err := yaml.YAMLToJSON(asYAML.Bytes())
	require.NoError(t, err)
	assert.JSONEq(t, asJSON.String(), string(fromYAML))
}

func TestTheOrderOfWhatIsKnownIsOfNoAccount(t *testing.T) {
	turned := stock()
	reverse(turned.Nodes)
	reverse(turned.Variants)
	reverse(turned.Accelerators)
	for i := range turned.Nodes {
		for j := range turned.Nodes[i].Pools {
			reverse(turned.Nodes[i].Pools[j].Holders)
		}
	}
	assert.Equal(t, stock().Table(Style{}, Detail{}), turned.Table(Style{}, Detail{}))
	var a, b bytes.Buffer
	require.NoError(t, stock().WriteJSON(&a))
	require.NoError(t, turned.WriteJSON(&b))
	assert.Equal(t, a.String(), b.String())
}

func reverse[T any](list []T) {
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
}

func TestAnEmptyClusterIsSaidAndHasListsAndNoNulls(t *testing.T) {
	assert.Equal(t, []string{"there are no nodes"}, Capacity{}.Table(Style{}, Detail{}))
	var b bytes.Buffer
	require.NoError(t, Capacity{}.WriteJSON(&b))
	assert.NotContains(t, b.String(), "null")
}

// Five thousand nodes are a page, not a roll: those that look the same share a line.
func TestManyNodesShareLines(t *testing.T) {
	var c Capacity
	for i := range 5000 {
		n := NodeCapacity{Name: fmt.Sprintf("node-%d", i)}
		if i%7 == 0 {
			n = gpuNode(n.Name, "H100", 8, holders("", "a", "b")[:i/7%3]...)
		}
		c.Nodes = append(c.Nodes, n)
	}
	lines := c.Table(Style{}, Detail{})
	assert.Len(t, lines, 1+3+1+1, "header, three kinds of nodes, those without devices, legend:\n%s", strings.Join(lines, "\n"))
	assert.Contains(t, lines[1], "node-0 and 238 like it")
	assert.Contains(t, strings.Join(lines, "\n"), "4285 nodes without devices")
	assert.Len(t, c.Table(Style{}, Detail{All: true}), 1+5000+1)
}

func TestManyVariantsAndManyDevicesStayReadable(t *testing.T) {
	var c Capacity
	n := gpuNode("big", "X", 200)
	for i := range 80 {
		v := VariantCapacity{Namespace: "n", Name: fmt.Sprintf("v%02d", i)}
		c.Variants = append(c.Variants, v)
		n.Pools[0].Holders = append(n.Pools[0].Holders, Holder{Pod: "p", Variant: v.Key(), Devices: 1})
	}
	c.Nodes = []NodeCapacity{n}
	lines := c.Table(Style{}, Detail{})
	assert.Contains(t, lines[1], "[ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwyz0123456789+++] 136 more")
	assert.Contains(t, lines[2], "+ held by a variant beyond the letters")
}

func TestNamesAreOrderedAsPeopleDo(t *testing.T) {
	sorted := []string{"a", "a-1", "a-2", "a-02x", "a-10", "a-10b", "b"}
	for i := range sorted {
		for j := range sorted {
			got := compareNatural(sorted[i], sorted[j])
			switch {
			case i < j:
				assert.Negative(t, got, "%s %s", sorted[i], sorted[j])
			case i > j:
				assert.Positive(t, got, "%s %s", sorted[i], sorted[j])
			default:
				assert.Zero(t, got)
			}
		}
	}
}
