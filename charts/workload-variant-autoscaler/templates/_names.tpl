{{/*
The prefix of every name. A release called like the chart has the names of the
plain manifests.
*/}}
{{- define "wva.prefix" -}}
{{- $name := .Release.Name -}}
{{- if not (contains .Chart.Name $name) -}}
{{- $name = printf "%s-%s" $name .Chart.Name -}}
{{- end -}}
{{- $prefix := .Values.fullnameOverride | default $name | trunc 40 | trimSuffix "-" -}}
{{- if not (regexMatch "^[a-z][-a-z0-9]*$" $prefix) -}}
{{- fail (printf "no Service can have the name of the release, %s, in its own: set fullnameOverride to a name of small letters, digits and dashes that starts with a letter" .Release.Name) -}}
{{- end -}}
{{- $prefix -}}
{{- end -}}

{{/*
Fills in the values that are missing. "helm upgrade --reuse-values" takes the values of
the chart that was there before in place of this chart's own, so whatever that one did
not know is absent. Where most of ours are, it was the published chart, and what is missing
gets what the published chart did (values-llm-d.yaml). Those that somebody set since do not
change that. Every template calls this first.
*/}}
{{- define "wva.fill" -}}
{{- $ours := .Files.Get "files/values.yaml" | fromYaml -}}
{{- $missing := 0 -}}
{{- range $key, $_ := $ours.wva -}}
{{- if not (hasKey ($.Values.wva | default dict) $key) -}}
{{- $missing = add1 $missing -}}
{{- end -}}
{{- end -}}
{{- if gt (mul 2 $missing) (len $ours.wva) -}}
{{- include "wva.fillFrom" (list .Values (.Files.Get "files/values-llm-d.yaml" | fromYaml)) -}}
{{- end -}}
{{- include "wva.fillFrom" (list .Values $ours) -}}
{{- end -}}

{{/* Sets in a map what only another one has; what a user removed from resources, labels or a behavior stays away. */}}
{{- define "wva.fillFrom" -}}
{{- $into := index . 0 -}}
{{- range $key, $value := index . 1 -}}
{{- if not (hasKey $into $key) -}}
{{- $_ := set $into $key $value -}}
{{- else if and (kindIs "map" $value) (kindIs "map" (get $into $key)) (not (has $key (list "resources" "labels" "behavior"))) -}}
{{- include "wva.fillFrom" (list (get $into $key) $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Whether the manager is installed: "true" or nothing. */}}
{{- define "wva.manager" -}}
{{- if and .Values.controller.enabled .Values.wva.enabled }}true{{ end -}}
{{- end -}}

{{/* Whether the scheduler is installed: "true" or nothing. */}}
{{- define "wva.scheduler" -}}
{{- if and .Values.controller.enabled .Values.scheduler.enabled -}}
{{- if semverCompare "<1.36.0-0" .Capabilities.KubeVersion.Version -}}
{{- fail (printf "scheduler.enabled: the scheduler needs Kubernetes 1.36 or newer, and this cluster has %s; the manager runs without it" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
true
{{- end -}}
{{- end -}}

{{/* The service account that managers run as. */}}
{{- define "wva.account" -}}
{{- .Values.wva.serviceAccount.name | default (printf "%s-controller-manager" (include "wva.prefix" .)) -}}
{{- end -}}

{{/* The labels of every object. */}}
{{- define "wva.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- with .Values.commonLabels }}
{{- range $own := list "name" "instance" "version" "managed-by" "component" }}
{{- if hasKey $.Values.commonLabels (printf "app.kubernetes.io/%s" $own) }}
{{- fail (printf "commonLabels: app.kubernetes.io/%s is a label of the chart's own" $own) }}
{{- end }}
{{- end }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* What selects the pods of a component: a list of the root context and its name. */}}
{{- define "wva.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Chart.Name }}
app.kubernetes.io/instance: {{ $root.Release.Name | quote }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/* The labels of the pods of a component. */}}
{{- define "wva.podLabels" -}}
{{- include "wva.selector" . }}
{{- with (index . 0).Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* An image as a pod names it: a list of the root context and the values of the image. */}}
{{- define "wva.image" -}}
{{- $root := index . 0 -}}
{{- with index . 1 -}}
{{- if .digest -}}
{{- printf "%s@%s" .repository .digest -}}
{{- else -}}
{{- printf "%s:%s" .repository (.tag | default $root.Chart.AppVersion) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
A manifest of the repository under the names of this release: a list of the root
context and the file. Everything of the scheduler is called like the scheduler, for
which pods ask by that name: two schedulers of one name would race for them.
*/}}
{{- define "wva.manifest" -}}
{{- $root := index . 0 -}}
{{- $labels := include "wva.labels" $root | nindent 4 | trimPrefix "\n" -}}
{{- /* First marks, which no name contains, so that no replacement meets another. */ -}}
{{- $root.Files.Get (index . 1)
    | replace "    app.kubernetes.io/name: workload-variant-autoscaler\n" "<labels>\n"
    | replace "workload-variant-autoscaler-system" "<namespace>"
    | replace "workload-variant-autoscaler-controller-manager" "<account>"
    | replace "workload-variant-autoscaler-" "<prefix>-"
    | replace "variant-scheduler" "<scheduler>"
    | replace "<labels>" $labels
    | replace ": <namespace>" (printf ": %q" $root.Release.Namespace)
    | replace "<namespace>" $root.Release.Namespace
    | replace "<account>" (include "wva.account" $root)
    | replace "<prefix>" (include "wva.prefix" $root)
    | replace "<scheduler>" $root.Values.scheduler.name -}}
{{- end -}}

{{/*
The same with every ClusterRole as a Role of the release's namespace, without the
resources that have no namespace.
*/}}
{{- define "wva.namespaced" -}}
{{- $root := index . 0 -}}
{{- range $text := regexSplit "(?m)^---$" (include "wva.manifest" .) -1 -}}
{{- $object := fromYaml $text -}}
{{- if not $object.aggregationRule }}
{{- $_ := set $object.metadata "namespace" $root.Release.Namespace -}}
{{- $_ := set $object "kind" (replace "ClusterRole" "Role" $object.kind) -}}
{{- with $object.roleRef -}}
{{- $_ := set . "kind" "Role" -}}
{{- end -}}
{{- with $object.rules -}}
{{- $rules := list -}}
{{- range . -}}
{{- $resources := without .resources "nodes" "runtimeclasses" "priorityclasses" -}}
{{- if $resources -}}
{{- $rules = append $rules (set . "resources" $resources) -}}
{{- end -}}
{{- end -}}
{{- $_ := set $object "rules" $rules -}}
{{- end }}
---
{{ toYaml $object }}
{{ end -}}
{{- end -}}
{{- end -}}

{{/* Where pods run that are not told where: on different nodes, but one is enough. */}}
{{- define "wva.apart" -}}
podAntiAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
  - weight: 100
    podAffinityTerm:
      topologyKey: kubernetes.io/hostname
      labelSelector:
        matchLabels:
          {{- include "wva.selector" . | nindent 10 }}
{{- end -}}

{{/*
The file of the certificate that signs that of Prometheus. One that nothing brings would
only be noticed when the manager starts.
*/}}
{{- define "wva.prometheusCA" -}}
{{- $path := .Values.wva.prometheus.tls.caCertPath -}}
{{- if .Values.wva.prometheus.caCert -}}
{{- $path | default "/etc/prometheus-ca/ca.crt" -}}
{{- else if $path -}}
{{- $brought := false -}}
{{- range .Values.wva.extraVolumeMounts -}}
{{- if or (eq $path .mountPath) (hasPrefix (printf "%s/" (trimSuffix "/" .mountPath)) $path) -}}
{{- $brought = true -}}
{{- end -}}
{{- end -}}
{{- if $brought -}}
{{- $path -}}
{{- else if not .Values.wva.prometheus.tls.insecureSkipVerify -}}
{{- fail (printf "wva.prometheus.tls.caCertPath is %s, and nothing brings that file: give the certificate in wva.prometheus.caCert, or mount it with wva.extraVolumes and wva.extraVolumeMounts" $path) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What a container of ours may do: nothing. */}}
{{- define "wva.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* Who a pod of ours runs as: nobody. */}}
{{- define "wva.podSecurity" -}}
runAsNonRoot: true
{{- if and .Values.runAsUser (not (.Capabilities.APIVersions.Has "security.openshift.io/v1")) }}
runAsUser: {{ int64 .Values.runAsUser }}
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/* How Prometheus shows who it is: with the token of a reader that the release has, or with its own. */}}
{{- define "wva.authorization" -}}
{{- if .Values.wva.prometheus.createReader -}}
authorization:
  credentials:
    name: {{ include "wva.prefix" . }}-metrics-reader
    key: token
{{- else -}}
bearerTokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token
{{- end -}}
{{- end -}}

{{/* Whether the manager has a ServiceMonitor. */}}
{{- define "wva.monitored" -}}
{{- $enabled := .Values.wva.metrics.serviceMonitor.enabled | toString -}}
{{- if or (eq $enabled "true") (and (eq $enabled "auto") (.Capabilities.APIVersions.Has "monitoring.coreos.com/v1/ServiceMonitor")) }}true{{ end -}}
{{- end -}}

{{/* Who may read secured metrics, as subjects of a binding; nothing where nobody is named. */}}
{{- define "wva.readers" -}}
{{- with .Values.wva.prometheus -}}
{{- if .createReader }}
- kind: ServiceAccount
  name: {{ include "wva.prefix" $ }}-metrics-reader
  namespace: {{ $.Release.Namespace | quote }}
{{- end }}
{{- if .serviceAccountName }}
- kind: ServiceAccount
  name: {{ .serviceAccountName | quote }}
  namespace: {{ required "wva.prometheus.monitoringNamespace: name the namespace of wva.prometheus.serviceAccountName" .monitoringNamespace | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The settings that a running manager does not follow. */}}
{{- define "wva.static" -}}
WVA_METRICS_SOURCE: {{ .Values.wva.metricsSource }}
WVA_LIMITED_MODE: {{ .Values.wva.limitedMode }}
EXPERIMENTAL_PROACTIVE_MODEL: {{ .Values.wva.proactiveModel }}
WVA_SCALE_TO_ZERO: {{ .Values.wva.scaleToZero }}
WVA_NAMESPACE_CONFIG: {{ .Values.wva.namespaceConfig }}
{{- with .Values.wva.podMetrics }}
POD_METRICS_SCRAPE_INTERVAL: {{ .scrapeInterval | quote }}
POD_METRICS_SCHEME: {{ .scheme }}
POD_METRICS_PORT: {{ .port }}
{{- with .tokenPath }}
POD_METRICS_TOKEN_PATH: {{ . | quote }}
{{- end }}
{{- with .caCertPath }}
POD_METRICS_CA_CERT_PATH: {{ . | quote }}
{{- end }}
{{- with .serverName }}
POD_METRICS_SERVER_NAME: {{ . | quote }}
{{- end }}
POD_METRICS_TLS_INSECURE_SKIP_VERIFY: {{ .insecureSkipVerify }}
{{- end }}
{{- with .Values.wva.gateway }}
{{- with .metricsURLs }}
GATEWAY_METRICS_URLS: {{ join "," . | quote }}
{{- end }}
{{- with .namespaces }}
GATEWAY_NAMESPACES: {{ join "," . | quote }}
{{- end }}
{{- with .tokenPath }}
GATEWAY_METRICS_TOKEN_PATH: {{ . | quote }}
{{- end }}
{{- with .caCertPath }}
GATEWAY_METRICS_CA_CERT_PATH: {{ . | quote }}
{{- end }}
GATEWAY_METRICS_TLS_INSECURE_SKIP_VERIFY: {{ .insecureSkipVerify }}
{{- end }}
{{- with .Values.wva.prometheus }}
{{- if and (hasPrefix "http://" .baseURL) (not .allowHTTP) }}
{{- fail (printf "wva.prometheus.baseURL is %s, which has no TLS: use https, or set wva.prometheus.allowHTTP=true" .baseURL) }}
{{- end }}
PROMETHEUS_BASE_URL: {{ required "wva.prometheus.baseURL: give the address of Prometheus, such as https://prometheus.monitoring:9090" .baseURL | quote }}
PROMETHEUS_ALLOW_HTTP: {{ .allowHTTP }}
{{- with .tokenPath }}
PROMETHEUS_TOKEN_PATH: {{ . | quote }}
{{- end }}
{{- if .httpConfigSecret }}
PROMETHEUS_HTTP_CONFIG_PATH: {{ printf "/etc/prometheus-http/%s" .httpConfigKey | quote }}
{{- end }}
{{- with .matchers }}
PROMETHEUS_MATCHERS: {{ . | quote }}
{{- end }}
{{- with include "wva.prometheusCA" $ }}
PROMETHEUS_CA_CERT_PATH: {{ . | quote }}
{{- end }}
{{- with .tls.clientCertPath }}
PROMETHEUS_CLIENT_CERT_PATH: {{ . | quote }}
{{- end }}
{{- with .tls.clientKeyPath }}
PROMETHEUS_CLIENT_KEY_PATH: {{ . | quote }}
{{- end }}
{{- with .tls.serverName }}
PROMETHEUS_SERVER_NAME: {{ . | quote }}
{{- end }}
PROMETHEUS_TLS_INSECURE_SKIP_VERIFY: {{ .tls.insecureSkipVerify }}
{{- end }}
{{- end -}}

{{/* The ConfigMap of the scheduler's configuration, which is read once. */}}
{{- define "wva.schedulerConfig" -}}
{{- $folder := ternary "scheduler-gang" "scheduler" .Values.scheduler.gangScheduling -}}
{{- include "wva.manifest" (list . (printf "files/%s/config.yaml" $folder)) -}}
{{- end -}}
