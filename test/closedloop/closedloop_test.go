package closedloop

import (
	"flag"
	"runtime"
	"sort"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

var (
	oneSeed   = flag.Int64("seed", -1, "play only the scenario of this seed and tell its story")
	seedCount = flag.Int("seeds", 0, "how many seeds to play; 0 is the usual number")
	wanted    = flag.String("check", "", "the check to make a scenario smaller for; empty is the first that fails")
	shrinking = flag.Bool("shrink", false, "make a failing scenario smaller before its story is told")
	counting  = flag.Bool("tally", false, "count the failures of all seeds by check")
)

func TestSeeds(t *testing.T) {
	t.Parallel()
	if *oneSeed >= 0 {
		play(t, seeded(uint64(*oneSeed)))
		return
	}
	seeds := *seedCount
	if seeds == 0 {
		seeds = 2000
	}
	var next atomic.Int64
	var mutex sync.Mutex
	failed := map[Check][]int64{}
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for seed := next.Add(1) - 1; seed < int64(seeds); seed = next.Add(1) - 1 {
				w := run(drawScenario(seeded(uint64(seed))), decision.Decide, "")
				mutex.Lock()
				for _, f := range w.story.failures {
					failed[f.check] = append(failed[f.check], seed)
				}
				mutex.Unlock()
			}
		})
	}
	group.Wait()
	if *counting {
		for check, seeds := range failed {
			sort.Slice(seeds, func(i, j int) bool { return seeds[i] < seeds[j] })
			t.Log(len(seeds), check, seeds[:min(30, len(seeds))])
		}
	}
	require.Empty(t, failed)
}

func play(t *testing.T, data []byte) {
	s := drawScenario(data)
	w := run(s, decision.Decide, "")
	if len(w.story.failures) == 0 {
		t.Log(w.tell())
		return
	}
	if *shrinking {
		check := Check(*wanted)
		if check == "" {
			check = w.story.failures[0].check
		}
		s = shrink(s, decision.Decide, check)
		w = run(s, decision.Decide, "")
	}
	require.Fail(t, "the scenario failed", w.tell())
}
