#!/usr/bin/env bash
# Builds the site of the documentation, which fails on a page that cannot be shown and on a
# link that leads nowhere. The tests of the pages come first: they follow all links, and know
# how long the first page may be. Without Node.js no site is built, which it says.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

go test ./test/page

major=$(node --version 2>/dev/null | sed 's/^v\([0-9]*\).*/\1/' || true)
if ! command -v npm >/dev/null || [[ ${major:-0} -lt 20 ]]; then
	echo "skipped: the site needs Node.js 20 or newer with npm"
	exit 0
fi
hack/docs.sh
