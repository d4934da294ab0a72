package sentence

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
)

// Of is what a finding says; empty where it says nothing.
func Of(f contract.Finding) string {
	form, with := &forms[f.Says()], f.Args()
	switch f.Says() {
	case contract.SaysClauses:
		return strings.Join(texts(with), "; ")
	case contract.SaysListed:
		return strings.Join(texts(with), ", ")
	case contract.SaysMix:
		return strings.Join(texts(with), " and ")
	case contract.SaysUnread:
		return strings.Join(slices.Sorted(slices.Values(texts(with))), "; ")
	case contract.SaysMessage:
		return message(texts(with))
	case contract.SaysTooFull, contract.SaysTooManyWait, contract.SaysLoad:
		return filled(form.text, with[:2]) + beside(with[2], with[3])
	case contract.SaysLost:
		return lost(with)
	case contract.SaysMet:
		return met(with[0].(contract.Share), with[1].(contract.Share))
	case contract.SaysWithinBucket:
		target, bucket := with[2].(capacity.Milliseconds), with[3].(contract.Bucket)
		return fmt.Sprintf(form.text, Of(with[0].(contract.Finding)), with[1], written(target), bucketText(bucket), bucketEnds(bucket))
	}
	if form.one != "" && with[form.counted] == 1 {
		return filled(form.one, with)
	}
	return filled(form.text, with)
}

// form is how a sentence is said.
type form struct {
	// text is its format.
	text string
	// one is that for a count of one, and counted which argument is the count.
	one     string
	counted int
}

// filled is a format with what stands in it.
func filled(format string, with []any) string {
	if len(with) == 0 {
		return format
	}
	args := make([]any, len(with))
	for i, what := range with {
		args[i] = shown(what)
	}
	return fmt.Sprintf(format, args...)
}

// shown is an argument as formats take it.
func shown(what any) any {
	switch what := what.(type) {
	case contract.Finding:
		return Of(what)
	case []string:
		return fewOf(what)
	case capacity.Rate:
		return rate(what)
	case contract.Share:
		return 100 * float64(what)
	case time.Time:
		return what.UTC().Format(time.TimeOnly)
	}
	return what
}

// rate is one that formats show with as many digits as tell a small one from none.
type rate capacity.Rate

func (r rate) String() string { return perSecond(capacity.Rate(r)) }

func perSecond(rate capacity.Rate) string {
	const small, digits, bits = 0.1, 2, 64
	if rate < small {
		return strconv.FormatFloat(float64(rate), 'g', digits, bits)
	}
	return strconv.FormatFloat(float64(rate), 'f', digits, bits)
}

// mostNamed is how many replicas a text names.
const mostNamed = 3

// fewOf names some replicas and says how many others there are.
func fewOf(names []string) string {
	names = slices.Sorted(slices.Values(names))
	if more := len(names) - mostNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNamed], ", "), more)
	}
	return strings.Join(names, ", ")
}

// mostMessage is how long a message may become by another clause; the steps tell all.
const mostMessage = 120

// joined is the message with one more clause, where that says more and leaves it short.
func joined(message, clause string) string {
	if strings.Contains(message, clause) || len(message)+len("; ")+len(clause) > mostMessage {
		return message
	}
	return message + "; " + clause
}

// message is its first clause, with those of the others that fit.
func message(clauses []string) string {
	text := clauses[0]
	for _, clause := range clauses[1:] {
		text = joined(text, clause)
	}
	return text
}

func texts(with []any) []string {
	all := make([]string, len(with))
	for i, f := range with {
		all[i] = Of(f.(contract.Finding))
	}
	return all
}

// beside says which replicas are left out of the mean of the load, so that nobody holds it against
// the sum of all.
func beside(saturated, dead any) string {
	text := ""
	switch saturated {
	case 0:
	case 1:
		text = ", beside 1 that is saturated"
	default:
		text = fmt.Sprintf(", beside %d that are saturated", saturated)
	}
	if dead != 0 {
		text += fmt.Sprintf(", beside %d whose queue nobody serves", dead)
	}
	return text
}

// lost says which replicas do not come up, by state: "3 unschedulable, 2 without pod".
func lost(with []any) string {
	var parts []string
	for i, state := range []string{"unschedulable", "crash-looping", "overdue", "on a node that is not ready", "without pod"} {
		if with[i] != 0 {
			parts = append(parts, fmt.Sprintf("%d %s", with[i], state))
		}
	}
	text := strings.Join(parts, ", ")
	if with[len(with)-1] == true {
		text += ": the rollout is paused"
	}
	return text
}

// met says which share of requests kept a promise.
func met(sure, most contract.Share) string {
	least, greatest := fmt.Sprintf("%.1f%%", 100*max(0, sure)), fmt.Sprintf("%.1f%%", 100*most)
	if least == greatest {
		return least + " of the requests met the SLO"
	}
	return least + " to " + greatest + " of the requests met the SLO"
}

func bucketText(b contract.Bucket) string {
	if b.UpTo == 0 {
		return fmt.Sprintf("the last one, above %s ms", written(b.Above))
	}
	return fmt.Sprintf("from %s to %s ms", written(b.Above), written(b.UpTo))
}

// bucketEnds are the targets of which the bucket tells.
func bucketEnds(b contract.Bucket) string {
	switch {
	case b.UpTo == 0:
		return written(b.Above)
	case b.Above == 0:
		return written(b.UpTo)
	}
	return written(b.Above) + " or " + written(b.UpTo)
}

// written is a number as one would write it into a setting.
func written(x capacity.Milliseconds) string { return fmt.Sprintf("%.10g", float64(x)) }
