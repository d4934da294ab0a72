#!/usr/bin/env bash
# Copies into the chart what it renders as it stands in manifests/: the CRD, the
# rights, and the scheduler's configurations. They have one source.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
chart=charts/workload-variant-autoscaler

rm -rf "$chart/crds" "$chart/files"
mkdir -p "$chart/crds" "$chart"/files/{llamastack,rbac,scheduler,scheduler-gang,webhook}
cp manifests/crd/*.yaml "$chart/crds/"
cp manifests/llamastack/*.yaml "$chart/files/llamastack/"
cp manifests/webhook/*.yaml "$chart/files/webhook/"
for file in manifests/rbac/*.yaml; do
	# Helm makes the namespace (--create-namespace), not the chart.
	[[ $file == */00-namespace.yaml ]] || cp "$file" "$chart/files/rbac/"
done
for folder in scheduler scheduler-gang; do
	cp "manifests/$folder"/{config,rbac}.yaml "$chart/files/$folder/"
done
