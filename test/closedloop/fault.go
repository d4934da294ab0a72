package closedloop

import (
	"fmt"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/round"
)

// active says whether a fault of the kind is under way for the variant.
func (w *world) active(kind FaultKind, v *variantState) bool {
	for i := range w.scenario.Faults {
		f := &w.scenario.Faults[i]
		if f.Kind == kind && f.From <= w.now && w.now < f.To && w.hits(f, v) {
			return true
		}
	}
	return false
}

// hits says whether a fault is one of the variant. Those of metrics are one of the whole
// model when their count is odd.
func (w *world) hits(f *Fault, v *variantState) bool {
	if f.Model != v.model.index {
		return false
	}
	switch f.Kind {
	case FaultFrozen, FaultGone, FaultHalf, FaultFuture:
		return f.Count%2 == 1 || f.Variant == v.index
	case FaultPrompts, FaultPromise, FaultUnshown:
		return true
	default:
		return f.Variant == v.index
	}
}

// slowness is how many times as long everything takes in the variant's replicas just now.
func (w *world) slowness(v *variantState) float64 {
	factor := 1.0
	for i := range w.scenario.Faults {
		if f := &w.scenario.Faults[i]; f.Kind == FaultSlow && f.From <= w.now && w.now < f.To && w.hits(f, v) {
			factor *= f.Factor
		}
	}
	return factor
}

// failsToStart says whether replicas of the variant that start now do not come up.
func (w *world) failsToStart(v *variantState) bool {
	return w.active(FaultCrash, v) || w.active(FaultRollout, v)
}

// applyFaults begins and ends what changes the world.
func (w *world) applyFaults() {
	for i := range w.scenario.Faults {
		f := &w.scenario.Faults[i]
		if f.Model >= len(w.models) || f.Variant >= len(w.models[f.Model].variants) {
			continue
		}
		v := w.models[f.Model].variants[f.Variant]
		if w.now == f.From || w.now == f.To {
			w.disturbed = w.now
		}
		if w.now == f.From {
			w.story.happened(w.now, f.describe(v.key.Name))
			w.beginFault(f, v)
		}
		if f.Kind == FaultWriter && f.Every > 0 && w.now > f.From && w.now < f.To && (w.now-f.From)%f.Every.Truncate(step) == 0 {
			w.overwrite(v, f.Count)
		}
		if w.now == f.To {
			w.endFault(f, v)
		}
	}
}

func (f *Fault) describe(variant string) string {
	text := fmt.Sprintf("%s: %s, until %s", variant, f.Kind, clock(f.To))
	switch f.Kind {
	case FaultMax, FaultWriter, FaultHang, FaultFlap, FaultSilent, FaultMin, FaultNodes, FaultReclaim, FaultUnshown:
		text += fmt.Sprintf(", count %d", f.Count)
	case FaultPrice, FaultPrompts, FaultPromise, FaultSlowStart, FaultVersion, FaultSlow:
		text += fmt.Sprintf(", times %.3g", f.Factor)
	}
	if f.Kind == FaultVersion && f.Count%2 == 1 {
		text += ", and the stated profile with it"
	}
	if f.Kind == FaultClock {
		text += fmt.Sprintf(", ahead by %s", f.Every)
	}
	if f.Kind == FaultWriter && f.Every > 0 {
		text += fmt.Sprintf(", every %s", f.Every)
	}
	return text
}

func (w *world) beginFault(f *Fault, v *variantState) {
	policy := v.policy
	switch f.Kind {
	case FaultHang:
		for i, n := 0, 0; i < len(v.pods) && n < f.Count; i++ {
			if v.pods[i].serving {
				v.pods[i].hung = true
				n++
			}
		}
	case FaultRollout:
		w.beginRollout(f, v)
	case FaultLoss:
		for i := len(v.pods) - 1; i >= 0; i-- {
			w.remove(v, i)
		}
	case FaultCordon:
		w.cordon(v, "cordoned")
	case FaultWriter:
		w.overwrite(v, f.Count)
	case FaultMax:
		policy.Max = max(f.Count, policy.Min)
		w.setPolicy(v, policy)
	case FaultNoUp:
		policy.Up.Select = decision.SelectDisabled
		w.setPolicy(v, policy)
	case FaultNoDown:
		policy.Down.Select = decision.SelectDisabled
		w.setPolicy(v, policy)
	case FaultMin:
		policy.Min += f.Count
		if policy.Max >= 0 {
			policy.Min = min(policy.Min, policy.Max)
		}
		w.setPolicy(v, policy)
	case FaultNodes, FaultReclaim:
		w.failNodes(f, v)
	case FaultLeader:
		w.memory, w.startups = decision.Memory{}, round.Startups{}
		w.led = w.now
	case FaultFlap:
		v.choose(f.Count, func(p *pod) { p.flaps = true })
	case FaultSilent:
		v.choose(f.Count, func(p *pod) { p.silent = true })
	default:
		w.edit(f, v)
	}
}

func (w *world) endFault(f *Fault, v *variantState) {
	switch f.Kind {
	case FaultHang:
		for _, p := range v.pods {
			p.hung = false
		}
	case FaultCrash, FaultRollout:
		w.opened = w.now
		for i := len(v.pods) - 1; i >= 0; i-- {
			if v.pods[i].extra {
				w.remove(v, i)
			}
		}
		if f.Kind == FaultRollout {
			v.rolling, v.replacing = false, false
		}
		for _, p := range v.pods {
			if p.crashes {
				p.crashes, p.placed = false, w.now
			}
		}
	case FaultNodes, FaultReclaim:
		w.mendNodes(f, v)
	case FaultCordon:
		w.cordon(v, "")
		w.opened = w.now
	case FaultMin:
		policy := v.policy
		policy.Min = v.Policy.Min
		w.setPolicy(v, policy)
	case FaultFlap:
		for _, p := range v.pods {
			p.flaps = false
			if p.absent {
				p.serving, p.since, p.absent = true, w.now, false
			}
		}
	case FaultSilent:
		for _, p := range v.pods {
			p.silent = false
		}
	default:
		w.edit(f, v)
	}
}

// beginRollout begins a rolling update: a Deployment makes one pod more first, a
// StatefulSet takes the youngest away, one after the other.
func (w *world) beginRollout(f *Fault, v *variantState) {
	v.rolling = true
	if f.Count%2 == 1 && !v.Ordered {
		w.create(v).extra = true
		return
	}
	v.replacing = true
	w.replaceNext(v)
}

// replaceNext replaces the youngest pod of a StatefulSet when all the others serve.
func (w *world) replaceNext(v *variantState) {
	if len(v.pods) == 0 || v.ready() < len(v.pods) {
		return
	}
	p := v.pods[len(v.pods)-1]
	v.model.held += p.waiting
	*p = pod{name: p.name + "r", created: w.now, node: p.node, placed: w.now, version: v.version, starts: w.startup(v)}
}

func (w *world) cordon(v *variantState, why string) {
	w.clock.Event(round.Soon)
	for _, n := range w.nodes {
		if n.Accelerator == v.Accelerator && n.by == nil {
			n.Out = why
		}
	}
}

// overwrite has somebody else set the replicas.
func (w *world) overwrite(v *variantState, to int) {
	if v.target == to {
		return
	}
	w.story.happened(w.now, fmt.Sprintf("%s: kubectl scale %d -> %d", v.key.Name, v.target, to))
	v.writer = "kubectl"
	v.bounded = w.now
	w.scale(v, to, nil, true)
}

// setPolicy gives a variant another policy; the policy that a round was given is left
// as it was.
func (w *world) setPolicy(v *variantState, policy decision.VariantPolicy) {
	variants := make(map[decision.Key]decision.VariantPolicy, len(w.policy.Variants))
	for key, p := range w.policy.Variants {
		variants[key] = p
	}
	variants[v.key] = policy
	w.policy.Variants = variants
	w.clock.Event(round.Urgent)
	v.policy, v.bounded = policy, w.now
}
