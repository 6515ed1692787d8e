"""Recorded runs as the scorer and the baselines see them."""
from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = ROOT / "quality" / "runs"
OPEN = ROOT.parent / "shared" / "traces"
"""Open runs that may be measured but not all be shipped. Absent in most checkouts."""
OPEN_SETS = ("dev", "dev2")
SCRIPTED = "scripted-*.jsonl"
"""Runs of the scripted agents in `quality/agents`, which are ours."""


@dataclass(frozen=True)
class Step:
    role: str
    thought: str
    tool: str | None
    args: Any
    result: str | None

    @property
    def call(self) -> tuple[str, str] | None:
        """Tool and canonical arguments, or None for a step of text."""
        return (self.tool, canonical(self.args)) if self.tool else None


@dataclass(frozen=True)
class Run:
    id: str
    family: str
    task: str
    steps: tuple[Step, ...]
    loop: bool
    kind: str
    onset: int
    doubtful: bool
    weight: float


@dataclass(frozen=True)
class DataSet:
    name: str
    files: tuple[Path, ...]
    runs: tuple[Run, ...]


def data_sets() -> list[DataSet]:
    """The open sets where present, and always the shipped runs: those of real agents, and those of scripted ones."""
    sets = [data_set(name, [OPEN / f"{name}.jsonl"]) for name in OPEN_SETS if (OPEN / f"{name}.jsonl").exists()]
    scripted = sorted(SHIPPED.glob(SCRIPTED))
    real = sorted(set(SHIPPED.glob("*.jsonl")) - set(scripted))
    return sets + [data_set("shipped", real), data_set("scripted", scripted)]


def data_set(name: str, files: list[Path]) -> DataSet:
    return DataSet(name, tuple(files), tuple(parse(record) for file in files for record in records(file)))


def records(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


def parse(record: dict[str, Any]) -> Run:
    label, meta = record["label"], record["meta"]
    return Run(
        id=record["id"],
        family=meta["family"],
        task=record.get("task") or "",
        steps=tuple(
            Step(s.get("role") or "", s.get("thought") or "", s.get("tool") or None, s.get("args"), s.get("result"))
            for s in record["steps"]
        ),
        loop=label["loop"],
        kind=label["kind"],
        onset=label.get("onset_step") or 0,
        doubtful=bool(meta.get("doubtful")),
        weight=meta.get("weight", 1.0),
    )


def canonical(args: Any) -> str:
    """Arguments with sorted keys, so that their order does not count. Text that is not JSON stays as it is."""
    if isinstance(args, str):
        try:
            args = json.loads(args)
        except ValueError:
            return args
    return json.dumps(args, sort_keys=True)


def text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
