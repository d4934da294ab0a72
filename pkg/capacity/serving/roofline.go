package serving

import "llmd.ai/workload-variant-autoscaler/pkg/capacity"

// DeviceFigures are the published figures of what serves one replica, all its
// devices together.
type DeviceFigures struct {
	// Bandwidth is that of the memory in bytes per second, Arithmetic the dense
	// operations per second at the model's precision.
	Bandwidth, Arithmetic float64
	// Devices is how many share each layer (tensor parallelism); 0 means one. Link is
	// what several send each other their parts over.
	Devices int
	Link    Link
}

// Efficiency is what lies between the published figures and a server.
type Efficiency struct {
	// Overhead is what every iteration takes beside reading and arithmetic, and what
	// reading takes longer than at the published bandwidth.
	Overhead capacity.Milliseconds
	// Arithmetic is the share of the published operations per second that is reached.
	Arithmetic float64
}

// Roofline is the profile that follows from published figures alone, with the
// symbols of Profile.decode:
//
//	a = bytes of weights / bandwidth            all but the embedding table
//	c = 2*layers*KV heads*head size*bytes / bandwidth
//	g = 2*(parameters - table - head) / arithmetic
//	b = 2*head / arithmetic                     decoded tokens alone are sampled
//	q = 4*layers*width / arithmetic             both products of attention
//
// What several devices send each other is added to it (ModelFigures.Exchange): to the
// overhead of an iteration, to b, and per token computed. Limits are left unknown.
// Figures that are not above 0 give a profile that answers nothing, and so do several
// devices with an unknown link, and a model of which an iteration reads less than all
// its weights or its whole cache.
func Roofline(m ModelFigures, d DeviceFigures, e Efficiency) Profile {
	exchange, ok := m.Exchange(d.Link, d.Devices)
	if !ok || m.Experts || m.Latent > 0 || m.Windowed > 0 || m.Parameters <= m.Embedding+m.Head || d.Bandwidth <= 0 || d.Arithmetic <= 0 || e.Arithmetic <= 0 || e.Overhead < 0 {
		return Profile{}
	}
	reading := func(bytes float64) capacity.Milliseconds {
		return capacity.Milliseconds(1000 * bytes / d.Bandwidth)
	}
	arithmetic := func(operations float64) capacity.Milliseconds {
		return capacity.Milliseconds(1000 * operations / (d.Arithmetic * e.Arithmetic))
	}
	return Profile{
		Form:             Overlapped,
		Overhead:         e.Overhead + exchange.PerIteration,
		Base:             reading((m.Parameters - m.Embedding) * m.WeightBytes),
		PerResidentToken: reading(2 * float64(m.Layers*m.KVHeads*m.HeadSize) * m.CacheBytes),
		PerPrefillToken:  arithmetic(2 * (m.Parameters - m.Embedding - m.Head)),
		PerRequest:       arithmetic(2*m.Head) + exchange.PerSampled,
		PerExchanged:     exchange.PerToken,
		LongExchange:     exchange.Long,
		PerPair:          arithmetic(4 * float64(m.Layers*m.Width)),
	}
}
