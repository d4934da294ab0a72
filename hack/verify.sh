#!/usr/bin/env bash
# Runs every hack/verify-*.sh, or those that are named ("hack/verify.sh imports
# chart"), and says at the end which failed. Nothing here writes to the tree.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

names=("$@")
if [[ ${#names[@]} -eq 0 ]]; then
	for script in hack/verify-*.sh; do
		name=${script#hack/verify-}
		names+=("${name%.sh}")
	done
fi

output=$(mktemp)
trap 'rm -f "$output"' EXIT
failed=()
for name in "${names[@]}"; do
	start=$SECONDS
	if "hack/verify-$name.sh" >"$output" 2>&1; then
		printf 'ok    %-10s %4ds\n' "$name" $((SECONDS - start))
	else
		printf 'FAIL  %-10s %4ds\n' "$name" $((SECONDS - start))
		sed 's/^/      /' "$output"
		failed+=("$name")
	fi
done

if [[ ${#failed[@]} -gt 0 ]]; then
	echo "verify: failed: ${failed[*]} (again: hack/verify.sh ${failed[*]})" >&2
	exit 1
fi
