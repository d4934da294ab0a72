#!/usr/bin/env bash
# Fails when a go.mod or go.sum is not tidy, or the modfile of another Kubernetes does not
# follow from go.mod, and shows what would change.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

untidy=0
for module in . hack/tools hack/tools/lint hack/tools/victoriametrics test/chart test/hpa test/performance; do
	if ! (cd "$module" && go mod tidy -diff); then
		echo "$module/go.mod is not tidy: run make update" >&2
		untidy=1
	fi
done
# The modfiles of other Kubernetes follow from go.mod.
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
for other in cmd/scheduler/kubernetes-*.mod; do
	name=$(basename "$other" .mod)
	cp "${other%.mod}.sum" "$fresh/$name.sum"
	hack/kubernetes-modfile.sh "$fresh/$name.mod"
	for end in mod sum; do
		if ! diff -u "${other%.mod}.$end" "$fresh/$name.$end"; then
			echo "${other%.mod}.$end does not follow from go.mod: run make update" >&2
			untidy=1
		fi
	done
done
exit "$untidy"
