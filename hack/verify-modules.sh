#!/usr/bin/env bash
# Fails when a go.mod or go.sum is not tidy, and shows what would change.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

untidy=0
for module in . hack/tools hack/tools/lint hack/tools/victoriametrics test/chart test/hpa; do
	if ! (cd "$module" && go mod tidy -diff); then
		echo "$module/go.mod is not tidy: run make update" >&2
		untidy=1
	fi
done
exit "$untidy"
