#!/usr/bin/env bash
# Writes the reference pages of settings, reasons and fields.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

go run ./hack/referencepages docs/reference
