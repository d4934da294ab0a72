package component

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/grafana/regexp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/route"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery"
	_ "github.com/prometheus/prometheus/discovery/file"       // file_sd_configs
	_ "github.com/prometheus/prometheus/discovery/kubernetes" // kubernetes_sd_configs
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/util/logging"
	api "github.com/prometheus/prometheus/web/api/v1"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
)

// followTargets is how long a new or deleted target may go unnoticed. The original waits five seconds in two
// places, to save work in clusters of thousands of pods.
const followTargets = time.Second

// runPrometheus is a Prometheus server: the real time series database, scraper, service discovery (pods of
// Kubernetes, files, static), query engine and HTTP API. Left out are what a playground has no use for: rules
// and alerts (their endpoints answer with empty lists), remote read and write, the web pages, reloading and
// the administration API.
func runPrometheus(ctx context.Context, args []string) error {
	flags := pflag.NewFlagSet("prometheus", pflag.ContinueOnError)
	configFile := flags.String("config.file", "prometheus.yml", "Path of the configuration.")
	dataDir := flags.String("storage.tsdb.path", "data", "Directory of the time series database.")
	address := flags.String("web.listen-address", "", "Address of the HTTP API.")
	if err := flags.Parse(args); err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
	configuration, err := config.LoadFile(*configFile, false, logger)
	if err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		return fmt.Errorf("listen for queries: %w", err)
	}
	defer func() { _ = listener.Close() }()
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	db, err := tsdb.Open(*dataDir, logger, registry, tsdb.DefaultOptions(), nil)
	if err != nil {
		return fmt.Errorf("open the time series database in %s: %w", *dataDir, err)
	}
	defer func() { _ = db.Close() }()
	server := &promServer{config: configuration, dir: *dataDir, db: db, registry: registry, logger: logger, started: time.Now()}
	return server.run(ctx, listener)
}

type promServer struct {
	config   *config.Config
	dir      string
	db       *tsdb.DB
	registry *prometheus.Registry
	logger   *slog.Logger
	started  time.Time
}

// run scrapes and answers queries until the context ends. The scraper stops before the caller closes the
// database.
func (s *promServer) run(ctx context.Context, listener net.Listener) error {
	group, ctx := errgroup.WithContext(ctx)
	targets, scraper, err := s.scraper(ctx)
	if err != nil {
		return err
	}
	handler, err := s.handler(scraper, listener.Addr().String())
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	group.Go(func() error {
		if err := targets.Run(); !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	})
	group.Go(func() error { return scraper.Run(targets.SyncCh()) })
	group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		scraper.Stop()
		return server.Close()
	})
	return group.Wait()
}

// scraper returns the discovery of targets and the scraper that follows it, both configured.
func (s *promServer) scraper(ctx context.Context) (*discovery.Manager, *scrape.Manager, error) {
	metrics, err := discovery.CreateAndRegisterSDMetrics(s.registry)
	if err != nil {
		return nil, nil, fmt.Errorf("register the metrics of service discovery: %w", err)
	}
	targets := discovery.NewManager(ctx, s.logger, s.registry, metrics, discovery.Updatert(followTargets))
	if targets == nil {
		return nil, nil, errors.New("make the service discovery: see the log above")
	}
	options := &scrape.Options{DiscoveryReloadInterval: model.Duration(followTargets)}
	scraper, err := scrape.NewManager(options, s.logger, logging.NewJSONFileLogger, nil, s.db, s.registry)
	if err != nil {
		return nil, nil, fmt.Errorf("make the scraper: %w", err)
	}
	if err := scraper.ApplyConfig(s.config); err != nil {
		return nil, nil, fmt.Errorf("configure the scraper: %w", err)
	}
	jobs, err := s.config.GetScrapeConfigs()
	if err != nil {
		return nil, nil, fmt.Errorf("read the scrape jobs: %w", err)
	}
	sources := map[string]discovery.Configs{}
	for _, job := range jobs {
		sources[job.JobName] = job.ServiceDiscoveryConfigs
	}
	if err := targets.ApplyConfig(sources); err != nil {
		return nil, nil, fmt.Errorf("configure the service discovery: %w", err)
	}
	return targets, scraper, nil
}

func (s *promServer) handler(scraper *scrape.Manager, address string) (http.Handler, error) {
	tracker, err := promql.NewActiveQueryTracker(s.dir, 20, s.logger)
	if err != nil {
		return nil, fmt.Errorf("make the query log in %s: %w", s.dir, err)
	}
	engine := promql.NewEngine(promql.EngineOpts{
		Logger:                   s.logger,
		Reg:                      s.registry,
		MaxSamples:               50_000_000,
		Timeout:                  2 * time.Minute,
		ActiveQueryTracker:       tracker,
		LookbackDelta:            5 * time.Minute,
		NoStepSubqueryIntervalFn: func(int64) int64 { return time.Duration(s.config.GlobalConfig.EvaluationInterval).Milliseconds() },
		EnableAtModifier:         true,
		EnableNegativeOffset:     true,
	})
	router := route.New()
	s.api(engine, scraper, address).Register(router.WithPrefix("/api/v1"))
	router.Get("/metrics", promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{}).ServeHTTP)
	// The database is open and the configuration applied before anything listens, so health is readiness.
	for _, path := range []string{"/-/healthy", "/-/ready"} {
		router.Get(path, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "Prometheus Server is Ready.\n")
		})
	}
	return router, nil
}

func (s *promServer) api(engine *promql.Engine, scraper *scrape.Manager, address string) *api.API {
	return api.NewAPI(
		engine, s.db, nil, nil, s.db,
		func(context.Context) api.ScrapePoolsRetriever { return scraper },
		func(context.Context) api.TargetRetriever { return scraper },
		func(context.Context) api.AlertmanagerRetriever { return nothing{} },
		func() config.Config { return *s.config },
		map[string]string{},
		api.GlobalURLOptions{ListenAddress: address, Host: address, Scheme: "http"},
		func(next http.HandlerFunc) http.HandlerFunc { return next },
		administration{s.db}, s.dir, false,
		false, 0,
		s.logger,
		func(context.Context) api.RulesRetriever { return nothing{} },
		0, 0, 0,
		false,
		regexp.MustCompile("^$"),
		s.runtimeInfo,
		&api.PrometheusVersion{Version: "embedded"},
		nil, nil,
		s.registry, s.registry,
		nil,
		false, nil, false, false, false, false,
		5*time.Minute,
		false, false,
		nil, nil,
		api.OpenAPIOptions{},
		nil,
	)
}

func (s *promServer) runtimeInfo() (api.RuntimeInfo, error) {
	return api.RuntimeInfo{StartTime: s.started, ServerTime: time.Now(), ReloadConfigSuccess: true, LastConfigTime: s.started}, nil
}

// nothing answers for the parts that are left out.
type nothing struct{}

func (nothing) RuleGroups() []*rules.Group           { return nil }
func (nothing) AlertingRules() []*rules.AlertingRule { return nil }
func (nothing) Alertmanagers() []*url.URL            { return nil }
func (nothing) DroppedAlertmanagers() []*url.URL     { return nil }

// administration is the database as the status pages of the API want it.
type administration struct{ *tsdb.DB }

func (a administration) Stats(label string, limit int) (*tsdb.Stats, error) {
	return a.Head().Stats(label, limit), nil
}

func (a administration) WALReplayStatus() (tsdb.WALReplayStatus, error) {
	return tsdb.WALReplayStatus{}, nil
}

func (a administration) BlockMetas() ([]tsdb.BlockMeta, error) { return a.DB.BlockMetas(), nil }
