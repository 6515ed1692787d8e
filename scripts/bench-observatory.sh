#!/usr/bin/env bash
# The observatory of a running program: logs per second, answers with ten million steps stored, what the log costs the
# gateway's calls. It prints a table with floors and ratios, and fails when one is missed.
#
#   scripts/bench-observatory.sh                                   all of it: half an hour and 20 GB of disk
#   BENCH_STEPS=200000 BENCH_SECONDS=5 scripts/bench-observatory.sh     a quick look
#   TMPDIR=/mnt/disk scripts/bench-observatory.sh                  on another disk
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --release --package loopbreaker-cli
cargo build --release --package loopbreaker-bench --bin observatory-report
# Two cores for the program and for those who send.
taskset --cpu-list 0,1 "${CARGO_TARGET_DIR:-target}/release/observatory-report"
