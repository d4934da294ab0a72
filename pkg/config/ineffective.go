package config

// Ineffective is a published setting that has nothing to act on here. It is accepted, so that
// a configuration of before can be used as it is, and a warning says why it does nothing.
type Ineffective struct {
	// Name is the name in the environment and in the ConfigMap.
	Name string
	// Switch is set for a flag that needs no value.
	Switch bool
	// Why says why it has no effect, and what has.
	Why string
}

// Flag is the name of the setting's flag, without dashes in front.
func (i Ineffective) Flag() string { return Key{Name: i.Name}.Flag() }

const (
	noCache  = "no metrics are cached, each round asks for all of them once; remove it"
	ownLogs  = "logs are set up by -v, LOG_LEVEL and --logging-format; remove it"
	noPooled = "one scrape of the gateway's metrics serves all models; remove it"
)

// WithoutEffect are the published settings without an effect.
func WithoutEffect() []Ineffective {
	return []Ineffective{
		{Name: "PROMETHEUS_METRICS_CACHE_ENABLED", Why: noCache},
		{Name: "PROMETHEUS_METRICS_CACHE_TTL", Why: noCache},
		{Name: "PROMETHEUS_METRICS_CACHE_CLEANUP_INTERVAL", Why: noCache},
		{Name: "PROMETHEUS_METRICS_CACHE_FETCH_INTERVAL", Why: "metrics are read in every round: set GLOBAL_OPT_INTERVAL"},
		{Name: "SCALE_FROM_ZERO_ENGINE_MAX_CONCURRENCY", Why: noPooled},
		{Name: "EXPERIMENTAL_HYBRID_OPTIMIZATION", Why: "set EXPERIMENTAL_PROACTIVE_MODEL to true or false instead"},
		{Name: "EXPERIMENTAL_COORDINATOR_ENABLED", Why: "the replicas of all models are decided together, and no maxReplicas is changed; remove it"},
		{Name: "COORDINATOR_INTERVAL", Why: "there is no coordinator; remove it"},
		{Name: "QUEUEING_MODEL_CONFIG_MAP_NAME", Why: "latency parameters are in spec.variantProfile, or learned; remove it"},
		{Name: "POOL_GROUP", Why: "no InferencePool is read: name the metrics pages of the endpoint picker in GATEWAY_METRICS_URLS"},
		{Name: "WVA_NODE_SELECTOR", Why: "the pod template of each target says which nodes its replicas may use; remove it"},
		{Name: "ENABLE_HTTP2", Switch: true, Why: "metrics and webhooks are served over HTTP/1.1 alone; remove it"},
		{Name: "ZAP_DEVEL", Switch: true, Why: ownLogs},
		{Name: "ZAP_ENCODER", Why: ownLogs},
		{Name: "ZAP_LOG_LEVEL", Why: ownLogs},
		{Name: "ZAP_STACKTRACE_LEVEL", Why: ownLogs},
		{Name: "ZAP_TIME_ENCODING", Why: ownLogs},
	}
}
