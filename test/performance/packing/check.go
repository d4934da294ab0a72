package main

import (
	"fmt"
	"math"
	"strings"
)

// The published means on the default list at 100 % arrived, which show that this is
// the same study, how near a replay has to come, and what ours is to reach: a tenth
// below the 96.30 that it reaches.
const (
	publishedBestFit  = 92.86
	publishedGradient = 95.23
	near              = 0.5
	leastOurs         = 96.2
	// leastLead is in standard errors of the paired lead over the gradient.
	leastLead = 2
)

// verify holds the means on the default list against the study, and says whether all
// is as it should be.
func verify(curves [][]Curve) (text string, good bool) {
	var b strings.Builder
	good = true
	b.WriteString("\nAgainst the study, at 100 % arrived:\n")
	say := func(holds bool, format string, args ...any) {
		verdict := "ok"
		if !holds {
			good, verdict = false, "MISSED"
		}
		fmt.Fprintf(&b, "  %-55s %s\n", fmt.Sprintf(format, args...), verdict)
	}
	for _, published := range []struct {
		policy string
		mean   float64
	}{{"bestfit", publishedBestFit}, {"gradient", publishedGradient}} {
		got := meanAt(curves, published.policy, 100)
		say(math.Abs(got-published.mean) <= near, "%-9s %.2f  within %.1f of %.2f", published.policy, got, near, published.mean)
	}
	ours := meanAt(curves, "ours", 100)
	say(ours >= leastOurs, "%-9s %.2f  at least %.1f", "ours", ours, leastOurs)
	lead, standardError, _ := paired(curves, "ours", "gradient", 100)
	say(lead > leastLead*standardError, "%-9s %+.2f  more than %d standard errors of %.3f", "the lead", lead, leastLead, standardError)
	return b.String(), good
}

func meanAt(curves [][]Curve, policy string, pct int) float64 {
	sum, of := 0.0, curves[indexOf(policy)]
	for i := range of {
		sum += of[i][pct]
	}
	return sum / float64(len(of))
}
