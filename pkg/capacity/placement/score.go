package placement

import (
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Outlook is the replicas still expected, by shape. A nil Outlook is neutral: it
// expects the usual sizes of every accelerator in equal parts.
type Outlook []Expected

// Expected is how much room of one shape is worth.
type Expected struct {
	Shape capacity.Shape
	// Weight is the worth of one slot of the shape in thousandths, from 0 to
	// MaxWeight; what lies outside counts as the nearest of them.
	Weight int64
}

// MaxWeight keeps sums of losses far from the end of their range.
const MaxWeight = 1_000_000

// neutralSizes are the sizes above one that replicas usually have. Size one is
// left out because every placement costs the same number of its slots.
var neutralSizes = [...]int{2, 4, 8, 16}

// neutralWeight is the weight of each of the neutral sizes.
const neutralWeight = 1000

// Loss is what one more pod of the shape on this node costs the replicas still
// expected: the slots that it takes from them, by weight, in thousandths,
//
//	Loss(n, s) = sum over shapes t of w_t * (slots_t(n) - slots_t(n with s)),
//
// which for whole devices alone is the sum over sizes t of
// w_t * (floor(F/t) - floor((F-s)/t)) with F free devices. It is 0 on a node whose
// free devices the expected sizes cannot use anyway. It allocates nothing.
func (n *Node) Loss(s capacity.Shape, outlook Outlook) int64 {
	after := *n
	after.Free = n.Free.Minus(take(s))
	if outlook == nil {
		return neutralLoss(n.Free.Devices, after.Free.Devices)
	}
	loss := int64(0)
	for i := range outlook {
		t := &outlook[i]
		if t.Weight <= 0 || t.Shape.Devices > 0 && t.Shape.Accelerator != n.Accelerator {
			continue
		}
		if lost := n.Slots(t.Shape) - after.Slots(t.Shape); lost > 0 {
			loss += min(t.Weight, MaxWeight) * int64(lost)
		}
	}
	return loss
}

func neutralLoss(before, after int) int64 {
	loss := 0
	for _, size := range neutralSizes {
		loss += max(before, 0)/size - max(after, 0)/size
	}
	return int64(loss) * neutralWeight
}

// A score packs its tiers into one number, the most important in the highest bits:
// 31 bits of loss, 10 bits of devices left, 22 bits of CPU left.
const (
	cpuBits    = 22
	deviceBits = 10
	lossBits   = 31

	deviceShift = cpuBits
	lossShift   = cpuBits + deviceBits
)

// Score says how good the node is for one more pod of the shape; more is better,
// and no score is above 0. Scores of different nodes for the same shape and outlook
// can be compared, nothing else. Tiers: the least loss; then the tightest fit, by
// the devices and then by the CPU that are left. It is whole numbers throughout and
// allocates nothing. It does not ask whether the pod fits.
func (n *Node) Score(s capacity.Shape, outlook Outlook) int64 {
	loss := clamp(n.Loss(s, outlook), lossBits)
	devices := clamp(int64(n.Free.Devices-s.Devices), deviceBits)
	cpu := clamp(n.Free.MilliCPU-s.MilliCPU, cpuBits)
	return -(loss<<lossShift | devices<<deviceShift | cpu)
}

// clamp keeps a value within what that many bits hold.
func clamp(v int64, bits uint) int64 {
	return min(max(v, 0), 1<<bits-1)
}
