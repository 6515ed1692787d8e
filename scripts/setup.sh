#!/usr/bin/env bash
# Installs what building and testing need and is missing, and says what it does. Safe to run again and again.
# usage: scripts/setup.sh [dashboard] [tests] [chaos] [COMMAND…]: with `dashboard` also what builds the dashboard, with
# `tests` also what the tests drive, with `chaos` also what is broken on purpose; a COMMAND is also its package.
set -euo pipefail

say() { printf 'setup: %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; elif command -v sudo >/dev/null; then sudo "$@"; else return 1; fi
}

apt_updated=no
install_package() {
  command -v apt-get >/dev/null || return 1
  if [ "$apt_updated" = no ]; then
    say "refreshing the package lists"
    as_root apt-get update -qq || return 1
    apt_updated=yes
  fi
  say "installing $1"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$1" >/dev/null
}

# need COMMAND PACKAGE WHY: the command, from the package if it is missing.
need() {
  command -v "$1" >/dev/null && return 0
  install_package "$2" || fail "\`$1\` is missing ($3): install the package that has it, on Debian \`$2\`"
}

need cc build-essential "links Rust programs"
need python3 python3 "scores recorded runs"

if ! command -v cargo >/dev/null; then
  if install_package rustup && as_root rustup default stable; then
    say "installed Rust with rustup"
  else
    fail "Rust is missing: install it with rustup, as the Rust web site says, then run this again"
  fi
fi

least=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$(dirname "$0")/../Cargo.toml")
have=$(rustc --version | cut -d' ' -f2)
if [ "$(printf '%s\n%s\n' "$least" "$have" | sort -V | head -n 1)" != "$least" ]; then
  fail "Rust $have is too old, $least or newer is needed: run \`rustup update\`"
fi

for component in rustfmt clippy; do
  command -v "cargo-${component/rustfmt/fmt}" >/dev/null && continue
  say "adding $component"
  rustup component add "$component" || fail "\`$component\` is missing: run \`rustup component add $component\`"
done

# The dashboard's tools want a Node that Debian 12 does not have; npm carries newer ones.
need_node() {
  need node nodejs "builds the dashboard and runs the official Node SDKs"
  need npm npm "fetches the dashboard's tools and the official Node SDKs"
  have_node=$(node --version | tr -d v)
  if [ "$(printf '20.19.0\n%s\n' "$have_node" | sort -V | head -n 1)" != 20.19.0 ]; then
    say "Node $have_node is too old for the dashboard: installing Node 22 by npm"
    as_root npm install --global --silent n@10 node@22 \
      || fail "Node 20.19 or newer is needed: install it, then run this again"
  fi
}

need_postgres() {
  ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || install_package postgresql \
    || fail "PostgreSQL is missing (keeps decisions): on Debian install \`postgresql\`"
}

for tool in "$@"; do
  if [ "$tool" = dashboard ]; then
    need_node
    continue
  fi
  if [ "$tool" = tests ]; then
    need_node
    need nginx nginx-light "asks the decision endpoint"
    need redis-server redis-server "keeps vectors for the semantic detector"
    need chromium chromium "shows the dashboard"
    need strace strace "shows in which order decisions reach the disk"
    need curl curl "runs an example"
    need_postgres
    "$(dirname "$0")/redis-stack.sh" >/dev/null
    "$(dirname "$0")/onnxruntime.sh" >/dev/null
    python3 -c 'import ensurepip' 2>/dev/null || install_package python3-venv \
      || fail "Python cannot make virtual environments: on Debian install \`python3-venv\`"
    continue
  fi
  if [ "$tool" = chaos ]; then
    need redis-server redis-server "keeps what several gateways share"
    need_postgres
    continue
  fi
  case "$tool" in
    llvm-profdata-*) need "$tool" "llvm-${tool##*-}" "reads what a build has noted of its ways" ;;
    *) need "$tool" "$tool" "asked for by this target" ;;
  esac
done
