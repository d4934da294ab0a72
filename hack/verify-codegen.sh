#!/usr/bin/env bash
# Fails when generated code or the CRD differs from the types.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Built here, so that they are kept: the copy that drift.sh works on is not.
for tool in controller-gen deepcopy-gen defaulter-gen conversion-gen; do
	hack/tool.sh "$tool" >/dev/null
done
hack/drift.sh hack/update-codegen.sh pkg/apis manifests/crd manifests/llamastack
