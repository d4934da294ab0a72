#!/usr/bin/env bash
# Writes the reference page of the manager's metrics.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mkdir -p docs/reference
page=$(go run ./hack/metricspage)
printf '%s\n' "$page" >docs/reference/metrics.md
