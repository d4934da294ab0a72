#!/usr/bin/env bash
# Runs every test, in the order of what they cost.
#
# A package is put into its group by what its test binary links:
#   - a whole component of Kubernetes: without the race detector, for which all of
#     Kubernetes would be compiled a second time;
#   - pkg/localcluster: the test starts the programs in bin/, so it runs every time
#     (go test cannot see that they changed), two at a time because they mostly wait;
#   - of these test/integration/demo and test/integration/load, which send requests at a rate: one
#     after the other;
#   - test/integration/victoriametrics: starts the program that hack/tool.sh builds, which go
#     test cannot see either;
#   - test/closedloop: plays 2,000 scenarios one beside the other, without the race
#     detector, with which that would take ten minutes;
#   - the scheduler and its plugin once more, with each other Kubernetes that they are built of;
#   - everything else: with the race detector, and from go test's cache.
# The chart's tests are a module of their own and run every time too: what they read
# lies outside of it, where go test does not look for changes. Those of test/hpa are one too,
# so that no test of ours links the controllers of Kubernetes, and so are the benchmarks, so
# that nothing of the product can link them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

module=$(go list -m)
# Not read from a pipe, which would hide that go list failed.
linked=$(go list -test -f '{{if eq .Name "main"}}{{.ImportPath}} {{join .Deps " "}}{{end}}' ./...)
plain=() kubernetes=() cluster=() alone=() loop=() victoria=()
while read -r package group; do
	case $group in
	kubernetes) kubernetes+=("$package") ;;
	cluster) cluster+=("$package") ;;
	alone) alone+=("$package") ;;
	loop) loop+=("$package") ;;
	victoria) victoria+=("$package") ;;
	*) plain+=("$package") ;;
	esac
done < <(awk -v cluster="$module/pkg/localcluster" '
	$1 !~ /\.test$/ { next }
	{
		group = "plain"
		for (i = 2; i <= NF; i++) {
			if ($i == cluster) group = "cluster"
			if ($i ~ /^k8s\.io\/kubernetes\/cmd\//) { group = "kubernetes"; break }
		}
		if (group == "cluster" && $1 ~ /\/test\/integration\/(demo|load)\.test$/) group = "alone"
		if ($1 ~ /\/test\/closedloop\.test$/) group = "loop"
		if ($1 ~ /\/test\/integration\/victoriametrics\.test$/) group = "victoria"
		sub(/\.test$/, "", $1)
		print $1, group
	}' <<<"$linked")

output=$(mktemp)
trap 'rm -f "$output"' EXIT
failed=0
run() {
	local title=$1
	shift
	echo "== $title"
	"$@" 2>&1 | tee -a "$output" || failed=1
}

if [[ ${#plain[@]} -gt 0 ]]; then
	run "with the race detector" go test -race -timeout 20m "${plain[@]}"
fi
# The race detector makes ten times as long of it and finds nothing more: with it the same
# tests try fewer objects.
run "a hundred thousand conversions each way" go test -timeout 10m ./pkg/apis/llamastack/v1alpha1
if [[ ${#loop[@]} -gt 0 ]]; then
	run "the decision in a closed loop" go test -timeout 20m "${loop[@]}"
fi
if [[ ${#victoria[@]} -gt 0 ]]; then
	hack/tool.sh victoria-metrics >/dev/null
	run "on VictoriaMetrics" go test -race -count=1 -timeout 10m "${victoria[@]}"
fi
benchmarks=$(go list -C test/performance ./...)
mapfile -t benchmarks < <(grep -v '/scheduler$' <<<"$benchmarks")
run "the benchmarks" go test -C test/performance -race -timeout 20m "${benchmarks[@]}"
run "the benchmark of the scheduler on a local cluster" go test -C test/performance -race -count=1 -timeout 10m ./scheduler
run "the HPA of Kubernetes" go test -C test/hpa -timeout 10m ./...
run "the chart" go test -C test/chart -count=1 -timeout 10m ./...
if [[ ${#kubernetes[@]} -gt 0 ]]; then
	run "with components of Kubernetes linked in" go test -timeout 10m "${kubernetes[@]}"
fi
# Beside the tests of it, this is what compiles it. The first run has vetted the same files.
for modfile in cmd/scheduler/kubernetes-*.mod; do
	minor=${modfile#cmd/scheduler/kubernetes-}
	minor=${minor%.mod}
	run "the scheduler of Kubernetes $minor" go test -vet=off -modfile="$modfile" -tags "kubernetes$minor" -timeout 10m ./cmd/scheduler ./plugins/...
done
if [[ ${#cluster[@]} -gt 0 ]]; then
	run "on a local cluster" go test -race -count=1 -p 2 -timeout 20m "${cluster[@]}"
fi
if [[ ${#alone[@]} -gt 0 ]]; then
	run "requests at a rate on a local cluster" go test -race -count=1 -p 1 -timeout 20m "${alone[@]}"
fi

good=$(grep -c '^ok  ' "$output" || true)
bad=$(grep -cE '^FAIL	' "$output" || true)
echo "test packages: $good passed, $bad failed"
exit "$failed"
