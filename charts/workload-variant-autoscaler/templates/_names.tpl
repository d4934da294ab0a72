{{/*
The prefix of every name. A release called like the chart has the names of the
plain manifests.
*/}}
{{- define "wva.prefix" -}}
{{- $name := .Release.Name -}}
{{- if not (contains .Chart.Name $name) -}}
{{- $name = printf "%s-%s" $name .Chart.Name -}}
{{- end -}}
{{- .Values.fullnameOverride | default $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* The labels of every object. */}}
{{- define "wva.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* What selects the pods of a component: a list of the root context and its name. */}}
{{- define "wva.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Chart.Name }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
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
    | replace "workload-variant-autoscaler-" "<prefix>-"
    | replace "variant-scheduler" "<scheduler>"
    | replace "<labels>" $labels
    | replace "<namespace>" $root.Release.Namespace
    | replace "<prefix>" (include "wva.prefix" $root)
    | replace "<scheduler>" $root.Values.scheduler.name -}}
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
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/* The settings that a running manager does not follow. */}}
{{- define "wva.static" -}}
WVA_METRICS_SOURCE: {{ .Values.wva.metricsSource }}
WVA_LIMITED_MODE: {{ .Values.wva.limitedMode }}
EXPERIMENTAL_PROACTIVE_MODEL: {{ .Values.wva.proactiveModel }}
WVA_SCALE_TO_ZERO: {{ .Values.wva.scaleToZero }}
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
{{- with .tokenPath }}
GATEWAY_METRICS_TOKEN_PATH: {{ . | quote }}
{{- end }}
{{- with .caCertPath }}
GATEWAY_METRICS_CA_CERT_PATH: {{ . | quote }}
{{- end }}
GATEWAY_METRICS_TLS_INSECURE_SKIP_VERIFY: {{ .insecureSkipVerify }}
{{- end }}
{{- with .Values.wva.prometheus }}
PROMETHEUS_BASE_URL: {{ required "wva.prometheus.baseURL: give the address of Prometheus, such as https://prometheus.monitoring:9090" .baseURL | quote }}
PROMETHEUS_ALLOW_HTTP: {{ .allowHTTP }}
{{- with .tokenPath }}
PROMETHEUS_TOKEN_PATH: {{ . | quote }}
{{- end }}
{{- if .caCert }}
PROMETHEUS_CA_CERT_PATH: /etc/prometheus-ca/ca.crt
{{- else if .tls.caCertPath }}
PROMETHEUS_CA_CERT_PATH: {{ .tls.caCertPath | quote }}
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
