package serving

import "llmd.ai/workload-variant-autoscaler/pkg/capacity"

// hardware is what a device can do by its data sheet: memory bandwidth in TB/s and
// dense 16-bit arithmetic in TFLOP/s, of which only ratios are used; and its memory in
// GiB as its driver tells it, which is less than the name says where error correction
// takes some of it. The memory is 0 where devices of one type are sold with several.
type hardware struct{ bandwidth, compute, memory float64 }

var hardwareOf = map[capacity.Accelerator]hardware{
	"A100": {2.04, 312, 0}, "H100": {3.35, 989, 80}, "H200": {4.8, 989, 140}, "B200": {8, 2250, 179}, "GH200": {4.0, 989, 0},
	"L4": {0.3, 121, 22}, "L40S": {0.864, 362, 45}, "A10G": {0.6, 70, 22}, "T4": {0.32, 65, 15}, "V100": {0.9, 125, 0},
	"MI210": {1.6, 181, 64}, "MI250": {3.28, 362, 0}, "MI300X": {5.3, 1307, 192}, "MI325X": {6, 1307, 256},
	"Gaudi2": {2.45, 432, 0}, "Gaudi3": {3.7, 1835, 0},
}

// DeviceGiB is the memory of one device: what is said of it, but no more than its
// driver tells where that is nearly the same; where nothing is said, what all devices
// of its type have. It is 0 when neither is known.
func DeviceGiB(d capacity.Device) float64 {
	said, told := float64(d.MemoryGiB), hardwareOf[d.Accelerator].memory
	const nearly = 1.1
	switch {
	case said <= 0:
		return told
	case told > 0 && told < said && said <= nearly*told:
		return told
	}
	return said
}
