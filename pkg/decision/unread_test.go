package decision

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
)

// freshnessOf is what the stage of freshness says of a variant.
func freshnessOf(t *testing.T, v *limit.Variant) string {
	t.Helper()
	for _, step := range v.Plan.Steps {
		if step.Stage == StageFreshness {
			return textOf(step.Detail)
		}
	}
	require.Fail(t, "no step of freshness")
	return ""
}

// judged is what the stage of freshness says of each of the variants of one model.
func judged(t *testing.T, variants ...*Variant) []string {
	t.Helper()
	r, m, _ := bare(DefaultPolicy(), Memory{}, variants[0])
	for _, other := range variants[1:] {
		_, _, v := bare(DefaultPolicy(), Memory{}, other)
		m.Variants = append(m.Variants, v)
		m.Stack()
	}
	for _, v := range m.Variants {
		v.Load = within(r, v).LoadOf(&within(r, m).Model.Model.Model.Model)
	}
	m.Load = m.LoadOfAll()
	within(r, m).Freshness()
	var all []string
	for _, v := range m.Variants {
		all = append(all, freshnessOf(t, v))
	}
	return all
}

func observed(name string, replicas ...Replica) *Variant {
	return &Variant{Name: name, Ready: len(replicas), Current: len(replicas), Replicas: replicas}
}

// Whatever is not known is named: which metric, and of which pods, on the variant that they are of.
func TestWhatIsNotKnownIsNamed(t *testing.T) {
	known := Sample{Value: 0.1, Time: epoch, Present: true}
	old := Sample{Value: 0.1, Time: epoch.Add(-90 * time.Second), Present: true}
	replica := func(name string, kv, waiting Sample) Replica {
		return Replica{Name: name, Since: epoch.Add(-time.Hour), KVUse: kv, Waiting: waiting}
	}
	good := replica("good", known, known)
	begun := replica("begun", Sample{}, Sample{})
	begun.Since = epoch.Add(-10 * time.Second)
	many := []Replica{good}
	for i := range 6 {
		many = append(many, replica(fmt.Sprint("p-", i), Sample{}, Sample{}))
	}
	for name, c := range map[string]struct {
		replicas []Replica
		want     string
	}{
		"all are known":      {[]Replica{good}, "1 of 1 serving replicas have fresh metrics"},
		"none of two":        {[]Replica{good, replica("b", Sample{}, Sample{}), replica("a", Sample{}, Sample{})}, "; no metrics: a, b; let these pods be scraped and keep these metrics"},
		"one metric of one":  {[]Replica{good, replica("a", Sample{}, known)}, "; KV cache use missing: a; let"},
		"one is old":         {[]Replica{good, replica("a", known, old)}, "; waiting requests old: a"},
		"each in its way":    {[]Replica{good, replica("a", old, old), replica("b", Sample{}, Sample{})}, "; metrics old: a; no metrics: b; let"},
		"who has just begun": {[]Replica{good, begun}, "; not scraped yet: begun"},
		"many":               {many, fmt.Sprintf("; no metrics: p-0, p-1, p-2 and %d more", 6-mostNamed)},
	} {
		said := judged(t, observed("v", c.replicas...), observed("w", replica("other", known, known)))
		if strings.HasPrefix(c.want, ";") {
			assert.Contains(t, said[0], " serving replicas have fresh metrics"+c.want, name)
			assert.NotContains(t, said[1], ";", "%s: it is not of this variant", name)
		}
	}
}

// What is scraped seldom or known late is told, with what to change, and the text does not change with
// each estimate.
func TestTheIntervalTheLagAndTheWindowAreTold(t *testing.T) {
	known := Sample{Value: 0.1, Time: epoch, Present: true}
	of := func(p Pace) string {
		return judged(t, observed("v", Replica{Name: "p", Since: epoch.Add(-time.Hour), KVUse: known, Waiting: known, Pace: p}))[0]
	}
	assert.NotContains(t, of(Pace{Interval: 15 * time.Second}), "scraped")
	seldom := of(Pace{Interval: time.Minute, Window: 150 * time.Second})
	assert.Contains(t, seldom, "1 of 1 serving replicas have fresh metrics; scraped about every 1m0s and read over 2m30s: ")
	assert.Contains(t, seldom, "metrics window of 1m0s")
	assert.Equal(t, seldom, of(Pace{Interval: 63 * time.Second, Window: 150 * time.Second}))
	assert.Contains(t, of(Pace{Interval: 15 * time.Second, Lag: 45 * time.Second, Window: time.Minute}), "scraped about every 15s, known about 45s late and read over 1m0s: ")
}

// Why a rate is not known is told, too.
func TestAnUnknownRateNamesItsPods(t *testing.T) {
	r, m, v := bare(DefaultPolicy(), Memory{}, observed("v", Replica{Name: "p", Since: epoch.Add(-time.Hour)}))
	assert.Equal(t, "no fresh rate of completed requests over 1m0s: p", textOf(within(r, m).Unrated()))
	known := Sample{Value: 1, Time: epoch, Present: true}
	v.In.Replicas[0].Served, v.In.Replicas[0].InFlightGrowth = known, known
	assert.Empty(t, textOf(within(r, m).Unrated()))
	m.In.Arrival = Sample{Value: 1, Time: epoch.Add(-90 * time.Second), Present: true}
	assert.Equal(t, "the gateway's count is old", textOf(within(r, m).Unrated()))
}
