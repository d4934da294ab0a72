#!/usr/bin/env bash
# Writes everything that is generated. The order matters: the chart copies what
# the code generators wrote.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for name in modules codegen chart metrics reference cli format; do
	echo "update $name"
	"hack/update-$name.sh"
done
