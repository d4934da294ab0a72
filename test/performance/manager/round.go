package manager

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
)

// query is one query that the manager sent.
type query struct{ from, until time.Time }

// gate is the way to Prometheus, which notes the queries.
type gate struct {
	proxy   http.Handler
	mutex   sync.Mutex
	queries []query
}

func newGate(prometheus string) (*gate, error) {
	to, err := url.Parse(prometheus)
	if err != nil {
		return nil, err
	}
	return &gate{proxy: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
		// A manager that ends breaks off what it asked.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}}, nil
}

// ServeHTTP implements http.Handler.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := query{from: time.Now()}
	g.proxy.ServeHTTP(w, r)
	q.until = time.Now()
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.queries = append(g.queries, q)
}

func (g *gate) seen() []query {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return slices.Clone(g.queries)
}

// round is one round of the manager: a reading and what was written before the next one.
type round struct {
	// From is when the first query was sent.
	From time.Time `json:"from"`
	// Queries is their number, and Read the seconds until the last one was answered.
	Queries int     `json:"queries"`
	Read    float64 `json:"readSeconds"`
	// Scales and Statuses are the writes that succeeded. Scaled is the time from the first
	// query to the last write of a scale, and Seconds that to the last write of either, or to
	// the last answer when there are none. Statuses are written beside the next rounds where
	// there are many: those count to the round in which they are written.
	Scales   int     `json:"scaleWrites"`
	Statuses int     `json:"statusWrites"`
	Scaled   float64 `json:"scaledSeconds"`
	Seconds  float64 `json:"seconds"`
}

// apart is the least time between the queries of two rounds.
const apart = time.Second

// roundsOf are the rounds that queries and writes make. The queries of a round are sent
// side by side; a new round begins where none was on its way for a while.
func roundsOf(queries []query, requests []localcluster.Request) []round {
	slices.SortFunc(queries, func(a, b query) int { return a.from.Compare(b.from) })
	var rounds []round
	var read []time.Time // when the last query of each was answered
	for _, q := range queries {
		if n := len(rounds); n == 0 || q.from.Sub(read[n-1]) > apart {
			rounds, read = append(rounds, round{From: q.from}), append(read, q.until)
		}
		n := len(rounds) - 1
		rounds[n].Queries++
		if q.until.After(read[n]) {
			read[n] = q.until
		}
	}
	for i := range rounds {
		r := &rounds[i]
		r.Read = read[i].Sub(r.From).Seconds()
		r.Seconds, r.Scaled = r.Read, r.Read
		for _, one := range requests {
			if one.Code >= 300 || one.At.Before(r.From) || i+1 < len(rounds) && !one.Received.Before(rounds[i+1].From) {
				continue
			}
			switch one.Subresource {
			case "scale":
				r.Scales++
				r.Scaled = max(r.Scaled, one.At.Sub(r.From).Seconds())
			case "status":
				r.Statuses++
			default:
				continue
			}
			r.Seconds = max(r.Seconds, one.At.Sub(r.From).Seconds())
		}
	}
	return rounds
}

// shown are the seconds from the beginning of a round until every object whose target it
// scaled had its status written after that, and how many those are. The names of the objects
// are those of their targets.
func shown(requests []localcluster.Request, r round, next time.Time) (seconds float64, objects int) {
	scaled, told := map[string]bool{}, map[string]bool{}
	for _, one := range requests {
		key := one.Namespace + "/" + one.Name
		switch {
		case one.Code >= 300 || one.At.Before(r.From):
		case one.Subresource == "scale" && one.Received.Before(next):
			scaled[key] = true
		case one.Subresource == "status" && scaled[key] && !told[key]:
			told[key] = true
			seconds = max(seconds, one.At.Sub(r.From).Seconds())
		}
	}
	return seconds, len(told)
}
