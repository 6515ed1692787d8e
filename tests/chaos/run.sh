#!/usr/bin/env bash
# Breaks one part after the other under real traffic, and says what it cost. Builds nothing of ours.
#
#   tests/chaos/run.sh                              every row: about twelve minutes
#   tests/chaos/run.sh redis disk                   only rows with one of these in their names; --list names them all
#   tests/chaos/run.sh --markdown docs/chaos.md     also writes the table there
#
# LOOPBREAKER_BIN and MOCK_BIN say where the binaries are. A full disk is a small tmpfs, which only root can mount.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
export LOOPBREAKER_BIN=${LOOPBREAKER_BIN:-$target/release/loopbreaker}
export MOCK_BIN=${MOCK_BIN:-$target/release/mock-provider}
export PYTHONDONTWRITEBYTECODE=1

for binary in "$LOOPBREAKER_BIN" "$MOCK_BIN"; do
  if [ ! -x "$binary" ]; then
    echo "chaos: \`$binary\` is missing: run \`cargo build --release -p loopbreaker-cli -p loopbreaker-mock\` first" >&2
    exit 2
  fi
done
exec python3 "$here/chaos.py" "$@"
