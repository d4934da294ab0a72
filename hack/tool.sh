#!/usr/bin/env bash
# Builds one pinned tool into bin/tools when it is missing or older than its pin,
# and prints its path:  "$(hack/tool.sh controller-gen)" object paths=./...
#
# The linter and VictoriaMetrics have modules of their own because their dependencies would
# otherwise decide the versions that the code generators are built with.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tools=${TOOLS_DIR:-$root/bin/tools}
name=${1:?usage: hack/tool.sh <tool>}

case $name in
golangci-lint) module=hack/tools/lint ;;
victoria-metrics) module=hack/tools/victoriametrics ;;
*) module=hack/tools ;;
esac

binary=$tools/$name
if [[ ! -x $binary || $root/$module/go.mod -nt $binary ]]; then
	package=$(cd "$root/$module" && go list tool | grep -E "/$name\$") || {
		echo "hack/tool.sh: $module/go.mod pins no tool named $name" >&2
		exit 1
	}
	echo "building $name (only once)" >&2
	mkdir -p "$tools"
	(cd "$root/$module" && go build -o "$binary" "$package")
	# An up-to-date build leaves the old time stamp, which would ask for another.
	touch "$binary"
fi
echo "$binary"
