#!/usr/bin/env bash
# Writes the reference page of kubectl wva from the help of its commands, and into each page what the
# commands print that it shows: the block after <!-- printed --> is what the one after <!-- run -->
# before it prints. First it writes the entries of the runbook, as plain text, which kubectl wva
# explain shows.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Links become their texts, and paragraphs lines of 100 characters.
sed -nE '/^### /,$p' docs/operate/runbook.md |
	sed -E '/^## /d; /^<!--/d; s/\[([^]]*)\]\([^)]*\)/\1/g; s/\*\*Do:\*\*/What to do:/' |
	fold -s -w 100 | sed -E 's/[[:blank:]]+$//' | cat -s >cmd/kubectl-wva/explain/entries.txt

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

while read -r page; do
	PROGRAM=$program awk '
		/^<!-- run -->$/ {
			print; getline; print
			commands = ""
			while ((getline) > 0 && !/^```/) { print; commands = commands $0 "\n" }
			gsub("kubectl wva", ENVIRON["PROGRAM"], commands)
		}
		/^<!-- printed -->$/ {
			print; getline; print
			while ((commands | getline line) > 0) print line
			close(commands)
			while ((getline) > 0 && !/^```/);
		}
		{ print }' "$page" >"$program.page"
	cat "$program.page" >"$page"
	rm "$program.page"
done < <(grep -rl --include='*.md' '^<!-- printed -->$' docs)
