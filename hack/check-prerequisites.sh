#!/usr/bin/env bash
# Says in one line each what is missing to build this repository, and exits 1.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

missing=0
lack() {
	echo "missing: $*" >&2
	missing=1
}

need=$(awk '$1 == "go" {print $2}' go.mod)
if ! command -v go >/dev/null; then
	lack "Go $need or newer: unpack it from https://go.dev/dl and put its bin directory on PATH"
else
	# Inside a module an older Go fetches the version that go.mod asks for, or
	# fails when it may not; either way the answer is what would compile.
	have=$(go env GOVERSION 2>/dev/null || GOTOOLCHAIN=local go env GOVERSION 2>/dev/null || true)
	have=${have#go}
	have=${have%% *}
	if [[ $(printf '%s\n' "$need" "${have:-0}" | sort -V | head -1) != "$need" ]]; then
		lack "Go $need or newer: found ${have:-an unknown version} at $(command -v go)"
	fi
fi
if ! command -v gcc >/dev/null; then
	lack "gcc, which the race detector links with: apt-get install gcc libc6-dev"
else
	# The compiler alone does not do: Debian has the C library's headers in a package
	# of their own.
	compiled=$(mktemp)
	printf '#include <stdlib.h>\nint main(void) { return 0; }\n' | gcc -x c -o "$compiled" - 2>/dev/null ||
		lack "the C library's headers: $(command -v gcc) cannot compile a C program: apt-get install libc6-dev"
	rm -f "$compiled"
fi
command -v git >/dev/null || lack "git: apt-get install git"

exit "$missing"
