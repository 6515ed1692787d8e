#!/usr/bin/env python3
"""What the semantic detector adds to the others on recorded runs, with the real engine, as a table in docs/semantic.md.

usage: added.py BINARY

The design's own rule stands beside it on the first set only: it embeds the whole conversation at every step, which
takes minutes.
"""
from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data import ROOT, DataSet, data_sets
from scoring import alarms_of, score
from tables import number, percent

PAGE = ROOT / "docs" / "semantic.md"
BEGIN, END = "<!-- written by `make quality-semantic`: begin -->", "<!-- end -->"
KINDS = ("semantic", "near_duplicate")
LARGER = ROOT.parent / "shared" / "model" / "model_w8.onnx"
"""The model file that computes in fp32. It is not in the repository."""


@dataclass(frozen=True)
class Row:
    name: str
    semantic: dict[str, Any] | None
    """The `semantic` section of the config; None: the detector is off."""
    alone: bool = False
    """Whether only what the semantic detector found counts."""


def rows(with_literal: bool) -> list[Row]:
    listed = [
        Row("the others", None),
        Row("with the semantic detector", {}),
        Row("the semantic detector alone", {}, alone=True),
    ]
    if with_literal:
        literal = {"scope": "full", "history": "tenant"}
        listed += [Row("the design's literal rule alone", literal, alone=True), Row("with the design's literal rule", literal)]
    if LARGER.exists():
        listed.insert(2, Row("with it, and the fp32 model file", {"model": str(LARGER)}))
    return listed


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    binary = Path(sys.argv[1])
    sections = [section(binary, data, with_literal=at == 0) for at, data in enumerate(data_sets())]
    table = "\n".join(sections)
    print(table)
    if len(sections) < 3:
        sys.exit("added: the open runs are not here, so the published table stays as it is")
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(f"{before}{BEGIN}\n{table}{END}{after}", encoding="utf-8")
    print(f"added: wrote {PAGE.relative_to(ROOT)}", file=sys.stderr)


def section(binary: Path, data: DataSet, *, with_literal: bool) -> str:
    loops = {kind: [run for run in data.runs if run.loop and run.kind == kind] for kind in KINDS}
    lines = [
        f"**{data.name}** ({len(data.runs)} runs, {sum(run.loop for run in data.runs)} loops)",
        "",
        "| | " + " | ".join(f"{kind}, of {len(loops[kind])}" for kind in KINDS) + " | all kinds | false alarms | F1 |",
        "|---" + "|--:" * (len(KINDS) + 3) + "|",
    ]
    replayed: dict[str, dict[str, Any]] = {}
    for row in rows(with_literal):
        key = json.dumps(row.semantic)
        if key not in replayed:
            replayed[key] = replay(binary, data, row.semantic)
        found = only_semantic(replayed[key]) if row.alone else replayed[key]
        alarms = alarms_of(found, "loop")
        s = score(data.runs, alarms)
        per_kind = [str(sum(alarms[run.id] is not None for run in loops[kind])) for kind in KINDS]
        lines.append(
            f"| {row.name} | {' | '.join(per_kind)} | {s.hits} of {s.loops} "
            f"| {s.false} of {s.runs - s.loops} ({percent(s.false_alarms)}) | {number(s.f1)} |"
        )
    return "\n".join(lines) + "\n"


def only_semantic(found: dict[str, Any]) -> dict[str, Any]:
    def kept(result: dict[str, Any]) -> dict[str, Any]:
        return {**result, "findings": [f for f in result["findings"] if f["detector"] == "semantic"]}

    return {name: kept(result) for name, result in found.items()}


def replay(binary: Path, data: DataSet, semantic: dict[str, Any] | None) -> dict[str, Any]:
    print(f"added: {data.name}, {'without' if semantic is None else json.dumps(semantic)}", file=sys.stderr)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as config:
        json.dump({"semantic": semantic or {}}, config)
        config.flush()
        command = [str(binary), "replay", "--json", "-c", config.name, *map(str, data.files)]
        if semantic is not None:
            command.insert(2, "--semantic")
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return {result["id"]: result for result in map(json.loads, done.stdout.splitlines())}


if __name__ == "__main__":
    main()
