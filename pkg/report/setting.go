package report

import "llmd.ai/workload-variant-autoscaler/pkg/replay"

// settings are the parameters of our own policies by their names in the manager's
// configuration, in a VariantAutoscaling object, or in a scenario (with a dot).
var settings = map[string]string{
	"interval": "GLOBAL_OPT_INTERVAL", "metricsWindow": "PROMETHEUS_METRICS_WINDOW", "hybrid": "EXPERIMENTAL_PROACTIVE_MODEL",
	"limited": "WVA_LIMITED_MODE", "promisedShare": "WVA_SLO_PERCENTILE", "horizon": "WVA_SWITCH_HORIZON",
	"risk": "WVA_RISK", "history": "WVA_HISTORY", "growthLimit": "WVA_GROWTH_LIMIT_REPLICAS, WVA_GROWTH_LIMIT_PERCENT",
	"drain": "WVA_BACKLOG_DRAIN_TIME", "startupDeadline": "WVA_STARTUP_DEADLINE", "scaleToZero": "WVA_SCALE_TO_ZERO",
	"scrapeInterval": "collection.scrape", "gateway": "collection.gateway",
	"replicas": "minReplicas, maxReplicas", "scaleUp": "behavior.scaleUp", "scaleDown": "behavior.scaleDown", "profile": "variantProfile",
	"fastInterval": "between two fast rounds",
}

// settingOf is the name of a parameter as people set it. Others than ours have the names
// with which they are written on the command line.
func settingOf(kind replay.Kind, parameter string) string {
	if name, ok := settings[parameter]; ok && kind == replay.KindOurs {
		return name
	}
	return parameter
}
