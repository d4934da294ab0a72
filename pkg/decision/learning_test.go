package decision

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/need"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
)

// Who states another profile is believed until servers show otherwise, who states none any
// more takes nothing back, and while versions are mixed nothing is learned.
func TestWhatWasLearnedEndsWithTheServer(t *testing.T) {
	at := onH100.Steady(10, conv)
	seen := serving.Learned{}.Observe(serving.Observation{Point: serving.Point{Shape: conv, Batch: 10, Rate: at.Rate, ITL: 3 * at.ITL}})
	learned := LatencyMemory{Learned: seen, Estimate: serving.Estimate{Profile: onH100, Confidence: 1}, Given: onH100, Pace: 3, Fitted: epoch}
	shows := Replica{Name: "r", Since: epoch.Add(-time.Hour)}
	for sample, value := range map[*Sample]float64{
		&shows.Running: 20, &shows.Served: 5, &shows.ITL: 0.01, &shows.Waiting: 0, &shows.Input: 300, &shows.Output: 300,
	} {
		*sample = Sample{Value: value, Time: epoch, Present: true}
	}
	for name, c := range map[string]struct {
		given   serving.Profile
		rolling bool
		want    LatencyMemory
		points  int
	}{
		"the same":         {onH100, false, learned, 2},
		"another profile":  {onH100.Paced(0.5), false, LatencyMemory{Given: onH100.Paced(0.5), Pace: 1, Fitted: epoch}, 1},
		"none any more":    {serving.Profile{}, false, learned, 2},
		"a rolling update": {onH100, true, learned, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r, m, v := bare(hybrid(DefaultPolicy(), capacity.SLO{ITL: 25}), Memory{}, &Variant{
				Name: "v", Request: request("H100", 1), Current: 1, Ready: 1, Profile: c.given, Rolling: c.rolling, Replicas: []Replica{shows},
			})
			m.Demand.Tokens = conv
			v.Next.Latency = learned
			within(r, m).WatchLatency()
			got := v.Next.Latency
			assert.Len(t, got.Learned.Seen, c.points)
			assert.Equal(t, c.rolling, !got.Changed.IsZero())
			got.Learned, got.Changed = c.want.Learned, time.Time{}
			assert.Equal(t, c.want, got)
		})
	}
}

// What a slowdown showed that is over does not count beside a given profile that is right about
// what is seen now. It does while that is slow, and where no profile is given.
func TestASlowdownThatIsOverDoesNotCount(t *testing.T) {
	seen := func(slower float64, lately float64) (l serving.Learned) {
		for i, batch := range []float64{2, 3, 4.5, 6.5, 20, 30, 45, 65} {
			at, longer, ago := onH100.Steady(batch, conv), slower, time.Hour
			if batch < 10 {
				longer, ago = lately, time.Minute
			}
			l = l.Observe(serving.Observation{Time: epoch.Add(time.Duration(i)*time.Second - ago), Point: serving.Point{
				Shape: conv, Batch: batch, Rate: at.Rate, ITL: at.ITL * capacity.Milliseconds(longer),
			}})
		}
		return l
	}
	for name, c := range map[string]struct {
		given          serving.Profile
		slower, lately float64
		want           float64
	}{
		"it is over":                        {onH100, 3, 1, 1},
		"the servers are a little slower":   {onH100, 1.3, 1, 1.3},
		"it goes on":                        {onH100, 3, 3, 3},
		"nobody says how fast they are":     {serving.Profile{}, 3, 1, 3},
		"the profile is wrong":              {onH100.Paced(2), 3, 1, 3},
		"who is slow shows too little else": {onH100, 1.7, 1, 1},
	} {
		l := LatencyMemory{Learned: seen(c.slower, c.lately), Given: c.given, Pace: 1.4}
		rate.Estimate(&l, c.given, l.Learned.After(epoch.Add(-2*time.Minute)))
		profile := l.Estimate.Profile
		if !l.Estimate.Usable() {
			profile = c.given.Paced(l.Pace)
		}
		slow := float64(profile.Steady(65, conv).ITL / onH100.Steady(65, conv).ITL)
		assert.InEpsilon(t, c.want, slow, 0.25, name)
		assert.Len(t, l.Learned.Seen, 8, "nothing is forgotten")
	}
}

// Replicas that found no node are not withdrawn for what the others serve while more is
// wanted: they would be asked for again.
func TestNothingIsWithdrawnWhileMoreIsWanted(t *testing.T) {
	for wanted, withdrawn := range map[need.Want]bool{need.WantMore: false, 0: true, need.WantLess: true} {
		_, m, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Request: request("H100", 1), Current: 3, Ready: 2})
		v.Rate, m.Rated, m.Demand.Seen = rate.Rate{Trigger: 5, Max: 5}, true, true
		m.Need.Required, m.Need.Want = 8, wanted
		assert.Equal(t, withdrawn, m.PlacedSuffices(), "%v", wanted)
	}
}
