package prometheustest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/common/route"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/tsdb"
	v1 "github.com/prometheus/prometheus/web/api/v1"
	"github.com/stretchr/testify/require"
)

// Stale is the value that a scraper writes for a series that is gone.
var Stale = math.Float64frombits(value.StaleNaN)

// Prometheus holds samples and answers queries. It is safe for concurrent use.
type Prometheus struct {
	// Handler is the HTTP API below /api/v1.
	Handler http.Handler

	t      testing.TB
	db     *tsdb.DB
	parser parser.Parser
}

// New returns an empty Prometheus that is closed with the test.
func New(t testing.TB) *Prometheus {
	options := tsdb.DefaultOptions()
	options.MinBlockDuration = (24 * time.Hour).Milliseconds()
	options.MaxBlockDuration = options.MinBlockDuration
	db, err := tsdb.Open(t.TempDir(), promslog.NewNopLogger(), nil, options, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })

	p := &Prometheus{t: t, db: db, parser: parser.NewParser(parser.Options{})}
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples:    50_000_000,
		Timeout:       time.Minute,
		LookbackDelta: 5 * time.Minute,
		Parser:        p.parser,
		// As cmd/prometheus sets it since 2.33.
		EnableAtModifier: true,
	})
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	router := route.New()
	api := *prototype()
	api.QueryEngine, api.Queryable = engine, p.db
	api.Register(router.WithPrefix("/api/v1"))
	p.Handler = router
	return p
}

// prototype is the HTTP API without storage. Making one renders its description,
// which takes longer than a test of a few queries; it is made once.
var prototype = sync.OnceValue(func() *v1.API {
	return v1.NewAPI(
		nil, nil, nil, nil, nil,
		func(context.Context) v1.ScrapePoolsRetriever { return nil },
		func(context.Context) v1.TargetRetriever { return nil },
		func(context.Context) v1.AlertmanagerRetriever { return nil },
		func() config.Config { return config.Config{} },
		nil, v1.GlobalURLOptions{},
		func(f http.HandlerFunc) http.HandlerFunc { return f },
		nil, "", false, false, 0, promslog.NewNopLogger(),
		func(context.Context) v1.RulesRetriever { return nil },
		0, 0, 0, false, nil,
		func() (v1.RuntimeInfo, error) { return v1.RuntimeInfo{}, nil },
		&v1.PrometheusVersion{}, nil, nil, nil, nil, nil,
		false, nil, false, false, false, false, 5*time.Minute, false, false,
		nil, nil, v1.OpenAPIOptions{}, parser.NewParser(parser.Options{}),
	)
})

// Append stores one scrape: values by series, written as in a query, such as
// `up{job="a"}`. Samples of one series must be appended in the order of time.
func (p *Prometheus) Append(at time.Time, values map[string]float64) {
	p.t.Helper()
	if err := p.append(at, values); err != nil {
		p.t.Errorf("storing a scrape: %v", err)
	}
}

func (p *Prometheus) append(at time.Time, values map[string]float64) error {
	appender := p.db.Appender(context.Background())
	for series, v := range values {
		labels, err := p.parser.ParseMetric(series)
		if err == nil {
			_, err = appender.Append(0, labels, at.UnixMilli(), v)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", series, err), appender.Rollback())
		}
	}
	return appender.Commit()
}
