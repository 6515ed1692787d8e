#!/usr/bin/env python3
"""Writes docs/reference from what the binary says about itself: commands, settings, API, metrics.

usage: scripts/reference.py [--check]: with `--check` nothing is written, and the exit code is 1 when a page is stale.
LOOPBREAKER_BIN names the binary; else it is the one in the target folder.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "deploy"))
from shipped import LOOPBREAKER, said  # noqa: E402

FOLDER = ROOT / "docs" / "reference"
MADE = "<!-- Made by scripts/reference.py from what the binary says. Do not edit: `make docs-reference` writes it anew. -->\n"
UNKNOWN = "qqqqzzzzqqqqzzzz"


def main():
    stale = []
    for name, text in made().items():
        path = FOLDER / name
        if not path.exists() or path.read_text() != text:
            stale.append(name)
            if "--check" not in sys.argv:
                path.write_text(text)
    for name in stale:
        print(f"docs/reference/{name} {'is stale' if '--check' in sys.argv else 'was written'}")
    sys.exit(1 if stale and "--check" in sys.argv else 0)


def made():
    with Served() as served:
        return {"cli.md": cli(), "config.md": config(), "api.md": api(served), "metrics.md": metrics(served)}


class Served:
    """A gateway that is asked about itself."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        config = Path(self.folder.name) / "loopbreaker.json"
        config.write_text("{}")
        command = [LOOPBREAKER, "serve", "--listen", "127.0.0.1:0", "--data-dir", f"{self.folder.name}/data"]
        self.process = subprocess.Popen(
            [*command, "--config", str(config), "--log-format", "off"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.url = re.search(rb"http://\S+", self.process.stdout.readline()).group().decode()
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.folder.cleanup()

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=10) as answer:
            return answer.read().decode()


# --- the command line


def cli():
    top = said("--help")
    names = re.findall(r"^  (\w+) ", top.split("Commands:")[1].split("Options:")[0], re.MULTILINE)
    commands = [[name] for name in names if name != "help"]
    inner = said("audit", "--help").split("Commands:")[1].split("Options:")[0]
    commands += [["audit", name] for name in re.findall(r"^  (\w+) ", inner, re.MULTILINE) if name != "help"]
    page = f"# The command line\n\n{MADE}\n```text\n{tidy(top)}```\n"
    for command in commands:
        page += f"\n## `loopbreaker {' '.join(command)}`\n\n```text\n{tidy(said(*command, '--help'))}```\n"
    return page


def tidy(text):
    return "".join(line.rstrip() + "\n" for line in text.strip().splitlines())


# --- the config file


class Key:
    """One line of an annotated file: where it stands, what it says, and why."""

    def __init__(self, path, value, words):
        self.path, self.value, self.words = path, value, words


def keys_of(text):
    """The keys of an annotated file, which has one key a line; a list stands for its only item."""
    found, open_at = [], []
    for line in text.splitlines():
        match = re.match(r"( *)(- )?([\w-]+):(?: (.*))?$", line)
        if not match:
            continue
        spaces, dash, name, rest = match.groups()
        depth = len(spaces) + len(dash or "")
        while open_at and open_at[-1][0] >= depth - (1 if dash else 0):
            open_at.pop()
        above = [*open_at[-1][1]] if open_at else []
        if dash:
            above[-1] += "[]"
            open_at.append((depth - 1, above))
        value, _, words = (rest or "").partition("# ")
        path = [*above, name]
        found.append(Key(path, value.strip(), words.strip()))
        open_at.append((depth, path))
    return found


def maps_of(text):
    """Every map of an annotated file, as the line at which another key of it can be put, and how deep."""
    lines = text.splitlines()
    yield 0, 0
    for index, line in enumerate(lines):
        match = re.match(r"( *)(- )?([\w-]+):(.*)$", line)
        if not match:
            continue
        depth = len(match.group(1)) + len(match.group(2) or "")
        if match.group(2):
            yield index + 1, depth
        following = lines[index + 1] if index + 1 < len(lines) else ""
        deeper = len(following) - len(following.lstrip(" "))
        if deeper > depth and not following.lstrip().startswith("- "):
            yield index + 1, deeper


def accepted(text):
    """The keys that the binary accepts, by the path of their map: it lists them when it is given one that it does not know."""
    known = {}
    for at, depth in maps_of(text):
        lines = text.splitlines()
        lines.insert(at, f"{' ' * depth}{UNKNOWN}: 1")
        command = [LOOPBREAKER, "check", "--json", "-c", "-"]
        run = subprocess.run(command, input="\n".join(lines).encode(), capture_output=True, timeout=30)
        for problem in json.loads(run.stdout)["problems"]:
            if problem["path"].endswith(UNKNOWN) and problem["hint"].startswith("accepted here:"):
                path = re.sub(r"\[\d+\]", "[]", problem["path"]).removesuffix(UNKNOWN).rstrip(".")
                known[path] = re.findall(r"`([^`]+)`", problem["hint"])
    return known


def config():
    defaults, examples = (FOLDER / "defaults.yaml").read_text(), (FOLDER / "examples.yaml").read_text()
    page = f"# The config file\n\n{MADE}\n{CONFIG_HEAD}\n## Everything that has a default\n\n"
    page += "The whole of it as a file: [defaults.yaml](defaults.yaml).\n\n"
    page += table(keys_of(defaults), "default")
    page += "\n## What has none\n\nThe values are examples, all of them in one file: [examples.yaml](examples.yaml).\n\n"
    page += table([key for key in keys_of(examples) if key.words], "example")
    page += f"\n## From the environment\n\n{CONFIG_TAIL}"
    return page


def table(keys, column):
    rows = [f"| key | {column} | |", "|---|---|---|"]
    for key in keys:
        value = f"`{key.value}`" if key.value else ""
        rows.append(f"| `{'.'.join(key.path)}` | {cell(value)} | {cell(key.words)} |")
    return "\n".join(rows) + "\n"


def cell(text):
    return text.replace("|", "\\|")


CONFIG_HEAD = """YAML or JSON. `-c FILE`, else `LOOPBREAKER_CONFIG`, else `./loopbreaker.yaml` if it is there, else the defaults.
Every key may be left out. Durations are written `50ms`, `25s`, `30m`, `1h`, `30d`; sizes `32MiB`; shares `10%`.
An unknown key is an error, with its line and what was probably meant. A file is taken whole or not at all.
`loopbreaker check` says what a file does before anything runs; a running gateway reads it again when it changes, or on SIGHUP.
`listen`, `admin_listen`, `tls`, `data_dir`, `state` and `log` are read at the start only.
"""

CONFIG_TAIL = """These come before the file, and a bad value stops the start with its name.

| variable | stands for |
|---|---|
| `LOOPBREAKER_CONFIG` | `--config` |
| `LOOPBREAKER_DATA_DIR` | `data_dir` |
| `LOOP_DETECTION_ENABLED` | `semantic.enabled`; it turns nothing else off |
| `LOOP_EMBEDDING_SIDECAR_UDS` | `semantic.backend: sidecar` and `semantic.sidecars`, separated by commas |
| `LOOP_EMBEDDING_SIDECAR_TIMEOUT` | `semantic.timeout` |
| `LOOP_EMBEDDING_MODEL_PATH` | `semantic.model` |
| `LOOP_SIMILARITY_THRESHOLD` | `semantic.threshold`, in every policy |
| `LOOP_INTERVENTION_MESSAGE` | `semantic.message` |
| `ORT_DYLIB_PATH` | ONNX Runtime's library, to use it instead of the built-in engine |
| `OTEL_EXPORTER_OTLP_ENDPOINT` and the other `OTEL_*` variables | where spans go; none without them |
| `NO_COLOR` | no colours |
"""


# --- the API


def api(served):
    described = json.loads(served.get("/api/v1/openapi.json"))
    page = f"# The API\n\n{MADE}\n{API_HEAD}\n| call | does | query | answer |\n|---|---|---|---|\n"
    for path, methods in described["paths"].items():
        for method, call in methods.items():
            query = [one["name"] for one in call.get("parameters", []) if one["in"] == "query"]
            names = ", ".join(f"`{name}`" for name in query)
            shapes = sorted(set(re.findall(r"schemas/(\w+)", json.dumps(call["responses"]["200"]))))
            answer = ", ".join(f"[{name}](#{name.lower()})" for name in shapes)
            page += f"| `{method.upper()} {path}` | {cell(call['summary'])} | {names} | {answer} |\n"
    page += "\n## Shapes\n"
    shapes = dict(described["components"]["schemas"])
    for schema in described["components"]["schemas"].values():
        shapes.update(schema.get("$defs", {}))
    for name, schema in sorted(shapes.items()):
        rows = list(fields(schema))
        page += f"\n### {name}\n\n"
        page += "| field | type |\n|---|---|\n" if rows else f"{kind(schema)}\n"
        for field, shape, needed in rows:
            page += f"| `{field}`{'' if needed else ' (optional)'} | {cell(shape)} |\n"
    return page


def fields(schema):
    for part in schema.get("allOf", [schema]):
        if "$ref" in part:
            name = part["$ref"].split("/")[-1]
            yield f"… all of {name}", f"[{name}](#{name.lower()})", True
        for field, shape in part.get("properties", {}).items():
            yield field, kind(shape), field in part.get("required", [])


def kind(shape):
    if "$ref" in shape:
        name = shape["$ref"].split("/")[-1]
        return f"[{name}](#{name.lower()})"
    if "enum" in shape:
        return " \\| ".join(f"`{json.dumps(value)}`" for value in shape["enum"]).replace("\\|", "|")
    for word in ("oneOf", "anyOf"):
        if word in shape:
            return " or ".join(kind(one) for one in shape[word])
    kinds = shape.get("type", "anything")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    text = " or ".join(kinds)
    if "array" in kinds and "items" in shape:
        text = text.replace("array", f"list of {kind(shape['items'])}")
    return text


API_HEAD = """JSON under `/api/v1`. `GET /api/v1/openapi.json` describes it for machines; this page is made from it.
With `admin.tokens` set, send `Authorization: Bearer <token>`: `viewer` may ask with GET, and use the guard and send logs; `operator` may do everything.
Without tokens the API answers this machine only. What goes wrong is `{"error": "<code>", "message": "<what to do>"}`.
Beside it stand `/livez`, `/readyz`, `/metrics` and `/v1/decision` (see [the gateway](../gateway.md)), and `POST /api/v1/login`, `POST /api/v1/logout` and `GET /api/v1/whoami` for the dashboard.
"""


# --- metrics


def metrics(served):
    text = served.get("/metrics")
    page = f"# Metrics\n\n{MADE}\n`GET /metrics`, in the format of Prometheus. Labels are bounded: no tenant, session, model or path is one.\n\n"
    page += "| metric | kind | labels | |\n|---|---|---|---|\n"
    helps = dict(re.findall(r"^# HELP (\w+) (.*)$", text, re.MULTILINE))
    for name, kind_of in re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE):
        labels = {}
        for pairs in re.findall(rf"^{name}(?:_bucket|_sum|_count)?\{{(.*)\}} ", text, re.MULTILINE):
            for label, value in re.findall(r'(\w+)="([^"]*)"', pairs):
                if label not in ("le", "version") and value:
                    labels.setdefault(label, {})[value] = True
        told = "; ".join(f"`{label}`: {', '.join(values)}" for label, values in labels.items())
        page += f"| `{name}` | {kind_of} | {told} | {cell(helps.get(name, ''))} |\n"
    return page


if __name__ == "__main__":
    main()
