package decision

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/allocate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/preempt"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// slowFind is find by looking at all givers on all nodes each time.
func slowFind(c *preempt.Clearing, m *limit.Model, v *limit.Variant, equals bool) (best []preempt.Giver, at int) {
	at = -1
	for node := range c.Givers {
		if len(c.Givers[node]) == 0 {
			continue
		}
		if gone, fits := slowFewest(c, m, v, node, equals); fits && (at < 0 || len(gone) < len(best)) {
			best, at = gone, node
		}
	}
	return best, at
}

func slowFewest(c *preempt.Clearing, m *limit.Model, v *limit.Variant, node int, equals bool) (gone []preempt.Giver, fits bool) {
	may := func() bool {
		allowed, _ := c.Room.Allowed(v.In.Request)
		return allowed > 0 && c.Room.Fits(v.In.Request, node)
	}
	fits = may()
	for _, g := range c.Givers[node] {
		if fits {
			break
		}
		given, givenOf, lost := 0, 0, capacity.Rate(0)
		for _, o := range gone {
			if o.V == g.V {
				given++
			}
			if o.M == g.M {
				givenOf, lost = givenOf+1, lost+o.V.Rate.Serves()
			}
		}
		less := g.V.Priority > m.Promise.Priority ||
			equals && g.V.Priority == m.Promise.Priority && g.M != m && preempt.HasShare(m, v.Rate.Serves()) <= preempt.HasShare(g.M, -lost-g.V.Rate.Serves()-rate.Served(g.M.Variants, preempt.ComingOf))
		if !less || !g.Goes(preempt.PresentOf(g.V)-given) || preempt.PresentOf(g.V)-given <= g.V.Policy.Min || signal.Count(g.M.Variants, preempt.PresentOf)-givenOf <= 1 || slices.Contains(c.Found.Giving[g.V], g.Name) {
			continue
		}
		c.Room.Remove(g.V.In.Request, node)
		gone = append(gone, g)
		fits = may()
	}
	for _, g := range gone {
		c.Room.Put(g.V.In.Request, node)
	}
	return gone, fits
}

// tenants are models of several priorities whose replicas fill a small cluster, with quotas, and
// who of them may give way.
func tenants(random *rand.Rand) (models []*limit.Model, c *preempt.Clearing) {
	room := &placement.Cluster{Nodes: append(nodes(1+random.IntN(4), "A100", 8), nodes(1+random.IntN(4), "H100", 8)...)}
	for i := range 2 {
		room.Quotas = append(room.Quotas, placement.Quota{Namespace: fmt.Sprint("ns-", i), Name: "q", Resource: "requests.nvidia.com/gpu", Hard: 40, Left: 40})
	}
	var requests []*placement.Request
	for range 6 {
		q := request([]capacity.Accelerator{"A100", "H100"}[random.IntN(2)], 1<<random.IntN(4))
		if i := random.IntN(4); i < len(room.Quotas) {
			q.Charges = []placement.Amount{{Index: i, Count: int64(q.Shape.Devices)}}
		}
		requests = append(requests, q)
	}
	givers := make([][]preempt.Giver, len(room.Nodes))
	for i := range 2 + random.IntN(6) {
		m := modelOf(func(it *limit.Model) {
			it.In, it.Promise = &Model{ID: fmt.Sprint("m", i)}, Promise{Priority: 1 + random.IntN(3)}
		})
		m.Demand.Now = capacity.Rate(random.IntN(40))
		for j := range 1 + random.IntN(3) {
			v := variantOf(func(it *limit.Variant) {
				it.In, it.Priority = &Variant{Name: fmt.Sprint(m.In.ID, "-", j), Request: requests[random.IntN(len(requests))], Numbered: random.IntN(3) == 0}, m.Promise.Priority
			})
			v.Rate, v.Price = rate.Rate{Trigger: 2.5, Max: 2.5}, capacity.Cost(1+random.IntN(5))
			v.Policy.Min = random.IntN(3)
			for n := range random.IntN(8) {
				node, ok := room.Place(v.In.Request)
				if !ok {
					break
				}
				v.Target++
				number := -1
				if v.In.Numbered {
					number = n
				}
				if random.IntN(8) > 0 {
					givers[node] = append(givers[node], preempt.Giver{M: m, V: v, Name: fmt.Sprint(v.In.Name, "-", n), Number: number})
				}
			}
			v.In.Current = v.Target
			v.Target += random.IntN(2)
			m.Variants = append(m.Variants, v)
			m.Stack()
		}
		models = append(models, m)
	}
	for i := range room.Quotas {
		room.Quotas[i].Left = int64(random.IntN(10))
	}
	for _, list := range givers {
		slices.SortStableFunc(list, func(a, b preempt.Giver) int {
			return cmp.Or(cmp.Compare(b.V.Priority, a.V.Priority), cmp.Compare(b.V.UnitPrice(), a.V.UnitPrice()), cmp.Compare(b.Number, a.Number))
		})
	}
	return models, preempt.NewClearing(room, givers, allocate.Answer{Giving: map[*limit.Variant][]string{}}, epoch)
}

// What is remembered of the nodes is what looking at all of them each time finds, whoever asks
// for whatever, and whatever was given before.
func TestRoomIsFoundWhereLookingEverywhereFindsIt(t *testing.T) {
	made, passed := 0, 0
	for seed := range uint64(2 * cases()) {
		random := rand.New(rand.NewPCG(61, seed))
		models, c := tenants(random)
		names := func(list []preempt.Giver) (all []string) {
			for _, g := range list {
				all = append(all, g.Name)
			}
			return all
		}
		for step := range 40 {
			m := models[random.IntN(len(models))]
			v := m.Variants[random.IntN(len(m.Variants))]
			equals := random.IntN(3) == 0
			want, at := slowFind(c, m, v, equals)
			gone, found := c.Find(m, v, equals)
			require.Equal(t, at, found, "seed %d, step %d", seed, step)
			require.Equal(t, names(want), names(gone), "seed %d, step %d", seed, step)
			if random.IntN(2) == 0 {
				assert.Equal(t, at >= 0, c.Make(m, v, equals, random.IntN(2) == 0))
				if at >= 0 {
					made += len(gone)
				}
			}
			if at < 0 {
				passed++
			}
		}
		require.True(t, c.Left > 0 || len(c.Nodes) == 0)
	}
	assert.Greater(t, made, cases())
	assert.Greater(t, passed, cases())
}

// A round ends although each of many models asks for what nobody else does.
func TestLookingForRoomHasABound(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(62, seed))
		models, c := tenants(random)
		if len(c.Nodes) == 0 {
			continue
		}
		most := c.Left
		for i := range 100 * preempt.LooksPerReplica {
			m := models[random.IntN(len(models))]
			v := *m.Variants[random.IntN(len(m.Variants))]
			in, q := *v.In, *v.In.Request
			q.Shape.MilliCPU = int64(1 + i)
			in.Request, v.In = &q, &in
			c.Find(m, &v, random.IntN(2) == 0)
		}
		assert.LessOrEqual(t, c.Left, 0)
		assert.Greater(t, c.Left, -most, "more than one look at everything over the bound")
		_, at := c.Find(models[0], models[0].Variants[0], true)
		assert.Equal(t, -1, at)
	}
}
