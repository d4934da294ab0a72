package main

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

// sharing is the profile of one of several engines that share the experts of a model
// (expert parallelism beside data parallelism), each on one such device. p is the profile
// of an engine that has all of them. In each layer all tokens are gathered where the
// experts are, and what becomes of them is added up where they came from, which takes as
// long. What much takes longer is part of each iteration. An unknown link, or engines of
// several devices, give a profile that answers nothing.
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
	p.Experts.PerExchanged = times * others / capacity.Milliseconds(engines) * capacity.Milliseconds(1000*bytesPerNumber*float64(m.Hidden)/bandwidth)
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
