package prometheus

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
)

// A range is asked whole. The longest name of a model and of a namespace fit, with a matcher of the cluster.
func TestQueriesThatLookBackAreNotTooLong(t *testing.T) {
	cluster := []*labels.Matcher{labels.MustNewMatcher(labels.MatchEqual, "cluster", "production-eu-west")}
	all := append(lookingBack(StepsOf(time.Minute, strings.Repeat("m", 128), strings.Repeat("n", 63))), completions())
	for _, q := range all {
		text, err := narrow(q.promQL(), cluster)
		require.NoError(t, err)
		assert.Less(t, max(len(text), len(q.promQL())), longest, q.about)
	}
}

// lookingBack are queries of all kinds that somebody looks back with.
func lookingBack(steps Steps) []query {
	all := []query{asking("caches", steps.EqualCaches())}
	for _, quantity := range []modelserver.Quantity{modelserver.Completed, modelserver.Running, modelserver.Waiting, modelserver.CacheTokens} {
		all = append(all, asking("a counter or a gauge", steps.Over("last_over_time", quantity, "")))
	}
	for _, quantity := range []modelserver.Quantity{modelserver.Prompt, modelserver.Generation, modelserver.FirstToken, modelserver.InterToken} {
		all = append(all, asking("a histogram", steps.Over("last_over_time", quantity, "_count")), asking("its tail", steps.Quantile("0.99", quantity, 24*time.Hour)))
	}
	return all
}
