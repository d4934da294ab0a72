package decision

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/settle"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// Policies have the meaning that the HPA of Kubernetes gives to them: each line of the table is
// what its controller made of some, and test/hpa checks that it still does.
func TestPoliciesAreThoseOfTheHPA(t *testing.T) {
	text, err := os.ReadFile("testdata/hpa-policies.txt")
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")[1:]
	require.Greater(t, len(lines), 200)
	for _, line := range lines {
		part := strings.Split(line, " | ")
		require.Len(t, part, 4, line)
		var current, wanted, want int
		_, err := fmt.Sscan(part[2]+" "+part[3], &current, &wanted, &want)
		require.NoError(t, err, line)
		b, up := behaviorIn(t, part[0])
		policy := DefaultPolicy()
		policy.Growth = Growth{}
		r := &limit.Round{Round: signal.Round{Snapshot: &Snapshot{Time: epoch}, Policy: &policy, Kind: RoundFull}}
		v := variantOf(func(it *limit.Variant) {
			it.In, it.Key, it.Managed, it.Target = &Variant{Name: "v", Current: current}, Key{Namespace: "ns", Name: "v"}, true, wanted
		})
		v.Old.History = historyIn(t, part[1])
		v.Policy = VariantPolicy{Max: -1, Up: b, Down: b}
		if up {
			most, _ := r.MayReach(within(r, v))
			assert.Equal(t, want, min(wanted, most), line)
			continue
		}
		settle.ApplyBehavior(r, within(r, modelOf(func(it *limit.Model) { it.Variants = []*limit.Variant{v} })), nil, nil, false)
		assert.Equal(t, want, v.Target, line)
	}
}

// behaviorIn reads one direction: "up Max 4/15s 25%/1m0s".
func behaviorIn(t *testing.T, text string) (b Behavior, up bool) {
	t.Helper()
	words := strings.Fields(text)
	b.Select = Select(words[1])
	for _, word := range words[2:] {
		amount, period, _ := strings.Cut(word, "/")
		var p RatePolicy
		var err error
		p.Period, err = time.ParseDuration(period)
		require.NoError(t, err)
		if share, is := strings.CutSuffix(amount, "%"); is {
			p.Percent, err = strconv.Atoi(share)
		} else {
			p.Pods, err = strconv.Atoi(amount)
		}
		require.NoError(t, err)
		b.Policies = append(b.Policies, p)
	}
	return b, words[0] == "up"
}

// historyIn reads the replicas that earlier rounds found: "30:4 15:6".
func historyIn(t *testing.T, text string) (past []HistoryEntry) {
	t.Helper()
	for word := range strings.FieldsSeq(text) {
		var age, replicas int
		_, err := fmt.Sscanf(word, "%d:%d", &age, &replicas)
		require.NoError(t, err)
		at := epoch.Add(-time.Duration(age) * time.Second)
		past = append(past, HistoryEntry{From: at, Until: at, Replicas: replicas, Decided: true})
	}
	return past
}
