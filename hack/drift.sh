#!/usr/bin/env bash
# Runs an update script on a copy of the tree and fails when that changes one of
# the given paths:  hack/drift.sh hack/update-chart.sh charts
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD

script=${1:?usage: hack/drift.sh <update script> <path>...}
shift

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
tar --exclude=./.git --exclude=./bin --exclude=./dist --exclude=./demo-logs -cf - . | tar -xf - -C "$copy"

if ! (cd "$copy" && TOOLS_DIR=${TOOLS_DIR:-$root/bin/tools} "./$script") >"$copy.log" 2>&1; then
	cat "$copy.log"
	rm -f "$copy.log"
	echo "$script failed" >&2
	exit 1
fi
rm -f "$copy.log"

stale=0
for path in "$@"; do
	diff -ruN "$path" "$copy/$path" || stale=1
done
if [[ $stale -ne 0 ]]; then
	echo "generated files differ from their sources: run make update and commit the result" >&2
	exit 1
fi
