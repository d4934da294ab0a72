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
	// Rows is how many rows of queries the attention kernel computes for each head of a
	// decoded token in an iteration that also computes prompts; 0 means one.
	Rows int
}

// Efficiency is what lies between the published figures and a server.
type Efficiency struct {
	// Overhead is what every iteration takes beside reading and arithmetic. PerLayer is
	// the same for each layer, and PerSequence for each layer and decoded token.
	Overhead, PerLayer, PerSequence capacity.Milliseconds
	// Arithmetic is the share of the published operations per second that is reached,
	// and Bandwidth that of the published bandwidth; 0 means all of the latter.
	Arithmetic, Bandwidth float64
}

// Roofline is the profile that follows from published figures alone, with the
// symbols of Overlapped:
//
//	a = bytes of weights / bandwidth            all but the embedding table
//	c = 2*layers*KV heads*head size*bytes / bandwidth
//	g = 2*(parameters - table - head) / arithmetic
//	b = 2*head / arithmetic                     decoded tokens alone are sampled
//	q = 4*layers*width / arithmetic             both products of attention
//
// Where the attention kernel computes whole blocks of rows, a decoded token beside prompts
// takes hypot(c, rows*q) for each resident token instead of c: the block's arithmetic
// beside the reading.
//
// Of a mixture of experts, a holds no experts, which a token uses in part (ExpertTimes),
// and g counts those that it uses. What several devices send each other is added
// (ModelFigures.Exchange): to the overhead of an iteration, to b, and per token computed.
//
// Limits are left unknown. Figures that are not above 0 give a profile that answers
// nothing, and so do several devices with an unknown link, and a model of which an
// iteration reads less than its whole cache.
func Roofline(m ModelFigures, d DeviceFigures, e Efficiency) Profile {
	exchange, ok := m.Exchange(d.Link, d.Devices)
	if !ok || !m.ReadWhole() || m.Parameters <= m.Embedding+m.Head+m.Experts.Parameters || d.Bandwidth <= 0 || d.Arithmetic <= 0 || !e.possible() {
		return Profile{}
	}
	bandwidth := d.Bandwidth
	if e.Bandwidth > 0 {
		bandwidth *= e.Bandwidth
	}
	reading := func(bytes float64) capacity.Milliseconds {
		return capacity.Milliseconds(1000 * bytes / bandwidth)
	}
	arithmetic := func(operations float64) capacity.Milliseconds {
		return capacity.Milliseconds(1000 * operations / (d.Arithmetic * e.Arithmetic))
	}
	layers := capacity.Milliseconds(m.Layers)
	p := Profile{
		Form:             Overlapped,
		Overhead:         e.Overhead + e.PerLayer*layers + exchange.PerIteration,
		Base:             reading((m.Parameters - m.Embedding - m.Experts.Parameters) * m.WeightBytes),
		PerResidentToken: reading(2 * float64(m.Layers*m.KVHeads*m.HeadSize) * m.CacheBytes),
		PerPrefillToken:  arithmetic(2 * (m.Active() - m.Embedding - m.Head)),
		PerRequest:       arithmetic(2*m.Head) + exchange.PerSampled + e.PerSequence*layers,
		PerExchanged:     exchange.PerToken,
		LongExchange:     exchange.Long,
		PerPair:          arithmetic(4 * float64(m.Layers*m.Width)),
		Experts:          ExpertTimes{Reading: reading(m.Experts.Parameters * m.WeightBytes), Share: m.Experts.Share()},
	}
	if d.Rows > 1 {
		p.PerResidentBeside = capacity.Milliseconds(overlap(float64(p.PerResidentToken), float64(d.Rows)*float64(p.PerPair)))
	}
	return p
}

// possible reports whether a server can be like this.
func (e Efficiency) possible() bool {
	return e.Arithmetic > 0 && e.Bandwidth >= 0 && e.Overhead >= 0 && e.PerLayer >= 0 && e.PerSequence >= 0
}

// ReadWhole says that an iteration reads the whole cache, in the usual form.
func (m ModelFigures) ReadWhole() bool { return m.Latent == 0 && m.Windowed == 0 }

// usualServer is what vLLM reaches: the constants were fitted on measured runs of
// Llama-3.1-8B on one H100 (3.3 ms for each iteration, and 0.79 of the arithmetic that was
// measured there, which is 0.63 of the data sheet's). Qwen3-32B on two, four and eight H100
// is met with them to 15 % per iteration and 8 % per prompt token.
var usualServer = Efficiency{Overhead: 3.3, Arithmetic: 0.63}

// Reckoned is the profile of a replica of which nothing was measured, by the published
// figures of its model and of its devices. Arithmetic counts at 16 bits, also where the
// weights have fewer. It has no limits on batch and KV tokens. It reports false where
// figures are not known, and for replicas of several pods.
func Reckoned(m ModelFigures, shape capacity.Shape) (Profile, bool) {
	sheet, known := hardwareOf[shape.Accelerator]
	if !known || m.Layers < 1 || shape.Devices < 1 || shape.Pods > 1 {
		return Profile{}, false
	}
	n := float64(shape.Devices)
	link, _ := LinkOf(shape.Device())
	p := Roofline(m, DeviceFigures{Bandwidth: n * sheet.bandwidth * 1e12, Arithmetic: n * sheet.compute * 1e12, Devices: shape.Devices, Link: link}, usualServer)
	return p, p.Known()
}
