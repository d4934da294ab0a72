package decision

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/allocate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
)

// A model that needs fewer replicas gives up those whose room another model lacks, although
// others of its own are dearer; but not for a less important one, nor where that one would
// not have room all the same.
func TestWhatOthersLackGoesFirst(t *testing.T) {
	for name, c := range map[string]struct {
		// devices are those of a replica that lacks room, and rate what is asked of it.
		devices      int
		rate         float64
		wide, narrow int
		// cheap, dear and got are how many replicas there are in the end.
		cheap, dear, got int
	}{
		"nobody lacks anything":         {1, 0, 1, 1, 4, 0, 0},
		"another one lacks it":          {1, 15, 1, 1, 0, 4, 7},
		"it lacks all of it":            {7, 15, 1, 1, 0, 4, 1},
		"a less important one lacks it": {1, 15, 1, 2, 4, 0, 3},
		"it would not suffice":          {8, 15, 1, 1, 4, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := machines(1)
			cluster.Nodes = append(cluster.Nodes, nodes(1, "H200", 8)...)
			cluster.Put(request("H100", 1), 0)
			cheap, dear, narrow := vesselOf("cheap", 4), vesselOf("dear", 4), vesselOf("narrow", 0)
			dear.cost, dear.request = 7.9, request("H200", 1)
			narrow.request = request("H100", c.devices)
			policy := DefaultPolicy()
			policy.Limited, policy.Idle.Enabled = true, true
			policy.Promises = map[ModelKey]Promise{{Namespace: "ns", ID: "wide"}: {Priority: c.wide}, {Namespace: "ns", ID: "narrow"}: {Priority: c.narrow}}
			f := newFluid(cluster, policy,
				&flow{id: "wide", arrivals: step(30*time.Minute, 18, 8), variants: []*vessel{cheap, dear}},
				&flow{id: "narrow", arrivals: step(5*time.Minute, 0, c.rate), variants: []*vessel{narrow}})
			f.run(2 * time.Hour)
			assert.Equal(t, []int{c.cheap, c.dear, c.got}, []int{cheap.replicas, dear.replicas, narrow.replicas}, "%v", f.writes)
		})
	}
}

// While a model lacks the room that a variant shares, another model that grows takes a dearer
// variant, although the cheaper one still fits, and moves there with the rest.
func TestWhatOthersLackIsBoughtLast(t *testing.T) {
	for name, c := range map[string]struct {
		lacked      float64
		cheap, dear int
	}{
		"nobody lacks anything": {1.5, 4, 0},
		"another one lacks it":  {4, 0, 4},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := machines(1)
			cluster.Nodes = append(cluster.Nodes, nodes(1, "H200", 8)...)
			cheap, dear, narrow := vesselOf("cheap", 2), vesselOf("dear", 0), vesselOf("narrow", 1)
			dear.cost, dear.request, narrow.request = 7.9, request("H200", 1), request("H100", 4)
			policy := DefaultPolicy()
			policy.Limited = true
			f := newFluid(cluster, policy,
				&flow{id: "wide", arrivals: step(10*time.Minute, 4, 8), variants: []*vessel{cheap, dear}},
				&flow{id: "narrow", arrivals: step(5*time.Minute, 1.5, c.lacked), variants: []*vessel{narrow}})
			f.run(time.Hour)
			assert.Equal(t, []int{c.cheap, c.dear}, []int{cheap.replicas, dear.replicas}, "%v", f.writes)
		})
	}
}

// A model at a constant load moves to a dearer variant when another one lacks the room of its
// replicas, whoever came first, and back when that one needs the room no more; but not for a
// less important one, nor to what is too dear or has no room, nor where switches are off. Then
// it gives its share.
func TestWhatOthersLackMoves(t *testing.T) {
	for name, c := range map[string]struct {
		lacked       float64
		wide, narrow int
		price        capacity.Cost
		room         int
		horizon      time.Duration
		// cheap, dear and got are how many replicas there are when room was lacked for long.
		cheap, dear, got int
	}{
		"nobody lacks anything":         {7, 1, 1, 10, 8, 30 * time.Minute, 4, 0, 4},
		"another one lacks it":          {14, 1, 1, 10, 8, 30 * time.Minute, 2, 2, 6},
		"a less important one lacks it": {14, 1, 2, 10, 8, 30 * time.Minute, 4, 0, 4},
		"the other one is too dear":     {14, 1, 1, 14, 8, 30 * time.Minute, 3, 1, 5},
		"the other one has no room":     {14, 1, 1, 10, 0, 30 * time.Minute, 3, 0, 5},
		"switches are off":              {14, 1, 1, 10, 8, 0, 3, 1, 5},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := machines(1)
			cluster.Nodes = append(cluster.Nodes, nodes(1, "H200", c.room)...)
			cheap, dear, narrow := vesselOf("cheap", 4), vesselOf("dear", 0), vesselOf("narrow", 4)
			dear.cost, dear.request = c.price, request("H200", 1)
			policy := DefaultPolicy()
			policy.Limited, policy.Horizon = true, c.horizon
			policy.Promises = map[ModelKey]Promise{{Namespace: "ns", ID: "wide"}: {Priority: c.wide}, {Namespace: "ns", ID: "narrow"}: {Priority: c.narrow}}
			f := newFluid(cluster, policy,
				&flow{id: "wide", arrivals: constant(8), variants: []*vessel{cheap, dear}},
				&flow{id: "narrow", arrivals: func(at time.Duration) float64 {
					if at < 10*time.Minute || at > time.Hour {
						return 7
					}
					return c.lacked
				}, variants: []*vessel{narrow}})
			f.run(time.Hour)
			assert.Equal(t, []int{c.cheap, c.dear, c.got}, []int{cheap.replicas, dear.replicas, narrow.replicas}, "%v", f.writes)
			f.run(3 * time.Hour)
			if c.horizon == 0 {
				assert.Equal(t, []int{3, 1, 4}, []int{cheap.replicas, dear.replicas, narrow.replicas}, "%v", f.writes)
				return
			}
			assert.Equal(t, []int{4, 0, 4}, []int{cheap.replicas, dear.replicas, narrow.replicas}, "%v", f.writes)
		})
	}
}

// What was lacked while the cluster did not grow counts for nothing once it does.
func TestNothingIsScarceInAClusterThatGrows(t *testing.T) {
	for _, limited := range []bool{true, false} {
		policy := DefaultPolicy()
		policy.Limited = limited
		r, m, v := bare(policy, Memory{}, &Variant{Name: "v", Request: request("H100", 1)})
		v.Old.Lacked = epoch.Add(-time.Minute)
		r.Models = []*limit.Model{within(r, m)}
		r.Snapshot.Cluster = &placement.Cluster{Nodes: nodes(1, "H100", 8)}
		r.Trial = placement.NewTrial(r.Snapshot.Cluster)
		assert.Equal(t, limited, len(allocate.WantingRoom(r)) > 0)
		r.Snapshot.Cluster, r.Trial = nil, nil
		assert.Empty(t, allocate.WantingRoom(r), "nothing is known of the nodes")
	}
}

// Of the models that lack room on one accelerator the most important ones are looked at, and
// of equal ones those that come first.
func TestTheMostImportantLackRoomFirst(t *testing.T) {
	policy := DefaultPolicy()
	policy.Limited = true
	var models []*limit.Model
	var r *limit.Round
	for _, c := range []struct {
		id       string
		priority int
	}{{"late", 5}, {"first", 1}, {"second", 3}, {"as second", 3}, {"as first", 1}} {
		var m *limit.Model
		var v *limit.Variant
		r, m, v = bare(policy, Memory{}, &Variant{Name: "v", Request: request("H100", 1)})
		m.In.ID, m.Promise.Priority, v.Old.Lacked = c.id, c.priority, epoch.Add(-time.Minute)
		models = append(models, m)
	}
	r.Snapshot.Cluster = &placement.Cluster{Nodes: nodes(1, "H100", 8)}
	for _, m := range models {
		within(r, m)
	}
	r.Models, r.Trial = models, placement.NewTrial(r.Snapshot.Cluster)
	var got []string
	for _, u := range allocate.WantingRoom(r)["H100"] {
		got = append(got, u.M.In.ID)
	}
	assert.Equal(t, []string{"first", "as first"}, got)
}

// Room that is kept for a replica is no less scarce for it: who holds the rest of it is still in
// its way.
func TestRoomThatIsKeptIsScarce(t *testing.T) {
	for name, c := range map[string]struct {
		kept   string
		free   int
		scarce bool
	}{
		"none is kept":           {free: 5, scarce: true},
		"it is":                  {kept: "H100-0", free: 5, scarce: true},
		"who holds it left some": {kept: "H100-0", free: 7, scarce: true},
		"it would not suffice":   {kept: "H100-0", free: 4},
	} {
		t.Run(name, func(t *testing.T) {
			r, holds, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "holds", Request: request("H100", 3), Replicas: []Replica{{Name: "h", Node: "H100-0"}}})
			w := variantOf(func(it *limit.Variant) { it.In = &Variant{Name: "lacks", Request: request("H100", 8)} })
			w.Old.Lacked = epoch.Add(-time.Minute)
			if c.kept != "" {
				w.Old.Nominated = []ReservedRoom{{Node: c.kept, At: epoch.Add(-time.Minute)}}
			}
			lacks := modelOf(func(it *limit.Model) { it.In, it.Variants = &Model{ID: "lacks"}, []*limit.Variant{w} })
			r.Policy.Limited, r.Models = true, []*limit.Model{within(r, holds), within(r, lacks)}
			r.Snapshot.Cluster = &placement.Cluster{Nodes: nodes(1, "H100", 8)}
			r.Snapshot.Cluster.Nodes[0].Free.Devices = c.free
			r.Reserve()
			allocate.FindScarce(r)
			assert.Equal(t, c.scarce, v.ScarceFor == &lacks.Key)
		})
	}
}
