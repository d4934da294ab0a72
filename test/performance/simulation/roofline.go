package main

import (
	"slices"

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

// rooflineModels are the names of the published models for which roofline has an answer
// at 16 bits, sorted.
func rooflineModels() []string {
	return slices.DeleteFunc(serving.PublishedModels(), func(name string) bool {
		m := serving.FiguresOf(name, serving.Arguments{})
		return !m.ReadWhole() || m.WeightBytes != 2
	})
}
