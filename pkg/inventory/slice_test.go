package inventory

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

const tpuTopology = "cloud.google.com/gke-tpu-topology"

// tpu is a node of a TPU v5p slice.
func tpu(name, topology, allocatable, all string) *corev1.Node {
	node := labelled(map[string]string{"cloud.google.com/gke-tpu-accelerator": "tpu-v5p-slice", tpuTopology: topology},
		list("google.com/tpu", allocatable, "cpu", "64", "pods", "110"))
	node.Name, node.Status.Capacity = name, list("google.com/tpu", all)
	return node
}

func TestPartsOfASliceOverSeveralHostsAreUnknown(t *testing.T) {
	node := tpu("a", "4x4x4", "4", "4")
	carried := new(Names).Carried(node)
	assert.Equal(t, "label cloud.google.com/gke-tpu-topology says 4x4x4: the node's 4 google.com/tpu are part of a slice of 64 over several hosts, and replicas that span nodes are not modelled", carried.Reason())
	assert.True(t, carried.Devices[0].Spanning())
	n := carried.View(Used{}, nil)
	assert.Equal(t, placement.AcceleratorUnknown, n.Verdict(capacity.Shape{Accelerator: "TPUV5P", Devices: 4}), "neither of the type nor of another one")
	assert.Equal(t, placement.Fits, n.Verdict(capacity.Shape{MilliCPU: 1000}), "others may go there")

	unhealthy := new(Names).Carried(tpu("a", "2x4", "7", "8"))
	assert.Equal(t, "TPUV5P", unhealthy.Devices[0].Name.String(), "one chip less is no further host")
	assert.Empty(t, unhealthy.Reason())
	assert.False(t, unhealthy.Devices[0].Spanning())
	assert.Equal(t, "label cloud.google.com/gke-tpu-topology says big, which is no topology such as 2x4", new(Names).Carried(tpu("a", "big", "4", "4")).Reason())
}

func TestDevicesOfATopology(t *testing.T) {
	for topology, want := range map[string]int{
		"1x1": 1, "2x4": 8, "4x4x4": 64, "8": 8, "": 0, "x": 0, "2x": 0, "0x4": 0, "-2x-2": 0, "2X4": 0, "a": 0,
		"99999999999x99999999999x99999999999": mostDevices, "99999999999999999999x2": 0,
	} {
		assert.Equal(t, want, devicesOf(topology), topology)
	}
}

func TestPodsThatSpanHosts(t *testing.T) {
	for _, c := range []struct {
		resource corev1.ResourceName
		devices  int
		topology string
		spans    bool
	}{
		{"google.com/tpu", 4, "4x4x4", true},
		{"google.com/tpu", 4, "2x2x1", false},
		{"google.com/tpu", 4, "big", false},
		{"google.com/tpu", 4, "", false},
		{"nvidia.com/gpu", 4, "4x4x4", false},
		{"", 0, "4x4x4", false},
	} {
		spec := &corev1.PodSpec{NodeSelector: map[string]string{tpuTopology: c.topology}}
		assert.Equal(t, c.spans, Takes{Resource: c.resource, Devices: c.devices}.Spans(spec), "%v", c)
	}
}

func TestRequestForASliceOverSeveralHostsIsUnknown(t *testing.T) {
	single, multi, out := tpu("single", "2x2x1", "4", "4"), tpu("multi", "4x4x4", "4", "4"), tpu("out", "4x4x4", "4", "4")
	out.Spec.Unschedulable = true
	cases := []struct {
		name  string
		nodes []*corev1.Node
		asked string
		slots int
		err   string
	}{
		{"only such nodes", []*corev1.Node{multi}, "", 0, "the google.com/tpu of TPUV5P are parts of slices over several hosts, such as on node multi, and replicas that span nodes are not modelled"},
		{"asked for", []*corev1.Node{single, multi}, "4x4x4", 0, "the pods ask for 4 google.com/tpu of a slice of topology 4x4x4, and replicas that span nodes are not modelled"},
		{"asked for before there are nodes", nil, "4x4x4", 0, "the pods ask for 4 google.com/tpu of a slice of topology 4x4x4"},
		{"one host asked for where there is one", []*corev1.Node{single, multi}, "2x2x1", 1, ""},
		{"one host asked for where there is none", []*corev1.Node{multi}, "2x2x1", 0, ""},
		{"a host to itself beside such nodes", []*corev1.Node{single, multi}, "", 1, ""},
		{"such nodes take no pods", []*corev1.Node{out}, "", 0, ""},
		{"no nodes", nil, "", 0, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			inv := Read(c.nodes, nil)
			pods := template(container("google.com/tpu", "4"))
			if c.asked != "" {
				pods.Spec.NodeSelector = map[string]string{tpuTopology: c.asked}
			}
			r, err := inv.plain(pods, Normalize("TPUV5P"))
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			slots, err := inv.Cluster.Slots(r)
			require.NoError(t, err)
			assert.Equal(t, c.slots, slots)
		})
	}
}

func TestSelectingSharedDevicesByTheirClients(t *testing.T) {
	for clients, shared := range map[string]bool{"2": true, "1": false, "": false, "many": false} {
		pods := template(container("nvidia.com/gpu", "1"))
		pods.Spec.NodeSelector = map[string]string{"cloud.google.com/gke-accelerator": "nvidia-l4", "cloud.google.com/gke-max-shared-clients-per-gpu": clients}
		name, _, err := Resolve("", "", pods, nil)
		require.NoError(t, err)
		assert.Equal(t, shared, name.Shared, clients)
	}
}
