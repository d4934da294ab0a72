package prometheus

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/types"

	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
)

// Steps writes PromQL about what the servers of one model showed in each step of a time. A value
// that was not scraped within a step is not known; it may have grown.
type Steps struct {
	q        builder
	matchers string
}

// StepsOf are those of a model by the name that its servers give it, and of a namespace; empty
// means all.
func StepsOf(step time.Duration, model, namespace string) Steps {
	s := Steps{newBuilder(step, 0), fmt.Sprintf("%s=%q", modelserver.LabelModel, model)}
	if namespace != "" {
		s.matchers += fmt.Sprintf(",%s=%q", modelserver.LabelNamespace, namespace)
	}
	return s
}

// Over is a function over each step of a quantity, one value for each engine. The suffix is that
// of a part of a histogram.
func (s Steps) Over(function string, quantity modelserver.Quantity, suffix string) string {
	return s.q.ofEngines("sum", each(quantity, func(series string) string {
		series = narrowed(series+suffix, s.matchers)
		return s.q.whole("sum", fmt.Sprintf("%s(%s[%s])", function, series, s.q.window), series)
	}))
}

// EqualCaches is how many KV caches there were of each size that labels say, of all models: no
// version has the model there.
func (s Steps) EqualCaches() string {
	return ofPods("max", perPod+","+sizes, s.q.unlessAgain(s.q.equalBlocks()))
}

// Quantile is that of the observations of a histogram within a length of time, over all servers.
func (s Steps) Quantile(quantile string, quantity modelserver.Quantity, length time.Duration) string {
	return each(quantity, func(series string) string {
		return fmt.Sprintf("histogram_quantile(%s, sum by (le) (increase(%s[%s])))", quantile, narrowed(series+"_bucket", s.matchers), promDuration(length))
	})
}

// Range asks a range query. An error names what it is about, in words.
func (c *Client) Range(ctx context.Context, about, promQL string, r v1.Range) (model.Matrix, error) {
	return c.over(ctx, asking(about, promQL), r, r.End)
}

// PodOf is the pod that the labels of a series name; false where they name none.
func PodOf(labels model.Metric) (types.NamespacedName, bool) { return podOf(labels) }

// over asks a range query. The time is when that is.
func (c *Client) over(ctx context.Context, q query, r v1.Range, now time.Time) (model.Matrix, error) {
	ctx, cancel := context.WithTimeout(c.limits.bounded(ctx), c.timeout)
	defer cancel()
	value, warnings, err := c.api.QueryRange(ctx, q.promQL(), r)
	if err = cmp.Or(err, partial(warnings)); err != nil {
		c.crowds.crowded(ctx, err, now, c.limits)
		return nil, fmt.Errorf("prometheus %s: looking back for the %s: %w", c.address, q.about, cause(err))
	}
	matrix, ok := value.(model.Matrix)
	if !ok {
		return nil, fmt.Errorf("prometheus %s: looking back for the %s: the answer is a %s and not a matrix", c.address, q.about, value.Type())
	}
	return slices.DeleteFunc(matrix, func(s *model.SampleStream) bool { return s == nil }), nil
}
