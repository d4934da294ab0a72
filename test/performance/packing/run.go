package main

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// replayAll replays every seed under every policy, on all cores, and calls done after
// each replay, from several goroutines. The result is by policy, then by seed, and does
// not depend on the number of cores.
func replayAll(s *Study, seeds []uint64, done func()) [][]Curve {
	curves := make([][]Curve, len(policies))
	for p := range curves {
		curves[p] = make([]Curve, len(seeds))
	}
	streams := make([]Stream, len(seeds))
	for i, seed := range seeds {
		streams[i] = s.stream(seed)
	}
	// The slowest policy goes first, so that no core waits long at the end.
	next := atomic.Int64{}
	jobs := int64(len(policies) * len(seeds))
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			mine := make([]Policy, len(policies))
			for job := next.Add(1) - 1; job < jobs; job = next.Add(1) - 1 {
				p, i := len(policies)-1-int(job)/len(seeds), int(job)%len(seeds)
				if mine[p] == nil {
					mine[p] = policies[p].make(s)
				}
				curves[p][i] = replay(s, streams[i], seeds[i], mine[p])
				done()
			}
		})
	}
	workers.Wait()
	return curves
}
