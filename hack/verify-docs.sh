#!/usr/bin/env bash
# Builds the site of the documentation, which fails on a page that cannot be shown and on a
# link that leads nowhere. Without Node.js it says so and checks nothing: test/page follows
# the links of all pages in any case.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

major=$(node --version 2>/dev/null | sed 's/^v\([0-9]*\).*/\1/' || true)
if ! command -v npm >/dev/null || [[ ${major:-0} -lt 20 ]]; then
	echo "skipped: the site needs Node.js 20 or newer with npm"
	exit 0
fi
hack/docs.sh
