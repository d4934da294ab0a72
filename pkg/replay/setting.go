package replay

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Float is the value of a setting with one number; ParseSpec has checked it.
func (s Spec) Float(key string, otherwise float64) float64 {
	if text, ok := s.Value(key); ok {
		if value, err := strconv.ParseFloat(text, 64); err == nil {
			return value
		}
	}
	return otherwise
}

// Span is the value of a setting with one time; ParseSpec has checked it.
func (s Spec) Span(key string, otherwise time.Duration) time.Duration {
	if text, ok := s.Value(key); ok {
		if value, err := time.ParseDuration(text); err == nil {
			return value
		}
	}
	return otherwise
}

// ForEach are the numbers of a setting, one for each model.
func (s Spec) ForEach(in *Scenario, key string, otherwise float64) ([]float64, error) {
	out := slices.Repeat([]float64{otherwise}, len(in.Models))
	text, ok := s.Value(key)
	if !ok {
		return out, nil
	}
	parts := strings.Split(text, between)
	if len(parts) != 1 && len(parts) != len(out) {
		return nil, fmt.Errorf("policy %q: %s has %d values, and the scenario %d models; expected one value, or one for each model", s, key, len(parts), len(out))
	}
	for m := range out {
		value, err := strconv.ParseFloat(parts[min(m, len(parts)-1)], 64)
		if err != nil {
			return nil, fmt.Errorf("policy %q: %s: %w", s, key, err)
		}
		out[m] = value
	}
	return out, nil
}

// Count is the value of a setting with one whole number; ParseSpec has checked it.
func (s Spec) Count(key string, otherwise int) int {
	return int(s.Float(key, float64(otherwise)))
}

// Word is the value of a setting with one word.
func (s Spec) Word(key, otherwise string) string {
	if text, ok := s.Value(key); ok {
		return text
	}
	return otherwise
}

// Forms that several families have.
const (
	longestWindow = time.Hour
	perModelHelp  = ", or one number for each model with + between them"
)

// boundSettings and placeSettings are those of policies that drive one variant of each
// model.
var boundSettings = []Setting{
	{"min", CountOf(1, MostReplicas, "the least replicas, from 1"+perModelHelp).OfEach()},
	{"max", CountOf(1, MostReplicas, "the most replicas, from 1"+perModelHelp).OfEach()},
}

var placeSettings = []Setting{
	{"variant", nameOf("the name of the variant that it drives, or several of different models with + between them").OfEach()},
	{"split", splitOf("replicas of other variants that are always there, such as cheap:4, or several with + between them")},
}

// mayBeZero are the settings of a family that scales to zero, too.
func mayBeZero(settings []Setting) []Setting {
	out := slices.Clone(settings)
	for i := range out {
		if out[i].Key == "min" {
			out[i].Form = CountOf(0, MostReplicas, "the least replicas, from 0"+perModelHelp).OfEach()
		}
	}
	return out
}

// staticSettings are those of a static fleet.
var staticSettings = []Setting{
	{staticKey, CountOf(0, MostReplicas, "0 to 100000, in digits alone and without zeros before them").OfEach()},
	{"variant", nameOf("the name of the variant, or several of different models with + between them").OfEach()},
	{"split", splitOf("replicas of variants, such as cheap:4+dear:2")},
}

// windowSettings and metricSettings are those of an HPA. The bounds of its windows are those
// of the API.
var windowSettings = []Setting{
	{"down", SpanOf(0, longestWindow, "the stabilisation window of scaling down in whole seconds, up to 3600s, such as 60s")},
	{"up", SpanOf(0, longestWindow, "the stabilisation window of scaling up in whole seconds, up to 3600s, such as 0s")},
}

var metricSettings = []Setting{
	{"tolerance", NumberOf(orZero, 1, "the share by which the metric may differ from its target, from 0 to 1, such as 0.1")},
	{"window", windowOfRates},
}

var windowOfRates = SpanOf(2*time.Second, longestWindow, "the time over which rates are taken in whole seconds, from 2s to 3600s, such as 60s")
