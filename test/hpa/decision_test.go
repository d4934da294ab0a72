package hpa

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/replay/horizontal"
)

// table is what the controller makes of policies, for the test of pkg/decision that reads it.
const table = "../../pkg/decision/testdata/hpa-policies.txt"

var update = flag.Bool("update", false, "write the table of pkg/decision anew")

// The policies of pkg/decision have the controller's meaning: its table is what the controller
// does. Shares are quarters: of others the controller's floating point makes one more now and
// then (10 % more than 10 are 12), which pkg/decision does not follow. Both directions have
// the same policies: a change that only the other direction looks back to is lost to the
// controller.
func TestTheTableOfTheDecisionIsTheController(t *testing.T) {
	var lines strings.Builder
	lines.WriteString("# direction, selection, policies (count or share / period) | age:replicas of earlier rounds | current wanted | what the HPA of Kubernetes makes of it\n")
	for seed := range uint64(250) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 2))
			b := randomBehavior(random)
			b.Window = 0
			for i := range b.Policies {
				if p := &b.Policies[i]; p.Percent > 0 {
					p.Percent = 25 * (1 + random.IntN(6))
				}
			}
			ours := &horizontal.Autoscaler{Min: 1, Max: 1000, Behavior: &horizontal.Behavior{Up: b, Down: b}}
			w := &world{replicas: int32(1 + random.IntN(60))}
			sync := w.controlled(t, objectOf(ours, 1000, 0, true))
			const rounds = 11
			var seen []string
			for round := range rounds {
				wanted := 1 + random.IntN(120)
				before := w.replicas
				w.pods, w.outside = make([]pod, before), int64(wanted)*1000
				sync()
				if round < rounds-1 || wanted == int(before) {
					seen = append(seen, fmt.Sprintf("%d:%d", (rounds-1-round)*int(step/time.Second), before))
					continue
				}
				fmt.Fprintf(&lines, "%s | %s | %d %d | %d\n", written(b, wanted > int(before)), strings.Join(seen, " "), before, wanted, w.replicas)
			}
		})
	}
	if *update {
		require.NoError(t, os.WriteFile(table, []byte(lines.String()), 0o600))
	}
	text, err := os.ReadFile(table)
	require.NoError(t, err)
	assert.Equal(t, lines.String(), string(text), "go test -C test/hpa -run Table . -update writes it anew")
}

// written is one direction in a line.
func written(b decision.Behavior, up bool) string {
	words := []string{"down", string(b.Select)}
	if up {
		words[0] = "up"
	}
	for _, p := range b.Policies {
		amount := fmt.Sprint(p.Pods)
		if p.Percent > 0 {
			amount = fmt.Sprintf("%d%%", p.Percent)
		}
		words = append(words, fmt.Sprintf("%s/%s", amount, p.Period))
	}
	return strings.Join(words, " ")
}
