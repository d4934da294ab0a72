package closedloop

import (
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

var (
	oneSeed   = flag.Int64("seed", -1, "play the scenario of this seed alone, and tell its story")
	seeds     = flag.Int("seeds", usualSeeds, "how many seeds to play, from -from on")
	from      = flag.Int("from", 0, "the first of them")
	shrinking = flag.Bool("shrink", false, "make the scenario of -seed smaller, as long as the same check fails")
	wanted    = flag.String("check", "", "the check that -shrink looks for; empty is the first one that fails")
)

// TestSeeds plays the scenarios of many seeds. The first that fails tells its story; of the
// rest it says which failed at what.
func TestSeeds(t *testing.T) {
	t.Parallel()
	if *oneSeed >= 0 {
		w := play(t, seeded(uint64(*oneSeed)))
		t.Log(w.tell())
		return
	}
	// The decision makes much garbage and keeps little.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	var next atomic.Int64
	next.Store(int64(*from))
	var mutex sync.Mutex
	failed := map[Check][]int{}
	end := *from + *seeds
	first := end
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for seed := int(next.Add(1)) - 1; seed < end; seed = int(next.Add(1)) - 1 {
				w := run(drawScenario(seeded(uint64(seed))), decision.Decide, "")
				mutex.Lock()
				for _, f := range w.story.failures {
					failed[f.check] = append(failed[f.check], seed)
					first = min(first, seed)
				}
				mutex.Unlock()
			}
		})
	}
	group.Wait()
	if len(failed) > 0 {
		w := run(drawScenario(seeded(uint64(first))), decision.Decide, "")
		assert.Fail(t, "scenarios failed", "%s\nseed %d, which -seed %d -shrink makes smaller:\n%s", tally(failed), first, first, w.tell())
	}
}

// tally says how many seeds failed at what.
func tally(failed map[Check][]int) string {
	lines := make([]string, 0, len(failed))
	for check, seeds := range failed {
		slices.Sort(seeds)
		lines = append(lines, fmt.Sprintf("%s: %d, among them %v", check, len(seeds), seeds[:min(20, len(seeds))]))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// play plays the scenario of some bytes.
func play(t *testing.T, data []byte) *world {
	t.Helper()
	s := drawScenario(data)
	w := run(s, decision.Decide, "")
	if len(w.story.failures) == 0 {
		return w
	}
	if *shrinking {
		check := Check(*wanted)
		if check == "" {
			check = w.story.failures[0].check
		}
		w = run(shrink(s, decision.Decide, check), decision.Decide, "")
	}
	assert.Fail(t, "the scenario failed", w.tell())
	return w
}

// FuzzClosedLoop plays the scenarios of whatever bytes the fuzzer finds. Bytes of zero
// draw what is simplest.
func FuzzClosedLoop(f *testing.F) {
	f.Add([]byte{})
	for seed := range uint64(4) {
		f.Add(seeded(seed)[:256])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > seedBytes {
			t.Skip("no scenario draws so many bytes")
		}
		play(t, data)
	})
}

func TestASmallerScenarioStillFails(t *testing.T) {
	t.Parallel()
	s := drawScenario(seeded(3))
	s.Models[0].Load = []Point{{Rate: 0}}
	tooMany := always(12)
	w := run(s, tooMany, "")
	assert.True(t, w.failed(CheckSpare), w.tell())
	small := shrink(s, tooMany, CheckSpare)
	assert.True(t, run(small, tooMany, CheckSpare).failed(CheckSpare))
	assert.Len(t, small.Models, 1)
	assert.Len(t, small.Models[0].Variants, 1)
	assert.Empty(t, small.Faults)
	assert.Less(t, len(small.String()), len(s.String()))
}

// Scenarios that failed once: a switch was undone and made again for ever; what a replica
// serves within the promise fell by a tenth for an estimate that moved by a thousandth; a
// variant that was hardly asked was taken to serve little more; the rate at the triggers fell
// with the load of each replica, so that replicas were added for ever, or that as many were
// taken as were missing then.
func TestSeedsThatFailedOnce(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{2286, 3274, 3564, 4324, 21598, 21698} {
		w := run(drawScenario(seeded(seed)), decision.Decide, "")
		assert.Empty(t, w.story.failures, "seed %d", seed)
	}
}
