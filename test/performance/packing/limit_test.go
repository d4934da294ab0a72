package main

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

// classesOf are classes of one device's share each, with what they ask for in sum.
func classesOf(demand map[int]float64) []Class {
	var classes []Class
	for share, d := range demand {
		classes = append(classes, Class{Devices: 1, Share: share, Popularity: d / float64(share)})
	}
	return classes
}

func TestLimitsByHand(t *testing.T) {
	for name, c := range map[string]struct {
		demand            map[int]float64
		keeping, refusing float64
	}{
		"whole devices":       {map[int]float64{1000: 1}, 1, 1},
		"halves":              {map[int]float64{500: 0.5, 1000: 0.5}, 1, 1},
		"one on each device":  {map[int]float64{600: 1}, 0.6, 0.6},
		"one and its rest":    {map[int]float64{600: 0.6, 400: 0.4}, 1, 1},
		"too few for the gap": {map[int]float64{800: 0.9, 200: 0.1}, 0.9, 0.9},
		// Half of the demand fits whole and half leaves a fifth free: who places both alike
		// comes to 1/(0.5+0.5/0.8); who may refuse places all of the whole ones.
		"one that is better refused": {map[int]float64{1000: 0.5, 800: 0.5}, 1 / (0.5 + 0.5/0.8), 0.5 + 0.5*0.8},
	} {
		keeping, refusing := limits(classesOf(c.demand))
		assert.InDelta(t, c.refusing, refusing, 1e-9, name)
		assert.InDelta(t, c.keeping, keeping, 1e-9, name)
	}
}

// Nobody who places all that fits does better in the mean, first fit and best fit on devices
// without CPU among them. Each stream is held against the limit of what came in it. A single
// one may be more than half a point above it. The mean of sixteen is at most 0.06 points above
// it on these seeds, which is noise, and may be 0.07: by so much is 96.4 above the limit of the
// default list. The test shows nothing finer, nothing of CPU, and nothing of a policy that
// chooses better; for that there is the proof.
func TestNobodyIsAboveTheLimits(t *testing.T) {
	const devices, streams = 400, 16
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		demand := map[int]float64{}
		for range 2 + random.IntN(4) {
			demand[10*(5+random.IntN(96))] += random.Float64()
		}
		for _, tightest := range []bool{false, true} {
			above := 0.0
			for range streams {
				handed, arrived := filled(random, demand, devices, tightest)
				keeping, refusing := limits(classesOf(arrived))
				assert.LessOrEqual(t, keeping, refusing+1e-9, "seed %d", seed)
				above += (handed - keeping) / streams
			}
			assert.Less(t, above, 0.0007, "seed %d, best fit %v: %v", seed, tightest, demand)
		}
	}
}

// filled is the part of the devices that is handed out when as much has arrived as there is,
// and what has arrived of each share.
func filled(random *rand.Rand, demand map[int]float64, devices int, tightest bool) (part float64, arrived map[int]float64) {
	var shares []int
	for _, share := range slices.Sorted(maps.Keys(demand)) {
		for range int(1 + 1000*demand[share]/float64(share)*100) {
			shares = append(shares, share)
		}
	}
	free := make([]int, devices)
	for i := range free {
		free[i] = whole
	}
	handed := 0
	arrived = map[int]float64{}
	for sum := 0; sum < devices*whole; {
		share := shares[random.IntN(len(shares))]
		sum += share
		arrived[share] += float64(share)
		best := -1
		for i, f := range free {
			if f >= share && (best < 0 || tightest && f < free[best]) {
				if best = i; !tightest {
					break
				}
			}
		}
		if best >= 0 {
			free[best] -= share
			handed += share
		}
	}
	return float64(handed) / float64(devices*whole), arrived
}
