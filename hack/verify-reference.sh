#!/usr/bin/env bash
# Fails when a reference page is not what the program has.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

hack/drift.sh hack/update-reference.sh docs/reference
