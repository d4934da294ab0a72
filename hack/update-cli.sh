#!/usr/bin/env bash
# Writes the reference page of kubectl wva from the help of its commands.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

program=$(mktemp)
trap 'rm -f "$program"' EXIT
go build -o "$program" ./cmd/kubectl-wva
# The help names a folder in it.
export HOME=/home/you

section() {
	printf '\n## kubectl wva%s\n\n```text\n' "${1:+ $1}"
	"$program" ${1:+"$1"} --help
	printf '```\n'
}

mkdir -p docs/reference
{
	printf '# kubectl wva\n\nGenerated from the program by `make update`. The program is `kubectl-wva`; on the PATH it is\na plugin of kubectl.\n'
	section ""
	"$program" __complete "" 2>/dev/null | sed -n 's/\t.*//p' | grep -vxE "help|options" | while read -r name; do
		section "$name"
	done
	printf '\n## Flags of every command\n\n```text\n'
	"$program" options
	printf '```\n'
} >docs/reference/cli.md
