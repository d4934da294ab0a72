package simulation

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

// statistics are milliseconds.
type statistics struct {
	meanTTFT, p99TTFT, meanTPOT, p99TPOT float64
	// medianTTFT says that the mean was impossible and the median stands for it.
	medianTTFT bool
}

// quantile is the one beside the mean.
const quantile = 0.99

// summarize is over all requests. perToken weighs their times per output token by
// how many there were, as the load generator does.
func summarize(all []served, perToken bool) statistics {
	var ttfts, tpots []sample
	for _, s := range all {
		ttfts = append(ttfts, sample{s.ttft.Seconds() * 1000, 1})
		if s.output > 1 {
			weight := 1.0
			if perToken {
				weight = float64(s.output - 1)
			}
			tpots = append(tpots, sample{s.perToken.Seconds() * 1000, weight})
		}
	}
	var s statistics
	s.meanTTFT, s.p99TTFT = describe(ttfts)
	s.meanTPOT, s.p99TPOT = describe(tpots)
	return s
}

type sample struct{ value, weight float64 }

// describe is the weighted mean, and the smallest value that at least the quantile's
// share of the weight does not exceed. Both are 0 without samples.
func describe(samples []sample) (mean, high float64) {
	slices.SortFunc(samples, func(a, b sample) int { return cmp.Compare(a.value, b.value) })
	total := 0.0
	for _, s := range samples {
		total += s.weight
		mean += s.weight * s.value
	}
	if total == 0 {
		return 0, 0
	}
	below := 0.0
	for _, s := range samples {
		if below += s.weight; below >= quantile*total {
			high = s.value
			break
		}
	}
	return mean / total, high
}

// miss is the relative error of each statistic, signed: mean and 99th percentile of
// TTFT, then of the time per output token.
type miss [4]float64

func (s statistics) against(measured statistics) miss {
	return miss{
		s.meanTTFT/measured.meanTTFT - 1, s.p99TTFT/measured.p99TTFT - 1,
		s.meanTPOT/measured.meanTPOT - 1, s.p99TPOT/measured.p99TPOT - 1,
	}
}

// meanSize is the mean absolute error of each statistic.
func meanSize(all []miss) (mean miss) {
	for _, m := range all {
		for i := range mean {
			mean[i] += math.Abs(m[i]) / float64(len(all))
		}
	}
	return mean
}

// judge predicts with published figures and two constants.
type judge struct {
	// sheet takes the arithmetic of a device from its data sheet.
	sheet bool
	// link is what a collective operation among the devices of a recorded run sends in one
	// direction, in GB/s; 0 takes the published one.
	link float64
}

// row is what the engine says of a row of the sweep.
func (j judge) row(r row, constants efficiency) (statistics, error) {
	model, err := modelNamed(r.model, "bfloat16", "auto")
	if err != nil {
		return statistics{}, err
	}
	device, err := deviceNamed(sweepDevice, 1, j.sheet)
	if err != nil {
		return statistics{}, err
	}
	profile := roofline(model, device, usual(constants))
	profile.KVTokens, profile.BatchLimit = sweepCache, sweepBatch
	all, err := server{profile: profile, budget: sweepBudget, client: true}.serve(r.requests(), r.duration)
	if err != nil {
		return statistics{}, fmt.Errorf("the row %v/%v at %v requests per second: %w", r.in, r.out, r.offered, err)
	}
	return summarize(all, true), nil
}

// record is what the engines say of a recorded run.
func (j judge) record(r record, constants efficiency) (statistics, error) {
	e := r.meta.Engine
	profile, err := j.profile(r, constants)
	if err != nil {
		return statistics{}, err
	}
	s := server{profile: profile, budget: e.BatchedTokens, engines: r.engines, ahead: r.ahead()}
	if cached, said := r.prefixes(); cached && said {
		s.prompts = r.prompts
	}
	all, err := s.serve(r.requests, 0)
	if err != nil {
		return statistics{}, err
	}
	return summarize(all, false), nil
}

// profile is that of one engine of a recorded run.
func (j judge) profile(r record, constants efficiency) (serving.Profile, error) {
	e := r.meta.Engine
	tensor := max(1, e.Tensor)
	model, err := modelNamed(r.meta.Model, e.Type, e.CacheType)
	if err != nil {
		return serving.Profile{}, err
	}
	device, err := deviceNamed(r.meta.Hardware.Device, tensor, j.sheet)
	if err != nil {
		return serving.Profile{}, err
	}
	if j.link > 0 {
		device.Link.Bandwidth, device.Link.PerPeer, device.Link.Share = j.link*1e9, false, 1
	}
	constants = usual(constants)
	if r.ahead() {
		// What is fitted is what the engine does while the device waits. Here it does not.
		constants.Overhead = 0
	}
	profile := roofline(model, device, constants)
	if r.sharing && model.Experts.Count > 0 {
		profile = sharing(profile, model, device, constants, r.engines)
	}
	if !profile.Known() {
		return profile, fmt.Errorf("%d engines that share the experts of %s, each of %d devices: what they send each other is not modelled", r.engines, r.meta.Model, tensor)
	}
	if profile.KVTokens, err = r.cache(model); err != nil {
		return profile, err
	}
	profile.BatchLimit = e.Sequences
	return profile, nil
}

// cache is the size of an engine's KV cache in tokens: what is recorded, else what is
// left of the memory.
func (r record) cache(model serving.ModelFigures) (capacity.Tokens, error) {
	if r.meta.Cache.Tokens > 0 {
		return capacity.Tokens(r.meta.Cache.Tokens), nil
	}
	tensor := max(1, r.meta.Engine.Tensor)
	if r.sharing {
		model.Parameters -= model.Experts.Parameters * (1 - 1/float64(r.engines))
	}
	arguments := serving.Arguments{TensorParallel: tensor, MemoryShare: r.meta.Cache.Share, MaxBatchedTokens: r.meta.Engine.BatchedTokens}
	tokens, _ := serving.KVCapacity(serving.CacheConfig{}, arguments, serving.MemoryOf(model, arguments, r.memory, tensor))
	if tokens == 0 {
		return 0, fmt.Errorf("%s leaves no room for a KV cache on %d devices of %.0f GiB; expected kv_cache.num_kv_tokens", r.meta.Model, tensor, r.memory)
	}
	return tokens, nil
}

// rows is how far off every row is predicted. They are done two at a time, because
// they know nothing of each other.
func (j judge) rows(rows []row, constants efficiency) ([]miss, error) {
	misses, failures := make([]miss, len(rows)), make([]error, len(rows))
	var workers sync.WaitGroup
	for worker := range 2 {
		workers.Go(func() {
			for i := worker; i < len(rows); i += 2 {
				var predicted statistics
				predicted, failures[i] = j.row(rows[i], constants)
				misses[i] = predicted.against(rows[i].measured)
			}
		})
	}
	workers.Wait()
	for _, err := range failures {
		if err != nil {
			return nil, err
		}
	}
	return misses, nil
}

// The search for the constants starts here and goes in steps of a factor, which are
// halved until they are below the last one.
var firstGuess = efficiency{Overhead: 2, Arithmetic: 0.7}

const firstStep, lastStep = 0.3, 0.01

// fit finds the constants with the least mean error of mean TTFT and mean time per
// output token over the rows. It is a pattern search in their logarithms.
func (j judge) fit(rows []row) (efficiency, error) {
	loss := func(e efficiency) (float64, error) {
		misses, err := j.rows(rows, e)
		if err != nil {
			return 0, err
		}
		mean := meanSize(misses)
		return mean[0] + mean[2], nil
	}
	best := firstGuess
	least, err := loss(best)
	for step := firstStep; step >= lastStep && err == nil; {
		better := false
		for _, move := range [][2]float64{{1, 0}, {-1, 0}, {0, 1}, {0, -1}} {
			candidate := best
			candidate.Overhead *= capacity.Milliseconds(math.Exp(step * move[0]))
			candidate.Arithmetic *= math.Exp(step * move[1] / 2)
			var l float64
			if l, err = loss(candidate); err != nil {
				return best, err
			}
			if l < least {
				best, least, better = candidate, l, true
				break
			}
		}
		if !better {
			step /= 2
		}
	}
	return best, err
}
