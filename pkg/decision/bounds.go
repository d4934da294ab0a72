package decision

import "math"

// mostReplicas is the largest number that a scale subresource holds.
const mostReplicas = math.MaxInt32

// minimum raises the variant to its minReplicas, and takes the room for that before anybody
// grows: in a cluster that does not grow as far as they fit.
func (r *round) minimum(v *variant) {
	missing, lacks := v.policy.Min-v.target, ""
	if missing <= 0 {
		return
	}
	add := missing
	switch {
	case r.unknown(v) != nil:
	case !r.policy.Limited:
		add = min(missing, r.allowed(v))
		r.take(v, add)
		if add < missing {
			lacks = r.noRoom(v)
		}
	case v.fleet.paused > 0:
		add, lacks = 0, v.pausedFor()
	default:
		if add = len(r.place(v, v.oneAtATime(missing))); add < missing {
			lacks = r.noRoom(v)
		}
	}
	if lacks != "" {
		v.fact(ReasonNoSlots, "minReplicas is %d; %s", v.policy.Min, lacks)
		v.note(StageAllocation, ReasonNoSlots, "minReplicas is %d; %s", v.policy.Min, lacks)
	}
	if add > 0 {
		bypasses := ""
		if most, _ := r.mayReach(v); v.target+add > most {
			bypasses = " and bypasses scaleUp"
		}
		v.step(StageAllocation, v.target+add, ReasonMinReplicas, "minReplicas is %d%s", v.policy.Min, bypasses)
	}
}

// bounds keeps each variant below its maxReplicas.
func (r *round) bounds(m *model) {
	m.each(func(v *variant) {
		switch most := v.bounded(mostReplicas); {
		case v.target > most && most < mostReplicas:
			v.step(StageBounds, most, ReasonMaxReplicas, "%s", v.maximum())
		case v.target > most:
			v.step(StageBounds, most, ReasonMaxReplicas, "a scale target holds no more than %d", most)
		case v.target < v.policy.Min:
			v.note(StageBounds, ReasonNoSlots, "minReplicas is %d", v.policy.Min)
		default:
			v.note(StageBounds, ReasonSteady, "within bounds")
		}
	})
}
