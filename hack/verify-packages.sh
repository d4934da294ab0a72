#!/usr/bin/env bash
# Every package says in a doc.go what it decides and what it must never do, is
# named after a thing of the domain, and has files that a person can read.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bad=0
complain() {
	echo "$*" >&2
	bad=1
}

# A file much longer than this holds more than one subject; tables of test cases are
# longer.
longest=500
longest_test=700

while read -r dir name; do
	dir=${dir#"$PWD"/}
	[[ -f $dir/doc.go ]] || complain "$dir: no doc.go"
	case $name in
	util | utils | common | helper | helpers | types | constants | interfaces | misc | v2)
		complain "$dir: \"$name\" is a drawer, not a subject: name the thing that the package is about"
		;;
	esac
done <<<"$(go list -e -f '{{.Dir}} {{.Name}}' ./... && go list -C test/performance -e -f '{{.Dir}} {{.Name}}' ./...)"

while read -r file; do
	lines=$(wc -l <"$file")
	limit=$longest
	[[ $file == *_test.go ]] && limit=$longest_test
	if ((lines > limit)); then
		complain "$file: $lines lines, more than $limit: it holds more than one subject"
	fi
done < <(find cmd pkg plugins test -name '*.go' ! -name 'zz_generated*')

# A package of the decision holds one stage. Its size is told without comments and blank lines: nobody is
# to write fewer of them.
longest_stage=1200
for dir in pkg/decision pkg/decision/*/; do
	dir=${dir%/}
	[[ -f $dir/doc.go ]] || continue
	lines=$(find "$dir" -maxdepth 1 -name '*.go' ! -name '*_test.go' -exec cat {} + | grep -cvE '^[[:space:]]*(//|$)')
	if ((lines > longest_stage)); then
		complain "$dir: $lines lines of code, more than $longest_stage: it holds more than one stage"
	fi
done

grep -q 'Apache License' LICENSE || complain "LICENSE: not the Apache License"

exit "$bad"
