package config

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// Kind is the form of a setting's values.
type Kind string

// The kinds of settings.
const (
	KindText     Kind = "text"
	KindBool     Kind = "bool"
	KindDuration Kind = "duration"
	KindShare    Kind = "share"
	KindPort     Kind = "port"
	KindList     Kind = "list"
)

// Key is one setting.
type Key struct {
	// Name is the name in the environment and in the configuration file.
	Name string
	Kind Kind
	// Default is the value where no place has one.
	Default string
	// Static settings need a restart to change.
	Static bool
	// Help says in one sentence what the setting does.
	Help string
	// Aliases are further names of the flag; in capitals they are further names of the
	// variable and of the entry.
	Aliases []string
	// Secret is set for a value that nobody may see.
	Secret bool

	set func(*Config, string) error
	// address is set where a value may hold a password, which nobody may see.
	address bool
	// locates is set where a setting says where the main ConfigMap is.
	locates bool
	// file is set where a value is the path of a file that must be there.
	file bool
	// off is set where an empty value turns something off that the default turns on.
	off bool
}

// emptyCounts reports whether an empty value that was given means something: it turns off what the
// default, or a place of lower precedence, turns on. An address cannot be turned off.
func (k Key) emptyCounts() bool {
	return k.off || k.Default == "" && (k.Kind == KindList || k.Kind == KindText && !k.address)
}

// Flag is the name of the setting's flag, without dashes in front.
func (k Key) Flag() string {
	return strings.ToLower(strings.ReplaceAll(k.Name, "_", "-"))
}

// flags are the names of its flag: its own, then the others.
func (k Key) flags() []string { return append([]string{k.Flag()}, k.Aliases...) }

// variables are its names in the environment and in ConfigMaps.
func (k Key) variables() []string {
	names := []string{k.Name}
	for _, alias := range k.Aliases {
		names = append(names, strings.ToUpper(strings.ReplaceAll(alias, "-", "_")))
	}
	return names
}

// Keys are all settings, in the order in which they are documented.
func Keys() []Key {
	return slices.Concat(sourceKeys(), programKeys(), placeKeys(), decisionKeys())
}

// sourceKeys say where samples come from.
func sourceKeys() []Key {
	return []Key{
		static("WVA_METRICS_SOURCE", string(SourcePrometheus), "Where the metrics of replicas come from: prometheus, or pods, which the manager then scrapes itself.",
			choice(func(c *Config, value string) { c.MetricsSource = MetricsSource(value) }, string(SourcePrometheus), string(SourcePods))),
		static("PROMETHEUS_BASE_URL", "", "Address of Prometheus, such as https://prometheus.monitoring:9090. It is required when WVA_METRICS_SOURCE is prometheus.",
			address(func(c *Config) *string { return &c.Prometheus.BaseURL })),
		static("PROMETHEUS_ALLOW_HTTP", "false", "Allow an address of Prometheus without TLS.",
			boolean(func(c *Config) *bool { return &c.Prometheus.AllowHTTP })),
		static("PROMETHEUS_BEARER_TOKEN", "", "Bearer token for Prometheus. It comes before PROMETHEUS_TOKEN_PATH. Everybody who may read the ConfigMap or the pod sees it: prefer the file.",
			secret(func(c *Config) *string { return &c.Prometheus.Token })),
		static("PROMETHEUS_TOKEN_PATH", "", "File with the bearer token for Prometheus. It is read again when it changes.",
			text(func(c *Config) *string { return &c.Prometheus.TokenPath })).ofFile(),
		static("PROMETHEUS_CA_CERT_PATH", "", "File with the CAs that sign the certificate of Prometheus. Without it, the CAs of the system count.",
			text(func(c *Config) *string { return &c.Prometheus.CACertPath })).ofFile(),
		static("PROMETHEUS_CLIENT_CERT_PATH", "", "File with the client certificate for Prometheus.",
			text(func(c *Config) *string { return &c.Prometheus.ClientCertPath })).ofFile(),
		static("PROMETHEUS_CLIENT_KEY_PATH", "", "File with the key of the client certificate for Prometheus.",
			text(func(c *Config) *string { return &c.Prometheus.ClientKeyPath })).ofFile(),
		static("PROMETHEUS_SERVER_NAME", "", "Name that the certificate of Prometheus must carry. Without it, the host of the address.",
			text(func(c *Config) *string { return &c.Prometheus.ServerName })),
		static("PROMETHEUS_TLS_INSECURE_SKIP_VERIFY", "false", "Accept any certificate of Prometheus.",
			boolean(func(c *Config) *bool { return &c.Prometheus.InsecureSkipVerify })),
		static("PROMETHEUS_HTTP_CONFIG_PATH", "", "File with the HTTP client configuration of Prometheus, in YAML: basic_auth, authorization, oauth2, http_headers, tls_config, proxy_url. Paths in it are relative to its folder. It is read again when it changes. It may not contradict the other PROMETHEUS_ settings.",
			text(func(c *Config) *string { return &c.Prometheus.HTTPConfigPath })).ofFile(),
		static("PROMETHEUS_MATCHERS", "", "Matchers of labels that every query gets, with commas between them, such as cluster=\"a\". If Prometheus has the series of several clusters (Thanos, Mimir), give the labels of this one. Otherwise the load of all clusters is added up.",
			text(func(c *Config) *string { return &c.Prometheus.Matchers })),

		static("POD_METRICS_SCRAPE_INTERVAL", "5s", "Time between two scrapes of a pod, when pods are the source, and of the pages in GATEWAY_METRICS_URLS.",
			duration(func(c *Config) *time.Duration { return &c.PodMetrics.ScrapeInterval })),
		static("POD_METRICS_SCHEME", "http", "How pods serve their metrics: http or https.",
			choice(func(c *Config, value string) { c.PodMetrics.Scheme = value }, "http", "https")),
		static("POD_METRICS_PORT", "8000", "Port of the metrics of a pod that names no port.",
			port(func(c *Config) *int { return &c.PodMetrics.Port })),
		static("POD_METRICS_TOKEN_PATH", "", "File with the bearer token for pods. It is sent only when POD_METRICS_SCHEME is https, and read again when it changes. Never use the manager's own account token: every pod would see it.",
			text(func(c *Config) *string { return &c.PodMetrics.TokenPath })).ofFile(),
		static("POD_METRICS_CA_CERT_PATH", "", "File with the CAs that sign the certificates of pods. Without it, the CAs of the system count.",
			text(func(c *Config) *string { return &c.PodMetrics.CACertPath })).ofFile(),
		static("POD_METRICS_SERVER_NAME", "", "Name that the certificates of pods must carry. Without it, the address of the pod.",
			text(func(c *Config) *string { return &c.PodMetrics.ServerName })),
		static("POD_METRICS_TLS_INSECURE_SKIP_VERIFY", "false", "Accept any certificate of a pod.",
			boolean(func(c *Config) *bool { return &c.PodMetrics.InsecureSkipVerify })),
		static("GATEWAY_METRICS_URLS", "", "Metrics pages of the gateway's endpoint picker, with commas between them, such as http://epp.gateway.svc:9090/metrics. Every address of each host is scraped, every second while a model sleeps. A Service in front of several pickers must be headless. The namespace of a series is that of its label namespace, else that of a host NAME.NAMESPACE.svc. Write Services so: a host NAME.NAMESPACE without .svc is of no known namespace, and what it shows may count for the models of all.",
			addresses(func(c *Config) *[]string { return &c.Gateway.MetricsURLs })),
		static("GATEWAY_NAMESPACES", "", "Namespaces whose gateways count for the models of all namespaces, with commas between them. What a gateway in another namespace shows counts for the models of its own namespace alone. Without this setting, they are the namespaces of the hosts NAME.NAMESPACE.svc in GATEWAY_METRICS_URLS. Name only namespaces in which nobody but administrators may change anything.",
			namespaces(func(c *Config) *[]string { return &c.Gateway.Namespaces })),
		static("EPP_METRIC_READER_BEARER_TOKEN", "", "Bearer token for the pages in GATEWAY_METRICS_URLS. It comes before GATEWAY_METRICS_TOKEN_PATH: prefer the file.",
			secret(func(c *Config) *string { return &c.Gateway.Token })),
		static("GATEWAY_METRICS_TOKEN_PATH", "", "File with the bearer token for the pages in GATEWAY_METRICS_URLS. It is read again when it changes.",
			text(func(c *Config) *string { return &c.Gateway.TokenPath })).ofFile(),
		static("GATEWAY_METRICS_CA_CERT_PATH", "", "File with the CAs that sign the certificates of the pages in GATEWAY_METRICS_URLS. Without it, the CAs of the system count.",
			text(func(c *Config) *string { return &c.Gateway.CACertPath })).ofFile(),
		static("GATEWAY_METRICS_TLS_INSECURE_SKIP_VERIFY", "false", "Accept any certificate of the pages in GATEWAY_METRICS_URLS.",
			boolean(func(c *Config) *bool { return &c.Gateway.InsecureSkipVerify })),
	}
}

// programKeys say how the manager runs.
func programKeys() []Key {
	return []Key{
		static("METRICS_BIND_ADDRESS", "0", "Address where metrics are served, such as :8443. 0 serves none.",
			text(func(c *Config) *string { return &c.Serving.MetricsBindAddress })).alias("metrics-addr"),
		static("METRICS_SECURE", "true", "Serve metrics over TLS, and only to readers that the API server authorizes.",
			boolean(func(c *Config) *bool { return &c.Serving.MetricsSecure })),
		static("METRICS_PUBLISHED_NAMES", "true", "Serve metrics under the names of earlier versions too (inferno_...).",
			boolean(func(c *Config) *bool { return &c.Serving.PublishedMetrics })),
		static("METRICS_CERT_PATH", "", "Directory of the serving certificate for metrics. Without it, the manager signs one itself.",
			text(func(c *Config) *string { return &c.Serving.MetricsCertPath })),
		static("METRICS_CERT_NAME", "tls.crt", "File name of the serving certificate for metrics.",
			text(func(c *Config) *string { return &c.Serving.MetricsCertName })),
		static("METRICS_CERT_KEY", "tls.key", "File name of the key of the serving certificate for metrics.",
			text(func(c *Config) *string { return &c.Serving.MetricsCertKey })),
		static("HEALTH_PROBE_BIND_ADDRESS", ":8081", "Address where /healthz and /readyz are served. 0 serves none.",
			text(func(c *Config) *string { return &c.Serving.HealthProbeBindAddress })).alias("probe-addr"),

		static("WEBHOOK_HOST", "", "Address where webhooks are served. Without it, every address of the pod.",
			text(func(c *Config) *string { return &c.Webhook.Host })),
		static("WEBHOOK_PORT", "9443", "Port where webhooks are served.",
			port(func(c *Config) *int { return &c.Webhook.Port })),
		static("WEBHOOK_CERT_PATH", "/etc/wva-webhook", "Directory of the webhooks' certificate. It is read again when it changes.",
			text(func(c *Config) *string { return &c.Webhook.CertPath })),
		static("WEBHOOK_CERT_NAME", "tls.crt", "File name of the webhooks' certificate.",
			text(func(c *Config) *string { return &c.Webhook.CertName })),
		static("WEBHOOK_CERT_KEY", "tls.key", "File name of the key of the webhooks' certificate.",
			text(func(c *Config) *string { return &c.Webhook.CertKey })),
		static("WEBHOOK_CERT_SECRET", "workload-variant-autoscaler-webhook-cert", "Secret, mounted at WEBHOOK_CERT_PATH, in which the manager keeps its own certificate. Leave it empty if another program keeps the certificate, such as cert-manager.",
			text(func(c *Config) *string { return &c.Webhook.CertSecret })).offWhenEmpty(),
		static("WEBHOOK_SERVICE_NAME", "workload-variant-autoscaler-webhook", "Service by which the API server calls the webhooks.",
			text(func(c *Config) *string { return &c.Webhook.Service })),
		static("WEBHOOK_CONFIGURATION_NAME", "workload-variant-autoscaler-webhooks", "ValidatingWebhookConfiguration for LlamaStackDistribution objects, which gets the CA of the certificate.",
			text(func(c *Config) *string { return &c.Webhook.Configuration })),
		static("WEBHOOK_VALIDATE_VARIANTS", "false", "Check VariantAutoscaling objects before they are stored. It needs manifests/webhook/variants.yaml.",
			boolean(func(c *Config) *bool { return &c.Webhook.ValidateVariants })),
		static("WEBHOOK_VARIANTS_CONFIGURATION_NAME", "workload-variant-autoscaler-variants", "ValidatingWebhookConfiguration for VariantAutoscaling objects, which gets the CA of the certificate.",
			text(func(c *Config) *string { return &c.Webhook.VariantsConfiguration })),
		static("WEBHOOK_PLACE_PODS", "false", "Fill in schedulerName, node affinity and toleration for the pods of variants, in the namespaces with the label wva.llmd.ai/place-pods=true. It needs manifests/webhook/pods.yaml.",
			boolean(func(c *Config) *bool { return &c.Webhook.PlacePods })),
		static("WEBHOOK_PODS_CONFIGURATION_NAME", "workload-variant-autoscaler-pods", "MutatingWebhookConfiguration for pods, which gets the CA of the certificate.",
			text(func(c *Config) *string { return &c.Webhook.PodsConfiguration })),
		static("WEBHOOK_SCHEDULER_NAME", "variant-scheduler", "schedulerName that WEBHOOK_PLACE_PODS fills in.",
			text(func(c *Config) *string { return &c.Webhook.Scheduler })),
		static("LLAMASTACK_SERVER_ADDRESS", "", "Address, host:port, where every Llama Stack server is asked how it is, for a network that does not know Services by their names. Without it, each one at its Service.",
			text(func(c *Config) *string { return &c.LlamaStackServerAddress })),

		Key{Name: "LOG_LEVEL", Default: "2", Help: "How much is logged: error, warn, info or debug, or the number of -v, from 0 to 10: 2 shows the decisions, 4 their inputs and scores."}.
			with(verbosity(func(c *Config) *int { return &c.Verbosity })).alias("v"),

		static("LEADER_ELECT", "false", "Elect a leader among several managers.",
			boolean(func(c *Config) *bool { return &c.LeaderElection.Enabled })).alias("enable-leader-election"),
		static("LEADER_ELECTION_ID", "72dd1cf1.llm-d.ai", "Name of the lease by which a leader is elected.",
			text(func(c *Config) *string { return &c.LeaderElection.ID })),
		static("LEADER_ELECTION_LEASE_DURATION", "60s", "Time after which others may take over a lease that was not renewed.",
			duration(func(c *Config) *time.Duration { return &c.LeaderElection.LeaseDuration })),
		static("LEADER_ELECTION_RENEW_DEADLINE", "50s", "Time after which a leader that cannot renew its lease gives up.",
			duration(func(c *Config) *time.Duration { return &c.LeaderElection.RenewDeadline })),
		static("LEADER_ELECTION_RETRY_PERIOD", "10s", "Time between two attempts to take or renew the lease.",
			duration(func(c *Config) *time.Duration { return &c.LeaderElection.RetryPeriod })),
		static("REST_CLIENT_TIMEOUT", "60s", "Time limit of one request to the API server.",
			duration(func(c *Config) *time.Duration { return &c.RESTClientTimeout })),
	}
}

// placeKeys say what the manager works on and where its ConfigMaps are.
func placeKeys() []Key {
	return []Key{
		static("WATCH_NAMESPACE", "", "The only namespace to work in. Without it, all namespaces.",
			text(func(c *Config) *string { return &c.WatchNamespace })),
		static("CONTROLLER_INSTANCE", "", "The manager handles the objects whose label wva.llmd.ai/controller-instance has this value. Without it, the objects without that label.",
			text(func(c *Config) *string { return &c.ControllerInstance })),
		static("POD_NAMESPACE", "workload-variant-autoscaler-system", "Namespace of the manager, where its lease and ConfigMaps are.",
			text(func(c *Config) *string { return &c.PodNamespace })).locating(),
		static("POD_NAME", "", "Name of the manager's pod. Without it, its host name. During a rolling upgrade, the manager finds the pods of the old version by it.",
			text(func(c *Config) *string { return &c.PodName })),
		static("CONFIG_MAP_NAME", "workload-variant-autoscaler-variantautoscaling-config", "ConfigMap with the settings, as entries of their own or in config.yaml. The manager follows those that need no restart.",
			text(func(c *Config) *string { return &c.ConfigMap })).locating(),
		static("SATURATION_CONFIG_MAP_NAME", "wva-saturation-scaling-config", "ConfigMap of the saturation thresholds.",
			text(func(c *Config) *string { return &c.SaturationConfigMap })),
		static("ACCELERATOR_NAMES_CONFIG_MAP_NAME", "workload-variant-autoscaler-accelerator-names", "ConfigMap that names accelerators by the values of their product labels. Its names replace the built-in ones. The manager follows it.",
			text(func(c *Config) *string { return &c.AcceleratorNamesConfigMap })),
		static("SERVICE_CLASS_CONFIG_MAP_NAME", publishedServiceClasses, "ConfigMap of the service classes, with the SLOs and the priorities. The manager follows it.",
			text(func(c *Config) *string { return &c.ServiceClassConfigMap })),
		static("ACCELERATOR_COST_CONFIG_MAP_NAME", publishedUnitCosts, "ConfigMap of the prices of accelerators, for variants without spec.variantCost. The manager follows it.",
			text(func(c *Config) *string { return &c.UnitCostConfigMap })),
		static("SCALE_TO_ZERO_CONFIG_MAP_NAME", "wva-model-scale-to-zero-config", "ConfigMap that says for each model whether and when it may scale to zero. The manager follows it.",
			text(func(c *Config) *string { return &c.ScaleToZeroConfigMap })),
		static("WVA_NAMESPACE_CONFIG", "false", "Let the namespaces of models have ConfigMaps of their own: wva-saturation-scaling-config and wva-model-scale-to-zero-config there replace those of the manager, and the manager ignores a namespace with the annotation wva.llmd.ai/exclude=true. It needs the permissions of manifests/namespace-config.",
			boolean(func(c *Config) *bool { return &c.NamespaceConfig })),
	}
}

// Decides reports whether a setting says what a decision may do.
func (k Key) Decides() bool {
	return slices.ContainsFunc(decisionKeys(), func(d Key) bool { return d.Name == k.Name })
}

// decisionKeys say what a decision may do. All but the modes may change while the manager
// runs.
func decisionKeys() []Key {
	defaults := decision.DefaultPolicy()
	return []Key{
		dynamic("GLOBAL_OPT_INTERVAL", defaults.Interval, "Time between two full rounds.",
			func(c *Config) *time.Duration { return &c.Interval }),
		Key{Name: "WVA_LIMITED_MODE", Static: true, Default: "false", Help: "Never ask for more replicas than fit. Use it on clusters that do not grow."}.
			with(boolean(func(c *Config) *bool { return &c.Limited })),
		Key{Name: "EXPERIMENTAL_PROACTIVE_MODEL", Static: true, Default: strconv.FormatBool(defaults.Hybrid), Help: "Hybrid mode: size each model that has an SLO (the TTFT and ITL targets of its service class) for it at the forecast load, not only by saturation. A model without an SLO is sized by saturation. false is capacity-only mode: saturation alone sizes all models."}.
			with(boolean(func(c *Config) *bool { return &c.Hybrid })),
		Key{Name: "WVA_SLO_PERCENTILE", Default: strconv.FormatFloat(defaults.Share, 'g', -1, 64), Help: "Share of the requests that must meet the SLO: 0.99 for the 99th percentile."}.
			with(share(func(c *Config) *float64 { return &c.Share })),
		Key{Name: "WVA_RISK", Default: strconv.FormatFloat(defaults.Risk, 'g', -1, 64), Help: "Quantile of the forecast demand that replicas are sized for in hybrid mode. With a higher one more requests meet the SLO, at a higher cost."}.
			with(quantile(func(c *Config) *float64 { return &c.Risk })),
		Key{Name: "WVA_HISTORY", Default: strconv.FormatBool(defaults.History), Help: "Use the load of a day and a week ago in the forecast, if Prometheus has it."}.
			with(boolean(func(c *Config) *bool { return &c.History })),
		Key{Name: "WVA_GROWTH_LIMIT_REPLICAS", Default: strconv.Itoa(defaults.Growth.Pods), Help: "How many replicas a variant without scaleUp policies may have beyond those that serve. The larger of this and WVA_GROWTH_LIMIT_PERCENT counts."}.
			with(count(func(c *Config) *int { return &c.Growth.Pods })),
		Key{Name: "WVA_GROWTH_LIMIT_PERCENT", Default: strconv.Itoa(defaults.Growth.Percent), Help: "The same as WVA_GROWTH_LIMIT_REPLICAS, in percent of the replicas that serve. 0 for both means no limit."}.
			with(count(func(c *Config) *int { return &c.Growth.Percent })),
		dynamic("WVA_CONFLICT_PERIOD", defaults.ConflictWindow, "How long a change of the replicas by somebody else is remembered. Somebody else who sets the same number again within this time is in conflict. So is somebody who makes a second change within the scale-down window, or within five minutes if that is longer.",
			func(c *Config) *time.Duration { return &c.ConflictWindow }),
		dynamic("WVA_SWITCH_HORIZON", defaults.Horizon, "A switch to a cheaper variant must pay for the start-up of its replicas within this time.",
			func(c *Config) *time.Duration { return &c.Horizon }),
		Key{Name: "WVA_SCALE_TO_ZERO", Static: true, Default: "false", Help: "Whether models that SCALE_TO_ZERO_CONFIG_MAP_NAME does not mention scale to zero."}.
			with(boolean(func(c *Config) *bool { return &c.Idle.Enabled })),
		dynamic("WVA_SCALE_TO_ZERO_RETENTION", defaults.Idle.Retention, "How long a model must be without requests before it scales to zero.",
			func(c *Config) *time.Duration { return &c.Idle.Retention }),
		Key{Name: "WVA_GATEWAY_PATIENCE", Default: defaultGatewayPatience.String(), Help: "How long the gateway lets a request wait while its pool has no endpoints (noEndpointRequestTTL of llm-d's router, 60s by default since 0.10). A variant of a model that may sleep and starts more slowly gets a warning. 0 means that it waits for as long as the client does, or that nobody knows."}.
			with(durationOrNone(func(c *Config) *time.Duration { return &c.GatewayPatience })),
		dynamic("PROMETHEUS_METRICS_WINDOW", defaults.Window, "Window of the averages and rates in queries.",
			func(c *Config) *time.Duration { return &c.MetricsWindow }),
		dynamic("WVA_BACKLOG_DRAIN_TIME", defaults.Drain, "Time within which waiting requests must be served.",
			func(c *Config) *time.Duration { return &c.Drain }),
		dynamic("WVA_STARTUP_DEADLINE", defaults.StartupDeadline, "How long a starting replica counts as supply while no start-up of its variant was seen.",
			func(c *Config) *time.Duration { return &c.StartupDeadline }),
		dynamic("PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD", defaults.Freshness.Fresh, "Age up to which the metrics of a replica are fresh. Only fresh metrics may remove replicas. It must be longer than the scrape interval of Prometheus.",
			func(c *Config) *time.Duration { return &c.Freshness.Fresh }),
		dynamic("PROMETHEUS_METRICS_CACHE_STALE_THRESHOLD", defaults.Freshness.Ageing, "Age from which metrics are stale: replicas are held (MetricsStale). Between fresh and stale, replicas may be added but not removed (MetricsPartial). At least PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD.",
			func(c *Config) *time.Duration { return &c.Freshness.Ageing }),
		dynamic("PROMETHEUS_METRICS_CACHE_UNAVAILABLE_THRESHOLD", defaults.Freshness.Stale, "Age from which metrics count as absent: replicas are held (MetricsMissing). At least PROMETHEUS_METRICS_CACHE_STALE_THRESHOLD.",
			func(c *Config) *time.Duration { return &c.Freshness.Stale }),
	}
}

// form is how a value of one kind is read into its field.
type form struct {
	kind            Kind
	set             func(*Config, string) error
	address, secret bool
}

func static(name, value, help string, f form) Key {
	return Key{Name: name, Default: value, Static: true, Help: help}.with(f)
}

func dynamic(name string, value time.Duration, help string, field func(*Config) *time.Duration) Key {
	return Key{Name: name, Default: value.String(), Help: help}.with(duration(field))
}

func (k Key) with(f form) Key {
	k.Kind, k.set, k.address, k.Secret = f.kind, f.set, f.address, f.secret
	return k
}

func (k Key) alias(flag string) Key {
	k.Aliases = append(k.Aliases, flag)
	return k
}

func (k Key) ofFile() Key {
	k.file = true
	return k
}

func (k Key) offWhenEmpty() Key {
	k.off = true
	return k
}

func (k Key) locating() Key {
	k.locates = true
	return k
}
