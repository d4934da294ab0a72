#!/usr/bin/env bash
# Finds what a reader of this repository should never meet: notes to oneself, and
# paths that exist on one machine only.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bad=0
refuse() {
	local why=$1 pattern=$2
	shift 2
	if git grep --untracked -nIE "$pattern" -- "$@" ':!*go.sum' ':!LICENSE' ':!hack/verify-text.sh'; then
		echo "^ $why" >&2
		bad=1
	fi
}

refuse "a note to oneself: do it, or open an issue" '\b(TODO|FIXME|XXX)\b'
refuse "a path of one machine" '(^|[^A-Za-z0-9_.~/-])/(root|work)([^A-Za-z0-9_-]|$)'
refuse "a place that was left to fill" '@@[^@ ]+@@' '*.md'
refuse "a path outside the repository" '\.\./shared'
refuse "a conflict marker" '^(<<<<<<<|>>>>>>>)'
refuse "a line that ends in blanks" '[[:blank:]]+$' ':!*.md' ':!*testdata*'

exit "$bad"
