package allocation

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/allocation"
	"llmd.ai/workload-variant-autoscaler/test/performance/harness"
)

type options struct {
	data, only string
	limit      time.Duration
	seeds      uint64
}

// Run is the benchmark.
func Run(ctx context.Context, call *harness.Call) error {
	o := &options{}
	flags := call.Flags("allocation")
	flags.StringVar(&o.data, "data", "", "folder that holds inferno_sample")
	flags.StringVar(&o.only, "only", "", "only the instances whose names contain this")
	flags.DurationVar(&o.limit, "limit", time.Minute, "time limit of the exact solver for one instance")
	flags.Uint64Var(&o.seeds, "seeds", 3, "random instances of each kind")
	if err := flags.Parse(); err != nil {
		return err
	}
	if o.data == "" {
		return harness.NoData("inferno_sample")
	}
	list, err := instances(o)
	if err != nil {
		return err
	}
	s, done, err := newSolver(o.limit)
	if err != nil {
		return err
	}
	defer done()
	told := call.Counter(len(list))
	var results []result
	for _, in := range list {
		r, err := s.compare(ctx, in)
		if err != nil {
			return err
		}
		results = append(results, r)
		told(in.Name)
	}
	all := summarise(results)
	err = flags.Save(struct {
		Instances []result `json:"instances"`
		Summary   summary  `json:"summary"`
	}{results, all})
	if err != nil {
		return err
	}
	verdict := verify(all)
	call.Tell("%s%s", table(results), verdict)
	return verdict.Err()
}

// instances are the published ones, as they are and with more load, and random ones.
func instances(o *options) ([]Instance, error) {
	var list []Instance
	for _, folder := range []string{"small", "large"} {
		s, err := readSample(filepath.Join(o.data, "inferno_sample", folder))
		if err != nil {
			return nil, err
		}
		for _, load := range []float64{1, 2, 4, 8} {
			in, err := s.instance(fmt.Sprintf("published-%s-x%g", folder, load), load)
			if err != nil {
				return nil, err
			}
			list = append(list, in)
		}
	}
	for _, variants := range []int{20, 50, 100, 200} {
		for seed := range o.seeds {
			list = append(list, synthetic(variants, false, seed+1), synthetic(variants, true, seed+1))
		}
	}
	return slices.DeleteFunc(list, func(in Instance) bool { return !strings.Contains(in.Name, o.only) }), nil
}

func (s *solver) compare(ctx context.Context, in Instance) (result, error) {
	replicas, took := ours(in)
	score := in.score(replicas)
	if !score.Fits {
		return result{}, fmt.Errorf("%s: our answer breaks a limit or a bound", in.Name)
	}
	began := time.Now()
	exact, complete, err := s.exactly(ctx, in)
	if err != nil {
		return result{}, err
	}
	best := in.score(exact)
	r := result{
		Instance: in.Name, Models: len(in.Models), Variants: in.variants(), Stopped: !complete,
		UnservedOurs: round(score.Unserved), UnservedExact: round(best.Unserved), LevelsOurs: score.Levels, LevelsExact: best.Levels,
		CostOurs: round(score.Cost), CostExact: round(best.Cost), OursMs: took, ExactMs: round(1000 * time.Since(began).Seconds()),
	}
	if best.Cost > 0 {
		r.GapPct = 100 * (score.Cost/best.Cost - 1)
	}
	r.ObjectiveGapPct = r.GapPct
	if at, differs := firstDifference(score.Levels, best.Levels); differs {
		ours, exact := score.Levels[at], best.Levels[at]
		r.Worse, r.Better = ours > exact, ours < exact
		r.ObjectiveGapPct = 100 * (ours - exact) / math.Max(exact, sameShare)
	}
	return r, nil
}

// ours answers several times and takes the median of the processor's times in
// milliseconds, garbage collection included: other work on the machine does not count.
func ours(in Instance) (replicas [][]int, took float64) {
	var times []float64
	for range 5 {
		began := harness.ProcessorTime()
		answer := allocation.Share(in.Models, in.Rows)
		times = append(times, 1000*(harness.ProcessorTime()-began).Seconds())
		replicas = nil
		for _, v := range answer {
			replicas = append(replicas, v.Replicas)
		}
	}
	slices.Sort(times)
	return replicas, times[len(times)/2]
}

func round(x float64) float64 { return math.Round(x*1000) / 1000 }
