package simulation

// Gateway is what the router says of one model.
func (w *World) Gateway(model int) Gateway {
	m := &w.models[model]
	return Gateway{Queue: m.queue.count, Dispatched: m.dispatched}
}

// enter hands a request to a replica, or lets it wait until one serves.
func (w *World) enter(m *model, r Request) {
	if len(m.serving) == 0 {
		m.queue.push(r)
		return
	}
	w.dispatch(m, r)
	w.tell()
}

// dispatch sends a request to the replica with the fewest in flight over its weight,
// of equals to the oldest. A request that can never fit there fails at once, as it
// does where a server answers that it is too long.
func (w *World) dispatch(m *model, request Request) {
	best := m.serving[0]
	for _, r := range m.serving[1:] {
		if r.load < best.load {
			best = r
		}
	}
	m.dispatched++
	if err := best.engine.Submit(w.now, request); err != nil {
		w.fail(best.variant.index, request)
		return
	}
	best.settle(1)
	best.sums.Prefilling += request.Input
	best.next = best.engine.due()
}

// fifo is a first-in-first-out queue of requests in a ring, whose length is a power
// of two.
type fifo struct {
	ring        []Request
	head, count int
}

func (q *fifo) push(r Request) {
	if q.count == len(q.ring) {
		ring := make([]Request, max(16, 2*len(q.ring)))
		n := copy(ring, q.ring[q.head:])
		copy(ring[n:], q.ring[:q.head])
		q.ring, q.head = ring, 0
	}
	q.ring[(q.head+q.count)&(len(q.ring)-1)] = r
	q.count++
}

func (q *fifo) pop() Request {
	r := q.ring[q.head]
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.count--
	return r
}
