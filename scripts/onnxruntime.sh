#!/usr/bin/env bash
# Fetches ONNX Runtime's library for the tests and the benchmarks into target/services/onnxruntime, out of the Python
# package that carries it. Nothing is installed into the system. Safe to run again.
# usage: scripts/onnxruntime.sh     prints where the library is, for ORT_DYLIB_PATH
set -euo pipefail
cd "$(dirname "$0")/.."

folder=${CARGO_TARGET_DIR:-target}/services/onnxruntime
found() { find "$folder" -name 'libonnxruntime.so*' -type f 2>/dev/null | head -n 1; }

if [ -z "$(found)" ]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  echo "onnxruntime: fetching the package" >&2
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$work" 'onnxruntime>=1.20' \
    || { echo "onnxruntime: pip cannot fetch it: is the Python package index reachable?" >&2; exit 1; }
  python3 -m zipfile -e "$work"/*.whl "$work/wheel"
  mkdir -p "$folder"
  find "$work/wheel" -name 'libonnxruntime.so*' -type f -exec cp {} "$folder/" \;
  [ -n "$(found)" ] || { echo "onnxruntime: the package has no libonnxruntime.so for this system" >&2; exit 1; }
fi
realpath "$(found)"
