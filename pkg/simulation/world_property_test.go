package simulation_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// script is a world and what is done to it.
type script struct {
	options simulation.WorldOptions
	acts    []act
}

// act is an arrival, or where replicas is not negative a change of scale, or a time
// that merely passes.
type act struct {
	arrival  simulation.Arrival
	scale    simulation.VariantIndex
	replicas int
	victims  int
	idle     bool
}

// draw makes a random script of two models with two variants each.
func draw(seed uint64) script {
	random := rand.New(rand.NewPCG(seed, 7))
	o := simulation.WorldOptions{
		Startup: simulation.Startup{
			Mean: time.Duration(random.IntN(3)) * 5 * s, Variation: float64(random.IntN(2)) * random.Float64(),
		},
		Drain: time.Duration(random.IntN(4)) * 500 * ms,
		Seed:  seed,
	}
	free := make([]int, 2+random.IntN(4))
	for i := range free {
		free[i] = random.IntN(9)
	}
	o.Cluster = nodes(free...)
	for m := range 2 {
		model := simulation.ServedModel{ID: fmt.Sprintf("model-%d", m), SLO: promised()}
		for v := range 2 {
			model.Variants = append(model.Variants, simulation.ServedVariant{
				Name: fmt.Sprintf("m%d-v%d", m, v),
				Profile: serving.Profile{
					Base: 5 + capacity.Milliseconds(20*random.Float64()), PerRequest: 0.1, PerResidentToken: 0.0001, PerPrefillToken: 0.05,
					BatchLimit: random.IntN(20), KVTokens: capacity.Tokens(random.IntN(2) * (600 + random.IntN(3000))),
				},
				TokenBudget: 128 + random.IntN(1000), Request: of(1 << random.IntN(4)),
				Weight: float64(random.IntN(3)), Max: random.IntN(12) - 1, Initial: random.IntN(3),
			})
		}
		o.Models = append(o.Models, model)
	}
	sc := script{options: o}
	var now time.Duration
	for range 400 {
		// Many things happen at the same time, and with the ends of iterations.
		now += time.Duration(random.IntN(5)) * time.Duration(random.IntN(50)) * ms
		a := act{replicas: -1}
		a.arrival.Arrival = now
		switch random.IntN(12) {
		case 0:
			a.scale = simulation.VariantIndex{Model: random.IntN(2), Variant: random.IntN(2)}
			a.replicas, a.victims = random.IntN(5), random.IntN(3)
		case 1:
			a.idle = true
		default:
			a.arrival.Model, a.arrival.Input, a.arrival.Output = random.IntN(2), 1+random.IntN(600), 1+random.IntN(150)
		}
		sc.acts = append(sc.acts, a)
	}
	return sc
}

// drawOutages is such a script at a slower pace, in which things happen to the nodes.
func drawOutages(seed uint64) script {
	sc, random := draw(seed), rand.New(rand.NewPCG(seed, 11))
	for i := range sc.acts {
		sc.acts[i].arrival.Arrival *= 20
	}
	end := int64(sc.acts[len(sc.acts)-1].arrival.Arrival)
	for range 30 {
		sc.options.Events = append(sc.options.Events, simulation.NodeEvent{
			At: time.Duration(random.Int64N(end)), Node: random.IntN(len(sc.options.Cluster.Nodes)),
			Kind: simulation.NodeEventKind(1 + random.IntN(5)), Notice: time.Duration(random.IntN(3)) * s,
		})
	}
	return sc
}

// play plays a script; look is called between the acts.
func (sc script) play(t *testing.T, look func(*watched)) *watched {
	t.Helper()
	w := &watched{}
	o := sc.options
	clock := time.Duration(0)
	o.Done = func(d simulation.Outcome) {
		w.done = append(w.done, d)
		if !d.Failed {
			hold(t, d.Finished >= clock && d.Arrived <= d.FirstToken && d.FirstToken <= d.Finished, "outcomes come in order of time: %+v at %v", d, clock)
			clock = d.Finished
		}
	}
	o.Moved = func(m simulation.Move) {
		w.moves = append(w.moves, m)
		hold(t, m.At >= clock, "moves come in order of time: %+v at %v", m, clock)
		clock = m.At
	}
	var err error
	w.World, err = simulation.NewWorld(o)
	require.NoError(t, err)
	for _, a := range sc.acts {
		switch {
		case a.idle:
			w.Advance(a.arrival.Arrival)
		case a.replicas >= 0:
			w.Advance(a.arrival.Arrival)
			var victims []string
			for i, r := range w.Replicas(a.scale) {
				if i < a.victims {
					victims = append(victims, r.Name)
				}
			}
			w.Scale(a.scale, a.replicas, victims)
		default:
			require.NoError(t, w.Arrive(a.arrival))
		}
		look(w)
	}
	w.Finish(5 * time.Minute)
	look(w)
	return w
}

// hold is for what is checked very often: it only speaks when it fails.
func hold(t *testing.T, ok bool, format string, args ...any) {
	t.Helper()
	if !ok {
		assert.Fail(t, fmt.Sprintf(format, args...))
	}
}

// Every request ends once, and nodes hold what the replicas say.
func TestNothingIsLost(t *testing.T) {
	var failed, served, waited int
	for seed := range uint64(90) {
		sc := draw(seed)
		if seed >= 50 {
			sc = drawOutages(seed)
		}
		w := sc.play(t, func(w *watched) { checkNodes(t, sc, w) })

		arrived := map[string]int{}
		for _, a := range sc.acts {
			if a.replicas < 0 && !a.idle {
				arrived[fmt.Sprint(a.arrival.Model, a.arrival.Arrival, a.arrival.Input, a.arrival.Output)]++
			}
		}
		for _, d := range w.done {
			arrived[fmt.Sprint(d.Model, d.Arrived, d.Input, d.Output)]--
			if d.Failed {
				failed++
			} else {
				served++
			}
		}
		for request, left := range arrived {
			hold(t, left == 0, "seed %d: request %s ended %d times too few", seed, request, left)
		}
		waited += checkMoves(t, sc, w)
	}
	assert.Greater(t, failed, 100, "the scripts see failures")
	assert.Greater(t, served, 1000)
	assert.Greater(t, waited, 100, "and replicas that no node has room for at first")
}

// checkNodes compares what nodes hold with what replicas say, and counts.
func checkNodes(t *testing.T, sc script, w *watched) {
	t.Helper()
	held := make([]int, len(w.Cluster().Nodes))
	unplaced := 0
	for m, model := range sc.options.Models {
		serving := 0
		for v := range model.Variants {
			index := simulation.VariantIndex{Model: m, Variant: v}
			active := 0
			for _, r := range w.Replicas(index) {
				if r.Stage != simulation.Leaving {
					active++
				}
				if r.Answers() {
					serving++
				}
				hold(t, r.Stage != simulation.NotReady || r.Silent && r.Metrics == simulation.Metrics{}, "what is not ready does not answer: %+v", r)
				hold(t, (r.Node < 0) == (r.Stage == simulation.Created), "a node holds a replica from Placed on: %+v", r)
				if r.Node < 0 {
					unplaced++
					hold(t, !fits(w, &model.Variants[v]), "none waits while a node has room")
					continue
				}
				held[r.Node] += model.Variants[v].Request.Shape.Devices
			}
			hold(t, active == w.Wanted(index), "%d replicas are there and %d wanted", active, w.Wanted(index))
		}
		hold(t, serving == 0 || w.Gateway(m).Queue == 0, "no request waits while a replica serves")
	}
	hold(t, unplaced == w.Unplaced(), "%d replicas have no node; the world says %d", unplaced, w.Unplaced())
	for i, n := range w.Cluster().Nodes {
		if n.Out == simulation.OutGone {
			hold(t, n.Free == placement.Resources{} && n.Allocatable == placement.Resources{} && held[i] == 0, "node %d is not there: %+v", i, n)
			continue
		}
		hold(t, n.Free.Devices >= 0 && n.Free.Devices+held[i] == sc.options.Cluster.Nodes[i].Free.Devices,
			"node %d holds %d devices and has %d free", i, held[i], n.Free.Devices)
	}
}

func fits(w *watched, v *simulation.ServedVariant) bool {
	slots, err := w.Cluster().Slots(v.Request)
	return err != nil || slots > 0
}

// checkMoves checks that every replica goes through its stages in order, and counts
// those that waited for a node.
func checkMoves(t *testing.T, sc script, w *watched) (waited int) {
	t.Helper()
	type life struct {
		stage   simulation.Stage
		created time.Duration
		left    time.Duration
	}
	lives := map[string]life{}
	for _, m := range w.moves {
		l := lives[m.Replica]
		switch m.Stage {
		case simulation.Created:
			l.created = m.At
		case simulation.Placed:
			if m.At > l.created {
				waited++
			}
		case simulation.Leaving:
			l.left = m.At
		case simulation.Gone:
			hold(t, l.stage != simulation.Leaving || m.At-l.left <= sc.options.Drain, "%s drained too long", m.Replica)
		case simulation.Serving, simulation.NotReady:
		}
		down := len(sc.options.Events) > 0 && l.stage > 0 && (m.Stage == simulation.Gone ||
			m.Stage == simulation.NotReady && l.stage == simulation.Serving ||
			m.Stage == simulation.Placed && l.stage != simulation.Created && l.stage != simulation.Leaving)
		hold(t, m.Stage == l.stage+1 || m.Stage == simulation.Gone && l.stage < simulation.Serving && l.stage > 0 || down,
			"%s goes from stage %d to %d", m.Replica, l.stage, m.Stage)
		l.stage = m.Stage
		lives[m.Replica] = l
	}
	return waited
}

// The same seed gives the same bytes, however often somebody looks: that engines are
// only asked when it matters changes nothing.
func TestLookingChangesNothing(t *testing.T) {
	told := func(w *watched) string {
		bytes, err := json.Marshal([]any{w.done, w.moves})
		require.NoError(t, err)
		return string(bytes)
	}
	for seed := range uint64(25) {
		sc := draw(seed)
		if seed >= 15 {
			sc = drawOutages(seed)
		}
		first := told(sc.play(t, func(*watched) {}))
		assert.Equal(t, first, told(sc.play(t, func(*watched) {})), "seed %d", seed)

		random := rand.New(rand.NewPCG(seed, 8))
		often, step := script{options: sc.options}, int64(20*ms)
		if len(sc.options.Events) > 0 {
			step *= 20
		}
		for i, a := range sc.acts {
			often.acts = append(often.acts, a)
			if i+1 < len(sc.acts) {
				for at, end := a.arrival.Arrival, sc.acts[i+1].arrival.Arrival; at < end; at += 1 + time.Duration(random.Int64N(step)) {
					pass := act{replicas: -1, idle: true}
					pass.arrival.Arrival = at
					often.acts = append(often.acts, pass)
				}
			}
		}
		look := func(w *watched) {
			for _, r := range w.Replicas(second(random.IntN(2))) {
				hold(t, r.Metrics.Running >= 0, "a look at the metrics")
			}
		}
		assert.Equal(t, first, told(often.play(t, look)), "seed %d", seed)
	}
}

// bare is a replica of the reference: an engine that is asked about everything at
// every arrival.
type bare struct {
	engine   *simulation.Engine
	weight   float64
	inFlight int
	slo      capacity.SLO
	sums     simulation.Metrics
}

// follow brings the engine to a time.
func (b *bare) follow(now time.Duration, ended func(simulation.Event)) {
	for _, e := range b.engine.Advance(now) {
		switch e.Kind {
		case simulation.FirstToken:
			b.sums.FirstTokens++
			b.sums.Prefilling -= e.Request.Input
			b.sums.FirstToken += e.At - e.Times.Arrived
		case simulation.Resumed:
			b.sums.Tokens++
			b.sums.BetweenTokens += e.Gap
		case simulation.Finished:
			b.inFlight--
			b.sums.Finished++
			b.sums.Input += uint64(e.Request.Input)
			b.sums.Output += uint64(e.Request.Output)
			b.sums.InService += e.At - e.Times.Started
			first, further := e.Times.FirstToken-e.Times.Arrived, e.At-e.Times.FirstToken
			late := first.Seconds() > float64(b.slo.TTFT)/1000
			slow := e.Request.Output > 1 && further.Seconds()/float64(e.Request.Output-1) > float64(b.slo.ITL)/1000
			if late || slow {
				b.sums.Missed++
			}
			ended(e)
		}
	}
	state := b.engine.State()
	b.sums.Running, b.sums.Waiting = state.Running, state.Waiting
	b.sums.KVUsed, b.sums.KVCapacity = state.KVUsed, state.KVCapacity
}

// A world of replicas that always serve gives what bare engines give to which somebody
// hands each request by the rule; with one replica, what that engine gives.
func TestAgreesWithBareEngines(t *testing.T) {
	missed, finished := uint64(0), uint64(0)
	for seed := range uint64(15) {
		random := rand.New(rand.NewPCG(seed, 9))
		variants := 1 + random.IntN(2)
		var served []simulation.ServedVariant
		var engines []*bare
		for v := range variants {
			profile := serving.Profile{
				Base: 5 + capacity.Milliseconds(v), PerRequest: 0.1, PerResidentToken: 0.0001, PerPrefillToken: 0.05,
				BatchLimit: random.IntN(20), KVTokens: capacity.Tokens(random.IntN(2) * (1000 + random.IntN(3000))),
			}
			initial := 1 + int(seed%2)*random.IntN(4)
			served = append(served, simulation.ServedVariant{
				Name: fmt.Sprint("v", v), Profile: profile, Request: &placement.Request{}, Weight: float64(1 + v), Max: -1, Initial: initial,
			})
			for range initial {
				b := &bare{slo: promised(), weight: float64(1 + v)}
				b.engine = newEngine(t, simulation.Options{Profile: profile, Watch: func(i simulation.Iteration) {
					b.sums.Tokens += uint64(i.Decoding)
					b.sums.BetweenTokens += time.Duration(i.Decoding) * (i.End - i.Start)
				}})
				engines = append(engines, b)
			}
		}
		w := world(t, simulation.WorldOptions{}, served...)
		var want []simulation.Outcome
		var arrivals []time.Duration
		ended := func(e simulation.Event) {
			want = append(want, simulation.Outcome{
				Arrived: arrivals[e.Request.ID], FirstToken: e.Times.FirstToken, Finished: e.At,
				Input: e.Request.Input, Output: e.Request.Output,
			})
		}
		var now time.Duration
		for range 500 {
			now += time.Duration(random.IntN(4)) * 5 * ms
			input, output := 1+random.IntN(600), 1+random.IntN(150)
			best := engines[0]
			for _, b := range engines {
				b.follow(now, ended)
				if float64(b.inFlight)/b.weight < float64(best.inFlight)/best.weight {
					best = b
				}
			}
			require.NoError(t, best.engine.Submit(now, simulation.Request{ID: uint64(len(arrivals)), Input: input, Output: output}))
			arrivals = append(arrivals, now)
			best.inFlight++
			best.sums.Prefilling += input
			w.arrive(t, now, input, output)
			checkMetrics(t, w, variants, engines, now)
		}
		w.Finish(time.Hour)
		for _, b := range engines {
			b.follow(now+time.Hour, ended)
		}
		got := w.done
		for i := range got {
			got[i].Variant = 0
		}
		assert.ElementsMatch(t, want, got, "seed %d", seed)
		if len(engines) == 1 {
			assert.Equal(t, want, got, "seed %d: one engine has an order", seed)
		}
		checkMetrics(t, w, variants, engines, now+time.Hour)
		for _, b := range engines {
			missed, finished = missed+b.sums.Missed, finished+b.sums.Finished
		}
	}
	assert.Positive(t, missed)
	assert.Less(t, missed, finished, "both are tested, missed promises and kept ones")
}

func checkMetrics(t *testing.T, w *watched, variants int, engines []*bare, now time.Duration) {
	t.Helper()
	at := 0
	for v := range variants {
		for _, r := range w.Replicas(second(v)) {
			b := engines[at]
			at++
			state := b.engine.State()
			b.sums.Running, b.sums.Waiting = state.Running, state.Waiting
			hold(t, r.Metrics == b.sums, "metrics of %s at %v: %+v; expected %+v", r.Name, now, r.Metrics, b.sums)
		}
	}
	hold(t, at == len(engines), "%d replicas", at)
}

func TestNothingIsAllocatedForARequest(t *testing.T) {
	_, next := busy(t, 4, 10)
	for range 5000 {
		next()
	}
	assert.Zero(t, testing.AllocsPerRun(5000, next))
}
