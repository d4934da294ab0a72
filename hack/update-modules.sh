#!/usr/bin/env bash
# Tidies every module.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for module in . hack/tools hack/tools/lint hack/tools/victoriametrics test/chart test/hpa; do
	(cd "$module" && go mod tidy)
done
