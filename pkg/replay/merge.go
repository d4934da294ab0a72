package replay

import (
	"errors"
	"io"

	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// modelled is a stream that may know which model its latest request is for.
type modelled interface {
	model() (index int, known bool)
}

// modelOf is the model of the latest request, where the stream knows it.
func modelOf(stream workload.Stream) (int, bool) {
	if m, ok := stream.(modelled); ok {
		return m.model()
	}
	return 0, false
}

// Sources are the requests of each model that the scenario itself has; nil where it has
// none.
func (s *Scenario) Sources(seed uint64) []Source {
	var sources []Source
	for m := range s.Models {
		traffic := s.Models[m].Traffic
		if traffic == nil {
			continue
		}
		if sources == nil {
			sources = make([]Source, len(s.Models))
		}
		load := *traffic
		// Models do not move in step.
		load.Seed = seed + uint64(m)<<32
		sources[m] = func() (workload.Stream, error) { return workload.NewSynthetic(load) }
	}
	return sources
}

// Merge is the requests of several models in order of arrival: those of sources[i] are
// for the i-th model of the scenario. A nil source has none. Requests of one time are in
// the order of their models.
func Merge(sources []Source) Source {
	return func() (workload.Stream, error) {
		m := &merged{}
		for i, source := range sources {
			if source == nil {
				continue
			}
			stream, err := source()
			if err != nil {
				return nil, err
			}
			m.streams = append(m.streams, &ahead{Stream: stream, of: i})
		}
		return m, nil
	}
}

type merged struct {
	streams []*ahead
	started bool
	latest  int
}

// ahead is the stream of one model and its next request.
type ahead struct {
	workload.Stream
	of   int
	next workload.Request
	err  error
}

func (a *ahead) read() { a.next, a.err = a.Stream.Next() }

// Next implements workload.Stream. An error of one ends all.
func (m *merged) Next() (workload.Request, error) {
	if !m.started {
		m.started = true
		for _, a := range m.streams {
			a.read()
		}
	}
	var first *ahead
	for _, a := range m.streams {
		switch {
		case a.err != nil && !errors.Is(a.err, io.EOF):
			return workload.Request{}, a.err
		case a.err == nil && (first == nil || a.next.Arrival < first.next.Arrival):
			first = a
		}
	}
	if first == nil {
		return workload.Request{}, io.EOF
	}
	r := first.next
	m.latest = first.of
	first.read()
	return r, nil
}

func (m *merged) model() (int, bool) { return m.latest, true }

// passed is a stream that goes through another one, which does not know of models.
type passed struct {
	workload.Stream
	from workload.Stream
}

func (p passed) model() (int, bool) { return modelOf(p.from) }
