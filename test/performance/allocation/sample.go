package allocation

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/allocation"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/test/performance/tokenform"
)

// sample is one folder of the published instances.
type sample struct {
	Accelerators []struct {
		Name         string
		Type         string
		Multiplicity int
		Cost         float64
	}
	Count []struct {
		Type  string
		Count float64
	}
	Models []struct {
		Name         string
		Acc          string
		AccCount     int
		MaxBatchSize float64
		AtTokens     float64
		PerfParms    struct{ Alpha, Beta, Gamma float64 }
	}
	Servers []struct {
		Name         string
		Class        string
		Model        string
		CurrentAlloc struct {
			Load struct {
				// ArrivalRate is per minute.
				ArrivalRate               float64
				AvgInTokens, AvgOutTokens float64
			}
		}
	}
	ServiceClasses []struct {
		Name         string
		Priority     int
		ModelTargets []struct {
			Model string
			ITL   float64 `json:"slo-itl"`
			TTFT  float64 `json:"slo-ttft"`
		}
	}
}

func readSample(folder string) (*sample, error) {
	s := &sample{}
	for _, name := range []string{"accelerator", "capacity", "model", "server", "serviceclass"} {
		path := filepath.Join(folder, name+"-data.json")
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read the published instance: %w", err)
		}
		if err := json.Unmarshal(text, s); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
	}
	return s, nil
}

// instance is the sample with its arrival rates times load.
func (s *sample) instance(name string, load float64) (Instance, error) {
	in := Instance{Name: name}
	rows := map[string]int{}
	for i, c := range s.Count {
		rows[c.Type] = i
		in.Rows = append(in.Rows, c.Count)
	}
	for _, server := range s.Servers {
		priority, slo, ok := s.promise(server.Class, server.Model)
		if !ok {
			return in, fmt.Errorf("%s: class %s has no target for model %s", server.Name, server.Class, server.Model)
		}
		asked := server.CurrentAlloc.Load
		shape := capacity.TokenShape{Input: capacity.Tokens(asked.AvgInTokens), Output: capacity.Tokens(asked.AvgOutTokens)}
		m := allocation.Model{Priority: priority, Need: capacity.Rate(load * asked.ArrivalRate / 60)}
		for _, a := range s.Accelerators {
			if o, ok := s.option(server.Model, a.Name, shape, slo); ok {
				o.Cost *= capacity.Cost(a.Cost)
				o.Uses = []allocation.Use{{Row: rows[a.Type], Amount: float64(a.Multiplicity) * float64(o.Cost) / a.Cost}}
				m.Options = append(m.Options, o)
			}
		}
		in.Models = append(in.Models, m)
	}
	return in, nil
}

func (s *sample) promise(class, model string) (priority int, slo capacity.SLO, ok bool) {
	for _, c := range s.ServiceClasses {
		for _, t := range c.ModelTargets {
			if c.Name == class && t.Model == model {
				return c.Priority, capacity.SLO{TTFT: capacity.Milliseconds(t.TTFT), ITL: capacity.Milliseconds(t.ITL)}, true
			}
		}
	}
	return 0, capacity.SLO{}, false
}

// option is a model on an accelerator; its cost is the number of accelerators. The
// mean latencies keep the SLO, as in the published optimiser, and the batch limit is
// carried from the output length that it was measured at.
func (s *sample) option(model, accelerator string, shape capacity.TokenShape, slo capacity.SLO) (allocation.Option, bool) {
	for _, p := range s.Models {
		if p.Name != model || p.Acc != accelerator {
			continue
		}
		profile := tokenform.Form{
			Alpha: capacity.Milliseconds(p.PerfParms.Alpha), Beta: capacity.Milliseconds(p.PerfParms.Beta), Gamma: capacity.Milliseconds(p.PerfParms.Gamma),
			MaxBatchSize: int(math.Max(1, p.MaxBatchSize*p.AtTokens/float64(shape.Output))),
		}.At(shape)
		queue, ok := serving.NewQueue(profile, shape, serving.Arrivals{})
		if !ok {
			return allocation.Option{}, false
		}
		rate := queue.MaxRate(slo, serving.MeanShare)
		return allocation.Option{Cost: capacity.Cost(p.AccCount), Serves: rate, Most: -1}, rate > 0
	}
	return allocation.Option{}, false
}
