package config

import (
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// Config is the configuration of the manager.
type Config struct {
	Static
	Dynamic
	// Warnings name settings that were given and have no effect, and say why.
	Warnings []string
	// inForce are the values of all settings as they were written, by key.
	inForce map[string]found
}

// Static is read once. To change it the manager is restarted.
type Static struct {
	// MetricsSource says where samples of the replicas come from.
	MetricsSource  MetricsSource
	Prometheus     Prometheus
	PodMetrics     PodMetrics
	Gateway        Gateway
	Serving        Serving
	LeaderElection LeaderElection
	Webhook        Webhook
	// LlamaStackServerAddress, host:port, stands in the place of every Llama Stack server's Service;
	// empty on a network that knows Services.
	LlamaStackServerAddress string
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
	// PodName is the name of the manager's pod; empty for that of its host.
	PodName string
	// SaturationConfigMap is the name of the ConfigMap in PodNamespace that holds
	// the saturation thresholds.
	SaturationConfigMap string
	// AcceleratorNamesConfigMap is the name of the ConfigMap in PodNamespace that names
	// accelerators by the values of their product labels.
	AcceleratorNamesConfigMap string
	// ServiceClassConfigMap is the name of the ConfigMap in PodNamespace that holds the
	// service classes.
	ServiceClassConfigMap string
	// UnitCostConfigMap is the name of the ConfigMap in PodNamespace that holds the
	// prices of accelerators.
	UnitCostConfigMap string
	// ScaleToZeroConfigMap is the name of the ConfigMap in PodNamespace that says which
	// models may scale to zero.
	ScaleToZeroConfigMap string
	// NamespaceConfig lets the namespaces of models have ConfigMaps of their own, and be left
	// alone, as Local says.
	NamespaceConfig bool
	// ConfigMap is the name of the ConfigMap in PodNamespace that holds the settings.
	ConfigMap string
}

// MetricsSource is where samples of the replicas come from.
type MetricsSource string

// The sources of samples.
const (
	// SourcePrometheus asks Prometheus, which scrapes the pods.
	SourcePrometheus MetricsSource = "prometheus"
	// SourcePods scrapes the pods itself, for clusters without Prometheus.
	SourcePods MetricsSource = "pods"
)

// PodMetrics says how pods are scraped when they are the source of samples.
type PodMetrics struct {
	// ScrapeInterval is the time between two scrapes of a pod, or of a gateway.
	ScrapeInterval time.Duration
	// Scheme is http or https.
	Scheme string
	// Port is where a pod that names no port of its own serves its metrics.
	Port int
	// TokenPath is the file of a bearer token, which is read again when it changes and
	// sent only where Scheme is https; empty means no token.
	TokenPath string
	// CACertPath is the file of the authorities that sign the pods' certificates; empty
	// means those of the system.
	CACertPath string
	// ServerName is the name that the pods' certificates must carry; empty means the
	// address of the pod.
	ServerName string
	// InsecureSkipVerify accepts any certificate.
	InsecureSkipVerify bool
}

// Gateway says where the endpoint picker of a gateway tells what waits.
type Gateway struct {
	// MetricsURLs are the metrics pages of the endpoint picker, each with scheme, host
	// and path. Every address that a host resolves to is scraped, because each of
	// several pickers knows only its own queue; at the scrape interval, and every second
	// while a model sleeps.
	MetricsURLs []string
	// Namespaces are those whose gateways count for the models of all namespaces; empty for those of
	// the hosts in MetricsURLs. Trusted says which these are.
	Namespaces []string
	// Token is a bearer token; empty for that of TokenPath.
	Token string
	// TokenPath is the file of a bearer token, which is read again when it changes;
	// empty means no token.
	TokenPath string
	// CACertPath is the file of the authorities that sign the picker's certificate;
	// empty means those of the system.
	CACertPath string
	// InsecureSkipVerify accepts any certificate.
	InsecureSkipVerify bool
}

// Prometheus says how Prometheus is asked.
type Prometheus struct {
	// BaseURL is the address without the path of the API.
	BaseURL string
	// AllowHTTP permits an address without TLS.
	AllowHTTP bool
	// Token is a bearer token; empty for that of TokenPath.
	Token string
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
	// HTTPConfigPath is the path of a file with the login, headers, TLS and proxy, which is read again when
	// it changes; empty means none.
	HTTPConfigPath string
	// Matchers narrow every query, as PromQL writes them between braces; empty means that
	// the server holds this cluster alone.
	Matchers string
}

// Serving says where the manager answers.
type Serving struct {
	// MetricsBindAddress is where metrics are served; "0" means nowhere.
	MetricsBindAddress string
	// MetricsSecure serves metrics over TLS to authorised readers only.
	MetricsSecure bool
	// PublishedMetrics adds the metrics under the names of earlier versions.
	PublishedMetrics bool
	// MetricsCertPath is the directory of the serving certificate; empty means a
	// self-signed one.
	MetricsCertPath string
	// MetricsCertName and MetricsCertKey are the file names in MetricsCertPath.
	MetricsCertName, MetricsCertKey string
	// HealthProbeBindAddress is where /healthz and /readyz are served; "0" means
	// nowhere.
	HealthProbeBindAddress string
}

// Webhook says where webhooks are served, and with which certificate.
type Webhook struct {
	// Host and Port are where they are served; an empty host is every address.
	Host string
	Port int
	// CertPath is the directory of the certificate.
	CertPath string
	// CertName and CertKey are the file names in CertPath.
	CertName, CertKey string
	// CertSecret is the name of the Secret in PodNamespace in which the manager keeps a
	// certificate of its own; empty where somebody else sees to the one in CertPath.
	CertSecret string
	// Service is the name, in PodNamespace, by which the API server calls.
	Service string
	// Configuration is the ValidatingWebhookConfiguration for LlamaStackDistribution.
	Configuration string
	// ValidateVariants is set where VariantAutoscaling objects are checked before they are
	// stored, and VariantsConfiguration is the ValidatingWebhookConfiguration for it.
	ValidateVariants      bool
	VariantsConfiguration string
	// PlacePods is set where the pods of variants are told where to go, and
	// PodsConfiguration is the MutatingWebhookConfiguration for it. Scheduler is theirs.
	PlacePods         bool
	PodsConfiguration string
	Scheduler         string
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
	// Verbosity is how much is logged: 0 little, 2 the decisions, 4 their inputs.
	Verbosity int
	// Interval is the time between two full rounds.
	Interval time.Duration
	// Limited is set for clusters that do not grow. It changes only with a restart.
	Limited bool
	// Hybrid adds sizing for the promised latency to what saturation asks for. It changes
	// only with a restart.
	Hybrid bool
	// Share is the share of requests, above 0 and below 1, that is to keep the promised
	// latency.
	Share float64
	// Risk is the quantile of the forecast demand that replicas are sized for.
	Risk float64
	// History lets the forecast know earlier days.
	History bool
	// Growth bounds how fast a variant without scaleUp policies grows.
	Growth decision.Growth
	// ConflictWindow is the time within which the same writer who sets the same number of
	// replicas again is in conflict with this program.
	ConflictWindow time.Duration
	// Horizon is the time within which a switch to another variant must pay.
	Horizon time.Duration
	// Idle says whether and when models may scale to zero of which ScaleToZero says
	// nothing. Whether changes only with a restart.
	Idle decision.Idle
	// GatewayPatience is how long a request may wait at a gateway whose pool has no endpoints; 0 is
	// for as long as its client waits, or not known. No decision depends on it.
	GatewayPatience time.Duration
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
	// ServiceClasses are what was promised to the models' clients.
	ServiceClasses ServiceClasses
	// UnitCosts are the prices of accelerators.
	UnitCosts UnitCosts
	// ScaleToZero says by model whether and when it may scale to zero.
	ScaleToZero ScaleToZero
}

// Policy is what the configuration allows. The policies of the variants come from
// their objects, through VariantPolicy, and are not part of it; and neither is what
// depends on the models that there are, which Promise and IdleOf say of each.
func (d Dynamic) Policy() decision.Policy {
	p := decision.DefaultPolicy()
	p.Limited = d.Limited
	p.Hybrid = d.Hybrid
	p.Share = d.Share
	p.Risk = d.Risk
	p.History = d.History
	p.Growth, p.ConflictWindow = d.Growth, d.ConflictWindow
	p.Horizon = d.Horizon
	p.Idle = d.ScaleToZero.Default.over(d.Idle)
	p.Drain = d.Drain
	p.StartupDeadline = d.StartupDeadline
	p.Interval = d.Interval
	p.Window = d.MetricsWindow
	p.Freshness = d.Freshness
	p.Saturation = d.Saturation.Default
	p.SaturationByModel = d.Saturation.ByModel
	return p
}

// IdleOf says whether and when one model may scale to zero.
func (d Dynamic) IdleOf(key decision.ModelKey) decision.Idle {
	return d.ScaleToZero.of(key, d.Idle)
}

// Promise is what was promised to the clients of one model. References are those of
// the model's variants that name a service class, in an order that does not change.
func (d Dynamic) Promise(model decision.ModelKey, references []ClassReference) decision.Promise {
	return d.ServiceClasses.in(model.Namespace).promise(model.ID, references)
}
