#!/usr/bin/env bash
# Builds the dashboard into dashboard/dist, unless what is there is newer than everything that it is made from.
set -euo pipefail
cd "$(dirname "$0")/../dashboard"

say() { printf 'dashboard: %s\n' "$*"; }

# A copy of what was installed says whether it is still what is wanted.
if ! cmp -s package-lock.json node_modules/installed.json; then
  say "fetching its tools"
  npm ci --ignore-scripts --loglevel=error
  cp package-lock.json node_modules/installed.json
fi
made_from=(src scripts public index.html package-lock.json vite.config.ts svelte.config.js tsconfig.json)
if [ ! -f dist/index.html ] || [ -n "$(find "${made_from[@]}" -newer dist/index.html -print -quit)" ]; then
  say "building"
  npm run --silent build
fi
