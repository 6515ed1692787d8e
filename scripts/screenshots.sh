#!/usr/bin/env bash
# Takes pictures of every screen of the dashboard, light and dark, into docs/screens: the real binary, a fleet that lives.
# usage: scripts/screenshots.sh, after `make dashboard` and `cargo build --bins`
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root/dashboard"
[ -d node_modules ] || npm ci --ignore-scripts --loglevel=error
npx vitest run --config vitest.screens.ts
