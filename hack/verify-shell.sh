#!/usr/bin/env bash
# Checks the shell scripts: their syntax always, and with shellcheck where that is
# installed (it is no Go module, so nothing here can bring it).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts=(.ci/run hack/*.sh)
bad=0
for script in "${scripts[@]}"; do
	bash -n "$script" || bad=1
	[[ -x $script ]] || { echo "$script: not executable" >&2; bad=1; }
	grep -q '^set -euo pipefail$' "$script" || { echo "$script: does not set -euo pipefail" >&2; bad=1; }
done
if command -v shellcheck >/dev/null; then
	shellcheck -x "${scripts[@]}" || bad=1
fi
exit "$bad"
