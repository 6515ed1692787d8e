#!/usr/bin/env bash
# Builds target/optimised/loopbreaker, the program that is shipped: laid out for the ways that requests really go.
# A build that notes its ways is sent traffic (other traffic than what is measured), and the compiler reads the notes.
# Three times a release build's time. Without the tools for it, it is a release build, and says so.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'optimised: %s\n' "$*"; }
target="$(mkdir -p "${CARGO_TARGET_DIR:-target}" && cd "${CARGO_TARGET_DIR:-target}" && pwd)/optimised"
mkdir -p "$target"
host=$(rustc -vV | sed -n 's/^host: //p')
llvm=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')

# One compiler's notes are read by tools of its own version: Rust's own, else those of the system.
tool=$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata
if [ ! -x "$tool" ]; then
  rustup component add llvm-tools >/dev/null 2>&1 || scripts/setup.sh "llvm-profdata-$llvm" || true
  [ -x "$tool" ] || tool=$(command -v "llvm-profdata-$llvm" || true)
fi

# build FOLDER PACKAGE FLAGS: what is built for the machine itself (procedural macros) takes no part in it.
build() {
  CARGO_TARGET_DIR=$target/$1 RUSTFLAGS=$3 cargo build --release --locked --target "$host" --package "$2"
}

if [ -z "$tool" ]; then
  say "llvm-profdata of LLVM $llvm is missing: this is a plain release build"
  cargo build --release --locked --package loopbreaker-cli
  cp "${CARGO_TARGET_DIR:-target}/release/loopbreaker" "$target/loopbreaker"
  exit
fi

notes=$target/notes
rm -rf "$notes"
mkdir -p "$notes"
say "building what notes its ways"
build noting loopbreaker-cli "-Cprofile-generate=$notes"
cargo build --release --locked --package loopbreaker-bench --bin train
noting=$target/noting/$host/release
cp "${CARGO_TARGET_DIR:-target}/release/train" "$noting/train"
say "sending traffic to it"
LLVM_PROFILE_FILE="$notes/%p-%m.profraw" "$noting/train"
LLVM_PROFILE_FILE="$notes/%p-%m.profraw" "$noting/loopbreaker" replay --json quality/runs/*.jsonl >/dev/null
"$tool" merge --output="$target/ways.profdata" "$notes"/*.profraw
rm -rf "$notes"

say "building what is shipped"
build shipped loopbreaker-cli "-Cprofile-use=$target/ways.profdata"
cp "$target/shipped/$host/release/loopbreaker" "$target/loopbreaker"
say "$target/loopbreaker"
