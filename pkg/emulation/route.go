package emulation

import (
	"container/list"
	"net/http"
	"slices"
	"strings"
)

// route is one model of a router: its replicas, and the requests that wait for
// one. It is guarded by the router's lock.
type route struct {
	RoutedModel
	// endpoints are sorted by name.
	endpoints []*endpoint
	// queue holds the tickets that wait, in order of arrival.
	queue *list.List
	// bytes is the size of the bodies that wait.
	bytes int
	// arrivals and dispatched count requests.
	arrivals, dispatched uint64
}

// endpoint is one replica.
type endpoint struct {
	Replica
	url      string
	inFlight int
}

// place is a request's place in the order of arrival.
type place struct {
	arrival uint64
	bytes   int
	// counted is set once the request was dispatched: sending it again counts no
	// more.
	counted bool
	// chosen gets the replica for a request that waits; failed are those that it
	// would rather not have.
	chosen chan *endpoint
	failed []*endpoint
}

func newRoute(m RoutedModel) *route { return &route{RoutedModel: m, queue: list.New()} }

func (t *route) add(replica Replica) {
	i, found := slices.BinarySearchFunc(t.endpoints, replica.Name, byName)
	if found && t.endpoints[i].Replica == replica {
		return
	}
	e := &endpoint{Replica: replica, url: "http://" + replica.Address + "/v1/completions"}
	if found {
		t.endpoints[i] = e
	} else {
		t.endpoints = slices.Insert(t.endpoints, i, e)
	}
	for t.queue.Len() > 0 {
		p := t.pop(t.queue.Front())
		p.chosen <- t.take(p)
	}
}

func (t *route) remove(name string) {
	if i, found := slices.BinarySearchFunc(t.endpoints, name, byName); found {
		t.endpoints = slices.Delete(t.endpoints, i, i+1)
	}
}

func byName(e *endpoint, name string) int { return strings.Compare(e.Name, name) }

// take chooses the least loaded replica for a request, one that failed it only
// if there is no other; nil when there is none at all.
func (t *route) take(p *place) *endpoint {
	var best *endpoint
	bestFailed := false
	for _, e := range t.endpoints {
		failed := slices.Contains(p.failed, e)
		if best == nil || bestFailed && !failed || bestFailed == failed && e.inFlight < best.inFlight {
			best, bestFailed = e, failed
		}
	}
	if best == nil {
		return nil
	}
	best.inFlight++
	if !p.counted {
		p.counted = true
		t.dispatched++
	}
	return best
}

// push lets a request wait. One that comes back from a replica that failed it is
// older than others and goes before them.
func (t *route) push(p *place) *list.Element {
	t.bytes += p.bytes
	for e := t.queue.Back(); e != nil; e = e.Prev() {
		if waiting, _ := e.Value.(*place); waiting.arrival < p.arrival {
			return t.queue.InsertAfter(p, e)
		}
	}
	return t.queue.PushFront(p)
}

func (t *route) pop(e *list.Element) *place {
	p, _ := t.queue.Remove(e).(*place)
	t.bytes -= p.bytes
	return p
}

// enter notes the arrival of a request.
func (r *Router) enter(t *route, bytes int) *place {
	r.mu.Lock()
	defer r.mu.Unlock()
	t.arrivals++
	return &place{arrival: t.arrivals, bytes: bytes, chosen: make(chan *endpoint, 1)}
}

// choose returns the replica for a request, as soon as there is one; nil when the
// client went away before. The request counts as in flight there until leave.
func (r *Router) choose(request *http.Request, t *route, p *place, failed []*endpoint) *endpoint {
	r.mu.Lock()
	p.failed = failed
	if e := t.take(p); e != nil {
		r.mu.Unlock()
		return e
	}
	waiting := t.push(p)
	r.mu.Unlock()
	select {
	case e := <-p.chosen:
		return e
	case <-request.Context().Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case e := <-p.chosen: // both came at once
		e.inFlight--
	default:
		t.pop(waiting)
	}
	return nil
}

// leave ends what choose began.
func (r *Router) leave(e *endpoint) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.inFlight--
}
