package decision

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// ways are the ways in which a model is decided on.
var ways = []string{"saturation", "given", "learned"}

// oddFleet is a fleet of n replicas that is decided on in one of these ways, with a load that swings
// until it is known what a replica does, and is a share of what they serve from then on.
func oddFleet(n int, way string, share float64) (*fluid, *vessel) {
	web := vesselOf("web", n)
	policy := DefaultPolicy()
	if way != "saturation" {
		policy = hybrid(policy, capacity.SLO{TTFT: 5000, ITL: 40})
	}
	web.unstated = way == "learned"
	m := &flow{id: "m", direct: true, variants: []*vessel{web}, arrivals: func(t time.Duration) float64 {
		if t < calm {
			share := 0.5 + 0.4*math.Sin(t.Minutes()/6)
			return share * float64(n) * allowed(plain)
		}
		return share * float64(n) * allowed(plain)
	}}
	return newFluid(machines(20), policy, m), web
}

// calm is how long such a load swings.
const calm = 50 * time.Minute

// healthy is how many of the replicas that serve are like the others.
func (v *vessel) healthy() int {
	return v.count(func(p *vat) bool { return p.ready && p.pace == 0 && !p.hollow })
}

// One replica of a fleet that takes several times as long as the others is counted at what it does, and
// teaches nothing of them, however requests are spread: no more than one is asked for in its place.
func TestASlowReplicaIsNoMeasureOfTheOthers(t *testing.T) {
	for _, way := range ways {
		for _, evenly := range []bool{false, true} {
			for n, factors := range map[int][]float64{2: {2, 3, 5}, 4: {2, 3, 4, 5}, 10: {3, 5}, 20: {2, 5}} {
				if !thorough && n > 4 {
					factors = factors[len(factors)-1:]
				}
				for _, factor := range factors {
					t.Run(fmt.Sprintf("%s, evenly %v, 1 of %d, %v times", way, evenly, n, factor), func(t *testing.T) {
						f, web := oddFleet(n, way, 0.6)
						f.models[0].evenly = evenly
						f.run(calm + 30*time.Minute)
						before, writes := web.replicas, len(f.writes)
						slow, named := web.pods[0], false
						slow.pace = factor
						f.told = func(_ *Snapshot, p *Plan) {
							fact, is := p.Models[0].Variants[0].Fact(ReasonReplicaDiffers)
							named = named || is && assert.Contains(t, textOf(fact.Detail), slow.name+" takes about ")
						}
						for f.elapsed() < calm+90*time.Minute {
							f.step()
							require.LessOrEqual(t, web.replicas, before+1, "%v", f.writes[writes:])
							require.GreaterOrEqual(t, web.healthy(), before-1, "%v", f.writes[writes:])
						}
						assert.True(t, named)
						assert.LessOrEqual(t, len(f.writes)-writes, 2, "%v", f.writes[writes:])
					})
				}
			}
		}
	}
}

// A replica that answers whatever comes at once, with one token, takes all requests of a router that looks for
// the least busy one. The others stand idle, and none of them goes: it goes itself, once nobody needs
// as many.
func TestAReplicaThatSaysNothingTakesNoOther(t *testing.T) {
	for _, way := range ways {
		for _, evenly := range []bool{false, true} {
			for _, n := range []int{2, 4, 10} {
				t.Run(fmt.Sprintf("%s, evenly %v, 1 of %d", way, evenly, n), func(t *testing.T) {
					f, web := oddFleet(n, way, 0.6)
					f.models[0].evenly = evenly
					f.run(calm + 30*time.Minute)
					before, writes := web.replicas, len(f.writes)
					empty, named := web.pods[0], false
					empty.hollow = true
					f.told = func(_ *Snapshot, p *Plan) {
						fact, is := p.Models[0].Variants[0].Fact(ReasonReplicaDiffers)
						named = named || is && assert.Contains(t, textOf(fact.Detail), empty.name+" answers at once")
					}
					for f.elapsed() < calm+3*time.Hour {
						f.step()
						require.LessOrEqual(t, web.replicas, before+1, "%v", f.writes[writes:])
						require.GreaterOrEqual(t, web.healthy(), before-1, "%v", f.writes[writes:])
					}
					assert.True(t, named)
				})
			}
		}
	}
}

// Whoever gets no answer asks again, and a replica that answers at once counts that many times. It asks for
// no others: they serve each request once.
func TestWhatIsAskedAgainBuysNoOthers(t *testing.T) {
	for _, way := range ways {
		for _, gateway := range []bool{false, true} {
			for _, n := range []int{4, 6} {
				t.Run(fmt.Sprintf("%s, gateway %v, 1 of %d", way, gateway, n), func(t *testing.T) {
					f, web := oddFleet(n, way, 0.6)
					m := f.models[0]
					m.direct = !gateway
					f.run(calm + 30*time.Minute)
					before, writes := web.replicas, len(f.writes)
					empty, load := web.pods[0], m.arrivals
					seen := empty.done
					empty.hollow = true
					m.arrivals = func(t time.Duration) float64 {
						unanswered := empty.done - seen
						seen = empty.done
						return load(t) + 0.95*unanswered
					}
					for f.elapsed() < calm+2*time.Hour {
						f.step()
						require.LessOrEqual(t, web.replicas, 2*before, "%v", f.writes[writes:])
						require.GreaterOrEqual(t, web.healthy(), before-1, "%v", f.writes[writes:])
					}
				})
			}
		}
	}
}

// Whichever replicas of a fleet become odd, and how: what is asked for is never more than the healthy ones
// need for all of the load, with the odd ones beside them, and those that are healthy go on to suffice.
func TestOddReplicasAtRandom(t *testing.T) {
	seeds := uint64(16)
	if thorough {
		seeds = 80
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 12))
		n, way, share := 3+random.IntN(10), ways[random.IntN(len(ways))], 0.3+0.5*random.Float64()
		f, web := oddFleet(n, way, share)
		f.models[0].evenly = random.IntN(2) == 0
		f.run(calm + 30*time.Minute)
		before, writes, odds := web.replicas, len(f.writes), 0
		for range 1 + random.IntN(max(1, before/3)) {
			p := web.pods[random.IntN(len(web.pods))]
			if p.pace > 0 || p.hollow {
				continue
			}
			odds++
			if random.IntN(3) == 0 {
				p.hollow = true
			} else {
				p.pace = 1.6 + 4*random.Float64()
			}
		}
		what := fmt.Sprintf("seed %d: %s, evenly %v, %d of %d odd, load %.2f", seed, way, f.models[0].evenly, odds, before, share)
		for f.elapsed() < calm+2*time.Hour {
			f.step()
			require.LessOrEqual(t, web.replicas, before+odds+1, "%s: %v", what, f.writes[writes:])
			require.GreaterOrEqual(t, web.count(serves), before-odds, "%s: %v", what, f.writes[writes:])
		}
		load := f.models[0].arrivals(f.elapsed())
		does := 0.0
		for _, p := range web.pods {
			if own := web.of(p); p.ready && !p.hollow {
				does += float64(most(own))
			}
		}
		assert.GreaterOrEqual(t, does, load, "%s: %v", what, f.writes[writes:])
	}
}
