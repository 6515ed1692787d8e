#!/usr/bin/env bash
# Runs the official SDKs as clients through the real gateway against the mock provider.
# usage: tests/e2e/run.sh [pytest arguments]
#
# Builds nothing of ours: LOOPBREAKER_BIN and MOCK_BIN say where the binaries are, E2E_LONG=1 adds the pause of 90 s.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
export LOOPBREAKER_BIN=${LOOPBREAKER_BIN:-$target/debug/loopbreaker}
export MOCK_BIN=${MOCK_BIN:-$target/debug/mock-provider}
export PYTHONDONTWRITEBYTECODE=1

say() { printf 'e2e: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

for binary in "$LOOPBREAKER_BIN" "$MOCK_BIN"; do
  [ -x "$binary" ] || fail "\`$binary\` is missing: run \`cargo build -p loopbreaker-cli -p loopbreaker-mock\` first"
done
for command in python3 node npm; do
  command -v "$command" >/dev/null || fail "\`$command\` is missing: the SDKs cannot be tried without it"
done

# A copy of what was installed says whether it is still what is wanted.
venv=$target/e2e/venv
if ! cmp -s "$here/requirements.txt" "$venv/installed.txt"; then
  say "installing the Python SDKs into $venv"
  python3 -m venv --clear "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$here/requirements.txt"
  cp "$here/requirements.txt" "$venv/installed.txt"
fi
if ! cmp -s "$here/package-lock.json" "$here/node_modules/installed.json"; then
  say "installing the Node SDKs into $here/node_modules"
  (cd "$here" && npm ci --ignore-scripts --loglevel=error)
  cp "$here/package-lock.json" "$here/node_modules/installed.json"
fi

cd "$here"
exec "$venv/bin/python" -m pytest -p no:cacheprovider --quiet "$@"
