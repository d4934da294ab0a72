#!/usr/bin/env bash
# Copies into the chart what it renders as it stands elsewhere: the CRD, the rights, the
# scheduler's configurations, the alerts and the dashboard of manifests/, and its own
# values, which templates fill in where an upgrade reuses those of an older chart.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
chart=charts/workload-variant-autoscaler

rm -rf "$chart/files"
mkdir -p "$chart"/files/{crd,llamastack,monitoring,namespace-config,rbac,scheduler,scheduler-gang,webhook}
cp "$chart"/values.yaml "$chart"/values-llm-d.yaml "$chart/files/"
cp manifests/crd/*.yaml "$chart/files/crd/"
cp manifests/monitoring/* "$chart/files/monitoring/"
cp manifests/llamastack/*.yaml "$chart/files/llamastack/"
cp manifests/webhook/*.yaml "$chart/files/webhook/"
cp manifests/namespace-config/*.yaml "$chart/files/namespace-config/"
go run -C test/chart ./readme "$PWD/$chart"
for file in manifests/rbac/*.yaml; do
	# Helm makes the namespace (--create-namespace), not the chart.
	[[ $file == */00-namespace.yaml ]] || cp "$file" "$chart/files/rbac/"
done
for folder in scheduler scheduler-gang; do
	cp "manifests/$folder"/{config,rbac}.yaml "$chart/files/$folder/"
done
