package main

import (
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

// deviceFigures are the published figures of what serves one replica, all its
// devices together.
type deviceFigures struct {
	// Bandwidth is that of the memory in bytes per second, Arithmetic the dense
	// operations per second at the model's precision.
	Bandwidth, Arithmetic float64
	// Devices is how many share each layer (tensor parallelism); 0 means one. Link is
	// what several send each other their parts over.
	Devices int
	Link    serving.Link
	// Engines is how many engines, each with such a device, share the experts of a
	// mixture (expert parallelism beside data parallelism) over the same link; 0 means
	// one.
	Engines int
}

// efficiency is what lies between the published figures and a server.
type efficiency struct {
	// Overhead is what every iteration takes beside reading and arithmetic, and what
	// reading takes longer than at the published bandwidth.
	Overhead capacity.Milliseconds
	// Arithmetic is the share of the published operations per second that is reached.
	Arithmetic float64
}

// roofline is the profile that follows from published figures alone, with the
// symbols of serving.Overlapped:
//
//	a = bytes of weights / bandwidth            all but the embedding table
//	c = 2*layers*KV heads*head size*bytes / bandwidth
//	g = 2*(parameters - table - head) / arithmetic
//	b = 2*head / arithmetic                     decoded tokens alone are sampled
//	q = 4*layers*width / arithmetic             both products of attention
//
// Of a mixture of experts, a holds no experts, which a token uses in part (serving.ExpertTimes),
// and g counts those that it uses. What several devices send each other is added
// (serving.ModelFigures.Exchange): to the overhead of an iteration, to b, and per token computed;
// what engines send to experts and back, per token of all engines.
//
// Limits are left unknown. Figures that are not above 0 give a profile that answers
// nothing, and so do several devices with an unknown link, engines that share experts and
// have several devices each, and a model of which an iteration reads less than its whole
// cache.
func roofline(m serving.ModelFigures, d deviceFigures, e efficiency) serving.Profile {
	exchange, ok := m.Exchange(d.Link, d.Devices)
	if !ok || !readWhole(m) || m.Parameters <= m.Embedding+m.Head+m.Experts.Parameters || d.Bandwidth <= 0 || d.Arithmetic <= 0 || e.Arithmetic <= 0 || e.Overhead < 0 {
		return serving.Profile{}
	}
	reading := func(bytes float64) capacity.Milliseconds {
		return capacity.Milliseconds(1000 * bytes / d.Bandwidth)
	}
	arithmetic := func(operations float64) capacity.Milliseconds {
		return capacity.Milliseconds(1000 * operations / (d.Arithmetic * e.Arithmetic))
	}
	p := serving.Profile{
		Form:             serving.Overlapped,
		Overhead:         e.Overhead + exchange.PerIteration,
		Base:             reading((m.Parameters - m.Embedding - m.Experts.Parameters) * m.WeightBytes),
		PerResidentToken: reading(2 * float64(m.Layers*m.KVHeads*m.HeadSize) * m.CacheBytes),
		PerPrefillToken:  arithmetic(2 * (m.Active() - m.Embedding - m.Head)),
		PerRequest:       arithmetic(2*m.Head) + exchange.PerSampled,
		PerExchanged:     exchange.PerToken,
		LongExchange:     exchange.Long,
		PerPair:          arithmetic(4 * float64(m.Layers*m.Width)),
	}
	if m.Experts.Count == 0 {
		return p
	}
	engines := max(1, d.Engines)
	p.Experts = serving.ExpertTimes{Reading: reading(m.Experts.Parameters * m.WeightBytes / float64(engines)), Share: m.Experts.Share(), Engines: engines}
	if engines == 1 {
		return p
	}
	way, ok := m.ExpertExchange(d.Link, engines)
	if !ok || d.Devices > 1 {
		return serving.Profile{}
	}
	p.Overhead += way.PerIteration
	p.Experts.PerExchanged = way.PerToken
	p.Experts.PerToken = arithmetic(2 * m.Experts.Parameters * m.Experts.Share())
	return p
}

// readWhole says that an iteration reads the whole cache, in the usual form.
func readWhole(m serving.ModelFigures) bool { return m.Latent == 0 && m.Windowed == 0 }

// rooflineModels are the names of the published models for which roofline has an answer
// at 16 bits, sorted.
func rooflineModels() []string {
	return slices.DeleteFunc(serving.PublishedModels(), func(name string) bool {
		m := serving.FiguresOf(name, serving.Arguments{})
		return !readWhole(m) || m.WeightBytes != 2
	})
}
