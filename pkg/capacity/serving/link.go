package serving

import "llmd.ai/workload-variant-autoscaler/pkg/capacity"

// Link is what the devices of one replica send each other their parts of a layer over.
// The zero value is an unknown one.
type Link struct {
	// Name is for people: "NVLink 4", "PCIe 4 x16".
	Name string
	// Bandwidth is what one device can send at a time by its data sheet, in bytes per
	// second and one direction: to all others together, or to each of them if PerPeer
	// is set.
	Bandwidth float64
	PerPeer   bool
	// Share is the share of that bandwidth that a collective operation with much to send
	// reaches.
	Share float64
	// Start and Step are what a collective operation with nothing to send takes: once,
	// and for each time that the devices pass on what they have.
	Start, Step capacity.Milliseconds
	// LongStart and LongStep are what they are longer by where much is sent. Little is
	// then sent without them at half the share; if both are 0, the share is the same.
	LongStart, LongStep capacity.Milliseconds
}

// Known reports whether the link can tell how long anything takes.
func (l Link) Known() bool { return l.Bandwidth > 0 && l.Share > 0 }

// Shares of the bandwidth that NCCL's all-reduce reaches by its bus bandwidth (what a
// device sends in one direction), as it comes but where the text says otherwise.
//
// NVLink: 370 of 450 GB/s on H100 (NVIDIA in github.com/NVIDIA/nccl-tests/issues/212).
//
// PCIe: the median of what is published of devices without NVLink. Of 63 GB/s, four
// and eight RTX PRO 6000 reach 30.3 and 22.2 (github.com/voipmonitor/rtx6kpro), four on
// another machine 16.4 (github.com/gardenlinux/gardenlinux/issues/4556), four and eight
// RTX 5090 35 and 28 with NCCL's threads and channels set by hand
// (github.com/NVIDIA/nccl/issues/1639); of 31.5 GB/s, four RTX 4090 12.7
// (github.com/tinygrad/open-gpu-kernel-modules/pull/22) and three A100 20
// (github.com/NVIDIA/nccl-tests/issues/178). Without the two that were set by hand the
// median is 0.40. Processors, their sockets and switches make the difference, so that a
// machine may be half as fast or almost twice as fast.
const (
	nvlinkShare = 0.82
	pcieShare   = 0.44
)

// What a collective operation takes before anything is sent, in milliseconds: NCCL's own
// estimates for rings (src/graph/tuning.cc), of its protocol LL, which sends half as much
// as the link can, and of its protocol Simple for much. vLLM's own all-reduce, which takes
// LL's place on NVLink, is not slower for much.
//
// For four devices over PCIe 5 they are 27, 41, 69 and 99 us for 128, 256 and 512 KiB
// and 1 MiB; four RTX PRO 6000 took 25, 41, 72 and 85 us (github.com/voipmonitor/rtx6kpro)
// and 27, 46, 85 and 102 (github.com/gardenlinux/gardenlinux/issues/4556).
const (
	collectiveStart = 0.0066
	nvlinkStep      = 0.0006
	pcieStep        = 0.0010
	pcieLongStart   = 0.0084 - collectiveStart
	pcieLongStep    = 0.0057 - pcieStep
)

const gigabyte = 1e9

// nvlink is a link over which one device sends so many gigabytes per second in one
// direction: half of what data sheets call the bandwidth.
func nvlink(name string, bandwidth float64) Link {
	return Link{Name: name, Bandwidth: bandwidth * gigabyte, Share: nvlinkShare, Start: collectiveStart, Step: nvlinkStep}
}

// mesh is a link of its own between each two devices.
func mesh(name string, bandwidth float64) Link {
	l := nvlink(name, bandwidth)
	l.PerPeer = true
	return l
}

func pcie(name string, bandwidth float64) Link {
	return Link{
		Name: name, Bandwidth: bandwidth * gigabyte, Share: pcieShare,
		Start: collectiveStart, Step: pcieStep, LongStart: pcieLongStart, LongStep: pcieLongStep,
	}
}

// Of PCIe, 16 lanes at 8, 16 and 32 GT/s, of which 128 of 130 bits count. Of NVLink, 6
// links of 25 GB/s in one direction, then 12 and 18, then 18 of 50. Of Infinity Fabric
// and of the Ethernet of Gaudi, what is between two devices: 7 links of 64 GB/s; 3 ports
// of 100 and of 200 Gbit/s to each of 7 others.
var (
	pcie3   = pcie("PCIe 3 x16", 15.75)
	pcie4   = pcie("PCIe 4 x16", 31.5)
	pcie5   = pcie("PCIe 5 x16", 63)
	nvlink2 = nvlink("NVLink 2", 150)
	nvlink3 = nvlink("NVLink 3", 300)
	nvlink4 = nvlink("NVLink 4", 450)
	nvlink5 = nvlink("NVLink 5", 900)
	fabric  = mesh("Infinity Fabric", 64)
	gaudi2  = mesh("3 x 100 GbE", 37.5)
	gaudi3  = mesh("3 x 200 GbE", 75)
)

// linkOf is the link between devices of one type on one machine, as they are usually
// built, and between those that are cards.
var linkOf = map[capacity.Accelerator]struct{ usual, card Link }{
	"V100": {nvlink2, pcie3}, "A100": {nvlink3, pcie4}, "H100": {nvlink4, pcie5}, "H200": {usual: nvlink4},
	"B200": {usual: nvlink5}, "GB200": {usual: nvlink5}, "H20": {usual: nvlink4},
	"T4": {pcie3, pcie3}, "A10": {pcie4, pcie4}, "A10G": {pcie4, pcie4}, "L4": {pcie4, pcie4}, "L40": {pcie4, pcie4},
	"L40S": {pcie4, pcie4}, "RTX4090": {pcie4, pcie4}, "RTX6000ADA": {pcie4, pcie4}, "RTXPRO6000": {pcie5, pcie5},
	"MI300X": {usual: fabric}, "MI325X": {usual: fabric}, "Gaudi2": {usual: gaudi2}, "Gaudi3": {usual: gaudi3},
}

// LinkOf is the link between devices of this kind on one machine: NVLink for those on
// boards (SXM, and where the form is not known), PCIe for cards. It reports false where
// nothing is known, such as for cards with bridges between pairs of them (NVL).
func LinkOf(d capacity.Device) (Link, bool) {
	l := linkOf[d.Accelerator]
	switch d.Form {
	case "PCIE":
		return l.card, l.card.Known()
	case "NVL":
		return Link{}, false
	}
	return l.usual, l.usual.Known()
}

// rounds is how often each device passes a part on to the next until a collective
// operation is done, over the number of the others.
type rounds float64

// In the first, each device has the sum of what all have in the end; in the second,
// what all others have beside its own.
const (
	allReduce rounds = 2
	allGather rounds = 1
)

// wait is what a collective operation among so many devices takes before anything is
// sent, and what it takes longer where much is:
//
//	start + rounds*(n-1)*step
func (l Link) wait(r rounds, devices int) (short, longer capacity.Milliseconds) {
	steps := capacity.Milliseconds(r) * capacity.Milliseconds(devices-1)
	return l.Start + steps*l.Step, l.LongStart + steps*l.LongStep
}

// sending is what each byte of the result adds to it:
//
//	rounds*(n-1)/n / (share*bandwidth)
func (l Link) sending(r rounds, devices int) capacity.Milliseconds {
	others, bandwidth := float64(devices-1), l.Share*l.Bandwidth
	if l.PerPeer {
		bandwidth *= others
	}
	return capacity.Milliseconds(1000 * float64(r) * others / float64(devices) / bandwidth)
}

// Exchange is what the devices that share each layer of a model send each other. With k
// tokens in an iteration, of which n are sampled, it takes
//
//	PerIteration + PerToken*k + min(PerToken*k, Long) + PerSampled*n
type Exchange struct{ PerIteration, PerToken, Long, PerSampled capacity.Milliseconds }

// Exchange is what so many devices that share each layer (tensor parallelism) send each
// other over a link, during which they compute nothing. They add up the state of each
// token twice in each layer, after attention and after what follows it, and once for
// the table in which tokens are looked up; of each sampled token they gather the
// logits. It reports false when the figures of the model or of the link are unknown.
func (m ModelFigures) Exchange(l Link, devices int) (Exchange, bool) {
	if devices < 2 {
		return Exchange{}, true
	}
	if !l.Known() || m.Layers < 1 || m.Hidden < 1 {
		return Exchange{}, false
	}
	sums := capacity.Milliseconds(2*m.Layers + 1)
	state, logits := plainBytes*capacity.Milliseconds(m.Hidden), plainBytes*capacity.Milliseconds(m.Head/float64(m.Hidden))
	sum, longer := l.wait(allReduce, devices)
	gather, _ := l.wait(allGather, devices)
	return Exchange{
		PerIteration: sums*sum + gather,
		PerToken:     sums * state * l.sending(allReduce, devices),
		Long:         sums * longer,
		PerSampled:   logits * l.sending(allGather, devices),
	}, true
}
