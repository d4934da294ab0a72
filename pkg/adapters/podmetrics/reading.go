package podmetrics

import (
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
)

// sampleAt makes a sample of what a view found.
func sampleAt(at time.Time) func(value float64, ok bool) decision.Sample {
	return func(value float64, ok bool) decision.Sample {
		if !ok {
			return decision.Sample{}
		}
		return modelserver.Known(value, at)
	}
}

// replica is a pod as its history shows it; it reports false when nothing is known.
// failed says that the last scrape brought nothing: then what arrived since the one
// before is unknown.
func (v view) replica(name string, failed bool) (decision.Replica, bool) {
	run, wait, completed := of(modelserver.Running), of(modelserver.Waiting), of(modelserver.Completed)
	_, between := v.seen(run)
	seen := v.told()
	service := sampleAt(seen.Service())
	r := decision.Replica{
		Name:      name,
		KVUse:     sampleAt(seen.KVUse)(v.within(of(modelserver.KVUse), mean, largest)),
		Waiting:   sampleAt(seen.Waiting)(v.within(wait, mean, sumOf)),
		Running:   sampleAt(seen.Running)(v.within(run, mean, sumOf)),
		Served:    service(v.sum(completed, rate)),
		InService: service(v.ratio(modelserver.InService)),
		Input:     service(v.ratio(modelserver.Prompt)),
		Output:    service(v.ratio(modelserver.Generation)),
		TTFT:      service(v.ratio(modelserver.FirstToken)),
		ITL:       service(v.ratio(modelserver.InterToken)),
		KVTokens:  sampleAt(seen.Any())(v.within(of(modelserver.CacheTokens), last, sumOf)),
	}
	if blocks := sampleAt(seen.Any())(v.total(of(modelserver.CacheBlocks), v.lookback, last, sumOf)); blocks.Present {
		r.KVTokens = blocks
	}
	if !v.any(completed, resets, positive) {
		r.InFlightGrowth = sampleAt(seen.InFlight())(v.added(run, wait, slope))
	}
	if !failed && !v.any(completed, change, negative) {
		flow := sampleAt(seen.Flow())
		r.Recent, r.RecentSpan = modelserver.Recent(flow(v.sum(completed, latest)), flow(v.added(run, wait, change)), between, seen.Flow())
	}
	return r, r != decision.Replica{Name: name}
}

// told is when the server last told what. A counter tells nothing before the window.
func (v view) told() modelserver.Seen {
	at := func(q modelserver.Quantity, s span) time.Time {
		v.lookback = s
		newest, _ := v.seen(of(q))
		return newest
	}
	return modelserver.Seen{
		KVUse: at(modelserver.KVUse, v.lookback), Waiting: at(modelserver.Waiting, v.lookback),
		Running: at(modelserver.Running, v.lookback), Completed: at(modelserver.Completed, v.window),
	}
}

func positive(x float64) bool { return x > 0 }

func negative(x float64) bool { return x < 0 }

// models are those that a gateway's last good scrape names.
func (v view) models() map[decision.ModelKey]bool {
	all := map[decision.ModelKey]bool{}
	for at, those := range v.series {
		for _, x := range those {
			if x.points[len(x.points)-1].at == v.newest {
				all[at.model] = true
			}
		}
	}
	return all
}

// aged finds out since when a gateway counts at all.
func (v view) aged() view {
	v.older, v.twice = map[int]bool{}, map[int]bool{}
	for at, those := range v.series {
		if at.quantity != modelserver.GatewayDispatched {
			continue
		}
		for _, x := range those {
			v.older[x.key.name] = v.older[x.key.name] || x.points[0].at <= v.window.from
			v.twice[x.key.name] = v.twice[x.key.name] || len(x.points.in(v.window)) > 1
		}
	}
	return v
}

// dispatched is the rate of what a gateway sent on. A gateway that counts by replica
// has a new series for each new one, whose first value no rate sees: at the very time
// when the queue empties into it. What such a series shows was all sent within the
// window, if the gateway itself was seen before it.
func (v view) dispatched(c choice) (float64, bool) {
	for name := range names[c.quantity] {
		fresh := func(p points, s span) (float64, bool) {
			inside := p.in(s)
			if len(inside) > 0 && p[0].at > s.from && v.older[name] {
				return inside[len(inside)-1].value / s.seconds(), true
			}
			return rate(inside, s)
		}
		if total, ok := v.whole(c, name, v.window, fresh, sumOf); ok {
			return total, true
		}
	}
	return 0, false
}

// born is what the series show that the scrape before did not have, of a gateway that
// it did have.
func (v view) born(c choice) (float64, bool) {
	for name := range names[c.quantity] {
		fresh := func(p points, _ span) (float64, bool) {
			if len(p) != 1 || p[0].at != v.newest || !v.twice[name] {
				return 0, false
			}
			return p[0].value, true
		}
		if total, ok := v.named(c, name, v.window, fresh, sumOf); ok {
			return total, true
		}
	}
	return 0, false
}

// gateway is what one address of a gateway shows of a model.
func (v view) gateway(key decision.ModelKey) modelserver.Gateway {
	queue := choice{shelf: shelf{modelserver.GatewayQueue, key}}
	sent := choice{shelf: shelf{modelserver.GatewayDispatched, key}}
	at, between := v.seen(queue, sent)
	sample := sampleAt(at)
	length, queued := v.total(queue, span{v.newest - 1, v.newest}, last, sumOf)
	g := modelserver.Gateway{
		Time: at, Queued: queued, Queue: sample(length, queued), Span: between,
		Dispatched: sample(v.dispatched(sent)), Born: sample(v.born(sent)), Change: sample(v.sum(queue, change)),
	}
	// One that started anew lost its queue: those requests neither left nor wait.
	if !v.any(sent, resets, positive) {
		g.Growth = sample(v.sum(queue, slope))
	}
	if !v.any(sent, change, negative) {
		g.Latest = sample(v.sum(sent, latest))
	}
	return g
}
