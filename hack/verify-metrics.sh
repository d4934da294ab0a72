#!/usr/bin/env bash
# Fails when the reference page of the manager's metrics is not what the program has.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

hack/drift.sh hack/update-metrics.sh docs/reference
