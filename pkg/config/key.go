package config

import (
	"fmt"
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
	// Aliases are further names of the flag.
	Aliases []string

	set func(*Config, string) error
}

// Flag is the name of the setting's flag, without dashes in front.
func (k Key) Flag() string {
	return strings.ToLower(strings.ReplaceAll(k.Name, "_", "-"))
}

// Keys are all settings, in the order in which they are documented.
func Keys() []Key {
	defaults := decision.DefaultPolicy()
	return []Key{
		static("PROMETHEUS_BASE_URL", "", "Address of Prometheus, such as https://prometheus.monitoring:9090; required.",
			text(func(c *Config) *string { return &c.Prometheus.BaseURL })),
		static("PROMETHEUS_ALLOW_HTTP", "false", "Permit an address of Prometheus without TLS.",
			boolean(func(c *Config) *bool { return &c.Prometheus.AllowHTTP })),
		static("PROMETHEUS_TOKEN_PATH", "", "File of the bearer token for Prometheus; it is read again when it changes.",
			text(func(c *Config) *string { return &c.Prometheus.TokenPath })),
		static("PROMETHEUS_CA_CERT_PATH", "", "File of the authorities that sign the certificate of Prometheus; without it those of the system.",
			text(func(c *Config) *string { return &c.Prometheus.CACertPath })),
		static("PROMETHEUS_CLIENT_CERT_PATH", "", "File of the client certificate for Prometheus.",
			text(func(c *Config) *string { return &c.Prometheus.ClientCertPath })),
		static("PROMETHEUS_CLIENT_KEY_PATH", "", "File of the key of the client certificate for Prometheus.",
			text(func(c *Config) *string { return &c.Prometheus.ClientKeyPath })),
		static("PROMETHEUS_SERVER_NAME", "", "Name that the certificate of Prometheus must carry; without it the host of the address.",
			text(func(c *Config) *string { return &c.Prometheus.ServerName })),
		static("PROMETHEUS_TLS_INSECURE_SKIP_VERIFY", "false", "Accept any certificate of Prometheus.",
			boolean(func(c *Config) *bool { return &c.Prometheus.InsecureSkipVerify })),

		static("METRICS_BIND_ADDRESS", "0", "Address where metrics are served, such as :8443; 0 for nowhere.",
			text(func(c *Config) *string { return &c.Serving.MetricsBindAddress })).alias("metrics-addr"),
		static("METRICS_SECURE", "true", "Serve metrics over TLS and only to readers whom the API server authorises.",
			boolean(func(c *Config) *bool { return &c.Serving.MetricsSecure })),
		static("METRICS_CERT_PATH", "", "Directory of the serving certificate for metrics; without it a self-signed one.",
			text(func(c *Config) *string { return &c.Serving.MetricsCertPath })),
		static("METRICS_CERT_NAME", "tls.crt", "File name of the serving certificate for metrics.",
			text(func(c *Config) *string { return &c.Serving.MetricsCertName })),
		static("METRICS_CERT_KEY", "tls.key", "File name of the key of the serving certificate for metrics.",
			text(func(c *Config) *string { return &c.Serving.MetricsCertKey })),
		static("HEALTH_PROBE_BIND_ADDRESS", ":8081", "Address where /healthz and /readyz are served; 0 for nowhere.",
			text(func(c *Config) *string { return &c.Serving.HealthProbeBindAddress })).alias("probe-addr"),

		static("LEADER_ELECT", "false", "Elect a leader among several managers.",
			boolean(func(c *Config) *bool { return &c.LeaderElection.Enabled })).alias("enable-leader-election"),
		static("LEADER_ELECTION_ID", "72dd1cf1.llm-d.ai", "Name of the lease by which a leader is elected.",
			text(func(c *Config) *string { return &c.LeaderElection.ID })),
		static("LEADER_ELECTION_LEASE_DURATION", "60s", "Time after which others may take over a lease that was not renewed.",
			duration(func(c *Config) *time.Duration { return &c.LeaderElection.LeaseDuration })),
		static("LEADER_ELECTION_RENEW_DEADLINE", "50s", "Time in which a leader that cannot renew its lease gives up.",
			duration(func(c *Config) *time.Duration { return &c.LeaderElection.RenewDeadline })),
		static("LEADER_ELECTION_RETRY_PERIOD", "10s", "Time between two tries to take or renew the lease.",
			duration(func(c *Config) *time.Duration { return &c.LeaderElection.RetryPeriod })),
		static("REST_CLIENT_TIMEOUT", "60s", "Time limit of one request to the API server.",
			duration(func(c *Config) *time.Duration { return &c.RESTClientTimeout })),

		static("WATCH_NAMESPACE", "", "The only namespace to work in; without it all of them.",
			text(func(c *Config) *string { return &c.WatchNamespace })),
		static("CONTROLLER_INSTANCE", "", "Instance whose labelled objects this manager handles; without it the objects that carry no such label.",
			text(func(c *Config) *string { return &c.ControllerInstance })),
		static("POD_NAMESPACE", "workload-variant-autoscaler-system", "Namespace of the manager, where its lease and ConfigMaps are.",
			text(func(c *Config) *string { return &c.PodNamespace })),
		static("CONFIG_MAP_NAME", "workload-variant-autoscaler-variantautoscaling-config", "ConfigMap whose key config.yaml is the configuration file; its dynamic settings are followed.",
			text(func(c *Config) *string { return &c.ConfigMap })),
		static("SATURATION_CONFIG_MAP_NAME", "wva-saturation-scaling-config", "ConfigMap of the saturation thresholds.",
			text(func(c *Config) *string { return &c.SaturationConfigMap })),
		static("ACCELERATOR_NAMES_CONFIG_MAP_NAME", "workload-variant-autoscaler-accelerator-names", "ConfigMap that names accelerators by the values of their product labels, over the names that are built in; it is followed.",
			text(func(c *Config) *string { return &c.AcceleratorNamesConfigMap })),

		dynamic("GLOBAL_OPT_INTERVAL", defaults.Interval, "Time between two full rounds.",
			func(c *Config) *time.Duration { return &c.Interval }),
		Key{Name: "WVA_LIMITED_MODE", Default: "false", Help: "Never ask for more replicas than fit; for clusters that do not grow."}.
			with(boolean(func(c *Config) *bool { return &c.Limited })),
		dynamic("PROMETHEUS_METRICS_WINDOW", defaults.Window, "Window of the averages and rates in queries.",
			func(c *Config) *time.Duration { return &c.MetricsWindow }),
		dynamic("WVA_BACKLOG_DRAIN_TIME", defaults.Drain, "Time in which waiting requests are to be served.",
			func(c *Config) *time.Duration { return &c.Drain }),
		dynamic("WVA_STARTUP_DEADLINE", defaults.StartupDeadline, "How long a starting replica counts as supply while no start-up was seen.",
			func(c *Config) *time.Duration { return &c.StartupDeadline }),
		dynamic("PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD", defaults.Freshness.Fresh, "Age up to which samples are fresh.",
			func(c *Config) *time.Duration { return &c.Freshness.Fresh }),
		dynamic("PROMETHEUS_METRICS_CACHE_STALE_THRESHOLD", defaults.Freshness.Ageing, "Age from which samples are stale and replicas are held; before it they may raise but not lower replicas.",
			func(c *Config) *time.Duration { return &c.Freshness.Ageing }),
		dynamic("PROMETHEUS_METRICS_CACHE_UNAVAILABLE_THRESHOLD", defaults.Freshness.Stale, "Age from which samples count as absent.",
			func(c *Config) *time.Duration { return &c.Freshness.Stale }),
	}
}

// form is how a value of one kind is read into its field.
type form struct {
	kind Kind
	set  func(*Config, string) error
}

func static(name, value, help string, f form) Key {
	return Key{Name: name, Default: value, Static: true, Help: help}.with(f)
}

func dynamic(name string, value time.Duration, help string, field func(*Config) *time.Duration) Key {
	return Key{Name: name, Default: value.String(), Help: help}.with(duration(field))
}

func (k Key) with(f form) Key {
	k.Kind, k.set = f.kind, f.set
	return k
}

func (k Key) alias(flag string) Key {
	k.Aliases = append(k.Aliases, flag)
	return k
}

func text(field func(*Config) *string) form {
	return form{KindText, func(c *Config, value string) error {
		*field(c) = value
		return nil
	}}
}

func boolean(field func(*Config) *bool) form {
	return form{KindBool, func(c *Config, value string) error {
		parsed, err := strconv.ParseBool(strings.ToLower(value))
		if err != nil {
			return fmt.Errorf("is %q: write true or false", value)
		}
		*field(c) = parsed
		return nil
	}}
}

func duration(field func(*Config) *time.Duration) form {
	return form{KindDuration, func(c *Config, value string) error {
		parsed, err := time.ParseDuration(value)
		if err != nil {
			return fmt.Errorf("is %q: write a duration with its unit, such as 60s or 5m", value)
		}
		if parsed <= 0 {
			return fmt.Errorf("is %q: write a duration above zero", value)
		}
		*field(c) = parsed
		return nil
	}}
}
