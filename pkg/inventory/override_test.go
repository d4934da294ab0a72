package inventory

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func overrides(t *testing.T, data map[string]string) Overrides {
	t.Helper()
	o, err := ParseOverrides(data)
	require.NoError(t, err)
	return o
}

func TestOverridesNameAccelerators(t *testing.T) {
	var names Names
	names.SetOverrides(overrides(t, map[string]string{
		"NVIDIA-Foo":                    "H100",
		"nvidia_bar":                    "A100-80GB",
		"NVIDIA-H20-3e":                 "H20E",
		"G2":                            "L4",
		"NVIDIA-L4":                     "Gaudi2",
		"NVIDIA-H100-NVL-MIG-1g.12gb":   "H100",
		"NVIDIA-RTX-PRO-6000-Blackwell": "RTX-PRO-6000",
	}))
	cases := []struct{ raw, want string }{
		{"NVIDIA-Foo", "H100"},
		{"nvidia foo", "H100"},
		{"NVIDIA-Bar", "A100-80GB"},
		{"NVIDIA-Foo-SHARED", "H100-SHARED"},
		{"NVIDIA-Bar-MIG-3g.40gb", "A100-80GB-MIG-3g.40gb"},
		{"NVIDIA-H100-NVL-MIG-1g.12gb", "H100-MIG-1g.12gb"},
		{"NVIDIA-H20-3e", "H20E"},
		{"g2", "L4"},
		{"NVIDIA-L4", "Gaudi2"},
		{"NVIDIA-A100-PCIE-40GB", "A100-40GB-PCIE"},
		{"NVIDIA-RTX-PRO-6000-Blackwell", "RTXPRO6000"},
	}
	for _, c := range cases {
		t.Run(c.raw, func(t *testing.T) {
			got := names.Of(c.raw)
			assert.Equal(t, c.want, got.String())
			assert.Equal(t, c.raw, got.Raw)
			assert.False(t, got.Unlisted, "the operator knows it")
			assert.Equal(t, got, names.Of(c.raw), "remembered")
		})
	}
}

func TestOverridesAreBelievedOverDiscovery(t *testing.T) {
	var names Names
	names.SetOverrides(overrides(t, map[string]string{"nvidia-tesla-a100": "A100-40GB", "our-pool": "H100", "other-pool": "H200"}))
	cases := []struct {
		name         string
		labels       map[string]string
		want, source string
		why          string
	}{
		{"over the cloud's own name", map[string]string{"cloud.google.com/gke-accelerator": "nvidia-tesla-a100"}, "A100-40GB", "cloud.google.com/gke-accelerator", ""},
		{"over discovery", map[string]string{"nvidia.com/gpu.product": "NVIDIA-L4", "cluster-api/accelerator": "our-pool"}, "H100", "cluster-api/accelerator", ""},
		{"under the node's own label", map[string]string{AcceleratorLabel: "B200", "cluster-api/accelerator": "our-pool"}, "B200", AcceleratorLabel, ""},
		{"the node's own label has an override too", map[string]string{AcceleratorLabel: "our-pool"}, "H100", AcceleratorLabel, ""},
		{"two of them", map[string]string{"skypilot.co/accelerator": "other-pool", "cluster-api/accelerator": "our-pool"}, "", "",
			"labels contradict each other: cluster-api/accelerator says H100, skypilot.co/accelerator says H200"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := names.Carried(labelled(c.labels, list("nvidia.com/gpu", "8"))).Devices[0]
			assert.Equal(t, c.want, d.Name.String())
			assert.Equal(t, c.source, d.Source)
			assert.Equal(t, c.why, d.Why)
		})
	}
}

func TestOverridesReachEveryReader(t *testing.T) {
	var names Names
	names.SetOverrides(overrides(t, map[string]string{"our-card": "H100-80GB"}))
	node := h100("a")
	node.Labels = map[string]string{"nvidia.com/gpu.product": "our-card"}
	inv := names.Read(Objects{})
	assert.Empty(t, inv.Nodes)
	inv = names.Read(Objects{Nodes: append(inv.Nodes, node)})
	r, err := inv.plain(template(container("nvidia.com/gpu", "8")), names.Of("our-card"))
	require.NoError(t, err)
	assert.Equal(t, "8xH100-80GB", r.Shape.String())
	slots, err := inv.Cluster.Slots(r)
	require.NoError(t, err)
	assert.Equal(t, 1, slots)
	assert.Empty(t, inv.Unlisted)

	selects := template()
	selects.Spec.NodeSelector = map[string]string{"nvidia.com/gpu.product": "our-card"}
	for _, where := range []func() (Name, Source, error){
		func() (Name, Source, error) { return names.Resolve("Our_Card", "", nil, nil) },
		func() (Name, Source, error) { return names.Resolve("", "our-card", nil, nil) },
		func() (Name, Source, error) { return names.Resolve("", "", selects, nil) },
	} {
		n, _, err := where()
		require.NoError(t, err)
		assert.Equal(t, "H100-80GB", n.String())
	}
}

func TestParseOverridesNamesEveryBadEntry(t *testing.T) {
	_, err := ParseOverrides(map[string]string{
		"NVIDIA-Good":  "H100",
		"NVIDIA-Empty": "",
		"NVIDIA-Maker": "nvidia",
		"NVIDIA-List":  "H100, A100",
		"NVIDIA-Long":  "A1234567890123456789012345678901234567890123456789012345678901234567890",
		"__":           "H100",
		"NVIDIA-Twice": "H100",
		"nvidia_twice": "A100",
	})
	require.Error(t, err)
	for _, want := range []string{
		`"NVIDIA-Empty": "" is no name of an accelerator`,
		`"NVIDIA-Maker": "nvidia" names no type of accelerator`,
		`"NVIDIA-List": "H100, A100" is no name`,
		`"NVIDIA-Long": "A123`,
		`"__": "H100": the key is no label value`,
		`"nvidia_twice": "A100": the key is the same as "NVIDIA-Twice", which is "H100"`,
	} {
		require.ErrorContains(t, err, want)
	}
	assert.NotContains(t, err.Error(), "NVIDIA-Good")

	o, err := ParseOverrides(map[string]string{"NVIDIA-Twice": "H100", "nvidia_twice": "h100"})
	require.NoError(t, err, "the same said twice")
	assert.Len(t, o, 1)
	o, err = ParseOverrides(map[string]string{"NVIDIA-Block": "H100-80GB\r\n"})
	require.NoError(t, err, "a block of YAML, or a file, ends with a line break")
	assert.Equal(t, "H100-80GB", o["NVIDIA-BLOCK"].String())
	o, err = ParseOverrides(nil)
	require.NoError(t, err)
	assert.Empty(t, o)
}

func TestOverridesAreReplacedWhileTheyAreRead(t *testing.T) {
	var names Names
	assert.Zero(t, names.Generation())
	one, two := overrides(t, map[string]string{"card": "H100"}), overrides(t, map[string]string{"card": "A100"})
	names.SetOverrides(one)
	delete(one, "CARD")
	assert.Equal(t, "H100", names.Of("card").String(), "whoever set them may change theirs")
	first := names.Generation()

	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for i := range 2_000 {
				got := names.Of("card").String()
				assert.Contains(t, []string{"H100", "A100"}, got)
				names.Of(fmt.Sprintf("card-%d", i))
			}
		})
	}
	for range 100 {
		names.SetOverrides(overrides(t, map[string]string{"card": "H100"}))
		names.SetOverrides(two)
	}
	readers.Wait()
	assert.Equal(t, first+200, names.Generation())
	assert.Equal(t, "A100", names.Of("card").String(), "what was remembered went with the old ones")
	names.SetOverrides(nil)
	assert.Equal(t, "CARD", names.Of("card").String())
}

func TestNamesForgetsRatherThanGrows(t *testing.T) {
	var names Names
	for i := range 2 * maxRemembered {
		names.Of(fmt.Sprintf("card-%d", i))
	}
	assert.LessOrEqual(t, len(names.state.Load().known), maxRemembered+1)
}
