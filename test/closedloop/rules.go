package closedloop

import (
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// drawRules draws what else decides in a cluster where pods go and whether they come: its
// scheduler, quotas, and whether anybody may look.
func drawRules(d *dice, s *Scenario) {
	if d.chance(0.15) {
		s.Spreads = true
	}
	if d.chance(0.15) {
		s.Schedules = pick(d, 5*time.Second, 15*time.Second, 40*time.Second)
	}
	if !s.Hidden && d.chance(0.15) {
		held := 0
		for i := range s.Models {
			for j := range s.Models[i].Variants {
				held += s.Models[i].Variants[j].Replicas * s.Models[i].Variants[j].Devices
			}
		}
		s.Quota = held + d.below(pick(d, 4, 16, 64)) + 1
	}
	for i := range s.Models {
		for j := range s.Models[i].Variants {
			if v := &s.Models[i].Variants[j]; !s.Limited && d.chance(0.05) {
				v.Several, v.Policy.OnUnknown = true, decision.OnUnknownAllow
			}
		}
	}
	if d.chance(0.2) {
		f := drawFault(d, s)
		f.Kind = pick(d, FaultRefused, FaultRefused, FaultUnread, FaultUnmanaged, FaultPriority)
		s.Faults = append(s.Faults, f)
	}
	if d.chance(0.1) {
		f := drawFault(d, s)
		f.Kind, f.Every = FaultClock, pick(d, -10*time.Minute, -time.Minute, -20*time.Second, 20*time.Second, time.Minute, 10*time.Minute)
		s.Faults = append(s.Faults, f)
	}
	for i := range s.Models {
		if s.Limited && d.chance(0.2) {
			s.Models[i].Weight = pick(d, 0.3, 3.0, 20)
		}
	}
}

// ahead is by how much the clock of the manager is ahead just now.
func (w *world) ahead() (off time.Duration) {
	for i := range w.scenario.Faults {
		if f := &w.scenario.Faults[i]; f.Kind == FaultClock && f.From <= w.now && w.now < f.To {
			off += f.Every
		}
	}
	return off
}

// refuses says whether the scheduler refuses the variant's pods just now, for what nobody is
// told.
func (w *world) refuses(v *variantState) bool { return w.active(FaultRefused, v) }

// unread says whether nobody may look at the nodes just now.
func (w *world) unread() bool {
	return slices.ContainsFunc(w.scenario.Faults, func(f Fault) bool { return f.Kind == FaultUnread && f.From <= w.now && w.now < f.To })
}

// checkRetry asserts that replicas which the scheduler refuses, although there is room, are not
// asked for again within a minute of being given back, or nearly. A new leader knows of none. In a
// cluster that grows they are given back because others suffice, which a rise of the load or a
// crash may end at once; but not again and again.
func (w *world) checkRetry(v *variantState, desired int) {
	const pause, often = 45 * time.Second, 10 * time.Minute
	switch {
	case !w.refuses(v):
	case desired < v.target && slices.ContainsFunc(v.pods, func(p *pod) bool { return p.refused && w.now > p.created+pause }):
		v.gaveBack = w.now
	case desired <= max(v.target, v.policy.Min) || v.gaveBack <= w.led || w.now >= v.gaveBack+pause:
	case !w.scenario.Limited && (v.askedAgain == 0 || w.now > v.askedAgain+often):
		v.askedAgain = w.now
	default:
		w.fail(CheckRetry, "%s goes from %d to %d, %s after replicas were given back that the scheduler refuses", v.key.Name, v.target, desired, w.now-v.gaveBack)
	}
}

// rule begins and ends what else decides.
func (w *world) rule(f *Fault, v *variantState) {
	ends := w.now == f.To
	switch f.Kind {
	case FaultPriority:
		v.model.Priority = 1
		if ends {
			v.model.Priority = w.scenario.Models[f.Model].Priority
		}
		w.setPromise(v.model)
	case FaultClock:
		switch by := max(f.Every, -f.Every); {
		case ends != (f.Every > 0):
			// The window of a leader is over so much sooner.
			w.led = max(0, w.led-by)
		case by >= time.Minute:
			// What is remembered is of a time to come.
			w.led = w.now
		}
		for _, m := range w.models {
			for _, v := range m.variants {
				v.returned, v.gaveBack = w.now, 0
			}
		}
	case FaultRefused, FaultUnread, FaultUnmanaged:
		if !ends {
			return
		}
		w.opened = w.now
		if f.Kind == FaultUnmanaged {
			v.returned, v.bounded = w.now, w.now
		}
	}
}

// quotaLeft is how many devices the namespace may take beside those that its pods take.
func (w *world) quotaLeft() int64 {
	left := w.scenario.Quota
	for _, m := range w.models {
		for _, v := range m.variants {
			left -= (len(v.pods) + len(v.leaving)) * v.Devices
		}
	}
	return int64(left)
}

// allows says whether the quota lets one more pod of a variant come.
func (w *world) allows(v *variantState) bool {
	return w.scenario.Quota == 0 || w.quotaLeft() >= int64(v.Devices)
}

// unscheduled is how many pods the scheduler has not looked at.
func (v *variantState) unscheduled() (n int) {
	for _, p := range v.pods {
		if p.node == nil && !p.refused {
			n++
		}
	}
	return n
}

// makeUp makes the pods that a quota did not let come.
func (w *world) makeUp(v *variantState) {
	for !v.Ordered && v.own() < v.target && w.allows(v) {
		w.create(v)
		w.changed = true
	}
}

// quotas are what is shown of them.
func (w *world) quotas() []placement.Quota {
	if w.scenario.Quota == 0 {
		return nil
	}
	return []placement.Quota{{Namespace: namespace, Name: "gpus", Resource: "requests.nvidia.com/gpu", Hard: int64(w.scenario.Quota), Left: w.quotaLeft()}}
}

// request is what is shown of what a replica asks for.
func (w *world) request(v *Variant) *placement.Request {
	r := &placement.Request{Shape: v.shape()}
	if v.Several {
		r.Shape.Pods = 2
	}
	if w.scenario.Quota > 0 && !w.scenario.Hidden && !w.unread() {
		r.Charges = []placement.Amount{{Index: 0, Count: int64(v.Devices)}}
	}
	return r
}

// managed are the variants that are there to be decided about.
func (w *world) managed(m *modelState) (managed []*variantState) {
	for _, v := range m.variants {
		if !w.active(FaultUnmanaged, v) {
			managed = append(managed, v)
		}
	}
	return managed
}

// seenVariant is what a round was shown of a variant, nil where it was not.
func seenVariant(snapshot *decision.Snapshot, v *variantState) *decision.Variant {
	for i := range snapshot.Models {
		for j := range snapshot.Models[i].Variants {
			if seen := &snapshot.Models[i].Variants[j]; seen.Name == v.key.Name {
				return seen
			}
		}
	}
	return nil
}
