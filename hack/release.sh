#!/usr/bin/env bash
# Builds what a release consists of into dist/, from a clean tree; the same commit and the
# same Go give the same bytes, whatever the folder, the language and the settings of Go:  hack/release.sh <version> <image prefix> <address of the downloads> [platforms]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C GOFLAGS=-buildvcs=false GOAMD64=v1 GOARM64=v8.0

version=${1:-}
prefix=${2:?usage: hack/release.sh <version> <image prefix> <address of the downloads>}
address=${3:?usage: hack/release.sh <version> <image prefix> <address of the downloads>}
read -ra platforms <<<"${4:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64}"
if [[ ! $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]]; then
	echo "VERSION is '$version': expected one such as v1.2.3" >&2
	exit 2
fi
if [[ -n $(git status --porcelain) ]]; then
	echo "a release is made of a commit, and the tree has changes: commit or stash them" >&2
	git status --short >&2
	exit 1
fi

dist=$PWD/dist
rm -rf "$dist"
mkdir -p "$dist"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
time=$(git log -1 --format=%ct)

# pack ARCHIVE FOLDER FILE...: the same files give the same bytes.
pack() {
	local archive=$1 folder=$2
	shift 2
	tar --sort=name --format=gnu --mtime="@$time" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
		-C "$folder" -cf - "$@" | gzip -n9 >"$dist/$archive"
}

base=k8s.io/component-base/version
kubernetes=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
minor=${kubernetes#v1.}
minor=${minor%%.*}
# build PROGRAM SYSTEM ARCHITECTURE FILE: the scheduler says which Kubernetes it is of, too.
build() {
	local stamp="-X $base.gitVersion=$version"
	if [[ $1 == scheduler ]]; then
		stamp="-X $base.gitVersion=$kubernetes+wva.${version#v} -X $base.gitMajor=1 -X $base.gitMinor=$minor"
	fi
	CGO_ENABLED=0 GOOS=$2 GOARCH=$3 go build -trimpath -buildvcs=false -ldflags "-s -w -buildid= $stamp" -o "$4" "./cmd/$1"
}

echo "programs"
linked=()
for platform in "${platforms[@]}"; do
	system=${platform%/*} architecture=${platform#*/}
	folder=$work/kubectl-wva_$system-$architecture
	mkdir -p "$folder"
	cp LICENSE "$folder/"
	build kubectl-wva "$system" "$architecture" "$folder/kubectl-wva"
	pack "kubectl-wva_${version}_$system-$architecture.tar.gz" "$folder" LICENSE kubectl-wva
	linked+=("$folder/kubectl-wva")
done
# What runs in a cluster runs on Linux.
for program in manager scheduler; do
	for platform in "${platforms[@]}"; do
		[[ $platform == linux/* ]] || continue
		file=$dist/${program}_${version}_${platform/\//-}
		build "$program" linux "${platform#*/}" "$file"
		linked+=("$file")
	done
done

echo "modules"
go run ./hack/sbom "$version" "${linked[@]}" >"$dist/workload-variant-autoscaler_$version.cdx.json"

echo "chart"
chart=$work/chart/workload-variant-autoscaler
mkdir -p "$work/chart"
cp -r charts/workload-variant-autoscaler "$chart"
sed -i "s/^version: .*/version: ${version#v}/; s/^appVersion: .*/appVersion: $version/" "$chart/Chart.yaml"
sed -i "s#repository: workload-variant-autoscaler/#repository: $prefix/#" "$chart/values.yaml" "$chart/files/values.yaml"
pack "workload-variant-autoscaler-${version#v}.tgz" "$work/chart" workload-variant-autoscaler

echo "images"
mkdir -p "$work/images"
git archive HEAD | tar -x -C "$work/images"
sed -i "s/^ARG VERSION=.*/ARG VERSION=$version/" "$work/images/Dockerfile"
pack "images_$version.tar.gz" "$work/images" .

echo "changes"
{
	echo "# $version"
	echo
	last=$(git describe --tags --abbrev=0 --match 'v*' --exclude "$version" 2>/dev/null || true)
	git log --reverse --format='- %s' ${last:+"$last..HEAD"}
} >"$dist/CHANGELOG_$version.md"

echo "krew"
{
	cat <<-MANIFEST
		apiVersion: krew.googlecontainertools.github.com/v1alpha2
		kind: Plugin
		metadata:
		  name: wva
		spec:
		  version: $version
		  shortDescription: Explain and plan the scaling of model variants
		  description: |
		    Shows what the Workload Variant Autoscaler decides and why, how many more replicas
		    fit, and what other settings would have done.
		  platforms:
	MANIFEST
	for platform in "${platforms[@]}"; do
		archive=kubectl-wva_${version}_${platform/\//-}.tar.gz
		cat <<-MANIFEST
			  - selector:
			      matchLabels:
			        os: ${platform%/*}
			        arch: ${platform#*/}
			    uri: $address/$archive
			    sha256: $(sha256sum "$dist/$archive" | cut -d' ' -f1)
			    bin: kubectl-wva
		MANIFEST
	done
} >"$dist/wva.yaml"

(cd "$dist" && sha256sum -- * >"$work/SHA256SUMS" && mv "$work/SHA256SUMS" SHA256SUMS)
cat "$dist/SHA256SUMS"
