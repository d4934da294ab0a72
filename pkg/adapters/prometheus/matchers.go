package prometheus

import (
	"regexp"
	"slices"
	"strings"

	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
)

// selector finds the names of metrics in a query, each with the brace that opens its matchers.
var selector = func() *regexp.Regexp {
	var names []string
	for _, m := range slices.Concat(modelserver.OfServer(), []modelserver.Metric{modelserver.Of(modelserver.MeanInterToken)}, modelserver.OfGateway()) {
		names = append(names, m.Names...)
	}
	return regexp.MustCompile(`\b(?:` + strings.Join(names, "|") + `)[a-z_]*\{?`)
}()

// narrow puts the matchers of this cluster into every selector of a query. That is done where
// queries are sent, so that none is forgotten.
func (c *Client) narrow(promQL string) string {
	if c.matchers == "" {
		return promQL
	}
	return selector.ReplaceAllStringFunc(promQL, func(found string) string {
		if name, more := strings.CutSuffix(found, "{"); more {
			return name + "{" + c.matchers + ","
		}
		return found + "{" + c.matchers + "}"
	})
}
