package serving

import (
	"math"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

const (
	// unknownBatch is the batch limit to reckon with when neither it nor the KV
	// capacity is known: vLLM's own on large devices.
	unknownBatch = 1024
	// waitingPerServer is the published size of the waiting room.
	waitingPerServer = 10
	// leastLoad and mostLoad bound the rates that a queue is asked about, as shares
	// of the rate with one in service and with all.
	leastLoad, mostLoad = 0.001, 0.999
)

// Queue is one replica with its waiting room as a birth-death chain: n requests in
// the system are served at rate n/residence(n), and at that of the batch limit when
// more are there. The batch limit is the lesser of the engine's and of what the KV
// cache holds. Arrivals are independent unless Burst says that they come in bursts. A Queue is a value made by NewQueue and safe to share.
type Queue struct {
	profile Profile
	shape   capacity.TokenShape
	waiting int
	burst   float64
	// service[n] is the rate per millisecond with n in service, for 0..batch limit.
	service []float64
}

// Arrivals is what a queue must know of how requests come.
type Arrivals struct {
	// Burst is the squared coefficient of variation of the times between arrivals at the
	// replica: 1 for independent ones, 0 means unknown and counts as 1. Measured traces
	// have 1.5 to 4 per client.
	Burst float64
	// Waiting is the number of places to wait; 0 means ten per place in the batch.
	Waiting int
}

// sharedScatter and sharedPower say how the arrivals of a model scatter at one of its
// replicas; see Shared.
const (
	sharedScatter = 3.4
	sharedPower   = 0.65
	// mostScatter is where it ends.
	mostScatter = 10
)

// Shared is what one of several replicas gets of arrivals with an index of dispersion
// (variance over mean of their counts, 1 for independent ones) when a router sends each
// request to the least loaded of them. Requests that come together are spread, so the
// burstiness z = (Burst+1)/2 falls with the number of replicas r; and a burst brings
// prompts that slow down all who decode, of lengths that differ:
//
//	z = 3.4 * (index/r)^0.65, at least 1 and at most 10
//
// The two numbers are fitted: at the rate that this gives, 99 % of the requests keep
// their latency in the simulated servers, for 1 to 30 replicas and requests that come
// one, five or twenty at a time. A test holds them against each other.
func Shared(dispersion float64, replicas int) Arrivals {
	z := sharedScatter * math.Pow(max(1, dispersion)/float64(max(1, replicas)), sharedPower)
	return Arrivals{Burst: 2*min(max(1, z), mostScatter) - 1}
}

// scatters are the values of z at which a rate is found; between them it is read off the
// line in the logarithm of z. To find it at every z that comes up would cost milliseconds.
var scatters = [...]float64{1, 2, 4, mostScatter}

// SharedRate is the greatest rate that each replica serves within the SLO for the share
// of the requests, when so many of them as that makes necessary share the arrivals of a
// rate with an index of dispersion. It also returns what each replica gets. It is 0 for a
// profile or a shape that is not known, and at least half of what a replica serves of
// independent arrivals: who gives more room to bursts pays for more idle time than these
// last.
//
// The more replicas share, the more each serves, so the least number that serves the rate
// is found by halving.
func SharedRate(profile Profile, shape capacity.TokenShape, rate capacity.Rate, dispersion float64, slo capacity.SLO, share float64) (capacity.Rate, Arrivals) {
	var found [len(scatters)]capacity.Rate
	at := func(i int) capacity.Rate {
		if found[i] == 0 {
			if queue, ok := NewQueue(profile, shape, Arrivals{Burst: 2*scatters[i] - 1}); ok {
				found[i] = queue.MaxRate(slo, share)
			}
		}
		return found[i]
	}
	independent := at(0)
	each := func(replicas int) capacity.Rate {
		z, i := (Shared(dispersion, replicas).Burst+1)/2, 1
		for z > scatters[i] {
			i++
		}
		part := capacity.Rate(math.Log(z/scatters[i-1]) / math.Log(scatters[i]/scatters[i-1]))
		if part <= 0 {
			return max(at(i-1), independent/2)
		}
		return max(at(i-1)+(at(i)-at(i-1))*part, independent/2)
	}
	few := Sharing(rate, independent)
	many := max(few, Sharing(rate, independent/2))
	for few < many {
		if middle := few + (many-few)/2; each(middle)*capacity.Rate(middle) >= rate {
			many = middle
		} else {
			few = middle + 1
		}
	}
	most := each(many)
	if Sharing(rate, most) < many {
		// So many serve more than is necessary, and one fewer less: what one of these does
		// says the number.
		most = each(many - 1)
	}
	return most, Shared(dispersion, many)
}

// Sharing is how many replicas are necessary for a rate of which each serves so much.
func Sharing(rate, each capacity.Rate) int {
	if rate <= 0 || each <= 0 {
		return 1
	}
	return int(math.Min(math.Ceil(float64(rate/each)), math.MaxInt32))
}

// NewQueue returns the queue of one replica for one load shape, and false when the
// profile or the shape is unknown or no number.
func NewQueue(profile Profile, shape capacity.TokenShape, arrivals Arrivals) (Queue, bool) {
	if !profile.Known() || !shape.Known() {
		return Queue{}, false
	}
	batch := max(1, int(math.Min(profile.Concurrency(shape), 1<<16)))
	if math.IsInf(profile.Concurrency(shape), 1) {
		batch = unknownBatch
	}
	q := Queue{profile: profile, shape: shape, waiting: arrivals.Waiting, burst: arrivals.Burst, service: make([]float64, batch+1)}
	if q.waiting <= 0 {
		q.waiting = waitingPerServer * batch
	}
	if q.burst <= 0 || math.IsNaN(q.burst) {
		q.burst = 1
	}
	for n := 1; n <= batch; n++ {
		q.service[n] = float64(n) / profile.residence(float64(n), shape)
	}
	if first := q.service[1]; math.IsNaN(first) || math.IsInf(first, 0) || first <= 0 {
		return Queue{}, false
	}
	return q, true
}

// batch is the largest number in service.
func (q Queue) batch() int { return len(q.service) - 1 }

// Queueing is the steady state of a Queue at one arrival rate.
type Queueing struct {
	// Served is the rate of requests that found a place.
	Served capacity.Rate
	// Wait, TTFT and ITL are means; TTFT contains Wait and Prefill.
	Wait, Prefill, TTFT, ITL capacity.Milliseconds
	// InService is the mean number in service.
	InService float64

	queue   Queue
	arrival float64
	// share[n] is the probability of n in the system, for n up to the batch limit;
	// beyond it shares fall by the factor load per place.
	share []float64
	load  float64
}

// At solves the chain at an arrival rate. A waiting room that is full turns requests
// away, so At answers for an overloaded replica too.
//
// Arrivals that come in bursts are more likely while many are there. With the rate a,
// the service rates s and the burstiness z, those in state n come at
//
//	a/z + (1 - 1/z)*s[n]
//
// which has the mean a whatever z is, and keeps the birth-death form: where s grows with
// n as in an endless server, n has the variance z times the mean (the peakedness of
// teletraffic theory, there with this Pascal form by Delbrouck); where s has reached its
// end, the queue has z times the length that independent arrivals give it (Kingman).
func (q Queue) At(rate capacity.Rate) Queueing {
	s, total, inSystem, inService := q.inServiceAt(rate, make([]float64, len(q.service)))
	if s.load == 0 {
		return s
	}
	batch := q.batch()
	full := s.share[batch]
	for k := 1; k <= q.waiting; k++ {
		full *= s.load
		total, inSystem, inService = total+full, inSystem+float64(batch+k)*full, inService+float64(batch)*full
		if total > mostTotal {
			full /= mostTotal
			shrink(s.share, &total, &inSystem, &inService)
		}
	}
	s.divide(total)
	s.means(inSystem/total, inService/total, full/total)
	return s
}

// inServiceAt solves the chain up to the batch limit, in the room that it is given: the
// shares, not divided by their sum yet, that sum, and the sums of how many are in the
// system and in service. The load is 0 without arrivals.
func (q Queue) inServiceAt(rate capacity.Rate, share []float64) (s Queueing, total, inSystem, inService float64) {
	batch := q.batch()
	s = Queueing{queue: q, arrival: float64(rate) / 1000, share: share}
	s.share[0] = 1
	if rate <= 0 || math.IsNaN(float64(rate)) {
		clear(s.share[1:])
		return s, 1, 0, 0
	}
	s.load = 1 + (s.arrival/q.service[batch]-1)/q.burstiness()
	total = 1
	independent := s.arrival / q.burstiness()
	following := 1 - 1/q.burstiness()
	for n := 1; n <= batch; n++ {
		s.share[n] = s.share[n-1] * (independent + following*q.service[n-1]) / q.service[n]
		total, inSystem, inService = total+s.share[n], inSystem+float64(n)*s.share[n], inService+float64(n)*s.share[n]
		if total > mostTotal {
			shrink(s.share[:n+1], &total, &inSystem, &inService)
		}
	}
	return s, total, inSystem, inService
}

// quantileAt is the quantile of At at that rate, found in the room that it is given and
// without the means.
func (q Queue) quantileAt(rate capacity.Rate, share float64, room []float64) capacity.SLO {
	s, total, _, _ := q.inServiceAt(rate, room)
	if s.load < 1 {
		// The places to wait are a geometric series.
		s.divide(total + s.share[q.batch()]*s.load*(1-math.Pow(s.load, float64(q.waiting)))/(1-s.load))
	}
	return s.Quantile(share)
}

func (s *Queueing) divide(total float64) {
	for n := range s.share {
		s.share[n] /= total
	}
}

// mostTotal is how far sums of shares may grow before all of them are scaled down: their
// products leave the range of numbers long before the batch limit is reached.
const mostTotal = 1e200

func shrink(shares []float64, sums ...*float64) {
	for i := range shares {
		shares[i] /= mostTotal
	}
	for _, sum := range sums {
		*sum /= mostTotal
	}
}

// means fills the mean latencies by Little's law.
func (s *Queueing) means(inSystem, inService, full float64) {
	q := s.queue
	served := s.arrival * (1 - full)
	service := inService / served
	s.Served, s.InService = capacity.Rate(1000*served), inService
	s.Wait = capacity.Milliseconds(math.Max(0, inSystem/served-service))
	prefill, itl := q.profile.prefill(inService, q.shape), service/float64(q.shape.Output)
	first := q.profile.first(inService, q.shape, s.Served)
	if p := q.profile; p.Form == FourParameters {
		n := q.effective(service)
		prefill, itl = p.prefill(n, q.shape), p.decode(n, q.shape)
		first = prefill
	}
	s.Prefill, s.ITL = capacity.Milliseconds(prefill), capacity.Milliseconds(itl)
	s.TTFT = s.Wait + capacity.Milliseconds(first)
}

// burstiness is the factor of Allen and Cunneen on the wait, (ca²+cs²)/2, with the
// exponential service of the chain.
func (q Queue) burstiness() float64 { return (q.burst + 1) / 2 }

// effective is the published form's number in service that explains a service time.
func (q Queue) effective(service float64) float64 {
	p, steps := q.profile, q.profile.decodes(q.shape)
	slope := float64(p.PerPrefillToken)*float64(q.shape.Input) + float64(p.PerRequest)*steps
	if slope <= 0 {
		return 0
	}
	n := (service - float64(p.Gamma) - float64(p.Base)*steps) / slope
	return math.Min(math.Max(n, 0), float64(q.batch()))
}
