#!/usr/bin/env bash
# Fails when a Go file is not formatted, and shows how it should be.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! "$(hack/tool.sh golangci-lint)" fmt --diff ./...; then
	echo "not formatted: run make update" >&2
	exit 1
fi
