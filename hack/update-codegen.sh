#!/usr/bin/env bash
# Generates the CRDs, the deep copies of all API groups, and the conversion and defaults
# of the plugin's arguments.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

api=./pkg/apis/llmd/v1alpha1
"$(hack/tool.sh controller-gen)" object crd paths="$api" \
	output:object:dir="$api" output:crd:dir=manifests/crd

# LlamaStackDistribution has a folder of manifests of its own: it is installed only where
# it is wanted.
generated=$(mktemp -d)
trap 'rm -rf "$generated"' EXIT
"$(hack/tool.sh controller-gen)" object crd paths=./pkg/apis/llamastack/... output:crd:dir="$generated"
awk -f hack/llamastack-crd.awk "$generated"/*.yaml >manifests/llamastack/crd.yaml

# The internal type of the arguments and its published version.
arguments=(./pkg/apis/config)
published=()
for dir in pkg/apis/config/v[0-9]*/; do
	published+=("./${dir%/}")
done
"$(hack/tool.sh deepcopy-gen)" --output-file zz_generated.deepcopy.go "${arguments[@]}" "${published[@]}"
"$(hack/tool.sh defaulter-gen)" --output-file zz_generated.defaults.go "${published[@]}"
"$(hack/tool.sh conversion-gen)" --output-file zz_generated.conversion.go "${published[@]}"
