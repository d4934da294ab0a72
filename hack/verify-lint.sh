#!/usr/bin/env bash
# Lints every module of ours with .golangci.yml.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

lint=$(hack/tool.sh golangci-lint)
config=$PWD/.golangci.yml
for module in . test/chart test/hpa test/performance; do
	[[ $module == . ]] || echo "in $module:"
	(cd "$module" && "$lint" run --allow-serial-runners --config "$config" ./...)
done
