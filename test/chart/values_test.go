package chart

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	goyaml "go.yaml.in/yaml/v3"
	"helm.sh/helm/v3/pkg/chartutil"
)

// ownCertificate has the webhooks served with a certificate that somebody else keeps.
var ownCertificate = values{"webhooks": values{"validateVariants": values{"enabled": true}, "certificate": values{"secretName": "mine"}}}

// zones has pods in different zones, if they can be.
var zones = values{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"}

// metric leaves the scaling to an HPA.
var metric = nested("wva.actuation", "Metric")

// effects has for every value of values.yaml a change, and what else must be set
// for it to matter.
var effects = map[string]struct {
	change any
	given  values
}{
	"fullnameOverride":                                  {change: "green"},
	"runAsUser":                                         {change: 1000},
	"commonLabels":                                      {change: values{"example.com/team": "serving"}},
	"wva.image.digest":                                  {change: "sha256:" + strings.Repeat("a", 64)},
	"scheduler.image.digest":                            {change: "sha256:" + strings.Repeat("a", 64)},
	"wva.priorityClassName":                             {change: "platform"},
	"wva.topologySpreadConstraints":                     {change: []any{zones}},
	"scheduler.topologySpreadConstraints":               {change: []any{zones}},
	"imagePullSecrets":                                  {change: []any{values{"name": "pull"}}},
	"wva.enabled":                                       {change: false},
	"llamastack.enabled":                                {change: true},
	"webhooks.validateVariants.enabled":                 {change: true},
	"webhooks.validateVariants.failurePolicy":           {change: "Fail", given: nested("webhooks.validateVariants.enabled", true)},
	"webhooks.placePods.enabled":                        {change: true},
	"webhooks.certificate.secretName":                   {change: "mine", given: nested("webhooks.validateVariants.enabled", true)},
	"webhooks.certificate.authority":                    {change: "-----BEGIN CERTIFICATE-----", given: ownCertificate},
	"webhooks.certificate.annotations":                  {change: values{"cert-manager.io/inject-ca-from": "n/c"}, given: ownCertificate},
	"wva.replicas":                                      {change: 1},
	"wva.image.repository":                              {change: "mirror/manager"},
	"wva.image.tag":                                     {change: "v9"},
	"wva.imagePullPolicy":                               {change: "Always"},
	"wva.logLevel":                                      {change: 4},
	"wva.namespaceScoped":                               {change: true},
	"wva.controllerInstance":                            {change: "blue"},
	"wva.configMap.immutable":                           {change: true},
	"wva.reconcileInterval":                             {change: "15s"},
	"wva.limitedMode":                                   {change: true},
	"wva.chooseVictims":                                 {change: false},
	"wva.namespaceConfig":                               {change: true},
	"wva.proactiveModel":                                {change: false},
	"wva.sloPercentile":                                 {change: 0.95},
	"wva.risk":                                          {change: 0.7},
	"wva.history":                                       {change: false},
	"wva.growthLimitReplicas":                           {change: 10},
	"wva.growthLimitPercent":                            {change: 100},
	"wva.conflictPeriod":                                {change: "2h"},
	"wva.switchHorizon":                                 {change: "1h"},
	"wva.serviceClasses":                                {change: values{"premium": values{"name": "Premium", "priority": 1, "data": []any{values{"model": "llama", "slo-ttft": 500}}}}},
	"wva.acceleratorUnitCosts":                          {change: values{"H100": values{"device": "NVIDIA-H100-80GB-HBM3", "cost": "100.0"}}},
	"wva.scaleToZero":                                   {change: true},
	"wva.scaleToZeroRetention":                          {change: "5m"},
	"wva.modelScaleToZero":                              {change: values{"default": values{"enable_scale_to_zero": true}}},
	"wva.metricsSource":                                 {change: "pods"},
	"wva.podMetrics.scrapeInterval":                     {change: "10s"},
	"wva.podMetrics.scheme":                             {change: "https"},
	"wva.podMetrics.port":                               {change: 8200},
	"wva.podMetrics.tokenPath":                          {change: "/token"},
	"wva.podMetrics.caCertPath":                         {change: "/ca.crt"},
	"wva.podMetrics.serverName":                         {change: "vllm"},
	"wva.backlogDrainTime":                              {change: "1m"},
	"wva.startupDeadline":                               {change: "5m"},
	"wva.metricsFreshness.fresh":                        {change: "30s"},
	"wva.metricsFreshness.stale":                        {change: "3m"},
	"wva.metricsFreshness.unavailable":                  {change: "10m"},
	"wva.extraVolumes":                                  {change: []any{values{"name": "pod-tls", "secret": values{"secretName": "pod-tls"}}}},
	"wva.extraVolumeMounts":                             {change: []any{values{"name": "config", "mountPath": "/etc/again", "readOnly": true}}},
	"wva.prometheus.tls.clientCertPath":                 {change: "/client/tls.crt"},
	"wva.prometheus.tls.clientKeyPath":                  {change: "/client/tls.key"},
	"wva.prometheus.tls.serverName":                     {change: "prometheus"},
	"wva.prometheus.httpConfigSecret":                   {change: "login"},
	"wva.prometheus.httpConfigKey":                      {change: "other.yaml", given: nested("wva.prometheus.httpConfigSecret", "login")},
	"wva.prometheus.matchers":                           {change: `cluster="a"`},
	"wva.podMetrics.insecureSkipVerify":                 {change: true},
	"wva.gateway.tokenPath":                             {change: "/token"},
	"wva.gateway.caCertPath":                            {change: "/ca.crt"},
	"wva.gateway.insecureSkipVerify":                    {change: true},
	"wva.gateway.patience":                              {change: "5m"},
	"wva.gateway.metricsURLs":                           {change: []any{"http://epp:9090/metrics", "http://other:9090/metrics"}},
	"wva.gateway.namespaces":                            {change: []any{"gateways", "edge"}},
	"wva.acceleratorNames":                              {change: values{"NVIDIA-H100-Custom": "H100"}},
	"wva.capacityScaling.default.kvCacheThreshold":      {change: 0.9},
	"wva.capacityScaling.default.queueLengthThreshold":  {change: 6},
	"wva.capacityScaling.default.kvSpareTrigger":        {change: 0.2},
	"wva.capacityScaling.default.queueSpareTrigger":     {change: 4},
	"wva.capacityScaling.overrides":                     {change: values{"llama": values{"modelID": "llama", "namespace": "chat", "kvSpareTrigger": 0.0}}},
	"wva.prometheus.baseURL":                            {change: "https://thanos:9091"},
	"wva.prometheus.allowHTTP":                          {change: true},
	"wva.prometheus.tokenPath":                          {change: "/token"},
	"wva.prometheus.caCert":                             {change: "-----BEGIN CERTIFICATE-----"},
	"wva.prometheus.tls.caCertPath":                     {change: "/ca.crt", given: nested("wva.prometheus.caCert", "-----BEGIN CERTIFICATE-----")},
	"wva.prometheus.tls.insecureSkipVerify":             {change: true},
	"wva.prometheus.metricsWindow":                      {change: "2m"},
	"wva.prometheus.serviceAccountName":                 {change: "prometheus", given: nested("wva.prometheus.monitoringNamespace", "monitoring")},
	"wva.prometheus.monitoringNamespace":                {change: "elsewhere", given: nested("wva.prometheus", values{"serviceAccountName": "prometheus", "monitoringNamespace": "monitoring"})},
	"wva.prometheus.discovery":                          {change: true, given: nested("wva.prometheus", values{"serviceAccountName": "prometheus", "monitoringNamespace": "monitoring"})},
	"wva.prometheus.createReader":                       {change: true},
	"wva.metrics.enabled":                               {change: false},
	"wva.metrics.port":                                  {change: 9444},
	"wva.metrics.secure":                                {change: false},
	"wva.metrics.publishedNames":                        {change: false},
	"wva.metrics.serviceMonitor.enabled":                {change: true},
	"wva.metrics.serviceMonitor.interval":               {change: "30s", given: nested("wva.metrics.serviceMonitor.enabled", true)},
	"wva.metrics.serviceMonitor.labels":                 {change: values{"release": "monitoring"}, given: nested("wva.metrics.serviceMonitor.enabled", true)},
	"wva.resources.requests.cpu":                        {change: "1"},
	"wva.resources.requests.memory":                     {change: "2Gi"},
	"wva.resources.limits.cpu":                          {change: "1"},
	"wva.resources.limits.memory":                       {change: "2Gi"},
	"wva.nodeSelector":                                  {change: values{"pool": "system"}},
	"scheduler.enabled":                                 {change: false},
	"scheduler.name":                                    {change: "gpu-scheduler"},
	"scheduler.replicas":                                {change: 1},
	"scheduler.image.repository":                        {change: "mirror/scheduler"},
	"scheduler.image.tag":                               {change: "v9"},
	"scheduler.imagePullPolicy":                         {change: "Always"},
	"scheduler.logLevel":                                {change: 4},
	"scheduler.gangScheduling":                          {change: true},
	"scheduler.priorityClassName":                       {change: ""},
	"scheduler.resources.requests.cpu":                  {change: "1"},
	"scheduler.resources.requests.memory":               {change: "2Gi"},
	"scheduler.nodeSelector":                            {change: values{"pool": "system"}},
	"scheduler.tolerations":                             {change: []any{values{"key": "system", "operator": "Exists"}}},
	"crd.install":                                       {change: false},
	"controller.enabled":                                {change: false},
	"wva.actuation":                                     {change: "Metric"},
	"wva.clusterRead":                                   {change: true, given: nested("wva.namespaceScoped", true)},
	"wva.affinity":                                      {change: values{"nodeAffinity": values{}}},
	"wva.podAnnotations":                                {change: values{"example.com/team": "serving"}},
	"wva.extraArgs":                                     {change: []any{"--logging-format=json"}},
	"wva.serviceAccount.create":                         {change: false},
	"wva.serviceAccount.name":                           {change: "autoscaler"},
	"wva.serviceAccount.annotations":                    {change: values{"example.com/role": "autoscaler"}},
	"wva.podDisruptionBudget.enabled":                   {change: false},
	"wva.metrics.serviceMonitor.honorLabels":            {change: true, given: nested("wva.metrics.serviceMonitor.enabled", true)},
	"scheduler.serviceMonitor.enabled":                  {change: true},
	"scheduler.serviceMonitor.interval":                 {change: "30s", given: nested("scheduler.serviceMonitor.enabled", true)},
	"scheduler.serviceMonitor.labels":                   {change: values{"release": "monitoring"}, given: nested("scheduler.serviceMonitor.enabled", true)},
	"scheduler.affinity":                                {change: values{"nodeAffinity": values{}}},
	"scheduler.podAnnotations":                          {change: values{"example.com/team": "serving"}},
	"scheduler.extraArgs":                               {change: []any{"--logging-format=json"}},
	"scheduler.podDisruptionBudget.enabled":             {change: false},
	"networkPolicy.enabled":                             {change: true},
	"networkPolicy.egress":                              {change: []any{values{"to": []any{values{"podSelector": values{}}}}}, given: nested("networkPolicy.enabled", true)},
	"networkPolicy.metricsFrom":                         {change: []any{values{"podSelector": values{}}}, given: nested("networkPolicy.enabled", true)},
	"alerts.enabled":                                    {change: true},
	"alerts.labels":                                     {change: values{"release": "monitoring"}, given: nested("alerts.enabled", true)},
	"alerts.runbookURL":                                 {change: "https://docs.example.com/alerts", given: nested("alerts.enabled", true)},
	"dashboards.enabled":                                {change: true},
	"dashboards.labels.grafana_dashboard":               {change: "true", given: nested("dashboards.enabled", true)},
	"dashboards.annotations":                            {change: values{"grafana_folder": "LLM"}, given: nested("dashboards.enabled", true)},
	"llmd.namespace":                                    {change: "serving", given: nested("va.enabled", true)},
	"llmd.modelName":                                    {change: "llama", given: nested("va.enabled", true)},
	"llmd.modelID":                                      {change: "meta/llama", given: nested("va.enabled", true)},
	"wva.prometheus.readerClusterRole":                  {change: "cluster-monitoring-view", given: nested("wva.prometheus.readerClusterRole", "monitoring-view")},
	"va.enabled":                                        {change: true},
	"va.accelerator":                                    {change: "L40S", given: nested("va.enabled", true)},
	"va.variantCost":                                    {change: "2.5", given: nested("va.enabled", true)},
	"va.sloTpot":                                        {change: 20, given: nested("va.enabled", true)},
	"va.sloTtft":                                        {change: 500, given: nested("va.enabled", true)},
	"hpa.enabled":                                       {change: false, given: metric},
	"hpa.minReplicas":                                   {change: 2, given: metric},
	"hpa.maxReplicas":                                   {change: 20, given: metric},
	"hpa.targetAverageValue":                            {change: "2", given: metric},
	"vllmService.enabled":                               {change: true},
	"vllmService.interval":                              {change: "30s", given: nested("vllmService.enabled", true)},
	"vllmService.nodePort":                              {change: 30001, given: nested("vllmService.enabled", true)},
	"vllmService.port":                                  {change: 80, given: nested("vllmService.enabled", true)},
	"vllmService.targetPort":                            {change: 8000, given: nested("vllmService.enabled", true)},
	"vllmService.scheme":                                {change: "https", given: nested("vllmService.enabled", true)},
	"hpa.behavior.scaleUp.stabilizationWindowSeconds":   {change: 0, given: metric},
	"hpa.behavior.scaleUp.selectPolicy":                 {change: "Min", given: metric},
	"hpa.behavior.scaleUp.policies":                     {change: []any{values{"type": "Percent", "value": 100, "periodSeconds": 15}}, given: metric},
	"hpa.behavior.scaleDown.stabilizationWindowSeconds": {change: 0, given: metric},
	"hpa.behavior.scaleDown.selectPolicy":               {change: "Min", given: metric},
	"hpa.behavior.scaleDown.policies":                   {change: []any{values{"type": "Percent", "value": 100, "periodSeconds": 15}}, given: metric},
	"wva.tolerations":                                   {change: []any{values{"key": "system", "operator": "Exists"}}},
}

// nested is a value at a path with dots, as nested values.
func nested(path string, value any) values {
	field, rest, deeper := strings.Cut(path, ".")
	if deeper {
		value = nested(rest, value)
	}
	return values{field: value}
}

// leaf is one value of values.yaml.
type leaf struct {
	path    string
	comment string
}

// leaves are all values of values.yaml: whatever is not a map with entries.
func leaves(t *testing.T) []leaf {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(chartDir, "values.yaml"))
	require.NoError(t, err)
	var document goyaml.Node
	require.NoError(t, goyaml.Unmarshal(text, &document))
	var found []leaf
	var walk func(prefix string, node *goyaml.Node)
	walk = func(prefix string, node *goyaml.Node) {
		for i := 0; i < len(node.Content); i += 2 {
			key, value := node.Content[i], node.Content[i+1]
			path := prefix + key.Value
			if value.Kind == goyaml.MappingNode && len(value.Content) > 0 {
				walk(path+".", value)
				continue
			}
			found = append(found, leaf{path, key.HeadComment})
		}
	}
	walk("", document.Content[0])
	return found
}

func TestEveryValueHasAnEffect(t *testing.T) {
	var paths []string
	for _, leaf := range leaves(t) {
		paths = append(paths, leaf.path)
	}
	assert.ElementsMatch(t, paths, slices.Collect(maps.Keys(effects)), "values.yaml and this test name the same values")

	for path, effect := range effects {
		t.Run(path, func(t *testing.T) {
			before, err := release{name: plainName, namespace: plainNamespace, values: withScheduler(effect.given)}.files(t)
			require.NoError(t, err)
			changed := withScheduler(chartutil.MergeTables(nested(path, effect.change), effect.given))
			after, err := release{name: plainName, namespace: plainNamespace, values: changed}.files(t)
			require.NoError(t, err)
			assert.NotEqual(t, before, after)
			canFollow(t, objectsIn(t, before), objectsIn(t, after))
		})
	}
}

// canFollow says that an upgrade from one to the other changes nothing that an API server
// never lets change.
func canFollow(t *testing.T, before, after objects) {
	t.Helper()
	for key, was := range before {
		is, stays := after[key]
		if !stays {
			continue
		}
		assert.Equal(t, was.Object["roleRef"], is.Object["roleRef"], "%s %s", key.kind, key.name)
		assert.Equal(t, was.Object["type"], is.Object["type"], "%s %s", key.kind, key.name)
		if key.kind == "Deployment" {
			assert.Equal(t, was.Object["spec"].(map[string]any)["selector"], is.Object["spec"].(map[string]any)["selector"], key.name)
		}
	}
}

func TestEveryValueIsDocumented(t *testing.T) {
	for _, leaf := range leaves(t) {
		// The units of a container's resources are Kubernetes' own.
		if !strings.Contains(leaf.path, ".resources.") {
			assert.NotEmpty(t, leaf.comment, "%s has no comment above it in values.yaml", leaf.path)
		}
	}
}

func TestBadValuesAreRefused(t *testing.T) {
	for name, bad := range map[string]struct {
		values values
		want   string
	}{
		"a misspelled value":                 {nested("wva.limitMode", true), "limitMode"},
		"a number where a text belongs":      {nested("wva.reconcileInterval", 60), "reconcileInterval"},
		"an interval without a unit":         {nested("wva.reconcileInterval", "60"), "reconcileInterval"},
		"a share above one":                  {nested("wva.capacityScaling.default.kvCacheThreshold", 80), "kvCacheThreshold"},
		"a name of no accelerator":           {nested("wva.acceleratorNames", values{"NVIDIA-H100-Custom": ""}), "acceleratorNames"},
		"an override of no model":            {nested("wva.capacityScaling.overrides.llama", values{"kvCacheThreshold": 0.7}), "modelID"},
		"an override called default":         {nested("wva.capacityScaling.overrides.default", values{"modelID": "a", "namespace": "b"}), "default"},
		"a percentile in percent":            {nested("wva.sloPercentile", 99), "sloPercentile"},
		"a class without a name":             {nested("wva.serviceClasses.premium", values{"priority": 1}), "name"},
		"a class for no namespace":           {nested("wva.serviceClasses.premium", values{"name": "Premium", "priority": 1, "namespaces": []any{}}), "namespaces"},
		"a class too unimportant":            {nested("wva.serviceClasses.premium", values{"name": "Premium", "priority": 101}), "priority"},
		"a misspelled latency":               {nested("wva.serviceClasses.premium", values{"name": "Premium", "priority": 1, "data": []any{values{"model": "m", "slo-tpto": 5}}}), "slo-tpto"},
		"an accelerator without a cost":      {nested("wva.acceleratorUnitCosts.H100", values{"device": "x"}), "cost"},
		"a retention without a unit":         {nested("wva.modelScaleToZero.default", values{"retention_period": "600"}), "retention_period"},
		"an unknown source of metrics":       {nested("wva.metricsSource", "thanos"), "metricsSource"},
		"a page without a scheme":            {nested("wva.gateway.metricsURLs", []any{"epp:9090"}), "metricsURLs"},
		"a namespace that is no name":        {nested("wva.gateway.namespaces", []any{"a,b"}), "namespaces"},
		"a password in an address":           {nested("wva.prometheus.baseURL", "https://me:secret@prometheus"), "baseURL"},
		"an address without TLS":             {nested("wva.prometheus.baseURL", "http://prometheus:9090"), "which has no TLS: use https, or set wva.prometheus.allowHTTP=true"},
		"a mount of no path":                 {nested("wva.extraVolumeMounts", []any{values{"name": "tls"}}), "mountPath"},
		"no address of Prometheus":           {nested("wva.prometheus.baseURL", ""), "baseURL"},
		"a port of the system":               {nested("wva.metrics.port", 443), "port"},
		"an unknown pull policy":             {nested("wva.imagePullPolicy", "Sometimes"), "imagePullPolicy"},
		"the cluster's own scheduler":        {nested("scheduler.name", "default-scheduler"), "name"},
		"an unknown actuation":               {nested("wva.actuation", "metric"), "actuation"},
		"a certificate without a file":       {nested("wva.prometheus.tls.caCertPath", "/etc/ssl/certs/prometheus-ca.crt"), "nothing brings that file: give the certificate in wva.prometheus.caCert"},
		"an argument without a dash":         {nested("wva.extraArgs", []any{"v=4"}), "extraArgs"},
		"more than no replicas at most":      {nested("hpa.maxReplicas", 0), "maxReplicas"},
		"a policy without a period":          {nested("hpa.behavior.scaleUp.policies", []any{values{"type": "Pods", "value": 10}}), "periodSeconds"},
		"a cost that is no number":           {nested("va.variantCost", "ten"), "variantCost"},
		"an instance that is no label":       {nested("wva.controllerInstance", "team a"), "controllerInstance"},
		"a type that is no label":            {nested("va.accelerator", "NVIDIA H100"), "accelerator"},
		"a namespace in capitals":            {nested("llmd.namespace", "Serving"), "namespace"},
		"a name that starts with a digit":    {nested("fullnameOverride", "1st"), "fullnameOverride"},
		"a scheduler that starts with one":   {nested("scheduler.name", "1st"), "name"},
		"the port of the probes":             {nested("wva.metrics.port", 8081), "wva.metrics.port: 8081 is the port of the probes: choose another one"},
		"the port of the webhooks":           {nested("wva.metrics.port", 9443), "wva.metrics.port: 9443 is the port of the webhooks: choose another one"},
		"an authority in base64":             {nested("webhooks.certificate.authority", "LS0tLS1CRUdJTg=="), "authority"},
		"an authority of Prometheus as path": {nested("wva.prometheus.caCert", "/etc/ca.crt"), "caCert"},
		"an HPA without the metric":          {nested("wva", values{"actuation": "Metric", "metrics": values{"enabled": false}}), "wva.actuation: Metric needs wva.metrics.enabled"},
		"a digest without its kind":          {nested("wva.image.digest", strings.Repeat("a", 64)), "digest"},
		"a label of the chart's own":         {nested("commonLabels", values{"app.kubernetes.io/name": "mine"}), "commonLabels: app.kubernetes.io/name is a label of the chart's own"},
		"a reader without a namespace":       {nested("wva.prometheus.serviceAccountName", "prometheus"), "monitoringNamespace"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := release{name: plainName, namespace: plainNamespace, values: bad.values}.files(t)
			require.Error(t, err)
			assert.ErrorContains(t, err, bad.want)
		})
	}
}
