#!/usr/bin/env bash
# Measures detection quality on recorded runs and writes docs/quality.md. See that page for what is measured.
# usage: quality/run.sh [--no-semantic]
set -euo pipefail
cd "$(dirname "$0")/.."
export PYTHONDONTWRITEBYTECODE=1

say() { printf 'quality: %s\n' "$*" >&2; }

# The semantic baseline needs three packages; everything else runs on Python alone.
# When they cannot be had, the report says so in the rows concerned.
python_with_packages() {
  local venv=target/quality-venv
  if [ -x "$venv/bin/python" ] && "$venv/bin/python" -c 'import numpy, onnxruntime, tokenizers' 2>/dev/null; then
    echo "$venv/bin/python"
    return
  fi
  say "installing onnxruntime, tokenizers and numpy into $venv"
  if python3 -m venv "$venv" >&2 && "$venv/bin/pip" install --quiet --disable-pip-version-check numpy onnxruntime tokenizers >&2; then
    echo "$venv/bin/python"
  else
    say "that failed: the semantic baseline is not measured"
    echo python3
  fi
}

python=python3
case " $* " in
  *" --no-semantic "*) ;;
  *) if [ -n "$(find models ../shared/model -name model_int8.onnx 2>/dev/null)" ]; then python=$(python_with_packages); fi ;;
esac

if [ -f ../shared/traces/dev.jsonl ]; then
  say "checking the baselines against what is published of them"
  (cd quality && python3 -m unittest --quiet open_runs_test)
fi
cargo build --release --quiet --package loopbreaker-cli
exec "$python" quality/report.py "${CARGO_TARGET_DIR:-target}/release/loopbreaker" "$@"
