package settle

import (
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/preempt"
)

// ChooseVictims names the replicas that should go, the first one first, of every variant
// whose choice is ours and whose nodes the capacity model knows: those whose room is
// worth the most to the replicas still expected. All variants choose together, because
// a node that none of them empties alone may be emptied by several. Of a rolling update
// its controller chooses. Giving are those that give way to a more important model.
func ChooseVictims(r *limit.Round, giving map[*limit.Variant][]string) {
	var choosing []*limit.Variant
	var leaving []placement.Leaving
	r.Each(func(v *limit.Variant) {
		// Of the pods, not of what the target asks for: some of those may have no pod
		// yet, and some pods of an earlier scale-down may still be there.
		n := v.In.Ready + len(v.In.Starting) - v.Target
		if n <= 0 || v.Target >= v.In.Current || !v.ChoosesVictims() {
			return
		}
		choosing = append(choosing, v)
		leaving = append(leaving, placement.Leaving{Request: v.In.Request, Replicas: preempt.Removable(r, v, n, giving[v], r.Nodes()), Count: n})
	})
	if len(leaving) == 0 {
		return
	}
	for i, chosen := range r.Trial.Cluster().VictimsTogether(leaving) {
		for _, j := range chosen {
			choosing[i].Plan.Victims = append(choosing[i].Plan.Victims, leaving[i].Replicas[j].Name)
		}
	}
}
