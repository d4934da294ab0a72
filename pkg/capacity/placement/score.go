package placement

import (
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// SpreadUpTo is up to how many replicas those of one owner prefer different nodes: the
// loss of one node should not take all of a small variant. Those of a larger one are packed,
// and Score is to be told of no mates.
const SpreadUpTo = 3

// MateWeight is the loss, in devices, that each mate on the node counts for. Two to eight
// leave of the second and third replicas that find a node without a mate less than one
// in 500 beside one (test/performance/churn), and no more pending; it is less than the last
// hole for a replica that waits is worth.
const MateWeight = 4

// Loss is what one more pod of the shape on this node costs the replicas still
// expected, in units: positive when it takes room that they need, negative when it
// uses what they would leave unused. It is for a node that the pod fits on, and it
// allocates nothing.
func (t *Table) Loss(n *Node, s capacity.Shape) int64 {
	return t.loss(n, &s, n.poolOf(&s))
}

// loss is Loss in the pool that the shape means there.
func (t *Table) loss(n *Node, s *capacity.Shape, pool int) int64 {
	return t.worthOf(n, nil, noPool, 0) - t.worthOf(n, s, pool, 1)
}

// worthOf is what the node is worth once it holds so many more pods of the shape, in
// the pool that the shape means there.
func (t *Table) worthOf(n *Node, s *capacity.Shape, pool, count int) int64 {
	milliCPU, devices := n.Free.MilliCPU, 0
	if s != nil {
		milliCPU = capacity.Minus(milliCPU, capacity.Times(s.MilliCPU, int64(count)))
		devices = capacity.Times(s.Devices, count)
	}
	worth := int64(0)
	for i := range n.pools() {
		free := n.free(i)
		if i == pool {
			free = capacity.Minus(free, devices)
		}
		at := t.kindOf(n, i)
		if at < 0 {
			worth += usualWorth(free)
			continue
		}
		k := &t.kinds[at]
		worth += t.worth[at][k.row(free)*k.levels+k.level(milliCPU)]
	}
	return worth
}

// kindOf is the index of the kind of a pool of the node, or -1.
func (t *Table) kindOf(n *Node, pool int) int {
	if t == nil {
		return -1
	}
	return t.layout.kindOf(n, pool)
}

// kindOf is the index of the kind; devices whose type nobody knows have none.
func (l *layout) kindOf(n *Node, pool int) int {
	at, ok := l.index[n.pool(pool).Device]
	if !ok {
		return -1
	}
	return at
}

// usualWorth is the slots of the usual sizes above one in so many free devices. Size
// one is left out because every placement costs the same number of its slots.
func usualWorth(free int) int64 {
	free = min(max(free, 0), maxDevices)
	worth := 0
	for _, size := range usualSizes[1:] {
		worth += free / size
	}
	return int64(worth) * Unit
}

// A score packs its tiers into one number, the most important in the highest bits: 4
// bits of order, 42 of loss, 7 of devices left, 10 of CPU left. The loss counts from
// below what one placement can gain.
const (
	cpuBits    = 10
	deviceBits = 7
	lossBits   = 42
	orderBits  = 4

	deviceShift = cpuBits
	lossShift   = deviceShift + deviceBits
	orderShift  = lossShift + lossBits

	leastLoss = -1 << 33
	mostMates = 15
	// cpuStep is the CPU that makes a difference in the tier of the tightest fit.
	cpuStep = 500
)

// Score says how good the node is for one more pod of the shape; more is better, and
// no score is above 0. Scores of different nodes for the same shape and table can be
// compared, nothing else. Tiers: the place of the node in an order of the caller's, from
// 0, by its accelerator or what else comes before all packing; then the least loss, to
// which the mates add, which are the pods of the same variant on the node; then the
// tightest fit, by the devices and then by the CPU that are left. It is whole numbers
// throughout and allocates nothing. It does not ask whether the pod fits.
func (t *Table) Score(n *Node, s capacity.Shape, order, mates int) int64 {
	pool := n.poolOf(&s)
	loss := t.loss(n, &s, pool) + min(max(int64(mates), 0), mostMates)*(MateWeight*Unit)
	devices := capacity.Minus(n.free(max(pool, 0)), s.Devices)
	cpu := capacity.Minus(n.Free.MilliCPU, s.MilliCPU) / cpuStep
	return -(clamp(int64(order), orderBits)<<orderShift |
		clamp(loss-leastLoss, lossBits)<<lossShift |
		clamp(int64(devices), deviceBits)<<deviceShift |
		clamp(cpu, cpuBits))
}

// clamp keeps a value within what that many bits hold.
func clamp(v int64, bits uint) int64 {
	return min(max(v, 0), 1<<bits-1)
}
