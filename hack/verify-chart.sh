#!/usr/bin/env bash
# Fails when the chart's copies differ from manifests/. What it renders from them is
# checked by test/chart.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

chart=charts/workload-variant-autoscaler
hack/drift.sh hack/update-chart.sh "$chart/files" "$chart/README.md"
