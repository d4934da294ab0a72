package config

import (
	"net"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// validateNames checks what the API server or the network would refuse later, one by one.
func (c Config) validateNames(wrong func(key, format string, args ...any)) {
	name, label := validation.IsDNS1123Subdomain, validation.IsDNS1123Label
	for _, one := range []struct {
		key, value string
		check      func(string) []string
		example    string
		// optional says that an empty value means something.
		optional bool
	}{
		{"POD_NAMESPACE", c.PodNamespace, label, "the name of a namespace", false},
		{"WATCH_NAMESPACE", c.WatchNamespace, label, "the name of a namespace, or leave it out for all", true},
		{"CONTROLLER_INSTANCE", c.ControllerInstance, validation.IsValidLabelValue, "the value of a label: letters, digits, -, _ and ., at most 63", true},
		{"LEADER_ELECTION_ID", c.LeaderElection.ID, name, "the name of a lease, such as 72dd1cf1.llm-d.ai", !c.LeaderElection.Enabled},
		{"CONFIG_MAP_NAME", c.ConfigMap, name, configMapName, false},
		{"SATURATION_CONFIG_MAP_NAME", c.SaturationConfigMap, name, configMapName, false},
		{"ACCELERATOR_NAMES_CONFIG_MAP_NAME", c.AcceleratorNamesConfigMap, name, configMapName, false},
		{"SERVICE_CLASS_CONFIG_MAP_NAME", c.ServiceClassConfigMap, name, configMapName, false},
		{"ACCELERATOR_COST_CONFIG_MAP_NAME", c.UnitCostConfigMap, name, configMapName, false},
		{"SCALE_TO_ZERO_CONFIG_MAP_NAME", c.ScaleToZeroConfigMap, name, configMapName, false},
	} {
		switch {
		case one.value == "" && (one.optional || one.key == "LEADER_ELECTION_ID" || one.key == "POD_NAMESPACE"):
			// Where it may not be empty, that is said with what follows from it.
		case len(one.check(one.value)) > 0:
			wrong(one.key, "is %q: write %s", one.value, one.example)
		}
	}
	c.validateMaps(wrong)
	c.validateAddresses(wrong)
}

// configMapName is what a ConfigMap is called.
const configMapName = "the name of a ConfigMap: lower case letters, digits, - and ."

// validateMaps refuses one ConfigMap for two kinds of settings, of which each would find the
// entries of the other wrong.
func (c Config) validateMaps(wrong func(key, format string, args ...any)) {
	of := map[string]string{}
	for _, kind := range []struct {
		key   string
		names []string
	}{
		{"CONFIG_MAP_NAME", []string{c.ConfigMap}},
		{"SATURATION_CONFIG_MAP_NAME", c.SaturationConfigMaps()},
		{"ACCELERATOR_NAMES_CONFIG_MAP_NAME", []string{c.AcceleratorNamesConfigMap}},
		{"SERVICE_CLASS_CONFIG_MAP_NAME", c.ServiceClassConfigMaps()},
		{"ACCELERATOR_COST_CONFIG_MAP_NAME", c.UnitCostConfigMaps()},
		{"SCALE_TO_ZERO_CONFIG_MAP_NAME", c.ScaleToZeroConfigMaps()},
	} {
		for _, name := range kind.names {
			if other := of[name]; other != "" {
				wrong(kind.key, "is looked for in ConfigMap %s, and so is %s (%s): give each a ConfigMap of its own", name, other, name)
			}
			of[name] = kind.key
		}
	}
}

// validateAddresses checks where the manager listens.
func (c Config) validateAddresses(wrong func(key, format string, args ...any)) {
	s := c.Serving
	for _, one := range []struct{ key, value string }{
		{"METRICS_BIND_ADDRESS", s.MetricsBindAddress}, {"HEALTH_PROBE_BIND_ADDRESS", s.HealthProbeBindAddress},
	} {
		if !listens(one.value) {
			continue
		}
		_, port, err := net.SplitHostPort(one.value)
		if err == nil {
			_, err = strconv.ParseUint(port, 10, 16)
		}
		if err != nil {
			wrong(one.key, "is %q: write an address such as :8443 or 127.0.0.1:8443, or 0 for none", one.value)
		} else if one.key != "METRICS_BIND_ADDRESS" && one.value == s.MetricsBindAddress && port != "0" {
			wrong(one.key, "is %q, which is that of METRICS_BIND_ADDRESS too: write another port", one.value)
		}
	}
}

// listens says whether an address is one, or means that nothing is served.
func listens(address string) bool { return address != "" && address != "0" }

// validateTimes refuses times so short that the manager would ask without a pause, or never
// get an answer.
func (c Config) validateTimes(wrong func(key, format string, args ...any)) {
	for _, one := range []struct {
		key       string
		is, least time.Duration
	}{
		{"GLOBAL_OPT_INTERVAL", c.Interval, time.Second},
		{"WVA_BACKLOG_DRAIN_TIME", c.Drain, time.Second},
		{"POD_METRICS_SCRAPE_INTERVAL", c.PodMetrics.ScrapeInterval, time.Second},
		{"REST_CLIENT_TIMEOUT", c.RESTClientTimeout, time.Second},
		// The lease has its duration in whole seconds.
		{"LEADER_ELECTION_LEASE_DURATION", c.LeaderElection.LeaseDuration, time.Second},
		{"LEADER_ELECTION_RETRY_PERIOD", c.LeaderElection.RetryPeriod, 100 * time.Millisecond},
	} {
		if one.is < one.least {
			wrong(one.key, "is %s: write at least %s", one.is, one.least)
		}
	}
}
