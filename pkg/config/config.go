package config

import (
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// Config is the configuration of the manager.
type Config struct {
	Static
	Dynamic
	// Warnings name settings that were given and have no effect.
	Warnings []string
}

// Static is read once. To change it the manager is restarted.
type Static struct {
	Prometheus     Prometheus
	Serving        Serving
	LeaderElection LeaderElection
	// RESTClientTimeout bounds one request to the API server.
	RESTClientTimeout time.Duration
	// WatchNamespace is the only namespace that is watched; empty means all.
	WatchNamespace string
	// ControllerInstance is the instance whose objects are handled; empty means the
	// objects that belong to none.
	ControllerInstance string
	// PodNamespace is the namespace that the manager runs in, where its leases and
	// ConfigMaps are.
	PodNamespace string
	// SaturationConfigMap is the name of the ConfigMap in PodNamespace that holds
	// the saturation thresholds.
	SaturationConfigMap string
	// AcceleratorNamesConfigMap is the name of the ConfigMap in PodNamespace that names
	// accelerators by the values of their product labels.
	AcceleratorNamesConfigMap string
	// ConfigMap is the name of the ConfigMap in PodNamespace whose key config.yaml
	// is the configuration file.
	ConfigMap string
}

// Prometheus says where samples come from.
type Prometheus struct {
	// BaseURL is the address without the path of the API.
	BaseURL string
	// AllowHTTP permits an address without TLS.
	AllowHTTP bool
	// TokenPath is the file of a bearer token, which is read again when it changes;
	// empty means no token.
	TokenPath string
	// CACertPath is the file of the authorities that sign the server's certificate;
	// empty means those of the system.
	CACertPath string
	// ClientCertPath and ClientKeyPath are the files of the client certificate;
	// both are empty without one.
	ClientCertPath, ClientKeyPath string
	// ServerName is the name that the server's certificate must carry; empty means
	// the host of BaseURL.
	ServerName string
	// InsecureSkipVerify accepts any certificate.
	InsecureSkipVerify bool
}

// Serving says where the manager answers.
type Serving struct {
	// MetricsBindAddress is where metrics are served; "0" means nowhere.
	MetricsBindAddress string
	// MetricsSecure serves metrics over TLS to authorised readers only.
	MetricsSecure bool
	// MetricsCertPath is the directory of the serving certificate; empty means a
	// self-signed one.
	MetricsCertPath string
	// MetricsCertName and MetricsCertKey are the file names in MetricsCertPath.
	MetricsCertName, MetricsCertKey string
	// HealthProbeBindAddress is where /healthz and /readyz are served; "0" means
	// nowhere.
	HealthProbeBindAddress string
}

// LeaderElection says whether and how one of several managers leads.
type LeaderElection struct {
	Enabled       bool
	ID            string
	LeaseDuration time.Duration
	RenewDeadline time.Duration
	RetryPeriod   time.Duration
}

// Dynamic may change while the manager runs.
type Dynamic struct {
	// Interval is the time between two full rounds.
	Interval time.Duration
	// Limited is set for clusters that do not grow.
	Limited bool
	// MetricsWindow is the window of averages and rates in queries.
	MetricsWindow time.Duration
	// Drain is the time in which a backlog is to be served.
	Drain time.Duration
	// StartupDeadline is how long a starting replica counts as supply while no
	// start-up was seen.
	StartupDeadline time.Duration
	// Freshness are the age limits of samples.
	Freshness decision.Freshness
	// Saturation are the thresholds by model.
	Saturation Saturation
}

// Policy is what the configuration allows. The policies of the variants come from
// their objects, through VariantPolicy, and are not part of it.
func (d Dynamic) Policy() decision.Policy {
	p := decision.DefaultPolicy()
	p.Limited = d.Limited
	p.Drain = d.Drain
	p.StartupDeadline = d.StartupDeadline
	p.Interval = d.Interval
	p.Window = d.MetricsWindow
	p.Freshness = d.Freshness
	p.Saturation = d.Saturation.Default
	p.SaturationByModel = d.Saturation.ByModel
	return p
}
