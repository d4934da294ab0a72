package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
)

// Headline says in a sentence for each start-up time which policy wins, and by what: of
// those that meet the SLO for the share of the requests that is asked for, the one that costs
// least. References, which know the future, do not compete. It is empty where nobody does.
func Headline(results []replay.Result, share float64) string {
	var startups []float64
	for i := range results {
		if s := results[i].StartupSeconds; !slices.Contains(startups, s) {
			startups = append(startups, s)
		}
	}
	var sentences []string
	for _, startup := range startups {
		var competitors []*replay.Result
		for i := range results {
			if r := &results[i]; r.StartupSeconds == startup && r.Requests > 0 && replay.KindOf(r.Policy) != replay.KindReference {
				competitors = append(competitors, r)
			}
		}
		sentence := headline(competitors, share)
		if sentence != "" && len(startups) > 1 {
			sentence = fmt.Sprintf("Start-up %s: %s", spokenSeconds(startup), sentence)
		}
		if sentence != "" {
			sentences = append(sentences, sentence)
		}
	}
	return strings.Join(sentences, " ")
}

// ReplayHeadline is the headline as lines for a terminal, each within the width of the style.
func ReplayHeadline(results []replay.Result, share float64, style Style) []string {
	if text := Headline(results, share); text != "" {
		return style.wrap(text)
	}
	return nil
}

func headline(competitors []*replay.Result, share float64) string {
	if len(competitors) == 0 {
		return ""
	}
	slo := "the SLO for " + trimmedShare(share) + " of the requests"
	var keepers []*replay.Result
	for _, r := range competitors {
		if r.Attainment >= share {
			keepers = append(keepers, r)
		}
	}
	slices.SortStableFunc(keepers, func(a, b *replay.Result) int {
		return cmp.Or(cmp.Compare(weight(a), weight(b)), cmp.Compare(b.Attainment, a.Attainment))
	})
	slices.SortStableFunc(competitors, func(a, b *replay.Result) int {
		return cmp.Or(cmp.Compare(b.Attainment, a.Attainment), cmp.Compare(weight(a), weight(b)))
	})
	best := competitors[0]
	switch {
	case len(keepers) == 0 && len(competitors) == 1:
		return fmt.Sprintf("%s does not meet %s: it meets it for %s, at %s.", best.Policy, slo, attained(best.Attainment), spent(best))
	case len(keepers) == 0:
		return fmt.Sprintf("No policy meets %s. %s comes closest with %s, at %s.", slo, best.Policy, attained(best.Attainment), spent(best))
	case len(competitors) == 1:
		return fmt.Sprintf("%s meets %s (%s), at %s%s.", best.Policy, slo, attained(best.Attainment), spent(best), overBound(best))
	case len(keepers) == 1:
		next := competitors[slices.IndexFunc(competitors, func(r *replay.Result) bool { return r != keepers[0] })]
		return fmt.Sprintf("%s wins: it alone meets %s (%s), at %s%s. Next is %s with %s, at %s.",
			keepers[0].Policy, slo, attained(keepers[0].Attainment), spent(keepers[0]), overBound(keepers[0]), next.Policy, attained(next.Attainment), spent(next))
	}
	win, next := keepers[0], keepers[1]
	return fmt.Sprintf("%s wins: of the %d policies that meet %s it %s least, %s%s. %s",
		win.Policy, len(keepers), slo, costs(win), spent(win), overBound(win), compared(win, next))
}

// compared is how much less the first costs than the second.
func compared(win, next *replay.Result) string {
	less := 0.0
	if weight(next) > 0 {
		less = 1 - weight(win)/weight(next)
	}
	switch {
	case spent(next) == spent(win):
		return fmt.Sprintf("%s %s the same.", next.Policy, costs(next))
	case less < 0.005:
		return fmt.Sprintf("%s %s about as much, %s.", next.Policy, costs(next), spent(next))
	}
	return fmt.Sprintf("That is %.0f%% less than %s, the next, with %s.", 100*less, next.Policy, spent(next))
}

func overBound(r *replay.Result) string {
	if r.CostOverBound <= 0 {
		return ""
	}
	return fmt.Sprintf(", %.2f times the bound", r.CostOverBound)
}

// weight is what results are compared by: what they cost, or where a price is not known the hours of
// devices.
func weight(r *replay.Result) float64 {
	if r.Unpriced {
		return r.GPUHours
	}
	return r.Cost
}

// spent says what a result is compared by.
func spent(r *replay.Result) string {
	if r.Unpriced {
		return short(r.GPUHours) + " GPU hours"
	}
	return dollars(r.Cost)
}

// costs is the word for it.
func costs(r *replay.Result) string {
	if r.Unpriced {
		return "takes"
	}
	return "costs"
}

func dollars(cost float64) string { return "$" + short(cost) }

// trimmedShare is a share without zeros at its end: 99%, 99.5%.
func trimmedShare(share float64) string {
	return fmt.Sprintf("%g%%", math.Round(share*1e4)/100)
}

// tooLongNote says why requests failed that fit no replica; none where all fitted.
func tooLongNote(results []replay.Result) string {
	worst, others := -1, 0
	for i := range results {
		t := results[i].TooLong
		if t == nil {
			continue
		}
		if worst < 0 || t.Requests > results[worst].TooLong.Requests {
			worst = i
		}
		others++
	}
	if worst < 0 {
		return ""
	}
	t := results[worst].TooLong
	text := fmt.Sprintf("%s of %s failed because they are too long for the replica that got them: the longest has %s prompt and %s generated tokens, and the KV cache of a replica of %s holds %s",
		quantity(t.Requests, "request", "requests"), results[worst].Policy, grouped(t.Input), grouped(t.Output), t.Variant, grouped(t.KVTokens))
	if t.Requests == 1 {
		text = strings.Replace(text, "they are too long for the replica that got them: the longest has", "it is too long for the replica that got it: it has", 1)
	}
	if others > 1 {
		text += fmt.Sprintf("; such requests failed in %s", quantity(others, "run", "runs"))
	}
	return text + "."
}
