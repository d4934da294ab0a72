#!/usr/bin/env bash
# Changes the code of one package of ring 0, or of one of its files, in one place at a
# time and fails when its tests do not notice:  hack/mutate.sh pkg/capacity/placement
# With a second argument it tries one change in so many.
# See test/mutation for what is changed and where the excepted changes are listed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

hack/check-prerequisites.sh
gremlins=$(hack/tool.sh gremlins)
go run ./test/mutation --gremlins "$gremlins" --pkg "${1-}" --sample "${2:-1}"
