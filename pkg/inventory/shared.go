package inventory

import (
	"encoding/json"
	"fmt"
	"strings"
)

// What says of devices that they are shared or cut although no label of their own convention does.

// registeredBy is the annotation in which HAMi's device plugin lists the devices of a node, whatever it
// offers of them: HAMi v2.10, docs/developers/protocol.md. As a list of JSON objects, before 2.5 as
// entries of seven fields.
const registeredBy = "hami.io/node-nvidia-register"

// NodeAnnotations are those of a node's annotations that are read; nil where there are none.
func NodeAnnotations(all map[string]string) map[string]string {
	if listed, ok := all[registeredBy]; ok {
		return map[string]string{registeredBy: listed}
	}
	return nil
}

// registered is how many of NVIDIA's devices a node has by its annotations, or 0.
func registered(annotations map[string]string) int {
	listed := strings.TrimSpace(annotations[registeredBy])
	var devices []json.RawMessage
	if json.Unmarshal([]byte(listed), &devices) == nil {
		return min(len(devices), mostDevices)
	}
	const fields = 7
	n := 0
	for entry := range strings.SplitSeq(listed, ":") {
		if strings.Count(entry, ",") == fields-1 {
			n++
		}
	}
	return min(n, mostDevices)
}

// computeUnits are those of a whole device of AMD's types that can be cut into partitions: AMD's data
// sheets.
var computeUnits = map[string]int{"MI300X": 304, "MI325X": 304, "MI350X": 256, "MI355X": 256}

// unitsLabels have the compute units of what one amd.com/gpu is: k8s-device-plugin 1.31,
// cmd/k8s-node-labeller. AMD's GPU operator asks for them by default, and not for the label that
// names the partition.
var unitsLabels = []string{"amd.com/gpu.cu-count", "beta.amd.com/gpu.cu-count"}

// cut says that devices are parts of devices by their size, and nothing names the parts; empty where
// nothing says so.
func (o *offer) cut(labels map[string]string, n Name) string {
	whole := computeUnits[string(n.Short)]
	if o.family.maker != amd || o.resource != o.family.whole[0] || n.MIG != "" || whole == 0 {
		return ""
	}
	for _, label := range unitsLabels {
		if units := number(labels[label]); units > 0 && units < whole {
			return fmt.Sprintf("label %s says %d, and a whole %s has %d: its %s are parts of devices, and no label names the partition", label, units, n.Short, whole, o.resource)
		}
	}
	return ""
}
