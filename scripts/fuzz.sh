#!/usr/bin/env bash
# Fuzzing with libFuzzer: everything that reads what others have written. Needs a C++ compiler for libFuzzer itself. A
# crash ends the run, and its input stays in fuzz/artifacts.
#
#   scripts/fuzz.sh                          every target for FUZZ_SECONDS, a minute by default
#   FUZZ_SECONDS=600 scripts/fuzz.sh stream  one of them for ten minutes
#   FUZZ_SECONDS=0 scripts/fuzz.sh           only the inputs that are kept in fuzz/corpus
set -euo pipefail
cd "$(dirname "$0")/.."

seconds="${FUZZ_SECONDS:-60}"
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  targets=(canonical request answer stream decision_log config trace)
fi
built="${CARGO_TARGET_DIR:-target}/fuzz"

if ! command -v c++ >/dev/null; then
  echo "libFuzzer is C++: install a compiler, for example: apt-get install g++" >&2
  exit 1
fi

# What `cargo fuzz` sets; coverage counters need no nightly compiler, only sanitizers do. There is no unsafe code in what
# is tried here, so the address sanitizer is left out for speed.
export RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1"
host="$(rustc -vV | sed -n 's/^host: //p')"
cargo build --release --manifest-path fuzz/Cargo.toml --target-dir "$built" --target "$host"

for target in "${targets[@]}"; do
  program="$built/$host/release/$target"
  mkdir -p "fuzz/artifacts/$target" "$built/found/$target"
  corpus=("fuzz/corpus/$target")
  # One recorded run of each format is kept for the tests of the readers already.
  if [ "$target" = trace ]; then corpus+=(crates/trace/tests/fixtures); fi
  if [ "$seconds" -eq 0 ]; then
    "$program" -runs=0 "${corpus[@]}" 2>&1 | tail -n 1
    continue
  fi
  echo "== $target, $seconds s"
  # What is found on the way is kept beside the build, so that the next run goes on from there.
  "$program" -max_total_time="$seconds" -timeout=10 -max_len=8192 -print_final_stats=1 \
    -artifact_prefix="fuzz/artifacts/$target/" "$built/found/$target" "${corpus[@]}" \
    >"$built/$target.log" 2>&1 || { tail -n 40 "$built/$target.log"; exit 1; }
  grep -E '^stat::(number_of_executed_units|average_exec_per_sec|peak_rss_mb)' "$built/$target.log"
done
