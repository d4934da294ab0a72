#!/usr/bin/env bash
# Builds the site of the documentation into bin/site. The generator is pinned in
# hack/site/package-lock.json and installed into bin/tools/site on first use. A link of
# one page to another that leads nowhere fails the build.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

major=$(node --version 2>/dev/null | sed 's/^v\([0-9]*\).*/\1/' || true)
if ! command -v npm >/dev/null || [[ ${major:-0} -lt 20 ]]; then
	echo "missing: Node.js 20 or newer with npm, which the site's generator runs on: apt-get install nodejs npm" >&2
	exit 1
fi

site=bin/tools/site
mkdir -p "$site"
if ! cmp -s hack/site/package-lock.json "$site/installed.json"; then
	cp hack/site/package.json hack/site/package-lock.json "$site"
	(cd "$site" && npm install --ignore-scripts --no-audit --no-fund --loglevel=error)
	cp hack/site/package-lock.json "$site/installed.json"
fi

rm -rf "$site/src" bin/site
mkdir -p "$site/src/.vitepress"
cp hack/site/config.mjs "$site/src/.vitepress/config.mjs"
cp -R README.md CONTRIBUTING.md docs "$site/src"
find charts -name '*.md' -exec cp --parents {} "$site/src" \;
(cd "$site" && node_modules/.bin/vitepress build src)
echo "the site is in bin/site: open it with  npx --prefix $site vitepress preview $site/src"
