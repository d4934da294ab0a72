package load_test

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// queryPage is where the queries are that people are given.
const queryPage = "../../../docs/tasks/hpa-and-keda.md"

// ofTwo requests per second are served by two replicas of which none may go.
const ofTwo = 3.4

var promQLBlock = regexp.MustCompile("(?s)```promql\n(.*?)```")

// Every query of the page is one line of a block, after a comment that says what it is. Each has an answer here,
// and that of the same thing under two names is the same.
func theDocumentedQueries(t *testing.T, w *world) {
	text, err := os.ReadFile(queryPage)
	require.NoError(t, err)
	s := w.site(t, "llama")
	x := s.target(t, plan{name: "server", model: "llama", instance: brisk, kind: "h20", replicas: 2, held: true})
	load := s.clients(t, "llama")
	x.steady(t, load, ofTwo)

	// What is not among them has any answer.
	type expected struct{ value, share float64 }
	wanted := map[string]expected{
		"replicas that are wanted": {2, 0},
		"replicas that are wanted, where Prometheus keeps the labels of the manager": {2, 0},
		"the same under the name of earlier versions":                                {2, 0},
		"replicas that are there":                                                    {2, 0},
		"wanted replicas over those that are there":                                  {1, 0},
		"requests per minute":                                                        {60 * ofTwo, 0.15},
		"input tokens per request":                                                   {input, 0},
		"output tokens per request":                                                  {output, 0},
		// An iteration takes as long as it takes, whatever the machine does.
		"milliseconds per further token":                                       {iteration, 0.02},
		"milliseconds per further token, under the earlier name":               {iteration, 0.02},
		"seconds per further token by our latency model over what is observed": {1, 0.1},
	}
	what, answered := "", 0
	for _, block := range promQLBlock.FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(block[1]) {
			line = strings.TrimSpace(line)
			if comment, ok := strings.CutPrefix(line, "# "); ok {
				what = comment
				continue
			}
			// A minute is more than the test waits for.
			query := strings.ReplaceAll(x.own(line), "[1m]", "[20s]")
			want, known := wanted[what]
			eventually(t, 2*patience, fmt.Sprintf("the answer to %q: %s", what, query), func() (string, bool) {
				value, found := s.query(t, query)
				right := !known || math.Abs(value-want.value) <= want.share*want.value
				return fmt.Sprint(value, found), found && !math.IsNaN(value) && right
			})
			answered++
			delete(wanted, what)
		}
	}
	assert.Empty(t, wanted, "the page lacks them")
	assert.Positive(t, answered)
}
