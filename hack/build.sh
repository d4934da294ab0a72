#!/usr/bin/env bash
# Builds the programs into bin/, next to each other, where the playground and the
# tests look for them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

hack/check-prerequisites.sh
[[ -x bin/playground ]] ||
	echo "building (the first time this compiles Kubernetes: some minutes)"

# A version that every parser takes, also before the first tag.
version=$(git describe --tags --match 'v*' --dirty 2>/dev/null) ||
	version=v0.0.0-g$(git describe --always --dirty 2>/dev/null || echo unknown)
base=k8s.io/component-base/version

# The scheduler and the playground are Kubernetes' own components and say so to
# everyone who asks for their version; the manager says ours.
kubernetes=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
minor=${kubernetes#v1.}
minor=${minor%%.*}

# No -trimpath: it would keep these builds apart from those of a plain go test or
# go build, and Kubernetes would be compiled twice. The Dockerfile has it.
mkdir -p bin
go build -o bin/ -ldflags "-X $base.gitVersion=$version" ./cmd/manager ./cmd/kubectl-wva
go build -o bin/ -ldflags "-X $base.gitVersion=$kubernetes -X $base.gitMajor=1 -X $base.gitMinor=$minor" \
	./cmd/scheduler ./cmd/playground
