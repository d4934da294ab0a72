package emulation

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestQueueIsInOrderOfArrival(t *testing.T) {
	route := newRoute(RoutedModel{Name: "m"})
	of := func(arrival uint64) *place {
		return &place{arrival: arrival, bytes: 10, chosen: make(chan *endpoint, 1)}
	}
	for _, arrival := range []uint64{5, 6, 7} {
		route.push(of(arrival))
	}
	gone := route.push(of(8))
	// Two that a replica failed come back late.
	route.push(of(4))
	route.push(of(3))
	route.pop(gone)
	assert.Equal(t, 50, route.bytes)
	var order []uint64
	for route.queue.Len() > 0 {
		order = append(order, route.pop(route.queue.Front()).arrival)
	}
	assert.Equal(t, []uint64{3, 4, 5, 6, 7}, order)
	assert.Zero(t, route.bytes)
}

func TestTakePrefersWhatHasNotFailed(t *testing.T) {
	route := newRoute(RoutedModel{Name: "m"})
	p := &place{}
	assert.Nil(t, route.take(p))
	assert.Zero(t, route.dispatched)
	route.add(Replica{Name: "a"})
	route.add(Replica{Name: "b"})
	a, b := route.endpoints[0], route.endpoints[1]
	b.inFlight = 7
	p.failed = []*endpoint{a}
	assert.Same(t, b, route.take(p), "busier, but it has not failed")
	p.failed = []*endpoint{a, b}
	assert.Same(t, a, route.take(p), "all have failed: the least loaded")
	assert.EqualValues(t, 1, route.dispatched)
}

func TestHistogramCountsManyAtOnce(t *testing.T) {
	h := newHistogram([]float64{1, 2, 5})
	h.observe(1, 3) // a bound belongs to its bucket
	h.observe(1.5, 2)
	h.observe(9, 1)
	h.observe(4, 0)
	assert.Equal(t, []uint64{3, 2, 0}, h.counts)
	assert.EqualValues(t, 6, h.count)
	assert.InDelta(t, 15, h.sum, 1e-12)
}

func TestCountWords(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, " \n\t": 0, "one": 1, " one two\nthree ": 3, "a b": 2, "größe  ✓": 2,
	} {
		assert.Equal(t, want, countWords(text), "%q", text)
	}
}

func TestKeepTail(t *testing.T) {
	for name, pieces := range map[string][]string{
		"at once":        {"0123456789abcdef"},
		"byte by byte":   {"8", "9", "a", "b", "c", "d", "e", "f"},
		"odd pieces":     {"01234", "567", "89a", "bcdef"},
		"a large last":   {"xyz", "0123456789abcdef"},
		"an empty piece": {"01234567", "", "89abcdef"},
	} {
		t.Run(name, func(t *testing.T) {
			var tail [8]byte
			kept := 0
			for _, piece := range pieces {
				kept = keepTail(tail[:], kept, []byte(piece))
			}
			assert.Equal(t, "89abcdef", string(tail[:kept]))
		})
	}
}
