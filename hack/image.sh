#!/usr/bin/env bash
# Builds one image per program:  hack/image.sh <prefix> <tag> [<Kubernetes of the scheduler>]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

prefix=${1:?usage: hack/image.sh <prefix> <tag>}
tag=${2:?usage: hack/image.sh <prefix> <tag>}

if ! docker info >/dev/null 2>&1; then
	echo "make image needs a running Docker engine with BuildKit, and found none" >&2
	exit 1
fi

version=$(git describe --tags --match 'v*' --dirty 2>/dev/null) ||
	version=v0.0.0-g$(git describe --always --dirty)
for program in manager scheduler playground; do
	docker build --target "$program" --build-arg VERSION="$version" --build-arg KUBERNETES="${3:-}" --tag "$prefix/$program:$tag" .
done
