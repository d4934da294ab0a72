package adopt

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/prometheus"
)

const (
	// scrapePatience bounds the look at Prometheus: the objects do not wait for it.
	scrapePatience = 10 * time.Second
	// ofManager is a series that a manager shows whatever objects there are.
	ofManager = "wva_last_round_timestamp_seconds"
)

// scraped says what is wrong with Prometheus, without which nothing can be compared later: that it cannot
// be asked, or does not scrape the manager. It is empty where all is well.
func (o *options) scraped(ctx context.Context, api client.Reader) string {
	ctx, cancel := context.WithTimeout(ctx, scrapePatience)
	defer cancel()
	server, err := o.prometheus.Find(ctx, api, o.cluster)
	if err != nil {
		return unseen(err)
	}
	return seriesOf(ctx, server)
}

// seriesOf says what is wrong where the server has no series of a manager.
func seriesOf(ctx context.Context, server *prometheus.Server) string {
	found, err := server.Now(ctx, ofManager)
	switch {
	case err != nil:
		return unseen(err)
	case len(found) == 0:
		return "Prometheus has no metrics of the manager, so `kubectl wva shadow` will have nothing to compare: if the manager is new, wait for two scrapes; else let Prometheus scrape it (wva.metrics.serviceMonitor and wva.prometheus.serviceAccountName of the chart)"
	}
	return ""
}

func unseen(err error) string {
	return fmt.Sprintf("whether Prometheus scrapes the manager cannot be seen, which `kubectl wva shadow` needs: %v", err)
}
