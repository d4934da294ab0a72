package decision

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Whoever sets the replicas back before the next round comes is somebody else. Where the
// writes fail, nobody is.
func TestANumberSetBackAtOnceIsAFight(t *testing.T) {
	for name, deaf := range map[string]bool{"set back at once": false, "the writes fail": true} {
		t.Run(name, func(t *testing.T) {
			web := vesselOf("web", 2)
			f := newFluid(machines(4), DefaultPolicy(), &flow{id: "m", arrivals: constant(9), variants: []*vessel{web}})
			f.deaf = deaf
			changed, fought := false, false
			f.told = func(_ *Snapshot, plan *Plan) {
				v := plan.Models[0].Variants[0]
				changed = changed || detailOf(v.Facts, ReasonReplicasChanged) != ""
				fought = fought || v.Reason == ReasonReplicasOverwritten
			}
			for f.elapsed() < time.Hour {
				f.step()
				if web.replicas != 2 {
					web.replicas = 2
					f.remove(web, nil)
				}
			}
			assert.Equal(t, !deaf, changed)
			assert.Equal(t, !deaf, fought)
			if !deaf {
				assert.LessOrEqual(t, len(f.writes), 8, "%v", f.writes)
			}
		})
	}
}

// What another target asked for says nothing of the one that an object points to now.
func TestAnotherTargetIsNoChangeOfTheReplicas(t *testing.T) {
	memory := Memory{}
	for i, target := range []string{"blue", "green", "blue", "green"} {
		in := Variant{Name: "v", Request: request("H100", 1), TargetUID: target, Current: 2 + 3*(i%2), Ready: 2 + 3*(i%2), Writer: "kubectl"}
		s := Snapshot{Time: epoch.Add(time.Duration(i) * time.Minute), Models: []Model{{Namespace: "ns", ID: "m", Variants: []Variant{in}}}}
		var plan Plan
		plan, memory = Decide(s, DefaultPolicy(), memory, RoundFull)
		v := plan.Models[0].Variants[0]
		require.Empty(t, detailOf(v.Facts, ReasonReplicasChanged), target)
		require.Equal(t, in.Current, *v.Desired, "%s: it begins a window anew", target)
	}
}
