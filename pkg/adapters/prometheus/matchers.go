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

func (c oneCluster) narrow(query string) (string, error) {
	expression, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		return "", err
	}
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		if s, ok := node.(*parser.VectorSelector); ok {
			s.LabelMatchers = append(s.LabelMatchers, c.matchers...)
		}
		return nil
	})
	return expression.String(), nil
}
