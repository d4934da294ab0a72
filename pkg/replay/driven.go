package replay

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/replay/horizontal"
)

// Driven is what the policies have in common that scale one variant of each model: which
// it is, within which bounds, and what becomes of the other variants.
type Driven struct {
	Scenario *Scenario
	Spec     Spec
	// Choice is the variant of each model.
	Choice []int
	// fixed are the replicas of the other variants that are always there; negative where
	// nobody says so, by model and variant.
	fixed [][]int
	// Least and Most replicas of the variant of each model.
	Least, Most []int
	// MostGiven is set where the spec has the most replicas.
	MostGiven bool
}

// DrivenSettings are those that all of them have: min, from 0 where the policy scales to zero,
// max, variant and split.
func DrivenSettings(toZero bool) []Setting {
	if toZero {
		return slices.Concat(mayBeZero(boundSettings), placeSettings)
	}
	return slices.Concat(boundSettings, placeSettings)
}

// NewDriven reads what a spec says of it. The choice is the variant of each model that the
// spec does not name, and the published maximum that of a variant without a bound.
func NewDriven(s *Scenario, spec Spec, choice []int, published int) (Driven, error) {
	d := Driven{Scenario: s, Spec: spec}
	_, d.MostGiven = spec.Value("max")
	var err error
	if d.Choice, err = s.variantsOf(spec, choice); err != nil {
		return d, err
	}
	if d.fixed, err = s.split(spec, d.Choice); err != nil {
		return d, err
	}
	least, err := spec.ForEach(s, "min", unset)
	if err != nil {
		return d, err
	}
	most, err := spec.ForEach(s, "max", unset)
	if err != nil {
		return d, err
	}
	for m, v := range d.Choice {
		variant := &s.Models[m].Variants[v]
		low, high, err := boundsOf(s, variant, published, int(least[m]), int(most[m]))
		if err != nil {
			return d, fmt.Errorf("policy %q: %w", spec, err)
		}
		d.Least, d.Most = append(d.Least, low), append(d.Most, high)
	}
	return d, nil
}

// unset stands for a bound that nobody gives.
const unset = -1

// boundsOf are the bounds that are given; else one replica, or the variant's minimum, and
// the most that within says.
func boundsOf(s *Scenario, v *Variant, published, least, most int) (low, high int, err error) {
	h := s.HPA(v, published)
	low, high = h.Min, h.Max
	if least != unset {
		low, high = least, max(high, least)
	}
	if most != unset {
		high = most
	}
	switch {
	case least != unset && least < v.Policy.Min:
		return 0, 0, fmt.Errorf("min is %d for variant %s; expected at least its own minReplicas of %d", least, v.Name, v.Policy.Min)
	case low > high:
		return 0, 0, fmt.Errorf("max is %d for variant %s; expected at least its minimum of %d", high, v.Name, low)
	case v.Policy.Max >= 0 && max(least, most) > v.Policy.Max:
		return 0, 0, fmt.Errorf("%d replicas are allowed of variant %s; expected at most its own maxReplicas of %d", max(least, most), v.Name, v.Policy.Max)
	}
	return low, high, nil
}

// Answer asks for the replicas of the driven variant of each model. Those of the spec's
// split are there from the start. Nobody drives the others: what they begin with goes after
// the window in which an HPA removes nothing, or it would cost all day.
func (d *Driven) Answer(view *View, replicasOf func(m int, model *ModelView, variant *VariantView) int) Answer {
	replicas := view.Asked()
	for m, v := range d.Choice {
		model := &view.Models[m]
		replicas[m][v] = replicasOf(m, model, &model.Variants[v])
		for other := range replicas[m] {
			switch {
			case other == v:
			case d.fixed[m][other] >= 0:
				replicas[m][other] = d.fixed[m][other]
			case view.Now >= horizontal.Window:
				replicas[m][other] = view.Scenario.Models[m].Variants[other].Policy.Min
			}
		}
	}
	return Answer{Replicas: replicas}
}

// drives is the variant of each model, and whether the spec names it or what stands beside
// it.
func (d *Driven) drives() (choice []int, fixed [][]int, named bool) {
	_, variant := d.Spec.Value("variant")
	_, split := d.Spec.Value("split")
	return d.Choice, d.fixed, variant || split
}

// Share is how much of a model's requests the driven variant gets: all, unless a fixed
// number of replicas of other variants takes some. Then it is what its replicas got within
// the window.
func (d *Driven) Share(m int, model *ModelView, now, window time.Duration) float64 {
	if !slices.ContainsFunc(d.fixed[m], func(n int) bool { return n > 0 }) {
		return 1
	}
	own, all := 0.0, 0.0
	for v := range model.Variants {
		got := came(&model.Variants[v], now, window)
		all += got
		if v == d.Choice[m] {
			own = got
		}
	}
	if all == 0 {
		return 1
	}
	return own / all
}

// came is how many requests arrived at the replicas of a variant within a window, counted
// at the scrapes.
func came(v *VariantView, now, window time.Duration) float64 {
	sum := 0.0
	for _, pod := range v.Pods {
		if w := WindowOf(pod.Scrapes, now, window); len(w) > 1 {
			sum += max(0, w.Last().Ended()+w.Last().InFlight()-w[0].Ended()-w[0].InFlight())
		}
	}
	return sum
}

// ScalesBy is the trigger of the spec's family and its target for each model.
func (d *Driven) ScalesBy() (*Trigger, []float64, error) {
	base, name, _ := strings.Cut(d.Spec.Family, ":")
	t := familyOf(base).triggerNamed(name)
	targets, err := d.Spec.ForEach(d.Scenario, name, t.Published)
	return t, targets, err
}

// Parameters say which variants are driven and what becomes of the others.
func (d *Driven) Parameters() []Parameter {
	others := "to their minimum after " + horizontal.Window.String()
	if split, ok := d.Spec.Value("split"); ok {
		others = split + ", else " + others
	}
	return []Parameter{{"variant", chosen(d.Scenario, d.Choice)}, {"otherVariants", others}}
}

// Bounds are the least and the most replicas, of every variant unless all have the same,
// under the names by which people set them.
func (d *Driven) Bounds(least, most string) []Parameter {
	var names, lows, highs []string
	for m := range d.Choice {
		names = append(names, d.Scenario.Models[m].Variants[d.Choice[m]].Name)
		lows, highs = append(lows, strconv.Itoa(d.Least[m])), append(highs, strconv.Itoa(d.Most[m]))
	}
	return []Parameter{{least, OneOrEach(names, lows)}, {most, OneOrEach(names, highs)}}
}

// PerModel renders numbers of the models: once where all have the same.
func (d *Driven) PerModel(values []float64) string {
	var names, texts []string
	for m := range values {
		names, texts = append(names, d.Scenario.Models[m].ID), append(texts, number(values[m]))
	}
	return OneOrEach(names, texts)
}

// variantsOf is the variant of each model that the spec names, else that of the choice.
func (s *Scenario) variantsOf(spec Spec, choice []int) ([]int, error) {
	out := slices.Clone(choice)
	text, ok := spec.Value("variant")
	if !ok {
		return out, nil
	}
	named := map[int]string{}
	for name := range strings.SplitSeq(text, between) {
		index, err := s.variantNamed(name)
		if err != nil {
			return nil, fmt.Errorf("policy %q: variant: %w", spec, err)
		}
		if before, twice := named[index.Model]; twice {
			return nil, fmt.Errorf("policy %q: variants %s and %s both serve model %s; expected one variant of a model", spec, before, name, s.Models[index.Model].ID)
		}
		named[index.Model], out[index.Model] = name, index.Variant
	}
	return out, nil
}

// split are the replicas by variant that a spec wants to be there always, by model and
// variant; negative where it says nothing.
func (s *Scenario) split(spec Spec, choice []int) ([][]int, error) {
	out := make([][]int, len(s.Models))
	for m := range out {
		out[m] = slices.Repeat([]int{unset}, len(s.Models[m].Variants))
	}
	text, ok := spec.Value("split")
	if !ok {
		return out, nil
	}
	for part := range strings.SplitSeq(text, between) {
		name, count, _ := strings.Cut(part, ":")
		index, err := s.variantNamed(name)
		if err != nil {
			return nil, fmt.Errorf("policy %q: split: %w", spec, err)
		}
		n, err := strconv.Atoi(count)
		variant := &s.Models[index.Model].Variants[index.Variant]
		switch place := &out[index.Model][index.Variant]; {
		case err != nil:
			return nil, fmt.Errorf("policy %q: split: %w", spec, err)
		case *place != unset:
			return nil, fmt.Errorf("policy %q: split has variant %s twice; expected once", spec, name)
		case choice != nil && choice[index.Model] == index.Variant:
			return nil, fmt.Errorf("policy %q: split has variant %s, which is the driven one; expected others", spec, name)
		case variant.Bounded(n) != n:
			return nil, fmt.Errorf("policy %q: split has %d replicas of variant %s; expected %s, as its own bounds say", spec, n, name, variant.bounds())
		default:
			*place = n
		}
	}
	return out, nil
}
