package localcluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/rest"
)

// Metrics is what a program of this cluster shows on its metrics page, by the name of the metric. It is asked
// with the administrator's certificate, and any certificate of its own is taken: the address is one that this
// cluster gave it.
func (c *Cluster) Metrics(ctx context.Context, url string) (map[string]*dto.MetricFamily, error) {
	tlsConfig, err := rest.TLSConfigFor(c.admin)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	tlsConfig.RootCAs, tlsConfig.InsecureSkipVerify = nil, true // #nosec G402: a self-signed one on the loopback
	tlsConfig.MinVersion = tls.VersionTLS12
	transport := &http.Transport{TLSClientConfig: tlsConfig, DisableKeepAlives: true}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", url, err)
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("ask %s: %s", url, response.Status), response.Body.Close())
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, fmt.Errorf("read %s: %w", url, err)
	}
	return families, nil
}

// Total is the sum of all series of a counter or gauge among metrics; 0 without any.
func Total(metrics map[string]*dto.MetricFamily, name string) float64 {
	sum := 0.0
	for _, m := range metrics[name].GetMetric() {
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
	}
	return sum
}
