package decision

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/allocate"
)

// underQuota has every variant of the world charge its devices to a quota of its namespace
// of which so many are left.
func underQuota(w *world, left int64) *placement.Quota {
	w.cluster.Quotas = append(w.cluster.Quotas, placement.Quota{Namespace: "ns", Name: "gpus", Resource: "requests.nvidia.com/gpu", Hard: 1000, Left: left})
	for _, v := range w.variants {
		charged := *v.request
		charged.Charges = []placement.Amount{{Index: len(w.cluster.Quotas) - 1, Count: int64(charged.Shape.Devices)}}
		v.request = &charged
	}
	return &w.cluster.Quotas[len(w.cluster.Quotas)-1]
}

// Nodes may come, a quota stays as it is: nothing is asked for beyond it in either mode, and
// it is the reason.
func TestAQuotaLimitsWhatIsAskedFor(t *testing.T) {
	for name, limited := range bothModes {
		for free, devices := range map[string]int{"room enough": 8, "no room": 0} {
			t.Run(name+", "+free, func(t *testing.T) {
				w := newWorld(118)
				w.cluster = &placement.Cluster{Nodes: append(nodes(8, "H100", devices), nodes(8, "L40S", devices)...)}
				underQuota(w, 4)
				policy := demoPolicy()
				policy.Limited = limited
				plan, _ := Decide(w.snapshot(), policy, Memory{}, RoundFull)
				h100, l40s := plan.Models[0].Variants[0], plan.Models[0].Variants[1]
				added := *h100.Desired - 1 + 2**l40s.Desired
				if limited && devices == 0 {
					assert.Zero(t, added)
					return
				}
				assert.Equal(t, 4, added, "%+v %+v", h100.Steps, l40s.Steps)
				assert.Contains(t, tellFacts(h100.Facts)+tellFacts(l40s.Facts), "quota gpus of namespace ns: 0 of requests.nvidia.com/gpu left")
			})
		}
	}
}

// A quota is a row of what is shared where somebody may ever take of it what one replica
// counts: not one that counts nothing, nor more than there ever is.
func TestWhichQuotasAreShared(t *testing.T) {
	for count, shared := range map[int64]bool{0: false, 1: true, 1000: true, 1001: false} {
		w := newWorld(118)
		w.variants, w.cluster = w.variants[:1], machines(9)
		underQuota(w, 600)
		w.variants[0].request.Charges[0].Count = count
		s := w.snapshot()
		policy := demoPolicy()
		r := newRound(&s, &policy, &Memory{}, RoundFull)
		r.Reserve()
		rows := allocate.NewRows(r, r.Models)
		assert.Equal(t, shared, len(rows.Quotas) == 1, "%d", count)
		if shared {
			assert.InDelta(t, 600/float64(count), rows.Limits[0], 1e-9)
		}
	}
}

// Each size of holes is one row, however many kinds of requests ask for it; what asks for no
// devices has none.
func TestWhichHolesAreShared(t *testing.T) {
	for name, c := range map[string]struct {
		devices  int
		milliCPU int64
		want     []int
	}{
		"the same size":  {devices: 2, milliCPU: 500, want: []int{2}},
		"another size":   {devices: 4, want: []int{2, 4}},
		"no device":      {milliCPU: 500, want: []int{2}},
		"no device, too": {want: []int{2}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(118)
			w.cluster = machines(9)
			w.variants[0].request, w.variants[1].request = request("H100", 2), request("H100", c.devices)
			w.variants[1].request.Shape.MilliCPU = c.milliCPU
			s := w.snapshot()
			policy := demoPolicy()
			r := newRound(&s, &policy, &Memory{}, RoundFull)
			r.Reserve()
			var got []int
			for _, h := range allocate.NewRows(r, r.Models).Holes {
				got = append(got, h.Devices)
			}
			assert.Equal(t, c.want, got)
		})
	}
}

// What is left and does not suffice is named with its number.
func TestAQuotaThatLeavesTooFewIsTheReason(t *testing.T) {
	w := newWorld(118)
	w.variants = w.variants[:1]
	w.variants[0].request = request("H100", 8)
	w.cluster = machines(9)
	underQuota(w, 4)
	v := first(w.snapshot(), policyFor(true, "a-h100")).Models[0].Variants[0]
	assert.Equal(t, 1, *v.Desired)
	assert.Equal(t, ReasonNoSlots, v.Reason)
	assert.Contains(t, textOf(v.Message), "quota gpus of namespace ns: 4 of requests.nvidia.com/gpu left")
}

// A pod that waits for a node is counted by the quota controller already: it holds its
// room, and takes nothing of what is left.
func TestAPodThatWaitsIsChargedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		// free are the devices of the only node.
		free, slots, unplaced int
		refused               time.Duration
	}{
		"room for all":                          {free: 8, slots: 2},
		"room for none":                         {free: 0, slots: 0, unplaced: 3},
		"room for two":                          {free: 2, slots: 0, unplaced: 1},
		"room that the scheduler does not give": {free: 3, slots: 2, refused: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(0.1)
			w.variants = w.variants[:1]
			w.cluster = &placement.Cluster{Nodes: nodes(1, "H100", c.free)}
			underQuota(w, 2)
			s := w.snapshot()
			v := &s.Models[0].Variants[0]
			v.Current = 4
			for range 3 {
				v.Starting = append(v.Starting, Starting{Name: "waits", Since: w.now.Add(-10 * time.Second), Unschedulable: c.refused > 0})
			}
			memory := Memory{}
			if c.refused > 0 {
				memory.Variants = map[Key]*VariantMemory{{Namespace: "ns", Name: "a-h100"}: {Refused: w.now.Add(-c.refused)}}
			}
			plan, _ := Decide(s, policyFor(true, "a-h100"), memory, RoundFast)
			got := plan.Models[0].Variants[0]
			require.NotNil(t, got.Slots)
			assert.Equal(t, c.slots, got.Slots.Count)
			assert.Equal(t, c.unplaced, got.Unplaced)
			assert.EqualValues(t, 2, s.Cluster.Quotas[0].Left, "the snapshot is not changed")
		})
	}
}

// Replicas that were asked for and have no pod yet count against the quota as soon as they
// have one.
func TestAReplicaWithoutAPodIsChargedToItsQuota(t *testing.T) {
	w := newWorld(0.1)
	w.variants = w.variants[:1]
	w.cluster = machines(1)
	underQuota(w, 2)
	s := w.snapshot()
	s.Models[0].Variants[0].Current = 2
	plan, _ := Decide(s, policyFor(true, "a-h100"), Memory{}, RoundFast)
	assert.Equal(t, 1, plan.Models[0].Variants[0].Slots.Count)
}

// Two namespaces share the nodes and not the quota: what one may not have the other gets.
func TestModelsShareNodesUnderDifferentQuotas(t *testing.T) {
	one, two := newWorld(118), newWorld(118)
	one.variants, two.variants = one.variants[:1], two.variants[:1]
	cluster := &placement.Cluster{Nodes: nodes(1, "H100", 6)}
	one.cluster = cluster
	underQuota(one, 2)
	s := one.snapshot()
	second := two.snapshot().Models[0]
	second.Namespace, second.ID, second.Variants[0].Name = "other", "n", "n-h100"
	s.Models = append(s.Models, second)
	policy := demoPolicy()
	policy.Limited = true
	plan, _ := Decide(s, policy, Memory{}, RoundFull)
	assert.Equal(t, 3, *plan.Models[0].Variants[0].Desired)
	assert.Equal(t, 5, *plan.Models[1].Variants[0].Desired, "%s", textOf(plan.Models[1].Variants[0].Message))
}

// Two models of one quota get their shares of it, although the nodes have room for both.
func TestModelsShareAQuota(t *testing.T) {
	for name, limited := range bothModes {
		t.Run(name, func(t *testing.T) {
			w := newWorld(60)
			w.variants = w.variants[:1]
			w.cluster = machines(9)
			underQuota(w, 6)
			s := w.snapshot()
			second := w.snapshot().Models[0]
			second.ID, second.Variants[0].Name = "n", "n-h100"
			s.Models = append(s.Models, second)
			policy := demoPolicy()
			policy.Limited = limited
			plan, _ := Decide(s, policy, Memory{}, RoundFull)
			assert.Equal(t, 4, *plan.Models[0].Variants[0].Desired)
			assert.Equal(t, 4, *plan.Models[1].Variants[0].Desired)
		})
	}
}

// Neither a minimum nor the replica that wakes a model is asked for beyond a quota, however
// much the cluster may grow.
func TestAQuotaLimitsMinimaAndWaking(t *testing.T) {
	for name, limited := range bothModes {
		t.Run(name, func(t *testing.T) {
			w := newWorld(1)
			w.variants = w.variants[:1]
			w.cluster = machines(9)
			quota := underQuota(w, 2)
			policy := policyFor(limited, "a-h100")
			own := policy.Variants[Key{Namespace: "ns", Name: "a-h100"}]
			own.Min = 5
			policy.Variants[Key{Namespace: "ns", Name: "a-h100"}] = own
			v := first(w.snapshot(), policy).Models[0].Variants[0]
			assert.Equal(t, 3, *v.Desired)
			assert.Contains(t, detailOf(v.Facts, ReasonNoSlots), "minReplicas is 5; wants 1xH100: quota gpus of namespace ns: 0 of requests.nvidia.com/gpu left")

			own.Min, quota.Left = 0, 0
			policy.Variants[Key{Namespace: "ns", Name: "a-h100"}] = own
			policy.Idle.Enabled = true
			w.setReplicas(0, 0)
			s := w.snapshot()
			s.Models[0].Queue.Value = 3
			v = first(s, policy).Models[0].Variants[0]
			assert.Zero(t, *v.Desired)
			assert.Equal(t, ReasonNoSlots, v.Reason, textOf(v.Message))
		})
	}
}

// A less important model gives no room that a quota would not let anybody take.
func TestNobodyGivesWayToWhatAQuotaForbids(t *testing.T) {
	for name, left := range map[string]int64{"none left": 0, "one left": 1} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(60)
			w.variants = w.variants[:1]
			w.cluster = &placement.Cluster{Nodes: nodes(1, "H100", 0)}
			w.cluster.Nodes[0].Allocatable.Devices = 8
			underQuota(w, left)
			s := w.snapshot()
			other := newWorld(118)
			other.variants = other.variants[:1]
			other.now = epoch
			other.setReplicas(0, 7)
			other.now = w.now
			second := other.snapshot().Models[0]
			second.Namespace, second.ID, second.Variants[0].Name = "other", "n", "n-h100"
			for i := range second.Variants[0].Replicas {
				second.Variants[0].Replicas[i].Node = "H100-0"
			}
			s.Models = append(s.Models, second)
			policy := demoPolicy()
			policy.Limited = true
			policy.Promises = map[ModelKey]Promise{{Namespace: "ns", ID: "m"}: {Priority: 1}, {Namespace: "other", ID: "n"}: {Priority: 9}}
			plan, _ := Decide(s, policy, Memory{}, RoundFull)
			gives := detailOf(plan.Models[1].Variants[0].Facts, ReasonPreempted)
			assert.Equal(t, left > 0, gives != "", "%+v", plan.Models[1].Variants[0].Steps)
		})
	}
}

// A pod that waits in vain keeps its part of the quota, whoever else has room on the nodes.
func TestAPodWithoutRoomKeepsItsPartOfTheQuota(t *testing.T) {
	w := newWorld(0.1)
	w.cluster = &placement.Cluster{Nodes: append(nodes(1, "H100", 0), nodes(1, "L40S", 8)...)}
	underQuota(w, 2)
	s := w.snapshot()
	v := &s.Models[0].Variants[0]
	v.Current = 4
	for range 3 {
		v.Starting = append(v.Starting, Starting{Name: "waits", Since: w.now.Add(-10 * time.Second)})
	}
	plan, _ := Decide(s, policyFor(true, "a-h100"), Memory{}, RoundFast)
	assert.Equal(t, 3, plan.Models[0].Variants[0].Unplaced)
	assert.Equal(t, 1, plan.Models[0].Variants[1].Slots.Count, "two devices are left")
}

// Pods come whether a node has room for them or not, so that what is asked for and has no
// pod yet, and the surge of a rolling update, count against the quota on a full cluster too,
// as far as it lets them come.
func TestPodsThatAreToComeAreChargedWithoutRoom(t *testing.T) {
	for name, c := range map[string]struct {
		missing, surge int
		left, want     int64
	}{
		"without a pod yet":        {missing: 2, left: 5, want: 3},
		"of a rolling update":      {surge: 2, left: 5, want: 3},
		"both":                     {missing: 2, surge: 1, left: 5, want: 2},
		"more than the quota lets": {missing: 7, left: 5, want: 0},
		"where nothing is left":    {missing: 1, left: -2, want: -2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(0.1)
			w.variants = w.variants[:1]
			w.cluster = &placement.Cluster{Nodes: nodes(1, "H100", 0)}
			underQuota(w, c.left)
			s := w.snapshot()
			s.Models[0].Variants[0].Current += c.missing
			s.Models[0].Variants[0].Surge = c.surge
			assert.Equal(t, c.want, Reserve(s, policyFor(false, "a-h100")).Quotas[0].Left)
		})
	}
}

// A replica that wakes a model takes its part of the quota before a node has room for it:
// nobody else is given that.
func TestAModelThatWakesIsChargedWithoutRoom(t *testing.T) {
	w := newWorld(118)
	w.variants = w.variants[:1]
	w.cluster = &placement.Cluster{Nodes: nodes(1, "H100", 0)}
	underQuota(w, 3)
	s := w.snapshot()
	asleep := newWorld(1)
	asleep.variants = asleep.variants[:1]
	asleep.variants[0].request = w.variants[0].request
	asleep.setReplicas(0, 0)
	second := asleep.snapshot().Models[0]
	second.ID, second.Variants[0].Name, second.Queue.Value = "n", "n-h100", 3
	s.Models = append(s.Models, second)
	policy := demoPolicy()
	policy.Idle.Enabled = true
	plan, _ := Decide(s, policy, Memory{}, RoundFull)
	assert.Equal(t, 1, *plan.Models[1].Variants[0].Desired)
	assert.Equal(t, 1+2, *plan.Models[0].Variants[0].Desired)
}
