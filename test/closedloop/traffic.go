package closedloop

import (
	"hash/fnv"
	"math"
	"slices"
	"time"
)

// flow lets the requests of one step arrive and be served. It reports whether that
// changed how many are in flight anywhere.
func (w *world) flow(m *modelState) (moved bool) {
	now := w.now
	arriving := (m.rate(now-step) + m.rate(now)) / 2 * step.Seconds()
	if m.Clients > 0 {
		arriving = w.sent(m)
	} else if m.chance != nil {
		arriving = m.chance.arrivals(arriving, w.scenario.Together)
	}
	m.arrived += arriving
	arriving += m.held
	m.held = 0
	w.finish(m)
	serving := w.servers(m)
	if len(serving) == 0 {
		if m.Gateway {
			m.held = arriving
		} else {
			m.lost += arriving
		}
		m.giveUp(nil)
		m.watchQueues(now, nil)
		return m.held > 0
	}
	m.spread(serving, arriving)
	for i, s := range serving {
		before := s.pod.inFlight()
		if s.pod.hung {
			s.pod.waiting += m.shares[i]
		} else {
			m.judge(s, m.shares[i])
		}
		moved = moved || math.Abs(s.pod.inFlight()-before) > 1e-4*s.curve.limit
	}
	m.giveUp(serving)
	m.watchQueues(now, serving)
	return moved
}

// sent is what the clients of a model send in a step: those who have nothing in flight, and those
// who are answered.
func (w *world) sent(m *modelState) float64 {
	inFlight, answered := m.held, 0.0
	for _, v := range m.variants {
		for _, p := range v.pods {
			if inFlight += p.inFlight(); !p.hung {
				answered += w.truthOf(v, p.version*w.slowness(v)).curve.rateAt(p.running) * step.Seconds()
			}
		}
	}
	return max(0, m.Clients*m.rate(w.now)-inFlight+answered)
}

// finish has replicas that take no new requests serve those that they have.
func (w *world) finish(m *modelState) {
	for _, v := range m.variants {
		for _, p := range v.pods {
			if p.absent {
				p.serve(w.truthOf(v, p.version*w.slowness(v)).curve, 0)
			}
		}
	}
}

// judge serves a step's arrivals at one replica, and counts which of them miss the promise.
func (m *modelState) judge(s server, arrived float64) {
	before := s.pod.completed
	s.pod.serve(s.curve, arrived)
	served, share := s.pod.completed-before, 1.0
	if s.pod.waiting <= leastQueue {
		share = s.truth.missed(served / step.Seconds())
	}
	m.judged += served
	m.missed += served * share
}

// server is a replica that serves, and what it does.
type server struct {
	pod   *pod
	curve *curve
	truth *truth
}

func (w *world) servers(m *modelState) []server {
	var serving []server
	for _, v := range m.variants {
		for _, p := range v.pods {
			if p.serving {
				t := w.truthOf(v, p.version*w.slowness(v))
				serving = append(serving, server{p, t.curve, t})
			}
		}
	}
	return serving
}

// spread shares the arrivals of a step: evenly, each replica its part, or so that all come to
// the same share of what they can have in service.
func (m *modelState) spread(serving []server, arriving float64) {
	m.shares = slices.Grow(m.shares[:0], len(serving))[:len(serving)]
	if m.Even || m.Skew > 0 || arriving <= 0 || len(serving) == 1 {
		total := 0.0
		for i, s := range serving {
			m.shares[i] = s.pod.part(m.Skew)
			total += m.shares[i]
		}
		for i := range m.shares {
			m.shares[i] *= max(0, arriving) / total
		}
		return
	}
	sum := func(level float64) (total float64) {
		for i, s := range serving {
			seconds := step.Seconds()
			if s.pod.hung {
				seconds = 0
			}
			m.shares[i] = s.pod.takes(s.curve, level, seconds)
			total += m.shares[i]
		}
		return total
	}
	low, high := 0.0, 1.0
	for sum(high) < arriving {
		low, high = high, 2*high
	}
	for range 30 {
		if middle := (low + high) / 2; sum(middle) < arriving {
			low = middle
		} else {
			high = middle
		}
	}
	if total := sum(high); total > 0 {
		for i := range m.shares {
			m.shares[i] *= arriving / total
		}
	}
}

// part is how much of the requests a replica gets, between 1 and the skew. Its name says it.
func (p *pod) part(skew float64) float64 {
	if skew == 0 {
		return 1
	}
	name := fnv.New32a()
	_, _ = name.Write([]byte(p.name))
	return math.Pow(skew, float64(name.Sum32())/math.MaxUint32)
}

// giveUp has the clients go whose patience ends: no queue is longer than what arrives
// within it.
func (m *modelState) giveUp(serving []server) {
	if m.Patience == 0 {
		return
	}
	m.held = min(m.held, m.final()*m.Patience.Seconds()+1)
	for _, s := range serving {
		s.pod.waiting = min(s.pod.waiting, s.curve.max*m.Patience.Seconds())
	}
}

// watchQueues keeps the longest time for which replicas were saturated by their queues.
func (m *modelState) watchQueues(now time.Duration, serving []server) {
	total := m.held
	for _, s := range serving {
		total += s.pod.waiting
	}
	if total <= leastQueue*float64(len(serving)) {
		m.waiting = now
	} else {
		m.queued = now
	}
	m.waited = max(m.waited, now-m.waiting)
}
