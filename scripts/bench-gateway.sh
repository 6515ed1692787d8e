#!/usr/bin/env bash
# The gateway beside nginx and HAProxy, in one run: processor time per request, latency, memory, floors. Whoever carries
# the requests has the first core, the load and the upstream have the second.
#
#   scripts/bench-gateway.sh                            all of it: about twenty minutes
#   scripts/bench-gateway.sh 2k                         only rows with that in their names, or `memory`
#   BENCH_SECONDS=0.3 BENCH_ROUNDS=3 BENCH_HELD=50000 scripts/bench-gateway.sh     a quick look
#   BENCH_ONLY=loopbreaker scripts/bench-gateway.sh     only nginx beside it; several names with a semicolon between them
#   scripts/bench-gateway.sh --markdown docs/benchmarks.md       also writes the tables there
#   BENCH_BUILD=release scripts/bench-gateway.sh        what `make run` builds, instead of what is shipped
set -euo pipefail
cd "$(dirname "$0")/.."

# Debian keeps servers where only root looks.
PATH="$PATH:/usr/sbin:/sbin"
scripts/setup.sh nginx haproxy redis-server
if [ "$(nproc)" -lt 2 ]; then
  echo "bench-gateway: two cores are needed, one for who is measured and one for the load" >&2
  exit 2
fi

target=${CARGO_TARGET_DIR:-target}
build=${BENCH_BUILD:-optimised}
case "$build" in
  release) cargo build --release --package loopbreaker-cli ;;
  optimised) scripts/optimised.sh ;;
  *) echo "bench-gateway: BENCH_BUILD is optimised or release, not $build" >&2; exit 2 ;;
esac
cargo build --release --package loopbreaker-bench --bin gateway-report --bin bare-proxy
# It measures what stands beside it.
[ "$build" = release ] || cp "$target/release/gateway-report" "$target/release/bare-proxy" "$target/$build/"
taskset --cpu-list 1 "$target/$build/gateway-report" "$@"
