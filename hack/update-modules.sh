#!/usr/bin/env bash
# Tidies every module, and writes the modfiles of other Kubernetes anew.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for module in . hack/tools hack/tools/lint hack/tools/victoriametrics test/chart test/hpa test/performance; do
	(cd "$module" && go mod tidy)
done
for other in cmd/scheduler/kubernetes-*.mod; do
	hack/kubernetes-modfile.sh "$other"
done
