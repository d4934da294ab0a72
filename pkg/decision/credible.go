package decision

import "slices"

// unseenTimes is how many times as much as its replicas show a model's gateway may count: it may be
// read a little before they are. It is also how many times as fast as its tokens tell a replica may
// serve: several tokens may come at once, and the time is that between two times.
const unseenTimes = 4

// disbelieve leaves out counts and lengths that cannot be. A server that shows zeros once, as while its page is
// not made yet, or because another one answers for it, seems to have done within a metrics window
// what it did in all its life: a counter that falls is taken to have begun anew from zero.
func (r *round) disbelieve(m *model) {
	inFlight := r.mostInFlight(m)
	for _, v := range m.variants {
		wrong := func(p Replica) bool { return r.cannot(&p, inFlight) || r.tooLong(&p) }
		if !slices.ContainsFunc(v.in.Replicas, wrong) {
			continue
		}
		found := *v.in
		found.Replicas = slices.Clone(found.Replicas)
		for i := range found.Replicas {
			p := &found.Replicas[i]
			if r.cannot(p, inFlight) {
				p.Served, p.Recent, p.InFlightGrowth = Sample{}, Sample{}, Sample{}
			}
			if r.tooLong(p) {
				p.Input, p.Output = Sample{}, Sample{}
			}
		}
		v.in = &found
	}
}

// mostInFlight is the most requests that the model's replicas had lately.
func (r *round) mostInFlight(m *model) float64 {
	most := r.inFlight(m)
	for _, o := range m.old.Seen {
		most = max(most, o.InFlight)
	}
	return most
}

// cannot reports whether the replica did not complete as much as is said.
func (r *round) cannot(p *Replica, inFlight float64) bool {
	most, known := r.atMost(p, inFlight)
	return known && r.usable(p.Served) && p.Served.Value > most
}

// atMost is the most that the replica can have completed, in requests per second. By Little's law
// it completes what it has over the time that this takes, where a request more may be overlooked;
// beside that, what it had when the window began, which is no more than the model has.
func (r *round) atMost(p *Replica, inFlight float64) (most float64, known bool) {
	has, stay := r.stay(p)
	if stay == 0 {
		return 0, false
	}
	return ((1+settledWithin)*has+1)/stay + inFlight/r.window(p).Seconds(), true
}

// tooLong reports whether the replica's requests are not as long as is said: prompts do not fit its
// cache, or answers its time in service.
func (r *round) tooLong(p *Replica) bool {
	if r.usable(p.Input) && r.usable(p.KVTokens) && p.KVTokens.Value > 0 && p.Input.Value > p.KVTokens.Value {
		return true
	}
	return r.usable(p.Output) && r.usable(p.InService) && r.usable(p.ITL) && p.ITL.Value > 0 && p.InService.Value > 0 &&
		p.Output.Value > unseenTimes*(p.InService.Value/p.ITL.Value+1)
}

// stay is for how many seconds a request is at the replica at least, and how many requests are, both
// without those that wait where its time in service is shown. Else its tokens tell the time. It is 0
// where nothing tells it.
func (r *round) stay(p *Replica) (requests, seconds float64) {
	switch {
	case !r.usable(p.Running):
	case r.usable(p.InService) && p.InService.Value > 0:
		return p.Running.Value, p.InService.Value
	case r.usable(p.Waiting) && r.usable(p.TTFT) && r.usable(p.ITL) && r.usable(p.Output):
		return p.Running.Value + p.Waiting.Value, (p.TTFT.Value + max(0, p.Output.Value-1)*p.ITL.Value) / unseenTimes
	}
	return 0, 0
}

// disbelieveGateway leaves out a gateway's count of which the replicas can have done next to
// nothing, and no queue shows, where all of them are heard and none refuses any, being full: they
// tell then what arrives.
func (r *round) disbelieveGateway(m *model) {
	if !r.usable(m.in.Queue) || !r.usable(m.in.Arrival) || m.load.saturated > 0 {
		return
	}
	inFlight, done, heard := r.mostInFlight(m), 0.0, 0
	for _, v := range m.variants {
		for i := range v.in.Replicas {
			p := &v.in.Replicas[i]
			most, known := r.atMost(p, inFlight)
			if r.usable(p.Served) && (!known || p.Served.Value <= most) {
				most, known = p.Served.Value, true
			}
			if known {
				done, heard = done+most, heard+1
			}
		}
	}
	window := r.windowOf(m).Seconds()
	if heard == 0 || heard < m.ready() || m.in.Arrival.Value*window <= unseenTimes*(done*window+inFlight+m.in.Queue.Value+1) {
		return
	}
	found := *m.in
	found.Arrival, found.Recent = Sample{}, Sample{}
	m.in = &found
}
