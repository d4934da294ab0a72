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
)

// slowFind is find by looking at all givers on all nodes each time.
func slowFind(c *clearing, m *model, v *variant, equals bool) (best []giver, at int) {
	at = -1
	for node := range c.givers {
		if len(c.givers[node]) == 0 {
			continue
		}
		if gone, fits := slowFewest(c, m, v, node, equals); fits && (at < 0 || len(gone) < len(best)) {
			best, at = gone, node
		}
	}
	return best, at
}

func slowFewest(c *clearing, m *model, v *variant, node int, equals bool) (gone []giver, fits bool) {
	may := func() bool {
		allowed, _ := c.room.Allowed(v.in.Request)
		return allowed > 0 && c.room.Fits(v.in.Request, node)
	}
	fits = may()
	for _, g := range c.givers[node] {
		if fits {
			break
		}
		given, givenOf, lost := 0, 0, capacity.Rate(0)
		for _, o := range gone {
			if o.v == g.v {
				given++
			}
			if o.m == g.m {
				givenOf, lost = givenOf+1, lost+o.v.rate.serves()
			}
		}
		less := g.v.priority > m.promise.Priority ||
			equals && g.v.priority == m.promise.Priority && g.m != m && m.has(v.rate.serves()) <= g.m.has(-lost-g.v.rate.serves()-g.m.served((*variant).comes))
		if !less || !g.goes(g.v.present()-given) || g.v.present()-given <= g.v.policy.Min || g.m.count((*variant).present)-givenOf <= 1 || slices.Contains(c.found.giving[g.v], g.name) {
			continue
		}
		c.room.Remove(g.v.in.Request, node)
		gone = append(gone, g)
		fits = may()
	}
	for _, g := range gone {
		c.room.Put(g.v.in.Request, node)
	}
	return gone, fits
}

// tenants are models of several priorities whose replicas fill a small cluster, with quotas, and
// who of them may give way.
func tenants(random *rand.Rand) (models []*model, c *clearing) {
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
	givers := make([][]giver, len(room.Nodes))
	for i := range 2 + random.IntN(6) {
		m := modelOf(model{in: &Model{ID: fmt.Sprint("m", i)}, promise: Promise{Priority: 1 + random.IntN(3)}})
		m.demand.now = capacity.Rate(random.IntN(40))
		for j := range 1 + random.IntN(3) {
			v := variantOf(variant{in: &Variant{Name: fmt.Sprint(m.in.ID, "-", j), Request: requests[random.IntN(len(requests))], Numbered: random.IntN(3) == 0}, priority: m.promise.Priority})
			v.rate, v.price = rate{trigger: 2.5, max: 2.5}, capacity.Cost(1+random.IntN(5))
			v.policy.Min = random.IntN(3)
			for n := range random.IntN(8) {
				node, ok := room.Place(v.in.Request)
				if !ok {
					break
				}
				v.target++
				number := -1
				if v.in.Numbered {
					number = n
				}
				if random.IntN(8) > 0 {
					givers[node] = append(givers[node], giver{m: m, v: v, name: fmt.Sprint(v.in.Name, "-", n), number: number})
				}
			}
			v.in.Current = v.target
			v.target += random.IntN(2)
			m.variants = append(m.variants, v)
		}
		models = append(models, m)
	}
	for i := range room.Quotas {
		room.Quotas[i].Left = int64(random.IntN(10))
	}
	for _, list := range givers {
		slices.SortStableFunc(list, func(a, b giver) int {
			return cmp.Or(cmp.Compare(b.v.priority, a.v.priority), cmp.Compare(b.v.unitPrice(), a.v.unitPrice()), cmp.Compare(b.number, a.number))
		})
	}
	return models, newClearing(room, givers, answer{giving: map[*variant][]string{}}, epoch)
}

// What is remembered of the nodes is what looking at all of them each time finds, whoever asks
// for whatever, and whatever was given before.
func TestRoomIsFoundWhereLookingEverywhereFindsIt(t *testing.T) {
	made, passed := 0, 0
	for seed := range uint64(2 * cases()) {
		random := rand.New(rand.NewPCG(61, seed))
		models, c := tenants(random)
		names := func(list []giver) (all []string) {
			for _, g := range list {
				all = append(all, g.name)
			}
			return all
		}
		for step := range 40 {
			m := models[random.IntN(len(models))]
			v := m.variants[random.IntN(len(m.variants))]
			equals := random.IntN(3) == 0
			want, at := slowFind(c, m, v, equals)
			gone, found := c.find(m, v, equals)
			require.Equal(t, at, found, "seed %d, step %d", seed, step)
			require.Equal(t, names(want), names(gone), "seed %d, step %d", seed, step)
			if random.IntN(2) == 0 {
				assert.Equal(t, at >= 0, c.make(m, v, equals, random.IntN(2) == 0))
				if at >= 0 {
					made += len(gone)
				}
			}
			if at < 0 {
				passed++
			}
		}
		require.True(t, c.left > 0 || len(c.nodes) == 0)
	}
	assert.Greater(t, made, cases())
	assert.Greater(t, passed, cases())
}

// A round ends although each of many models asks for what nobody else does.
func TestLookingForRoomHasABound(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(62, seed))
		models, c := tenants(random)
		if len(c.nodes) == 0 {
			continue
		}
		most := c.left
		for i := range 100 * looksPerReplica {
			m := models[random.IntN(len(models))]
			v := *m.variants[random.IntN(len(m.variants))]
			in, q := *v.in, *v.in.Request
			q.Shape.MilliCPU = int64(1 + i)
			in.Request, v.in = &q, &in
			c.find(m, &v, random.IntN(2) == 0)
		}
		assert.LessOrEqual(t, c.left, 0)
		assert.Greater(t, c.left, -most, "more than one look at everything over the bound")
		_, at := c.find(models[0], models[0].variants[0], true)
		assert.Equal(t, -1, at)
	}
}
