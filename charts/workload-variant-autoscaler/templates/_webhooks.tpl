{{/* The manager's arguments that say which webhooks it serves, and with what. */}}
{{- define "wva.webhookArguments" -}}
{{- $prefix := include "wva.prefix" . -}}
{{- with .Values.webhooks -}}
{{- if or $.Values.llamastack.enabled .validateVariants.enabled .placePods.enabled -}}
- --webhook-cert-secret={{ if not .certificate.secretName }}{{ $prefix }}-webhook-cert{{ end }}
- --webhook-service-name={{ $prefix }}-webhook
- --webhook-configuration-name={{ $prefix }}-webhooks
{{- end }}
{{- if .validateVariants.enabled }}
- --webhook-validate-variants
- --webhook-variants-configuration-name={{ $prefix }}-variants
{{- end }}
{{- if .placePods.enabled }}
- --webhook-place-pods
- --webhook-pods-configuration-name={{ $prefix }}-pods
- --webhook-scheduler-name={{ $.Values.scheduler.name }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The Secret of the webhooks' certificate. */}}
{{- define "wva.webhookSecret" -}}
{{- .Values.webhooks.certificate.secretName | default (printf "%s-webhook-cert" (include "wva.prefix" .)) -}}
{{- end -}}

{{/*
A manifest that names webhooks, as wva.manifest has it. With a certificate of the user's
own, its authority or their annotations stand in what names webhooks, and the rights to
keep a certificate go.
*/}}
{{- define "wva.hooked" -}}
{{- $root := index . 0 -}}
{{- $webhooks := $root.Values.webhooks -}}
{{- range $text := splitList "\n---\n" (include "wva.manifest" .) }}
{{- $object := fromYaml $text }}
{{- $_ := set $object.metadata "labels" (merge ($object.metadata.labels | default dict) (include "wva.labels" $root | fromYaml)) }}
{{- if and (eq $object.kind "ValidatingWebhookConfiguration") (hasSuffix "-variants" $object.metadata.name) }}
{{- range $object.webhooks }}
{{- $_ := set . "failurePolicy" $webhooks.validateVariants.failurePolicy }}
{{- end }}
{{- end }}
{{- if hasSuffix "WebhookConfiguration" $object.kind }}
{{- with lookup $object.apiVersion $object.kind "" $object.metadata.name }}
{{- range .webhooks }}
{{- $namespace := dig "clientConfig" "service" "namespace" $root.Release.Namespace . }}
{{- if ne $namespace $root.Release.Namespace }}
{{- fail (printf "%s %s asks the manager in namespace %s, which would no longer be asked: give this release another name, or set fullnameOverride" $object.kind $object.metadata.name $namespace) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- /* A release of one namespace is asked of that one alone: those of others must not wait for it. */ -}}
{{- if and $root.Values.wva.namespaceScoped (hasSuffix "WebhookConfiguration" $object.kind) }}
{{- range $object.webhooks }}
{{- $selector := deepCopy (.namespaceSelector | default dict) }}
{{- $_ := set $selector "matchLabels" (merge (dict "kubernetes.io/metadata.name" $root.Release.Namespace) ($selector.matchLabels | default dict)) }}
{{- $_ := set . "namespaceSelector" $selector }}
{{- end }}
{{- end }}
{{- /* It may read Secrets and bind roles in that namespace alone. */ -}}
{{- if and $root.Values.wva.namespaceScoped (hasSuffix "-llamastack" $object.metadata.name) (hasPrefix "ClusterRole" $object.kind) }}
{{- $_ := set $object "kind" (trimPrefix "Cluster" $object.kind) }}
{{- $_ := set $object.metadata "namespace" $root.Release.Namespace }}
{{- with $object.roleRef }}
{{- $_ := set . "kind" "Role" }}
{{- end }}
{{- end }}
{{- if $webhooks.certificate.secretName }}
{{- $clients := list }}
{{- range $object.webhooks }}
{{- $clients = append $clients .clientConfig }}
{{- end }}
{{- if eq $object.kind "CustomResourceDefinition" }}
{{- $clients = append $clients $object.spec.conversion.webhook.clientConfig }}
{{- end }}
{{- range $client := $clients }}
{{- with $webhooks.certificate.authority }}
{{- $_ := set $client "caBundle" (b64enc .) }}
{{- end }}
{{- end }}
{{- if and $clients $webhooks.certificate.annotations }}
{{- $_ := set $object.metadata "annotations" (merge (deepCopy $webhooks.certificate.annotations) ($object.metadata.annotations | default dict)) }}
{{- end }}
{{- end }}
{{- if not (and $webhooks.certificate.secretName (contains "-webhook-cert" $object.metadata.name)) }}
---
{{ toYaml $object }}
{{- end }}
{{- end }}
{{- end -}}
