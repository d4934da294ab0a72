#!/bin/sh
# Stands in for "go" while Gremlins runs, and puts three things right. Gremlins takes
# every failure of "go test" for a test that noticed the change, a failed build too. It
# leaves out what its first run does not cover, and with it the conditions of every
# switch, which Go never counts as covered. And a time that comes from Go's cache of
# results would end the tests of every change much too early.
set -u
go=$MUTATION_GO

# Nothing is downloaded that the tests do not need.
[ "$1 $2" = "mod download" ] && exit 0
[ "$1" = test ] || exec "$go" "$@"

profile= timeout= before=
for argument; do
	case $before in
	-coverprofile) profile=$argument ;;
	-timeout) timeout=$argument ;;
	esac
	before=$argument
done

# Where other tests than the package's own are asked, these are run in their folder.
tests=${MUTATION_TESTS:-.}

if [ -n "$profile" ]; then
	if [ "$tests" = . ]; then
		"$go" "$@" -count=1 || exit
	else
		"$go" test -count=1 -coverprofile "$profile" -coverpkg "./$MUTATION_PKG" "$tests" || exit
	fi
	files=$(awk -F: 'NR > 1 { print $1 }' "$profile" | sort -u) || exit
	for file in $files; do
		echo "$file:1.1,1000000.1 1 1" >>"$profile"
	done
	exit
fi

# A change beside the sample is none, like one that does not compile (2). The sum is of
# the code as it was changed.
sum=$(cat ./*.go | cksum | cut -d' ' -f1)
[ $((sum % ${MUTATION_SAMPLE:-1})) -eq 0 ] || exit 2

# What does not compile is no change (2). Gremlins starts this in the folder of the
# changed package, but may name another one.
binary=$(mktemp "$GOTMPDIR/tests.XXXXXX") || exit 3
trap 'rm -f "$binary"' EXIT
"$go" test -c -vet=off -ldflags=-w -o "$binary" "$tests" || exit 2
# A loop that no longer ends must not take the memory of the machine.
ulimit -v 4000000
cd "$tests" || exit 3
"$binary" -test.failfast -test.timeout "$timeout" || exit 1
