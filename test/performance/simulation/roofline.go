package simulation

import (
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

// The profile that follows from published figures alone is package serving's.
type (
	deviceFigures = serving.DeviceFigures
	efficiency    = serving.Efficiency
)

func roofline(m serving.ModelFigures, d deviceFigures, e efficiency) serving.Profile {
	return serving.Roofline(m, d, e)
}

// What lies between the published figures and a server, beside the two constants that are
// fitted: what published times of the kernels of single layers say (LLMServingSim at 5daddb2,
// profiler/perf, vLLM 0.19 on RTX 4090 and RTX PRO 6000). Reading the matrices of a layer for
// one token reaches 0.89 and 0.93 of the bandwidth, and reading the cache of 256 requests 0.93.
// What small kernels take and what attention takes at least are 0.02 to 0.03 ms in each layer;
// the pieces that the cache is read in cost another 0.0002 to 0.0005 ms for each request.
const (
	reachedBandwidth = 0.92
	perLayer         = 0.03
	perSequence      = 0.0003
)

// usual completes the fitted constants.
func usual(fitted efficiency) efficiency {
	fitted.Bandwidth, fitted.PerLayer, fitted.PerSequence = reachedBandwidth, perLayer, perSequence
	return fitted
}

// sharing is the profile of one of several engines that share the experts of a model
// (expert parallelism beside data parallelism), each on one such device. p is the profile
// of an engine that has all of them. In each layer each engine gets the tokens of all others,
// and what becomes of them is added up where they came from, which takes as long. What much
// takes longer is part of each iteration. An unknown link, or engines of several devices,
// give a profile that answers nothing.
func sharing(p serving.Profile, m serving.ModelFigures, d deviceFigures, e efficiency, engines int) serving.Profile {
	if !p.Known() || !d.Link.Known() || d.Devices > 1 || m.Hidden < 1 {
		return serving.Profile{}
	}
	const bytesPerNumber = 2
	times, others, l := capacity.Milliseconds(2*m.Layers), capacity.Milliseconds(engines-1), d.Link
	bandwidth := l.Share * l.Bandwidth
	if l.PerPeer {
		bandwidth *= float64(others)
	}
	p.Overhead += times * (l.Start + l.LongStart + others*(l.Step+l.LongStep))
	p.Experts.Engines = engines
	p.Experts.Reading /= capacity.Milliseconds(engines)
	p.Experts.PerToken = capacity.Milliseconds(1000 * 2 * m.Experts.Parameters * m.Experts.Share() / (d.Arithmetic * e.Arithmetic))
	p.Experts.PerExchanged = times * capacity.Milliseconds(1000*bytesPerNumber*float64(m.Hidden)/bandwidth)
	return p
}

// rooflineModels are the names of the published models for which roofline has an answer
// at 16 bits, sorted.
func rooflineModels() []string {
	return slices.DeleteFunc(serving.PublishedModels(), func(name string) bool {
		m := serving.FiguresOf(name, serving.Arguments{})
		return !m.ReadWhole() || m.WeightBytes != 2
	})
}
