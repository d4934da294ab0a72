#!/usr/bin/env bash
# Fails when the reference page of kubectl wva is not what its commands say, a page shows what
# none of them prints, or kubectl wva explain has other entries than the runbook.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

hack/drift.sh hack/update-cli.sh docs cmd/kubectl-wva/explain
