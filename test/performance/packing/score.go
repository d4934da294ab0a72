package main

import (
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// ours places by the formula of pkg/capacity/placement, written for devices with shares.
// A pod turns the state x of a node into x' and goes where the loss is least,
//
//	  F * sum over classes t of (p_t / S_t) * (slots_t(x) - slots_t(x'))
//	+ WasteWeight * (waste(x') - waste(x))
//	+ ScarceWeight * sum over sets M of rho_M^2 * (free_M(x) - free_M(x'))
//	+ gapWeight * (gaps(x) - gaps(x'))
//
// in devices. The first three terms and their constants are those that placement.Table
// documents; free devices count in thousandths here, a share of 1/s has floor(free/s)
// slots on each device, and a share is offered to the tightest device. The last term is
// for shares alone and the same for all nodes without them: what the free parts of the
// devices are worth, see gapValues. Pods without devices use the same formula. Equal
// losses go by the order of the nodes.
type ours struct {
	study   *Study
	cluster *Cluster
	slots   *slotCounter
	wastes  *wasteMeter
	gaps    []float64
	sets    []modelSet

	// free is that of the cluster, by model and in sum, in thousandths.
	freeOf [maxModels]int64
	free   int64
	// slotsOf and wasteOf are those of the members as they are now.
	slotsOf []int32
	wasteOf []float64
	// outcomes of each member and class, valid for one version of the member.
	outcomes []outcomes
	buffer   []int
}

// gapWeight is the weight of the worth of gaps. Anything from 8 to 32 does as well: it
// only has to outweigh the noise of the other terms. It is chosen on other lists than the
// default one, as docs/benchmarks-parts.md tells.
const gapWeight = 16

type outcomes struct {
	version int32
	each    []outcome
}

// outcome is what a pod would make of a member: all of the loss that does not depend on
// the other nodes, and the slots that would be left.
type outcome struct {
	free  uint16
	slots int32
	loss  float64
}

// modelSet is a set of models that some class accepts, and the part of the expected
// devices that must come from it.
type modelSet struct {
	models models
	part   float64
}

func newOurs(s *Study) *ours {
	return &ours{study: s, slots: newSlotCounter(s), wastes: newWasteMeter(s), gaps: gapValues(s.Classes), sets: setsOf(s.Classes)}
}

// setsOf are the sets of models, in the order of the classes that accept them.
func setsOf(classes []Class) []modelSet {
	var sets []modelSet
	known := map[models]bool{0: true}
	demand := 0.0
	for i := range classes {
		c := &classes[i]
		demand += c.Popularity * float64(c.demand())
		if c.Devices > 0 && !known[c.Models] {
			known[c.Models] = true
			sets = append(sets, modelSet{models: c.Models})
		}
	}
	for m := range sets {
		for i := range classes {
			if c := &classes[i]; c.Devices > 0 && c.Models != 0 && c.Models&^sets[m].models == 0 {
				sets[m].part += c.Popularity * float64(c.demand()) / demand
			}
		}
	}
	return sets
}

func (o *ours) Start(c *Cluster, _ uint64) {
	o.cluster = c
	o.outcomes = make([]outcomes, len(c.Members)*len(o.study.Classes))
	o.slotsOf = make([]int32, len(c.Members))
	o.wasteOf = make([]float64, len(c.Members))
	o.free, o.freeOf = 0, [maxModels]int64{}
	o.slots.reset()
	for i := range c.Members {
		o.enter(i)
	}
}

func (o *ours) Placed(node int, before *State) {
	o.leave(node, before)
	o.enter(node)
}

func (o *ours) enter(node int) {
	s := &o.cluster.Members[node].State
	o.slotsOf[node] = o.slots.of(s)
	o.wasteOf[node] = o.wastes.of(s)
	o.slots.add(o.slotsOf[node], 1)
	o.free += int64(s.free())
	o.freeOf[s.Model] += int64(s.free())
}

func (o *ours) leave(node int, s *State) {
	o.slots.add(o.slotsOf[node], -1)
	o.free -= int64(s.free())
	o.freeOf[s.Model] -= int64(s.free())
}

func (o *ours) Choose(p *Pod, class int) (Choice, bool) {
	c := &o.study.Classes[class]
	o.slots.price(float64(o.free) / whole)
	scarce := o.scarcity(c)
	best, choice, found := 0.0, Choice{}, false
	for i := range o.cluster.Members {
		m := &o.cluster.Members[i]
		if !m.fits(c, p) {
			continue
		}
		for _, out := range o.outcomesOf(i, class) {
			if loss := o.loss(i, out, scarce); !found || loss < best {
				best, choice, found = loss, Choice{Node: i, Free: out.free}, true
			}
		}
	}
	return choice, found
}

// loss is that of the formula, at the prices of the round.
func (o *ours) loss(node int, out outcome, scarce *[maxModels]float64) float64 {
	return o.slots.worth(o.slotsOf[node]) - o.slots.worth(out.slots) + scarce[o.cluster.Members[node].Model] + out.loss
}

// scarcity is the third term of a pod of the class, by model.
func (o *ours) scarcity(c *Class) *[maxModels]float64 {
	scarce := &[maxModels]float64{}
	for _, set := range o.sets {
		free := int64(0)
		for model := range o.study.names {
			if set.models.has(uint8(model)) {
				free += o.freeOf[model]
			}
		}
		rho := set.part * float64(o.free) / float64(max(free, whole))
		for model := range o.study.names {
			if set.models.has(uint8(model)) {
				scarce[model] += placement.ScarceWeight * rho * rho * float64(c.demand()) / whole
			}
		}
	}
	return scarce
}

// outcomesOf is what a pod of the class can make of the member.
func (o *ours) outcomesOf(node, class int) []outcome {
	m, c := &o.cluster.Members[node], &o.study.Classes[class]
	known := &o.outcomes[node*len(o.study.Classes)+class]
	if known.version == m.Version {
		return known.each
	}
	known.version, known.each = m.Version, known.each[:0]
	o.buffer = m.options(c, o.buffer)
	for _, device := range o.buffer {
		after := m.State
		after.take(c, device)
		out := outcome{slots: o.slots.of(&after), loss: placement.WasteWeight * (o.wastes.of(&after) - o.wasteOf[node])}
		if c.partial() {
			out.free = m.Free[device]
			out.loss += gapWeight * (o.gaps[out.free] - o.gaps[int(out.free)-c.Share])
		}
		known.each = append(known.each, out)
	}
	return known.each
}
