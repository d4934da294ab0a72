#!/usr/bin/env bash
# Builds the programs into bin/, next to each other, where the playground and the
# tests look for them. With a minor of Kubernetes, such as 1.37, there is a second scheduler,
# bin/scheduler-1.37, of that one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

other=${1:-}
modfile=cmd/scheduler/kubernetes-$other.mod
if [[ -n $other && ! -f $modfile ]]; then
	echo "KUBERNETES is '$other': expected nothing, or one that has a file cmd/scheduler/kubernetes-*.mod, such as 1.37" >&2
	exit 1
fi

hack/check-prerequisites.sh
[[ -x bin/playground ]] ||
	echo "building (the first time this compiles Kubernetes: some minutes)"

# A version that every parser takes, also before the first tag.
version=$(git describe --tags --match 'v*' --dirty 2>/dev/null) ||
	version=v0.0.0-g$(git describe --always --dirty 2>/dev/null || echo unknown)
base=k8s.io/component-base/version

# The scheduler and the playground are Kubernetes' own components and say so to
# everyone who asks for their version; the manager says ours.
of_kubernetes() {
	local kubernetes minor
	kubernetes=$(go list "$@" -m -f '{{.Version}}' k8s.io/kubernetes)
	minor=${kubernetes#v1.}
	minor=${minor%%.*}
	printf '%s' "-X $base.gitVersion=$kubernetes -X $base.gitMajor=1 -X $base.gitMinor=$minor"
}

# No -trimpath: it would keep these builds apart from those of a plain go test or
# go build, and Kubernetes would be compiled twice. The Dockerfile has it.
mkdir -p bin
stamp=$(of_kubernetes)
go build -o bin/ -ldflags "-X $base.gitVersion=$version" ./cmd/manager ./cmd/kubectl-wva
go build -o bin/ -ldflags "$stamp" ./cmd/scheduler ./cmd/playground
if [[ -n $other ]]; then
	settings=("-modfile=$modfile" "-tags=kubernetes$other")
	stamp=$(of_kubernetes "${settings[@]}")
	go build "${settings[@]}" -o "bin/scheduler-$other" -ldflags "$stamp" ./cmd/scheduler
fi
