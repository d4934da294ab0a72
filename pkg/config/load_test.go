package config_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// environment is a lookup function over a map.
func environment(values map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	}
}

var address = map[string]string{"prometheus-base-url": "https://prometheus:9090"}

func TestLoadDefaults(t *testing.T) {
	got, err := config.Load(config.Sources{Flags: address})
	require.NoError(t, err)
	assert.Empty(t, got.Warnings)
	assert.Equal(t, "workload-variant-autoscaler-system", got.PodNamespace)
	assert.Equal(t, "72dd1cf1.llm-d.ai", got.LeaderElection.ID)
	assert.Equal(t, 60*time.Second, got.LeaderElection.LeaseDuration)
	assert.Equal(t, 50*time.Second, got.LeaderElection.RenewDeadline)
	assert.Equal(t, 10*time.Second, got.LeaderElection.RetryPeriod)
	assert.False(t, got.LeaderElection.Enabled)
	assert.True(t, got.Serving.MetricsSecure)
	assert.Equal(t, "0", got.Serving.MetricsBindAddress)
	assert.Equal(t, ":8081", got.Serving.HealthProbeBindAddress)
	assert.Equal(t, decision.DefaultPolicy(), got.Policy(), "without configuration the policy is the default one")
}

// offWhenEmpty are the settings that mean something when they are empty: none, or all.
var offWhenEmpty = []string{
	"PROMETHEUS_BEARER_TOKEN", "PROMETHEUS_TOKEN_PATH", "PROMETHEUS_CA_CERT_PATH", "PROMETHEUS_CLIENT_CERT_PATH",
	"PROMETHEUS_CLIENT_KEY_PATH", "PROMETHEUS_SERVER_NAME", "PROMETHEUS_HTTP_CONFIG_PATH", "PROMETHEUS_MATCHERS", "POD_METRICS_TOKEN_PATH",
	"POD_METRICS_CA_CERT_PATH", "POD_METRICS_SERVER_NAME", "GATEWAY_METRICS_URLS", "GATEWAY_NAMESPACES", "EPP_METRIC_READER_BEARER_TOKEN",
	"GATEWAY_METRICS_TOKEN_PATH", "GATEWAY_METRICS_CA_CERT_PATH", "METRICS_CERT_PATH", "WEBHOOK_HOST", "LLAMASTACK_SERVER_ADDRESS",
	"WEBHOOK_CERT_SECRET", "WATCH_NAMESPACE", "CONTROLLER_INSTANCE", "POD_NAME",
}

func TestAnEmptyValueIsNotGiven(t *testing.T) {
	got, err := config.Load(config.Sources{
		Flags: address, Lookup: environment(map[string]string{"GLOBAL_OPT_INTERVAL": ""}),
		Map: map[string]string{"GLOBAL_OPT_INTERVAL": ""}, File: []byte("GLOBAL_OPT_INTERVAL:\n"),
	})
	require.NoError(t, err)
	assert.Equal(t, time.Minute, got.Interval)
	assert.Empty(t, got.Warnings)
}

// A Secret that was made from a file has a line break at its end, and so has a block of YAML.
func TestTheSpaceAroundAValueDoesNotCount(t *testing.T) {
	got, err := config.Load(config.Sources{
		Flags:  address,
		Lookup: environment(map[string]string{"PROMETHEUS_BEARER_TOKEN": "secret\n", "WVA_LIMITED_MODE": " \n"}),
		Map:    map[string]string{"GLOBAL_OPT_INTERVAL": " 30s\n", "WVA_LIMITED_MODE": "true\r\n", "config.yaml": "WVA_BACKLOG_DRAIN_TIME: |\n  40s\n"},
	})
	require.NoError(t, err)
	assert.Equal(t, "secret", got.Prometheus.Token)
	assert.Equal(t, 30*time.Second, got.Interval)
	assert.Equal(t, 40*time.Second, got.Policy().Drain)
	assert.True(t, got.Policy().Limited)
	assert.Empty(t, got.Warnings)
}

// values holds for every setting a value that is not its default, and how to see
// that it took effect.
var values = map[string]struct {
	value string
	seen  func(config.Config) any
	want  any
}{
	"WVA_METRICS_SOURCE":                             {"Pods", func(c config.Config) any { return c.MetricsSource }, config.SourcePods},
	"PROMETHEUS_BASE_URL":                            {"https://other", func(c config.Config) any { return c.Prometheus.BaseURL }, "https://other"},
	"PROMETHEUS_ALLOW_HTTP":                          {"true", func(c config.Config) any { return c.Prometheus.AllowHTTP }, true},
	"PROMETHEUS_BEARER_TOKEN":                        {" hush ", func(c config.Config) any { return c.Prometheus.Token }, "hush"},
	"EPP_METRIC_READER_BEARER_TOKEN":                 {"quiet", func(c config.Config) any { return c.Gateway.Token }, "quiet"},
	"WEBHOOK_CERT_NAME":                              {"a.crt", func(c config.Config) any { return c.Webhook.CertName }, "a.crt"},
	"WEBHOOK_CERT_KEY":                               {"a.key", func(c config.Config) any { return c.Webhook.CertKey }, "a.key"},
	"LOG_LEVEL":                                      {"Debug", func(c config.Config) any { return c.Verbosity }, 4},
	"PROMETHEUS_TOKEN_PATH":                          {"/token", func(c config.Config) any { return c.Prometheus.TokenPath }, "/token"},
	"PROMETHEUS_CA_CERT_PATH":                        {"/ca", func(c config.Config) any { return c.Prometheus.CACertPath }, "/ca"},
	"PROMETHEUS_CLIENT_CERT_PATH":                    {"/cert", func(c config.Config) any { return c.Prometheus.ClientCertPath }, "/cert"},
	"PROMETHEUS_CLIENT_KEY_PATH":                     {"/key", func(c config.Config) any { return c.Prometheus.ClientKeyPath }, "/key"},
	"PROMETHEUS_SERVER_NAME":                         {"name", func(c config.Config) any { return c.Prometheus.ServerName }, "name"},
	"PROMETHEUS_TLS_INSECURE_SKIP_VERIFY":            {"true", func(c config.Config) any { return c.Prometheus.InsecureSkipVerify }, true},
	"PROMETHEUS_HTTP_CONFIG_PATH":                    {"/http.yaml", func(c config.Config) any { return c.Prometheus.HTTPConfigPath }, "/http.yaml"},
	"PROMETHEUS_MATCHERS":                            {`cluster="a", region =~ "eu-.*|\\w"`, func(c config.Config) any { return c.Prometheus.Matchers }, `cluster="a", region =~ "eu-.*|\\w"`},
	"POD_METRICS_SCRAPE_INTERVAL":                    {"7s", func(c config.Config) any { return c.PodMetrics.ScrapeInterval }, 7 * time.Second},
	"POD_METRICS_SCHEME":                             {"https", func(c config.Config) any { return c.PodMetrics.Scheme }, "https"},
	"POD_METRICS_PORT":                               {"8200", func(c config.Config) any { return c.PodMetrics.Port }, 8200},
	"POD_METRICS_TOKEN_PATH":                         {"/pods/token", func(c config.Config) any { return c.PodMetrics.TokenPath }, "/pods/token"},
	"POD_METRICS_CA_CERT_PATH":                       {"/pods/ca", func(c config.Config) any { return c.PodMetrics.CACertPath }, "/pods/ca"},
	"POD_METRICS_SERVER_NAME":                        {"vllm", func(c config.Config) any { return c.PodMetrics.ServerName }, "vllm"},
	"POD_METRICS_TLS_INSECURE_SKIP_VERIFY":           {"true", func(c config.Config) any { return c.PodMetrics.InsecureSkipVerify }, true},
	"GATEWAY_METRICS_URLS":                           {"http://epp:9090, https://other/page", func(c config.Config) any { return c.Gateway.MetricsURLs }, []string{"http://epp:9090/metrics", "https://other/page"}},
	"GATEWAY_NAMESPACES":                             {"gateways, edge", func(c config.Config) any { return c.Gateway.Namespaces }, []string{"gateways", "edge"}},
	"GATEWAY_METRICS_TOKEN_PATH":                     {"/epp/token", func(c config.Config) any { return c.Gateway.TokenPath }, "/epp/token"},
	"GATEWAY_METRICS_CA_CERT_PATH":                   {"/epp/ca", func(c config.Config) any { return c.Gateway.CACertPath }, "/epp/ca"},
	"GATEWAY_METRICS_TLS_INSECURE_SKIP_VERIFY":       {"true", func(c config.Config) any { return c.Gateway.InsecureSkipVerify }, true},
	"METRICS_BIND_ADDRESS":                           {":8443", func(c config.Config) any { return c.Serving.MetricsBindAddress }, ":8443"},
	"METRICS_SECURE":                                 {"False", func(c config.Config) any { return c.Serving.MetricsSecure }, false},
	"METRICS_PUBLISHED_NAMES":                        {"false", func(c config.Config) any { return c.Serving.PublishedMetrics }, false},
	"METRICS_CERT_PATH":                              {"/certs", func(c config.Config) any { return c.Serving.MetricsCertPath }, "/certs"},
	"METRICS_CERT_NAME":                              {"a.crt", func(c config.Config) any { return c.Serving.MetricsCertName }, "a.crt"},
	"METRICS_CERT_KEY":                               {"a.key", func(c config.Config) any { return c.Serving.MetricsCertKey }, "a.key"},
	"HEALTH_PROBE_BIND_ADDRESS":                      {":9", func(c config.Config) any { return c.Serving.HealthProbeBindAddress }, ":9"},
	"WEBHOOK_HOST":                                   {"127.0.0.1", func(c config.Config) any { return c.Webhook.Host }, "127.0.0.1"},
	"WEBHOOK_PORT":                                   {"8444", func(c config.Config) any { return c.Webhook.Port }, 8444},
	"WEBHOOK_CERT_PATH":                              {"/w", func(c config.Config) any { return c.Webhook.CertPath }, "/w"},
	"WEBHOOK_CERT_SECRET":                            {"cert", func(c config.Config) any { return c.Webhook.CertSecret }, "cert"},
	"WEBHOOK_SERVICE_NAME":                           {"hook", func(c config.Config) any { return c.Webhook.Service }, "hook"},
	"WEBHOOK_VALIDATE_VARIANTS":                      {"true", func(c config.Config) any { return c.Webhook.ValidateVariants }, true},
	"WEBHOOK_VARIANTS_CONFIGURATION_NAME":            {"variants", func(c config.Config) any { return c.Webhook.VariantsConfiguration }, "variants"},
	"WEBHOOK_PLACE_PODS":                             {"true", func(c config.Config) any { return c.Webhook.PlacePods }, true},
	"WEBHOOK_PODS_CONFIGURATION_NAME":                {"pods", func(c config.Config) any { return c.Webhook.PodsConfiguration }, "pods"},
	"WEBHOOK_SCHEDULER_NAME":                         {"packer", func(c config.Config) any { return c.Webhook.Scheduler }, "packer"},
	"LLAMASTACK_SERVER_ADDRESS":                      {"127.0.0.1:8321", func(c config.Config) any { return c.LlamaStackServerAddress }, "127.0.0.1:8321"},
	"WEBHOOK_CONFIGURATION_NAME":                     {"hooks", func(c config.Config) any { return c.Webhook.Configuration }, "hooks"},
	"LEADER_ELECT":                                   {"1", func(c config.Config) any { return c.LeaderElection.Enabled }, true},
	"LEADER_ELECTION_ID":                             {"id", func(c config.Config) any { return c.LeaderElection.ID }, "id"},
	"LEADER_ELECTION_LEASE_DURATION":                 {"70s", func(c config.Config) any { return c.LeaderElection.LeaseDuration }, 70 * time.Second},
	"LEADER_ELECTION_RENEW_DEADLINE":                 {"40s", func(c config.Config) any { return c.LeaderElection.RenewDeadline }, 40 * time.Second},
	"LEADER_ELECTION_RETRY_PERIOD":                   {"5s", func(c config.Config) any { return c.LeaderElection.RetryPeriod }, 5 * time.Second},
	"REST_CLIENT_TIMEOUT":                            {"7s", func(c config.Config) any { return c.RESTClientTimeout }, 7 * time.Second},
	"WATCH_NAMESPACE":                                {"team", func(c config.Config) any { return c.WatchNamespace }, "team"},
	"CONTROLLER_INSTANCE":                            {"blue", func(c config.Config) any { return c.ControllerInstance }, "blue"},
	"POD_NAME":                                       {"wva-0", func(c config.Config) any { return c.PodName }, "wva-0"},
	"POD_NAMESPACE":                                  {"home", func(c config.Config) any { return c.PodNamespace }, "home"},
	"CONFIG_MAP_NAME":                                {"map", func(c config.Config) any { return c.ConfigMap }, "map"},
	"SATURATION_CONFIG_MAP_NAME":                     {"sat", func(c config.Config) any { return c.SaturationConfigMap }, "sat"},
	"ACCELERATOR_NAMES_CONFIG_MAP_NAME":              {"names", func(c config.Config) any { return c.AcceleratorNamesConfigMap }, "names"},
	"SERVICE_CLASS_CONFIG_MAP_NAME":                  {"classes", func(c config.Config) any { return c.ServiceClassConfigMap }, "classes"},
	"ACCELERATOR_COST_CONFIG_MAP_NAME":               {"costs", func(c config.Config) any { return c.UnitCostConfigMap }, "costs"},
	"SCALE_TO_ZERO_CONFIG_MAP_NAME":                  {"zero", func(c config.Config) any { return c.ScaleToZeroConfigMap }, "zero"},
	"GLOBAL_OPT_INTERVAL":                            {"15s", func(c config.Config) any { return c.Policy().Interval }, 15 * time.Second},
	"WVA_NAMESPACE_CONFIG":                           {"true", func(c config.Config) any { return c.NamespaceConfig }, true},
	"WVA_LIMITED_MODE":                               {"true", func(c config.Config) any { return c.Policy().Limited }, true},
	"EXPERIMENTAL_PROACTIVE_MODEL":                   {"false", func(c config.Config) any { return c.Policy().Hybrid }, false},
	"WVA_SLO_PERCENTILE":                             {"0.95", func(c config.Config) any { return c.Policy().Share }, 0.95},
	"WVA_RISK":                                       {"0.7", func(c config.Config) any { return c.Policy().Risk }, 0.7},
	"WVA_HISTORY":                                    {"false", func(c config.Config) any { return c.Policy().History }, false},
	"WVA_GROWTH_LIMIT_REPLICAS":                      {"7", func(c config.Config) any { return c.Policy().Growth.Pods }, 7},
	"WVA_GROWTH_LIMIT_PERCENT":                       {"50", func(c config.Config) any { return c.Policy().Growth.Percent }, 50},
	"WVA_CONFLICT_PERIOD":                            {"2h", func(c config.Config) any { return c.Policy().ConflictWindow }, 2 * time.Hour},
	"WVA_SWITCH_HORIZON":                             {"1h", func(c config.Config) any { return c.Policy().Horizon }, time.Hour},
	"WVA_SCALE_TO_ZERO":                              {"TRUE", func(c config.Config) any { return c.Policy().Idle.Enabled }, true},
	"WVA_SCALE_TO_ZERO_RETENTION":                    {"3m", func(c config.Config) any { return c.Policy().Idle.Retention }, 3 * time.Minute},
	"WVA_GATEWAY_PATIENCE":                           {"0s", func(c config.Config) any { return c.GatewayPatience }, time.Duration(0)},
	"PROMETHEUS_METRICS_WINDOW":                      {"30s", func(c config.Config) any { return c.Policy().Window }, 30 * time.Second},
	"WVA_BACKLOG_DRAIN_TIME":                         {"45s", func(c config.Config) any { return c.Policy().Drain }, 45 * time.Second},
	"WVA_STARTUP_DEADLINE":                           {"3m", func(c config.Config) any { return c.Policy().StartupDeadline }, 3 * time.Minute},
	"PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD":       {"20s", func(c config.Config) any { return c.Policy().Freshness.Fresh }, 20 * time.Second},
	"PROMETHEUS_METRICS_CACHE_STALE_THRESHOLD":       {"90s", func(c config.Config) any { return c.Policy().Freshness.Ageing }, 90 * time.Second},
	"PROMETHEUS_METRICS_CACHE_UNAVAILABLE_THRESHOLD": {"4m", func(c config.Config) any { return c.Policy().Freshness.Stale }, 4 * time.Minute},
}

// places are those that a value may come from, the strongest first.
var places = []struct {
	name string
	put  func(from *config.Sources, key config.Key, value string)
}{
	{"flag", func(from *config.Sources, key config.Key, value string) { from.Flags[key.Flag()] = value }},
	{"environment", func(from *config.Sources, key config.Key, value string) {
		lookup := from.Lookup
		from.Lookup = func(name string) (string, bool) {
			if name == key.Name {
				return value, true
			}
			return lookup(name)
		}
	}},
	{"entry of the ConfigMap", func(from *config.Sources, key config.Key, value string) { from.Map[key.Name] = value }},
	{"config.yaml of the ConfigMap", func(from *config.Sources, key config.Key, value string) {
		from.Map[config.FileEntry] = key.Name + ": '" + value + "'\n"
	}},
	{"file", func(from *config.Sources, key config.Key, value string) {
		from.File = []byte(key.Name + ": '" + value + "'\n")
	}},
}

// Each setting counts from each place, and the stronger of two places counts.
func TestEverySettingTakesEffectFromEveryPlace(t *testing.T) {
	for _, key := range config.Keys() {
		require.Contains(t, values, key.Name, "a setting without a test does not exist")
		test := values[key.Name]
		require.NotEqual(t, key.Default, test.value)
		assert.NotEmpty(t, key.Help)
		inMap := key.Name != "POD_NAMESPACE" && key.Name != "CONFIG_MAP_NAME"
		given := func(strong, weak int) config.Config {
			needed := map[string]string{"PROMETHEUS_BASE_URL": "https://p"}
			if strings.HasPrefix(key.Name, "PROMETHEUS_CLIENT_") {
				needed["PROMETHEUS_CLIENT_CERT_PATH"], needed["PROMETHEUS_CLIENT_KEY_PATH"] = "/c", "/k"
			}
			delete(needed, key.Name)
			from := config.Sources{Flags: map[string]string{}, Lookup: environment(needed), Map: map[string]string{}}
			if weak >= 0 {
				places[weak].put(&from, key, other(key))
			}
			places[strong].put(&from, key, test.value)
			got, err := config.Load(from)
			require.NoError(t, err, "%s from the %s", key.Name, places[strong].name)
			return got
		}
		text, err := given(0, -1).File()
		require.NoError(t, err)
		again, err := config.Load(config.Sources{File: text})
		require.NoError(t, err, "%s", text)
		assert.Equal(t, !key.Secret, reflect.DeepEqual(test.want, test.seen(again)), "%s as a file, which holds no secrets", key.Name)
		for i, place := range places {
			if !inMap && (i == 2 || i == 3) {
				got := given(i, -1)
				assert.NotEqual(t, test.want, test.seen(got), "%s cannot be in the ConfigMap itself", key.Name)
				assert.Len(t, got.Warnings, 1)
				continue
			}
			got := given(i, -1)
			assert.Equal(t, test.want, test.seen(got), "%s from the %s", key.Name, place.name)
			assert.Empty(t, got.Warnings)
			for j := i + 1; j < len(places); j++ {
				assert.Equal(t, test.want, test.seen(given(i, j)), "%s: the %s counts before the %s", key.Name, place.name, places[j].name)
			}
		}
	}
}

// An empty value that somebody gave counts where it means something, and nowhere else: templates
// render empty values for what nobody gave.
func TestAnEmptyValueCountsWhereItMeansSomething(t *testing.T) {
	for _, key := range config.Keys() {
		counts := slices.Contains(offWhenEmpty, key.Name)
		// Flags are given by hand, and two settings cannot be in the ConfigMap that they locate.
		for strong := 1; strong < len(places) && key.Name != "POD_NAMESPACE" && key.Name != "CONFIG_MAP_NAME"; strong++ {
			for weak := strong + 1; weak < len(places); weak++ {
				if strong == 3 && weak == 4 {
					continue // the file does not count beside a config.yaml of the ConfigMap
				}
				from := config.Sources{Flags: map[string]string{}, Lookup: environment(nil), Map: map[string]string{}}
				if key.Name != "PROMETHEUS_BASE_URL" {
					from.Flags["prometheus-base-url"] = "https://p"
				}
				places[weak].put(&from, key, values[key.Name].value)
				places[strong].put(&from, key, "")
				got, err := config.Load(from)
				require.NoError(t, err, "%s from the %s", key.Name, places[strong].name)
				if counts {
					assert.Empty(t, values[key.Name].seen(got), "%s: empty from the %s, over the %s", key.Name, places[strong].name, places[weak].name)
				} else {
					assert.Equal(t, values[key.Name].want, values[key.Name].seen(got), "%s: empty from the %s, over the %s", key.Name, places[strong].name, places[weak].name)
				}
			}
		}
	}
}

// other is a further value of a setting that is right.
func other(key config.Key) string {
	if key.Name == "PROMETHEUS_BASE_URL" {
		return "https://weak"
	}
	return key.Default
}

func TestBothLayoutsOfTheConfigMap(t *testing.T) {
	data := map[string]string{
		"PROMETHEUS_BASE_URL": "https://entry", "METRICS_ADDR": ":9090",
		config.FileEntry: "PROMETHEUS_BASE_URL: https://file\nGLOBAL_OPT_INTERVAL: 15s\nWVA_LIMITED_MODE: true\n",
	}
	got, err := config.Load(config.Sources{Map: data, MapName: "home/settings", File: []byte("GLOBAL_OPT_INTERVAL: 5s\nWVA_SWITCH_HORIZON: 1h\n")})
	require.NoError(t, err)
	assert.Equal(t, "https://entry", got.Prometheus.BaseURL)
	assert.Equal(t, ":9090", got.Serving.MetricsBindAddress)
	assert.Equal(t, 15*time.Second, got.Interval)
	assert.True(t, got.Policy().Limited)
	assert.Equal(t, 30*time.Minute, got.Horizon, "config.yaml stands in the place of the file")
	assert.Equal(t, []string{"PROMETHEUS_BASE_URL in config.yaml of ConfigMap home/settings has no effect, because it is an entry of its own there, which counts: remove one of them"}, got.Warnings)

	delete(data, config.FileEntry)
	got, err = config.Load(config.Sources{Map: data, File: []byte("GLOBAL_OPT_INTERVAL: 5s\n")})
	require.NoError(t, err)
	assert.Equal(t, 5*time.Second, got.Interval, "the file stands in for config.yaml")
}

func TestWhereTheConfigMapIs(t *testing.T) {
	namespace, name := config.Located(config.Sources{})
	assert.Equal(t, []string{"workload-variant-autoscaler-system", "workload-variant-autoscaler-variantautoscaling-config"}, []string{namespace, name})
	namespace, name = config.Located(config.Sources{
		Flags: map[string]string{"config-map-name": "mine"}, Lookup: environment(map[string]string{"POD_NAMESPACE": "home"}),
		Map: map[string]string{"POD_NAMESPACE": "elsewhere"}, File: []byte("CONFIG_MAP_NAME: theirs"),
	})
	assert.Equal(t, []string{"home", "mine"}, []string{namespace, name})
}

func TestPublishedSpellings(t *testing.T) {
	got, err := config.Load(config.Sources{Flags: address, Lookup: environment(map[string]string{"PROBE_ADDR": ":1", "V": "3"}), Map: map[string]string{"METRICS_ADDR": ":2", "METRICS_BIND_ADDRESS": ":3", "ENABLE_LEADER_ELECTION": "true"}})
	require.NoError(t, err)
	assert.Equal(t, ":1", got.Serving.HealthProbeBindAddress)
	assert.Equal(t, ":3", got.Serving.MetricsBindAddress)
	assert.Equal(t, 3, got.Verbosity)
	assert.True(t, got.LeaderElection.Enabled)
	assert.Equal(t, []string{"METRICS_ADDR in the ConfigMap has no effect, because it is another name of METRICS_BIND_ADDRESS in the ConfigMap: remove one of them"}, got.Warnings)
}

func TestSettingsWithoutAnEffectSaySo(t *testing.T) {
	known := map[string]bool{}
	for _, key := range config.Keys() {
		known[key.Name] = true
	}
	for _, idle := range config.WithoutEffect() {
		assert.False(t, known[idle.Name], idle.Name)
		for place, from := range map[string]config.Sources{
			"flag --" + idle.Flag():             {Flags: map[string]string{idle.Flag(): "x"}},
			"environment variable " + idle.Name: {Lookup: environment(map[string]string{idle.Name: "x"})},
			idle.Name + " in the ConfigMap":     {Map: map[string]string{idle.Name: "x"}},
			idle.Name + " in c":                 {File: []byte(idle.Name + ": x"), FileName: "c"},
		} {
			if from.Flags == nil {
				from.Flags = map[string]string{}
			}
			from.Flags["prometheus-base-url"] = "https://p"
			got, err := config.Load(from)
			require.NoError(t, err)
			assert.Equal(t, []string{place + " has no effect: " + idle.Why}, got.Warnings)
		}
	}
}

func TestEveryProblemIsSaidAtOnce(t *testing.T) {
	_, err := config.Load(config.Sources{
		Flags:  map[string]string{"wva-limited-mode": "yes", "prometheus-base-url": "http://p"},
		Lookup: environment(map[string]string{"GLOBAL_OPT_INTERVAL": "soon", "PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD": "x", "PROMETHEUS_METRICS_CACHE_STALE_THRESHOLD": "30s"}),
		Map:    map[string]string{"LOG_LEVEL": "loud", config.FileEntry: "WVA_SLO_PERCENTILE: 99\nPOD_METRICS_PORT: [1]\n"},
		File:   []byte("a: b: c"), FileName: "/etc/config.yaml", MapName: "home/settings",
	})
	require.Error(t, err)
	lines := strings.Split(err.Error(), "\n")
	require.Len(t, lines, 8, err.Error())
	for i, want := range []string{
		"configuration: /etc/config.yaml: ",
		"configuration: POD_METRICS_PORT in config.yaml of ConfigMap home/settings is a list or a map: write a single value",
		`configuration: LOG_LEVEL in ConfigMap home/settings is "loud": write error, warn, info or debug, or a number from 0 to 10`,
		`configuration: environment variable GLOBAL_OPT_INTERVAL is "soon": write a duration`,
		`configuration: flag --wva-limited-mode is "yes": write true or false`,
		`configuration: WVA_SLO_PERCENTILE in config.yaml of ConfigMap home/settings is "99": write a share`,
		`configuration: environment variable PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD is "x": write a duration`,
		`configuration: flag --prometheus-base-url is "http://p", which has no TLS: use https, or set PROMETHEUS_ALLOW_HTTP to true`,
	} {
		assert.Contains(t, lines[i], want)
	}
}

// Whatever names a file is looked at, wherever it is said, and nothing else is.
func TestFilesThatAreNotThere(t *testing.T) {
	from := config.Sources{
		Flags:  map[string]string{"prometheus-ca-cert-path": "/ca", "metrics-cert-path": "/directory", "pod-metrics-token-path": "/there"},
		Lookup: environment(map[string]string{"PROMETHEUS_TOKEN_PATH": "/token"}),
		Map:    map[string]string{"GATEWAY_METRICS_CA_CERT_PATH": "/epp"}, MapName: "home/settings",
	}
	err := config.Files(from, func(path string) error {
		if path == "/there" {
			return nil
		}
		return errors.New("gone")
	})
	require.Error(t, err)
	assert.Equal(t, []string{
		`configuration: environment variable PROMETHEUS_TOKEN_PATH is "/token", which cannot be read (gone): mount the file, or correct its path`,
		`configuration: flag --prometheus-ca-cert-path is "/ca", which cannot be read (gone): mount the file, or correct its path`,
		`configuration: GATEWAY_METRICS_CA_CERT_PATH in ConfigMap home/settings is "/epp", which cannot be read (gone): mount the file, or correct its path`,
	}, strings.Split(err.Error(), "\n"))
	require.NoError(t, config.Files(from, func(string) error { return nil }))
	asked := map[string]bool{}
	flags := map[string]string{}
	for _, key := range config.Keys() {
		if strings.HasSuffix(key.Name, "_PATH") {
			flags[key.Flag()] = "/" + key.Name
		}
	}
	require.NoError(t, config.Files(config.Sources{Flags: flags}, func(path string) error { asked[path] = true; return nil }))
	assert.Len(t, asked, len(flags)-2, "all but the two directories")
}

func TestLoadAcceptsPublishedSpellingsOfFlags(t *testing.T) {
	got, err := config.Load(config.Sources{Flags: map[string]string{
		"prometheus-base-url":    "https://p",
		"metrics-addr":           ":8443",
		"probe-addr":             ":8082",
		"enable-leader-election": "true",
	}})
	require.NoError(t, err)
	assert.Equal(t, ":8443", got.Serving.MetricsBindAddress)
	assert.Equal(t, ":8082", got.Serving.HealthProbeBindAddress)
	assert.True(t, got.LeaderElection.Enabled)
}

func TestPrometheusIsNotNeededWherePodsAreScraped(t *testing.T) {
	got, err := config.Load(config.Sources{Flags: map[string]string{"wva-metrics-source": "pods"}})
	require.NoError(t, err)
	assert.Equal(t, config.SourcePods, got.MetricsSource)
	assert.Equal(t, config.PodMetrics{ScrapeInterval: 5 * time.Second, Scheme: "http", Port: 8000}, got.PodMetrics)
	assert.Empty(t, got.Gateway.MetricsURLs)
}

func TestPagesOfTheGateway(t *testing.T) {
	got, err := config.Load(config.Sources{Flags: address, File: []byte("GATEWAY_METRICS_URLS: http://epp:9090/, ,https://[::1]:9/m?x=1,http://epp:9090/metrics,\n")})
	require.NoError(t, err)
	assert.Equal(t, []string{"http://epp:9090/metrics", "https://[::1]:9/m?x=1"}, got.Gateway.MetricsURLs, "each page once")
}

func TestLoadFileWithPlainScalars(t *testing.T) {
	got, err := config.Load(config.Sources{File: []byte(`
# Numbers and booleans without quotes are what people write.
PROMETHEUS_BASE_URL: http://prometheus:9090
PROMETHEUS_ALLOW_HTTP: true
METRICS_BIND_ADDRESS: 0
`)})
	require.NoError(t, err)
	assert.True(t, got.Prometheus.AllowHTTP)
	assert.Equal(t, "0", got.Serving.MetricsBindAddress)
}

func TestLoadReportsUnknownKeys(t *testing.T) {
	got, err := config.Load(config.Sources{
		Flags:    address,
		File:     []byte("GLOBAL_OPT_INTERVALL: 15s\nWVA_LIMITED_MODE: true\n"),
		FileName: "config.yaml",
	})
	require.NoError(t, err)
	assert.Equal(t, []string{"GLOBAL_OPT_INTERVALL in config.yaml is not a setting and has no effect: correct its name or remove it"}, got.Warnings)
	assert.True(t, got.Limited, "the known settings beside it count")
}

func TestLoadErrors(t *testing.T) {
	with := func(pairs ...string) map[string]string {
		flags := map[string]string{"prometheus-base-url": "https://p"}
		for i := 0; i < len(pairs); i += 2 {
			flags[pairs[i]] = pairs[i+1]
		}
		return flags
	}
	tests := map[string]struct {
		from config.Sources
		want []string
	}{
		"no address of Prometheus": {config.Sources{},
			[]string{"PROMETHEUS_BASE_URL is not set: give the address of Prometheus, such as https://"}},
		"an address without a scheme": {config.Sources{Lookup: environment(map[string]string{"PROMETHEUS_BASE_URL": "prometheus:9090"})},
			[]string{`environment variable PROMETHEUS_BASE_URL is "prometheus:9090": write an address`}},
		"an address without a scheme, with a key": {config.Sources{Flags: with("prometheus-base-url", "prometheus:9090?key=secret")},
			[]string{`flag --prometheus-base-url is "prometheus:9090": write an address`}},
		"an address without TLS, with a key": {config.Sources{Flags: with("prometheus-base-url", "http://p/?key=secret")},
			[]string{`flag --prometheus-base-url is "http://p/", which has no TLS`}},
		"a page of the gateway that is none, with a key": {config.Sources{Flags: with("gateway-metrics-urls", "epp:9090?key=secret")},
			[]string{`flag --gateway-metrics-urls holds "epp:9090": write addresses`}},
		"an address without TLS": {config.Sources{Flags: with("prometheus-base-url", "http://p")},
			[]string{`flag --prometheus-base-url is "http://p", which has no TLS: use https, or set PROMETHEUS_ALLOW_HTTP to true`}},
		"an address of Prometheus with a password, which is not shown": {config.Sources{Flags: with("prometheus-base-url", "https://me:secret@p")},
			[]string{"flag --prometheus-base-url is an address with an @: leave credentials out, a bearer token is read from a file"}},
		"an address with a password that is none": {config.Sources{Flags: with("prometheus-base-url", "me:secret@p")},
			[]string{"flag --prometheus-base-url is an address with an @"}},
		"an address with a password that nobody asks": {config.Sources{Flags: with("prometheus-base-url", "https://me:secret@p", "wva-metrics-source", "pods")},
			[]string{"flag --prometheus-base-url is an address with an @"}},
		"an address without a host": {config.Sources{Flags: with("prometheus-base-url", "https://:9090")},
			[]string{`flag --prometheus-base-url is "https://:9090": write an address`}},
		"an address of one page of Prometheus": {config.Sources{Flags: with("prometheus-base-url", "https://p/prometheus/api/v1/query?key=secret")},
			[]string{`flag --prometheus-base-url is "https://p/prometheus/api/v1/query": leave out /api/v1 and what follows`}},
		"a client certificate without its key": {config.Sources{Flags: with("prometheus-client-cert-path", "/c")},
			[]string{"PROMETHEUS_CLIENT_KEY_PATH is not set, and PROMETHEUS_CLIENT_CERT_PATH is: set both or none"}},
		"a client key without its certificate": {config.Sources{Flags: with("prometheus-client-key-path", "/c")},
			[]string{"PROMETHEUS_CLIENT_CERT_PATH is not set, and PROMETHEUS_CLIENT_KEY_PATH is: set both or none"}},
		"a duration without a unit": {config.Sources{Flags: address, File: []byte("GLOBAL_OPT_INTERVAL: 60"), FileName: "config.yaml"},
			[]string{`GLOBAL_OPT_INTERVAL in config.yaml is "60": write a duration with its unit, such as 60s or 5m`}},
		"a duration of zero": {config.Sources{Flags: with("wva-backlog-drain-time", "0s")},
			[]string{`flag --wva-backlog-drain-time is "0s": write a duration above zero`}},
		"a boolean that is none": {config.Sources{Flags: with("wva-limited-mode", "yes")},
			[]string{`flag --wva-limited-mode is "yes": write true or false`}},
		"a metrics window below a second": {config.Sources{Flags: with("prometheus-metrics-window", "10ms")},
			[]string{"flag --prometheus-metrics-window is 10ms: write at least 1s"}},
		"age limits out of order": {config.Sources{Flags: with("prometheus-metrics-cache-stale-threshold", "30s", "prometheus-metrics-cache-unavailable-threshold", "20s")},
			[]string{"--prometheus-metrics-cache-stale-threshold is 30s: write at least PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD (1m0s)", "--prometheus-metrics-cache-unavailable-threshold is 20s"}},
		"a lease that ends before its renewal": {config.Sources{Flags: with("leader-elect", "true", "leader-election-lease-duration", "50s")},
			[]string{"--leader-election-lease-duration is 50s: write more than LEADER_ELECTION_RENEW_DEADLINE (50s)"}},
		"retries too far apart": {config.Sources{Flags: with("leader-elect", "true", "leader-election-retry-period", "45s")},
			[]string{"LEADER_ELECTION_RENEW_DEADLINE is 50s: write more than 1.2 times LEADER_ELECTION_RETRY_PERIOD (45s)"}},
		"a leader without a lease": {config.Sources{Flags: with("leader-elect", "true", "leader-election-id", "")},
			[]string{"flag --leader-election-id is empty: name the lease"}},
		"pods for no scheduler": {config.Sources{Flags: with("webhook-place-pods", "true", "webhook-scheduler-name", "")},
			[]string{"flag --webhook-scheduler-name is empty: name the scheduler of the variants' pods, or set WEBHOOK_PLACE_PODS to false"}},
		"no namespace of its own": {config.Sources{Flags: with("pod-namespace", "")},
			[]string{"flag --pod-namespace is empty"}},
		"a file that is no YAML": {config.Sources{Flags: address, File: []byte("a: b: c"), FileName: "config.yaml"},
			[]string{"config.yaml: ", "write it as YAML, one KEY: value per line"}},
		"a file that is a list": {config.Sources{Flags: address, File: []byte("- a\n"), FileName: "config.yaml"},
			[]string{"config.yaml: "}},
		"a setting given twice in the file": {config.Sources{Flags: address, File: []byte("V: 1\nV: 2\n")},
			[]string{"the configuration file: ", `"V"`}},
		"a file of two documents": {config.Sources{Flags: address, File: []byte("---\r\n# the settings\r\nWVA_RISK: 0.8\r\n---\r\nWVA_HISTORY: false\r\n"), FileName: "config.yaml"},
			[]string{"config.yaml: it has 2 YAML documents, of which only the first would count: write all of it as one, without --- between"}},
		"a list as a value": {config.Sources{Flags: address, File: []byte("WATCH_NAMESPACE: [a, b]\n"), FileName: "config.yaml"},
			[]string{"WATCH_NAMESPACE in config.yaml is a list or a map: write a single value"}},
		"a source that is none": {config.Sources{Flags: with("wva-metrics-source", "thanos")},
			[]string{`flag --wva-metrics-source is "thanos": write prometheus or pods`}},
		"pods that are scraped too seldom for a rate": {config.Sources{Flags: with("wva-metrics-source", "pods", "pod-metrics-scrape-interval", "31s")},
			[]string{"flag --pod-metrics-scrape-interval is 31s: write at most half of PROMETHEUS_METRICS_WINDOW (1m0s)"}},
		"a gateway that is scraped too seldom for a rate": {config.Sources{Flags: with("gateway-metrics-urls", "http://epp:9090", "pod-metrics-scrape-interval", "31s")},
			[]string{"flag --pod-metrics-scrape-interval is 31s: write at most half of PROMETHEUS_METRICS_WINDOW (1m0s)"}},
		"a scheme that is none": {config.Sources{Flags: with("pod-metrics-scheme", "tcp")},
			[]string{`flag --pod-metrics-scheme is "tcp": write http or https`}},
		"a port that is none": {config.Sources{Flags: with("pod-metrics-port", "70000")},
			[]string{`flag --pod-metrics-port is "70000": write the number of a port, from 1 to 65535`}},
		"port zero": {config.Sources{Flags: with("pod-metrics-port", "0")},
			[]string{`flag --pod-metrics-port is "0"`}},
		"a page of the gateway without a scheme": {config.Sources{Flags: with("gateway-metrics-urls", "http://a/metrics, epp:9090")},
			[]string{`flag --gateway-metrics-urls holds "epp:9090": write addresses such as http://epp.gateway:9090/metrics, with commas between them`}},
		"a page of the gateway with a password, which is not shown": {config.Sources{Flags: with("gateway-metrics-urls", "http://me:secret@epp:9090/metrics")},
			[]string{"flag --gateway-metrics-urls holds an address with an @: leave credentials out, a bearer token is read from a file"}},
		"a percentile in percent": {config.Sources{Flags: with("wva-slo-percentile", "99")},
			[]string{`flag --wva-slo-percentile is "99": write a share above 0 and below 1, such as 0.99 for the 99th percentile`}},
		"a risk below the median": {config.Sources{Flags: with("wva-risk", "0.4")},
			[]string{`flag --wva-risk is "0.4": write a quantile from 0.5 to below 1, such as 0.85`}},
		"a percentile that nothing can keep": {config.Sources{Flags: with("wva-slo-percentile", "1")},
			[]string{`flag --wva-slo-percentile is "1"`}},
		"a percentile that is no number": {config.Sources{Flags: with("wva-slo-percentile", "nan")},
			[]string{`flag --wva-slo-percentile is "nan"`}},
		"names that no object can have": {config.Sources{Flags: with("pod-namespace", "a b", "watch-namespace", "NO/NS", "controller-instance", "not a label!", "config-map-name", "..", "saturation-config-map-name", "Not A Name",
			"accelerator-names-config-map-name", "", "service-class-config-map-name", "x/y", "accelerator-cost-config-map-name", "-", "scale-to-zero-config-map-name", "z_z", "leader-elect", "true", "leader-election-id", "My Lease")},
			[]string{`flag --pod-namespace is "a b": write the name of a namespace`, `flag --watch-namespace is "NO/NS": write`, `flag --controller-instance is "not a label!": write the value of a label`, `flag --config-map-name is "..": write the name of a ConfigMap`,
				`flag --saturation-config-map-name is "Not A Name"`, `flag --accelerator-names-config-map-name is "": write`, `flag --service-class-config-map-name is "x/y"`, `flag --accelerator-cost-config-map-name is "-"`,
				`flag --scale-to-zero-config-map-name is "z_z"`, `flag --leader-election-id is "My Lease": write the name of a lease`}},
		"one ConfigMap for two kinds of settings": {config.Sources{Flags: with("config-map-name", "all", "saturation-config-map-name", "all", "scale-to-zero-config-map-name", "serviceclass")},
			[]string{"flag --saturation-config-map-name is looked for in ConfigMap all, and so is CONFIG_MAP_NAME (all): give each a ConfigMap of its own",
				"flag --scale-to-zero-config-map-name is looked for in ConfigMap serviceclass, and so is SERVICE_CLASS_CONFIG_MAP_NAME"}},
		"addresses that nobody can listen at": {config.Sources{Flags: with("metrics-bind-address", "8443", "health-probe-bind-address", "localhost:http")},
			[]string{`flag --metrics-bind-address is "8443": write an address such as :8443 or 127.0.0.1:8443, or 0 for none`, `flag --health-probe-bind-address is "localhost:http": write an address`}},
		"one address for two": {config.Sources{Flags: with("metrics-bind-address", ":8081")},
			[]string{`HEALTH_PROBE_BIND_ADDRESS is ":8081", which is that of METRICS_BIND_ADDRESS too: write another port`}},
		"times without a pause": {config.Sources{Flags: with("global-opt-interval", "1ns", "wva-backlog-drain-time", "10ms", "pod-metrics-scrape-interval", "1ms", "rest-client-timeout", "1us", "leader-election-retry-period", "1ms")},
			[]string{"flag --global-opt-interval is 1ns: write at least 1s", "flag --wva-backlog-drain-time is 10ms: write at least 1s", "flag --pod-metrics-scrape-interval is 1ms: write at least 1s",
				"flag --rest-client-timeout is 1µs: write at least 1s", "flag --leader-election-retry-period is 1ms: write at least 100ms"}},
		"a lease of no whole second": {config.Sources{Flags: with("leader-elect", "true", "leader-election-lease-duration", "900ms", "leader-election-renew-deadline", "800ms", "leader-election-retry-period", "100ms")},
			[]string{"flag --leader-election-lease-duration is 900ms: write at least 1s"}},
		"more replicas than there are": {config.Sources{Flags: with("wva-growth-limit-replicas", "9223372036854775807", "wva-growth-limit-percent", "1000001")},
			[]string{`flag --wva-growth-limit-replicas is "9223372036854775807": write a whole number from 0 to 1000000`, `flag --wva-growth-limit-percent is "1000001": write a whole number from 0 to 1000000`}},
		"two wrong settings are both named": {config.Sources{Flags: with("wva-limited-mode", "yes", "metrics-secure", "no")},
			[]string{"--wva-limited-mode", "--metrics-secure"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := config.Load(test.from)
			require.Error(t, err)
			for _, want := range test.want {
				assert.ErrorContains(t, err, want)
			}
			assert.NotContains(t, err.Error(), "secret")
		})
	}
}

// The API server of a cluster passes on to its services, and some proxies to Prometheus, under paths
// that look like one of Prometheus.
func TestAddressesOfPrometheusBehindOthers(t *testing.T) {
	for _, at := range []string{"https://p/prometheus/", "https://k8s/api/v1/namespaces/monitoring/services/prometheus:9090/proxy", "https://vm:8481/select/0/prometheus", "https://p:9090/?key=k"} {
		_, err := config.Load(config.Sources{Flags: map[string]string{"prometheus-base-url": at}})
		require.NoError(t, err, at)
	}
}

func FuzzLoadFile(f *testing.F) {
	f.Add([]byte("GLOBAL_OPT_INTERVAL: 15s\nWVA_LIMITED_MODE: true\n"))
	f.Add([]byte("a: {b: [1, 2.5, null]}\n"))
	f.Add([]byte("- x\n"))
	f.Add([]byte("\x00\xff"))
	f.Fuzz(func(t *testing.T, file []byte) {
		got, err := config.Load(config.Sources{Flags: address, File: file})
		if err != nil {
			return
		}
		assert.Positive(t, got.Interval)
		assert.LessOrEqual(t, got.Freshness.Fresh, got.Freshness.Ageing)
		assert.LessOrEqual(t, got.Freshness.Ageing, got.Freshness.Stale)
	})
}
