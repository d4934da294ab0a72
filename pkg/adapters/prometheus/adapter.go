package prometheus

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/types"

	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
)

const adapters = "adapters in use"

// Adapters returns, by pod, the names of the adapters that it shows at an instant and that were in use
// lately. It is one query, in whose answer each pod has a few rows, however many adapters there are.
func (c *Client) Adapters(ctx context.Context, at time.Time) (map[types.NamespacedName][]string, error) {
	vector, err := c.instant(ctx, adapterLists(), at)
	if err != nil {
		return nil, err
	}
	lists := map[types.NamespacedName][]modelserver.AdapterList{}
	for _, s := range vector {
		if pod, ok := podOf(s.Metric); ok {
			lists[pod] = append(lists[pod], modelserver.AdapterList{
				Used:    number(s),
				Running: string(s.Metric[model.LabelName(modelserver.LabelRunningAdapters)]),
				Waiting: string(s.Metric[model.LabelName(modelserver.LabelWaitingAdapters)]),
			})
		}
	}
	all := map[types.NamespacedName][]string{}
	for pod, of := range lists {
		if names := modelserver.AdaptersOf(of, at); len(names) > 0 {
			all[pod] = names
		}
	}
	return all, nil
}

func adapterLists() query {
	labels := strings.Join([]string{perPod, modelserver.LabelRunningAdapters, modelserver.LabelWaitingAdapters}, ",")
	shown := each(modelserver.Adapters, func(series string) string { return series })
	return asking(adapters, fmt.Sprintf("topk by (%s) (%d, %s)", perPod, modelserver.MostAdapterLists, ofPods("max", labels, shown)))
}
