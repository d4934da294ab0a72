package inventory

import (
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Parts of devices that another scheduler hands out. A pod's part must be free on one
// device, and Kubernetes adds up those of all devices of the node, if it sees them at all:
// so a count of them is an upper bound.

// fraction matches what follows the domain in the resources that count memory, cores or
// shares of devices, devices that are offered several times, or who goes first on a shared
// one. They are many, and new ones come: so they are told by their words. The table in
// fraction_test.go has the published ones, with version and place.
var fraction = regexp.MustCompile(`(?i)` +
	`(?:mem|memory|cores?|percent(?:age)?|ratio|tiles|tflops)(?:[^a-z]|$)` +
	`|(?:^|[^a-z])[vqscd]?gpu-?num(?:ber)?$|dcunum$|gpu-[0-9]+gi?b$|gpu\.shared$` +
	`|[vqsc]gpu|v(?:mlu|xpu|npu|cuda|dcu|gcu)|smlu|drs-gcu|(?:^|[^a-z])shared-[dgnx][cp]u$|^priority$`)

// percentOfDevice counts hundredths of devices, whatever its name says: Koordinator v1.8.0,
// apis/extension/device_share.go.
const percentOfDevice = "koordinator.sh/gpu"

// isFraction reports whether an extended resource counts parts of devices.
func isFraction(resource corev1.ResourceName) bool {
	return resource == percentOfDevice || fraction.MatchString(lastWord(resource))
}

// choosing matches the annotations by which another scheduler chooses devices of a node, or
// parts of them, which no request says:
//
//   - KAI v0.12.17, pkg/common/constants/constants.go, and Run:ai, which has the same ones
//   - Koordinator v1.8.0, apis/extension/device_share.go
//   - HAMi v2.10.0, pkg/device, and Volcano's, pkg/scheduler/api/devices: those of one maker
//     each, called alike, also by which a device is shared, and whether all are of one NUMA node
var choosing = regexp.MustCompile(`^(?:gpu-fraction(?:-num-devices)?|gpu-memory` +
	`|scheduling\.koordinator\.sh/(?:device-(?:allocate-hint|joint-allocate)|gpu-partition-spec)` +
	`|[^/]+/(?:v?gpu-)?(?:no-?)?use-(?:.*(?:type|uuid)|va|biren)` +
	`|[^/]+/v[gn]pu-mode|nvidia\.com/numa-bind)$`)

// choosers are those of the annotations, sorted.
func choosers(annotations map[string]string) []string {
	var found []string
	for key, value := range annotations {
		if value != "" && choosing.MatchString(key) {
			found = append(found, key)
		}
	}
	slices.Sort(found)
	return found
}
