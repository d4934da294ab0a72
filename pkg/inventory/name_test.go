package inventory

import (
	"encoding/csv"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

func TestNormalizePublishedLabels(t *testing.T) {
	file, err := os.Open("testdata/accelerator-labels.csv")
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	rows, err := csv.NewReader(file).ReadAll()
	require.NoError(t, err)
	require.Greater(t, len(rows), 60)

	for _, row := range rows[1:] {
		t.Run(row[0], func(t *testing.T) {
			got := Normalize(row[0])
			assert.Equal(t, row[1], string(got.Short))
			memory, _ := strconv.Atoi(row[2])
			assert.Equal(t, memory, got.MemoryGiB, "memory")
			assert.Equal(t, row[3], got.Form, "form")
			assert.Equal(t, row[4], got.MIG, "MIG profile")
			assert.Equal(t, row[5] == "yes", got.Shared, "shared")
			assert.False(t, got.Unlisted)

			again := Normalize(string(got.Short))
			assert.Equal(t, got.Short, again.Short, "the short name names itself")
			assert.Equal(t, got.Accelerator(), Normalize(got.String()).Accelerator(), "and so does the long one")
			assert.Equal(t, got.Short, Normalize(strings.ToLower(row[0])).Short, "whatever the case")
		})
	}
}

func TestNormalizeMoreThanTheTable(t *testing.T) {
	cases := []struct{ raw, want string }{
		{"NVIDIA H100 80GB HBM3", "H100-80GB-HBM3"},
		{"rtx-pro-server-6000", "RTXPRO6000"},
		{"NVIDIA-RTX-4000-SFF-Ada-Generation", "RTX4000ADA"},
		{"NVIDIA-GeForce-RTX-3080-Ti", "RTX3080TI"},
		{"radeon-pro-v520", "V520"},
		{"trainium", "Trainium"},
		{"GB300", "GB300"},
		{"tpu-v4-podslice", "TPUV4"},
		{"A100-SXM4-80GB", "A100-80GB-SXM4"},
		{"my_own accelerator", "MY-OWN-ACCELERATOR"},
		{"  ", ""},
		{"tpu-v5litepod-slice", "TPUV5E"},
		{"NVIDIA-H100-80GB-HBM3-MIG-1g.10gb.me-SHARED", "H100-80GB-HBM3-MIG-1g.10gb.me-SHARED"},
		{"AMD_Instinct_MI300X_OAM-CPX_NPS4", "MI300X-OAM-CPX-NPS4"},
		{"MI300X-SPX-NPS1", "MI300X"},
		{"Inferentia2-core", "Inferentia2-CORE"},
		{"Ascend910B4-1", "ASCEND910B4-1"},
		{"GRID-A100-10C", "A100-10C"},
		{"GRID A100-1-5CME", "A100-1-5CME"},
		{"NVIDIA-A10-4Q", "A10-4Q"},
		{"NVIDIA-A10-4Q-SHARED", "A10-4Q-SHARED"},
		{"NVIDIA-RTX6000-Ada-48Q", "RTX6000ADA-48Q"},
		{"GRID-M10-1B4", "M10-1B4"},
		{"NVIDIA-H200XM-141C", "H200XM-141C"},
		{"NVIDIA-GB10", "GB10"},
		{"NVIDIA-Thor", "THOR"},
		{"NVIDIA-TITAN-RTX", "TITAN-RTX"},
		{"NVIDIA-GeForce-GTX-1080-Ti", "GTX-1080-TI"},
		{"AMD_Radeon_PRO_W7900", "PRO-W7900"},
		{"Qualcomm Cloud AI 100", "CLOUD-AI-100"},
		{"our-pool-true", "OUR-POOL-TRUE"},
		{"Ascend-910B", "ASCEND910B"},
		{"Ascend910-910B", "ASCEND910"},
		{"Gaudi2-HL-225B", "Gaudi2"},
		{"Gaudi-2-HL-228B", "Gaudi2"},
		{"HL-225B", "Gaudi2"},
		{"HL-225H", "Gaudi2"},
		{"HL-325L", "Gaudi3"},
		{"Intel Gaudi-3 HL-325L", "Gaudi3"},
		{"HL-2000", "HL-2000"},
		{"MI300X-16Q", "MI300X"},
		{"GRID", ""},
		{"nvidia", ""},
		{"nvidia-gpu", ""},
		{"true", ""},
		{"--_ h100\t-_", "H100"},
	}
	for _, c := range cases {
		t.Run(c.raw, func(t *testing.T) {
			assert.Equal(t, c.want, Normalize(c.raw).String())
		})
	}
	assert.True(t, Normalize("my_own accelerator").Unlisted, "so that it can be counted")
}

// Discovery writes the maker's words before the product, and people leave them out.
func TestTheMakersWordsAreNoPartOfAName(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 8))
	words := slices.Sorted(maps.Keys(makers))
	for range 2000 {
		product := ""
		for range 1 + random.IntN(3) {
			product += fmt.Sprintf("-%c%c%d", 'A'+random.IntN(26), 'A'+random.IntN(26), random.IntN(1000))
		}
		asked := Normalize(product[1:])
		have := Normalize(words[random.IntN(len(words))] + product)
		require.True(t, asked.Covers(have) && have.Covers(asked), "%s and %s", asked, have)
		require.Equal(t, have.String(), Normalize(have.String()).String(), "normalising a name gives the same name")
		overrides, err := ParseOverrides(map[string]string{product[1:]: "H100"})
		require.NoError(t, err)
		named, ok := overrides.of(have.Raw)
		require.True(t, ok && named.Short == "H100", "an override of %s means %s too", product[1:], have.Raw)
	}
}

func TestCoversNarrowerNamesOnly(t *testing.T) {
	cases := []struct {
		want, have string
		covers     bool
	}{
		{"A100", "NVIDIA-A100-SXM4-80GB", true},
		{"a100", "NVIDIA-A100-PCIE-40GB", true},
		{"A100-80GB", "NVIDIA-A100-SXM4-80GB", true},
		{"A100-80GB", "NVIDIA-A100-PCIE-40GB", false},
		{"A100-SXM4-80GB", "NVIDIA-A100-80GB-PCIe", false},
		{"H100-80GB", "NVIDIA-H100-PCIe", false},
		{"H100-SXM5", "NVIDIA-H100-80GB-HBM3", true},
		{"A100", "NVIDIA-A100-SXM4-80GB-MIG-3g.40gb", false},
		{"A100-MIG-3g.40gb", "NVIDIA-A100-SXM4-80GB-MIG-3g.40gb", true},
		{"A100-MIG-3g.40gb", "NVIDIA-A100-SXM4-80GB", false},
		{"T4", "Tesla-T4-SHARED", false},
		{"T4-SHARED", "Tesla-T4-SHARED", true},
		{"MAX1550", "MAX1550-I915", false},
		{"MAX1550-i915", "Max-1550-128GB-I915", true},
		{"A100", "GRID-A100-10C", false},
		{"A100", "GRID-A100-1-10C", false},
		{"A10", "NVIDIA-A10-4Q", false},
		{"A10", "NVIDIA-A10-24A", false},
		{"T4", "GRID-T4-2B", false},
		{"A10-4Q", "NVIDIA-A10-4Q", true},
		{"A10-4Q", "NVIDIA-A10-8Q", false},
		{"A10-4Q", "NVIDIA-A10", false},
		{"L40", "NVIDIA-L40S", false},
		{"A10", "NVIDIA-A10G", false},
		{"H200", "NVIDIA-GH200-480GB", false},
		{"", "NVIDIA-L4", false},
		{"L4", "", false},
	}
	for _, c := range cases {
		t.Run(c.want+" and "+c.have, func(t *testing.T) {
			assert.Equal(t, c.covers, Normalize(c.want).Covers(Normalize(c.have)))
		})
	}
	lightweight := Name{Short: "L40S", MemoryGiB: 45}
	assert.True(t, Normalize("L40S-48GB").Covers(lightweight), "a device reports a little less than its box says")
}

func TestAResourceNarrowsAName(t *testing.T) {
	cases := []struct {
		name     string
		resource corev1.ResourceName
		want     string
		wantErr  string
	}{
		{"H100", "nvidia.com/gpu", "H100", ""},
		{"H100-MIG-3g.40gb", "nvidia.com/gpu", "H100-MIG-3g.40gb", ""},
		{"H100-80GB", "nvidia.com/mig-1g.10gb", "H100-80GB-MIG-1g.10gb", ""},
		{"H100-MIG-1g.10gb", "nvidia.com/mig-1g.10gb", "H100-MIG-1g.10gb", ""},
		{"H100-MIG-1g.10gb-SHARED", "nvidia.com/mig-1g.10gb", "H100-MIG-1g.10gb-SHARED", ""},
		{"H100-MIG-1g.10gb+me", "nvidia.com/mig-1g.10gb.me", "H100-MIG-1g.10gb.me", ""},
		{"H100-MIG-1g.10gb", "nvidia.com/mig-1g.10gb.me", "", "H100-MIG-1g.10gb is no nvidia.com/mig-1g.10gb.me"},
		{"T4", "nvidia.com/gpu.shared", "T4-SHARED", ""},
		{"MI300X", "amd.com/cpx_nps4", "MI300X-CPX-NPS4", ""},
		{"MI300X", "amd.com/spx_nps1", "MI300X", ""},
		{"Trainium2", "aws.amazon.com/neuroncore", "Trainium2-CORE", ""},
		{"Trainium2", "aws.amazon.com/neuron", "Trainium2", ""},
		{"Trainium2", "aws.amazon.com/neurondevice", "Trainium2-NEURONDEVICE", ""},
		{"Trainium2-neurondevice", "aws.amazon.com/neurondevice", "Trainium2-NEURONDEVICE", ""},
		{"Trainium2-neurondevice", "aws.amazon.com/neuroncore", "Trainium2-CORE", ""},
		{"Max_1550", "gpu.intel.com/i915", "MAX1550-I915", ""},
		{"MAX1550-I915", "gpu.intel.com/xe", "", "MAX1550-I915 is no gpu.intel.com/xe"},
		{"H100", "rdma/hca", "H100", ""},
		{"", "nvidia.com/gpu.shared", "", ""},
	}
	for _, c := range cases {
		t.Run(c.name+" as "+string(c.resource), func(t *testing.T) {
			got, err := Normalize(c.name).As(c.resource)
			if c.wantErr != "" {
				require.ErrorContains(t, err, c.wantErr)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, got.String())
		})
	}
}
