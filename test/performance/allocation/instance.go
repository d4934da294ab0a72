package allocation

import (
	"math"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/allocation"
)

// Instance is one question.
type Instance struct {
	Name   string
	Models []allocation.Model
	Rows   []float64
}

func (in Instance) variants() int {
	n := 0
	for _, m := range in.Models {
		n += len(m.Options)
	}
	return n
}

// priorities are those of the models, the most important first.
func (in Instance) priorities() []int {
	var list []int
	for _, m := range in.Models {
		list = append(list, m.Priority)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// bands is how many equal parts of a demand fairness tells apart.
const bands = 10

// demand is what a model asks for above its minimum, and what leaving it unserved
// counts.
type demand struct {
	// rest is the rate, width that of one band.
	rest, width float64
	// worth is the cost of serving one request per second on the variant with the
	// lowest cost per rate.
	worth float64
	// price is what one request per second of each band counts.
	price [bands]float64
}

func demandOf(m allocation.Model, heaviest float64) demand {
	d := demand{rest: float64(m.Need), worth: math.Inf(1)}
	for _, o := range m.Options {
		d.rest -= float64(o.Serves) * float64(o.Least)
		if o.Serves > 0 {
			d.worth = math.Min(d.worth, float64(o.Cost)/float64(o.Serves))
		}
	}
	d.rest = math.Max(0, d.rest)
	d.width = d.rest / bands
	for k := range d.price {
		d.price[k] = d.worth * math.Exp2(bands-1-float64(k)*heaviest/weight(m))
	}
	return d
}

func weight(m allocation.Model) float64 {
	if m.Weight > 0 {
		return m.Weight
	}
	return 1
}

// heaviest is the greatest weight of a priority.
func (in Instance) heaviest(priority int) float64 {
	most := 0.0
	for _, m := range in.Models {
		if m.Priority == priority {
			most = math.Max(most, weight(m))
		}
	}
	return most
}

// unit is what the demand of a priority above the minima is worth.
func (in Instance) unit(priority int) float64 {
	sum := 0.0
	for _, m := range in.Models {
		if d := demandOf(m, 1); m.Priority == priority {
			sum += d.rest * d.worth
		}
	}
	if sum == 0 {
		return 1
	}
	return sum
}

// Score is what an answer comes to.
type Score struct {
	// Levels is the priced unserved demand of each priority in units of its demand, as
	// the last band is priced.
	Levels []float64
	// Unserved is the cost per hour that serving all unserved demand would have.
	Unserved float64
	// Cost is per hour, start-ups included.
	Cost float64
	// Fits is false when a limit or a bound is not kept.
	Fits bool
}

// score judges replicas of each option of each model.
func (in Instance) score(replicas [][]int) Score {
	s := Score{Fits: true}
	used := make([]float64, len(in.Rows))
	for _, priority := range in.priorities() {
		priced := 0.0
		for i, m := range in.Models {
			if m.Priority != priority {
				continue
			}
			d := demandOf(m, in.heaviest(priority))
			missing := d.rest
			for j, o := range m.Options {
				n := replicas[i][j]
				missing -= float64(o.Serves) * float64(n-o.Least)
				beyond := max(0, n-o.Now)
				s.Cost += float64(o.Cost)*float64(n) + float64(o.Start)*float64(beyond)
				s.Fits = s.Fits && n >= o.Least && (o.Most < 0 || n <= o.Most)
				for _, u := range o.Uses {
					used[u.Row] += u.Amount * float64(beyond)
				}
			}
			if missing > 1e-9*float64(m.Need) {
				s.Unserved += missing * d.worth
				priced += d.unserved(missing)
			}
		}
		s.Levels = append(s.Levels, priced/in.unit(priority))
	}
	for i, u := range used {
		s.Fits = s.Fits && u <= in.Rows[i]*(1+1e-6)+1e-6
	}
	return s
}

// unserved prices what is missing, the last bands first.
func (d demand) unserved(missing float64) float64 {
	sum := 0.0
	for k := bands - 1; k >= 0 && missing > 0; k-- {
		part := math.Min(missing, d.width)
		sum += part * d.price[k]
		missing -= part
	}
	return sum
}
