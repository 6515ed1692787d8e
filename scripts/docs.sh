#!/usr/bin/env bash
# Builds the documentation as a site into target/site, with MkDocs in a folder of its own. Broken links stop it.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$PWD/target}
venv=$target/docs/venv
if ! cmp -s docs/requirements.txt "$venv/installed.txt"; then
  printf 'docs: installing MkDocs into %s\n' "$venv"
  mkdir -p "$target/docs"
  python3 -m venv --clear "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --requirement docs/requirements.txt
  cp docs/requirements.txt "$venv/installed.txt"
fi
NO_MKDOCS_2_WARNING=1 "$venv/bin/mkdocs" build --quiet --strict --site-dir "$target/site"
printf 'docs: open %s/site/index.html\n' "$target"
