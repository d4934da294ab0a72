#!/usr/bin/env bash
# Fails when the reference page of kubectl wva is not what its commands say, or a page shows what
# none of them prints.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

hack/drift.sh hack/update-cli.sh docs
