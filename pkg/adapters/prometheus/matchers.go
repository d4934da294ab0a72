package prometheus

import (
	"context"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// oneCluster puts the matchers of this cluster into every selector of every query. That is done
// where queries are sent, so that none is forgotten.
type oneCluster struct {
	v1.API
	matchers []*labels.Matcher
}

func (c oneCluster) Query(ctx context.Context, query string, at time.Time, options ...v1.Option) (model.Value, v1.Warnings, error) {
	narrowed, err := c.narrow(query)
	if err != nil {
		return nil, nil, err
	}
	return c.API.Query(ctx, narrowed, at, options...)
}

func (c oneCluster) QueryRange(ctx context.Context, query string, r v1.Range, options ...v1.Option) (model.Value, v1.Warnings, error) {
	narrowed, err := c.narrow(query)
	if err != nil {
		return nil, nil, err
	}
	return c.API.QueryRange(ctx, narrowed, r, options...)
}

func (c oneCluster) narrow(query string) (string, error) { return narrow(query, c.matchers) }

// longest is how long a query is at most, a little less than VictoriaMetrics takes
// (-search.maxQueryLen, 16 KiB by default).
const longest = 15 << 10

// shortened are as few queries as ask for all parts of one, none of them longer than a server takes.
// A part that is too long alone is asked as it is, and the server says what it has against it.
func (q query) shortened(matchers []*labels.Matcher) []query {
	var all []query
	length := 0
	for _, part := range q.parts {
		long := len(part)
		if len(matchers) > 0 {
			if text, err := narrow(part, matchers); err == nil {
				long = len(text)
			}
		}
		if last := len(all) - 1; last >= 0 && length+len(" or ")+long <= longest {
			all[last].parts, length = append(all[last].parts, part), length+len(" or ")+long
			continue
		}
		all, length = append(all, asking(q.about, part)), long
	}
	return all
}

// narrow puts matchers into every selector.
func narrow(query string, matchers []*labels.Matcher) (string, error) {
	expression, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		return "", err
	}
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		if s, ok := node.(*parser.VectorSelector); ok {
			s.LabelMatchers = append(s.LabelMatchers, matchers...)
		}
		return nil
	})
	return expression.String(), nil
}
