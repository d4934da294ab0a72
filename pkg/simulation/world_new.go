package simulation

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// NewWorld makes a world at time 0, in which the initial replicas serve. Those that no
// node has room for wait like all others. Moved is told of them before NewWorld
// returns. The error says what in the options makes no sense.
func NewWorld(o WorldOptions) (*World, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("simulated world: %w", err)
	}
	w := &World{options: o, cluster: o.Cluster.Clone(), wake: never}
	for i, served := range o.Models {
		m := model{id: served.ID, variants: make([]variant, len(served.Variants)), latencies: newLatencies(o.Latencies)}
		for j, v := range served.Variants {
			m.variants[j] = variant{
				ServedVariant: v, index: VariantIndex{Model: i, Variant: j}, slo: served.SLO,
				weight: cmp.Or(v.Weight, 1), wanted: v.Initial, on: make([]int, len(w.cluster.Nodes)),
			}
		}
		w.models = append(w.models, m)
	}
	w.expect(o.Events)
	w.begin()
	return w, nil
}

// begin makes the initial replicas. The largest get their nodes first, so that what
// fits together finds room; their start-up lies before the beginning.
func (w *World) begin() {
	for i := range w.models {
		for j := range w.models[i].variants {
			v := &w.models[i].variants[j]
			for range v.Initial {
				w.create(v)
			}
		}
	}
	order := slices.Clone(w.live)
	slices.SortStableFunc(order, func(a, b *replica) int {
		return cmp.Compare(b.variant.Request.Shape.Devices, a.variant.Request.Shape.Devices)
	})
	for _, r := range order {
		if w.hold(r) {
			r.Placed = 0
			w.move(r, Placed)
			w.serve(r)
		}
	}
	w.plan()
}

func (o *WorldOptions) check() error {
	switch {
	case o.Cluster == nil:
		return errors.New("there is no cluster")
	case len(o.Models) == 0:
		return errors.New("there is no model")
	case o.Drain < 0:
		return fmt.Errorf("the drain time is %v; expected at least 0", o.Drain)
	case o.Startup.Mean < 0:
		return fmt.Errorf("the mean start-up time is %v; expected at least 0", o.Startup.Mean)
	case !(o.Startup.Variation >= 0) || math.IsInf(o.Startup.Variation, 0):
		return fmt.Errorf("the variation of the start-up times is %v; expected at least 0", o.Startup.Variation)
	}
	for i := range o.Events {
		if err := o.Events[i].check(o.Cluster); err != nil {
			return err
		}
	}
	for i := range o.Models {
		m := &o.Models[i]
		if len(m.Variants) == 0 {
			return fmt.Errorf("model %q has no variant", m.ID)
		}
		for j := range m.Variants {
			if err := m.Variants[j].check(o.Cluster); err != nil {
				return fmt.Errorf("model %q, variant %q: %w", m.ID, m.Variants[j].Name, err)
			}
		}
	}
	return nil
}

func (v *ServedVariant) check(c *placement.Cluster) error {
	if err := v.Request.Countable(); err != nil {
		return err
	}
	if n := len(v.Request.Refused); n > 0 && n != len(c.Nodes) {
		return fmt.Errorf("the request names %d nodes that may refuse it; expected the %d of the cluster", n, len(c.Nodes))
	}
	if !(v.Weight >= 0) || math.IsInf(v.Weight, 0) {
		return fmt.Errorf("the weight is %v; expected 0 for 1, or more than 0", v.Weight)
	}
	if v.Initial < 0 {
		return fmt.Errorf("there are %d initial replicas; expected at least 0", v.Initial)
	}
	_, err := (&variant{ServedVariant: *v}).engine()
	return err
}
