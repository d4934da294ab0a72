#!/usr/bin/env bash
# Formats every Go file: gofmt, and imports in three groups.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

"$(hack/tool.sh golangci-lint)" fmt ./...
