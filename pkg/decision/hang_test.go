package decision

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/forecast"
)

// A replica hangs that completed nothing within a metrics window, where by what is known of
// such replicas, or else of the arrivals, more than chance would have been completed.
func TestOneThatCompletesNothingHangs(t *testing.T) {
	shape := capacity.TokenShape{Input: 1000, Output: 200}
	shown := func(running, waiting, served float64) Replica {
		at := func(value float64) Sample { return Sample{Value: value, Time: epoch, Present: true} }
		return Replica{Name: "p", Since: epoch.Add(-time.Hour), Running: at(running), Waiting: at(waiting), Served: at(served)}
	}
	// curve is what replicas show that complete so much a minute with ten in service.
	curve := func(perMinute float64) serving.Curve {
		return serving.Curve{}.Observe(epoch.Add(-time.Minute), 10, capacity.Rate(perMinute/60), shape)
	}
	// arrives is what is believed where so much arrives a minute.
	arrives := func(perMinute float64) forecast.Belief {
		return forecast.Belief{}.Observe(epoch.Add(-time.Minute), forecast.Count{Rate: capacity.Rate(perMinute / 60), Span: time.Minute, Shape: shape}, nil)
	}
	for name, c := range map[string]struct {
		replica  Replica
		others   []Replica
		curve    serving.Curve
		forecast forecast.Belief
		want     bool
	}{
		"nothing is known of what one completes":    {replica: shown(10, 5, 0), want: true},
		"it completes something":                    {replica: shown(10, 5, 0.01)},
		"it has no work":                            {replica: shown(0, 5, 0)},
		"nothing waits in it":                       {replica: shown(10, 0, 0)},
		"many would be completed":                   {replica: shown(10, 5, 0), curve: curve(30), want: true},
		"two would be, so that chance may explain":  {replica: shown(10, 5, 0), curve: curve(2)},
		"less is in service, so that chance may":    {replica: shown(1, 5, 0), curve: curve(10)},
		"what is seen weighs more than the rest":    {replica: shown(10, 5, 0), curve: curve(30), forecast: arrives(1), want: true},
		"many arrive":                               {replica: shown(10, 5, 0), forecast: arrives(30), want: true},
		"few arrive":                                {replica: shown(10, 5, 0), forecast: arrives(2)},
		"many do, and others serve the most of it":  {replica: shown(10, 5, 0), others: []Replica{shown(90, 0, 0.5)}, forecast: arrives(29)},
		"so many that this one's part is no chance": {replica: shown(10, 5, 0), others: []Replica{shown(90, 0, 0.5)}, forecast: arrives(60), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			key := Key{Namespace: "ns", Name: "v"}
			memory := Memory{Variants: map[Key]*VariantMemory{key: {Curve: c.curve}}, Models: map[ModelKey]*ModelMemory{{Namespace: "ns", ID: "m"}: {Forecast: c.forecast}}}
			replicas := append([]Replica{c.replica}, c.others...)
			r, m, v := bare(DefaultPolicy(), memory, &Variant{Name: "v", Current: len(replicas), Ready: len(replicas), Replicas: replicas})
			m.Old, v.Old = memory.OfModel(m.Key), memory.OfVariant(key)
			m.Old.Tokens.Shape = shape
			got := within(r, v).LoadOf(&within(r, m).Model.Model.Model.Model)
			assert.Equal(t, c.want, got.Hung(0))
			assert.Equal(t, c.want, got.Hanging == 1)
		})
	}
}
