package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseNodes(t *testing.T) {
	nodes, err := parseNodes(strings.NewReader("sn,cpu_milli,memory_mib,gpu,model\n"+
		"a,64000,262144,2,P100\nb,32000,1000,0,\nc,96000,393216,8,G2\n"), "nodes.csv")
	require.NoError(t, err)
	assert.Equal(t, []Node{
		{Name: "a", MilliCPU: 64000, MemoryMiB: 262144, Devices: 2, Model: "P100"},
		{Name: "c", MilliCPU: 96000, MemoryMiB: 393216, Devices: 8, Model: "G2"},
	}, nodes, "nodes without devices are not part of the study")
}

func TestParsePods(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       []Pod
	}{
		{"with models, in any order and with blanks",
			"name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\np,1000,2000,1,500, T4 |G2|T4,LS\n",
			[]Pod{{Name: "p", MilliCPU: 1000, MemoryMiB: 2000, Devices: 1, Share: 500, Models: "G2|T4"}}},
		{"without the column of models",
			"name,cpu_milli,memory_mib,num_gpu,gpu_milli,qos\np,1000,2000,2,1000,LS\nq,1,2,1,10,BE\n",
			[]Pod{{Name: "p", MilliCPU: 1000, MemoryMiB: 2000, Devices: 2, Share: 1000}, {Name: "q", MilliCPU: 1, MemoryMiB: 2, Devices: 1, Share: 10}}},
		{"a pod without devices has no share and no model",
			"name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\np,1000,2000,0,0,T4\nq,1,2,8,1000,\n",
			[]Pod{{Name: "p", MilliCPU: 1000, MemoryMiB: 2000}, {Name: "q", MilliCPU: 1, MemoryMiB: 2, Devices: 8, Share: 1000}}},
		{"columns in another order, empty numbers, CRLF",
			"gpu_milli,num_gpu,name,memory_mib,cpu_milli\r\n1000,1,p,,7\r\n",
			[]Pod{{Name: "p", MilliCPU: 7, Devices: 1, Share: 1000}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			pods, err := parsePods(strings.NewReader(test.text), "pods.csv")
			require.NoError(t, err)
			assert.Equal(t, test.want, pods)
		})
	}
}

func TestParserNamesFileAndLine(t *testing.T) {
	const header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
	for _, test := range []struct {
		name, text, want string
	}{
		{"nothing", "", "pods.csv: line 1: reading the header"},
		{"a column is missing", "name,cpu_milli,num_gpu,gpu_milli\n", "pods.csv: line 1: no column memory_mib"},
		{"not a number", header + "p,1,1,1,1000,\nq,many,1,1,1000,\n", `pods.csv: line 3: column cpu_milli: "many" is not a whole number`},
		{"negative", header + "p,-1,1,1,1000,\n", `pods.csv: line 2: column cpu_milli: "-1"`},
		{"more than a whole device of each", header + "p,1,1,1,1001,\n", `pods.csv: line 2: column gpu_milli: "1001" is not a whole number from 0 to 1000`},
		{"more devices than a node can have", header + "p,1,1,17,1000,\n", `pods.csv: line 2: column num_gpu`},
		{"devices but no share", header + "p,1,1,1,0,\n", "pods.csv: line 2: pod p asks for 1 devices and no thousandth"},
		{"shares of several devices", header + "p,1,1,2,500,\n", "pods.csv: line 2: pod p asks for a share of 2 devices"},
		{"a field is missing", header + "p,1,1\n", "pods.csv: record on line 2: wrong number of fields"},
		{"nobody asks for a device", header + "p,1,1,0,0,\n", "pods.csv: no pod asks for a device"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := parsePods(strings.NewReader(test.text), "pods.csv")
			assert.ErrorContains(t, err, test.want)
		})
	}
	_, err := parseNodes(strings.NewReader("sn,cpu_milli,memory_mib,gpu,model\na,1,1,1,\n"), "nodes.csv")
	require.ErrorContains(t, err, "nodes.csv: line 2: node a has devices and no model")
	_, err = parseNodes(strings.NewReader("sn,cpu_milli,memory_mib,gpu,model\na,1,1,0,\n"), "nodes.csv")
	require.ErrorContains(t, err, "nodes.csv: no node has a device")
	_, err = readFile(filepath.Join(t.TempDir(), "none.csv"), parsePods)
	assert.ErrorContains(t, err, "none.csv")
}
