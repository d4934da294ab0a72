{{/*
What only a cluster can tell. "helm template" has none to ask: it knows the kinds of
Kubernetes itself and no others, and these checks say nothing then.
*/}}
{{- define "wva.live" -}}
{{- if .Capabilities.APIVersions.Has "apiregistration.k8s.io/v1" }}true{{ end -}}
{{- end -}}

{{/*
Whether the cluster has ValidatingAdmissionPolicies in their final version.
*/}}
{{- define "wva.policies" -}}
{{- if semverCompare ">=1.30.0-0" .Capabilities.KubeVersion.Version }}true{{ end -}}
{{- end -}}

{{/*
Stops where the cluster does not know a kind: a list of the root context, the value that
asks for it, the kind with its group and version, and who brings it.
*/}}
{{- define "wva.needs" -}}
{{- $root := index . 0 -}}
{{- $kind := index . 2 -}}
{{- if and (include "wva.live" $root) (not ($root.Capabilities.APIVersions.Has $kind)) -}}
{{- fail (printf "%s: this cluster does not know the kind %s: install %s first, or set the value to false" (index . 1) (base $kind) (index . 3)) -}}
{{- end -}}
{{- end -}}

{{/*
Stops where a ClusterRoleBinding of that name is for another installation: a list of the
root context, the name, and what to do. With --take-ownership Helm would take it over, and
the other installation would lose its rights.
*/}}
{{- define "wva.free" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- with lookup "rbac.authorization.k8s.io/v1" "ClusterRoleBinding" "" $name -}}
{{- $release := (.metadata.labels | default dict) | dig "app.kubernetes.io/instance" "" -}}
{{- range .subjects -}}
{{- if or (ne (.namespace | default "") $root.Release.Namespace) (and $release (ne $release $root.Release.Name)) -}}
{{- $whose := ternary (printf "the release %s" $release) "the plain manifests" (ne $release "") -}}
{{- fail (printf "ClusterRoleBinding %s is that of %s in namespace %s, which would lose its rights: %s" $name $whose (.namespace | default "") (index $ 2)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Stops where the kind is that of another release, which would no longer be able to upgrade it.
One that a release left behind when it was uninstalled is free. A release that is there is
found by the labels of its bindings: fullnameOverride may have given them any name.
*/}}
{{- define "wva.kindIsFree" -}}
{{- $root := . -}}
{{- with lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" "variantautoscalings.llmd.ai" -}}
{{- $owner := .metadata.annotations | default dict -}}
{{- $name := get $owner "meta.helm.sh/release-name" -}}
{{- $namespace := get $owner "meta.helm.sh/release-namespace" -}}
{{- if and $name (or (ne $name $root.Release.Name) (ne $namespace $root.Release.Namespace)) -}}
{{- /* A release of one namespace has RoleBindings alone. */ -}}
{{- range list (lookup "rbac.authorization.k8s.io/v1" "ClusterRoleBinding" "" "") (lookup "rbac.authorization.k8s.io/v1" "RoleBinding" $namespace "") -}}
{{- range .items -}}
{{- $labels := .metadata.labels | default dict -}}
{{- $its := and (eq (get $labels "app.kubernetes.io/name") $root.Chart.Name) (eq (get $labels "app.kubernetes.io/instance") $name) -}}
{{- range .subjects -}}
{{- if and $its (eq (.namespace | default "") $namespace) -}}
{{- fail (printf "crd.install: the release %s in namespace %s keeps the kind VariantAutoscaling: set crd.install=false" $name $namespace) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
