#!/usr/bin/env bash
# Steady traffic for half an hour against one gateway with its defaults: exit code 1 when anything fails, grows or is
# missed. The gateway may use every core; the load and the upstream are one more process.
#
#   scripts/soak.sh                                    30 minutes at 2,000 requests/s
#   SOAK_MINUTES=3 SOAK_RATE=500 scripts/soak.sh       a quick look
#   scripts/soak.sh --markdown docs/chaos.md           also writes the figures there
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --release --package loopbreaker-cli
cargo build --release --package loopbreaker-bench --bin soak
"${CARGO_TARGET_DIR:-target}/release/soak" "$@"
