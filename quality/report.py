#!/usr/bin/env python3
"""The published measurement: tables on stdout, docs/quality.md and its plots.

usage: report.py BINARY [--no-semantic]
"""
from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Sequence

import plots
import tables
from data import OPEN_SETS, ROOT, data_sets
from dressed import in_other_clothes
from measure import OURS, OURS_WARNING, Measured, embedder_or_reason, measure, replay
from page import page
from scoring import stopped
from semantic import NotMeasured

PUBLISHED = ROOT / "docs"
SCRATCH = ROOT / "target" / "quality"
PEERS = ("near-duplicate, 3 of 8", "same call 3 in 10")


def main() -> None:
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    if len(arguments) != 1:
        sys.exit(__doc__)
    embedder = embedder_or_reason("--no-semantic" not in sys.argv)
    measured = [measure(data, Path(arguments[0]), embedder) for data in data_sets()]
    if not isinstance(embedder, NotMeasured):
        print(f"quality: {embedder.computed} vectors computed in {embedder.seconds:.0f} s", file=sys.stderr)
    opened = [m for m in measured if m.data.name in OPEN_SETS]
    shown = opened or measured
    everything = all_tables(measured, opened)
    print("quality: the same runs in other clothes", file=sys.stderr)
    sets = [m.data for m in shown]
    found = in_other_clothes(sets, lambda data: replay(Path(arguments[0]), data))
    everything["clothes"] = [tables.clothes(sets, found)]
    print("\n".join(table.text() for group in everything.values() for table in group))
    # Without the open sets only a part can be measured, which must not replace the published whole.
    folder = PUBLISHED if len(opened) == 2 else SCRATCH
    write(folder / "quality.md", page(everything, measured, opened))
    for name, svg in all_plots(shown).items():
        write(folder / "quality" / name, svg)
    write(SCRATCH / "results.json", json.dumps(results(measured), indent=2) + "\n")


def all_tables(measured: Sequence[Measured], opened: Sequence[Measured]) -> dict[str, list[tables.Table]]:
    # What is shipped of the open sets shows nothing that they do not show.
    in_detail = [m for m in measured if m in opened or m.data.name == "scripted" or not opened]
    return {
        "detectors": [tables.detectors(m) for m in measured],
        "ours": [tables.ours(m, opened) for m in measured],
        "quietness": [tables.quietness(measured)],
        "kinds": [tables.kinds(measured)],
        "families": [tables.families(m) for m in in_detail],
    }


def all_plots(shown: Sequence[Measured]) -> dict[str, str]:
    where = " and ".join(m.data.name for m in shown)
    counts = tables.recall_per_kind(shown, OURS)
    series = []
    for detector in (OURS, OURS_WARNING, *PEERS):
        recall = tables.recall_per_kind(shown, detector)
        series.append((detector, [found / all_ for found, all_ in recall.values()]))
    delays = [(name, [d for m in shown for d in m.score(name).delays]) for name in (OURS, OURS_WARNING)]
    return {
        "f1-false-alarms.svg": plots.scatter([(m.data.name, points(m)) for m in shown]),
        "recall-per-kind.svg": plots.bars(
            f"Loops found per kind, {where}", [f"{kind} ({all_})" for kind, (_, all_) in counts.items()], series
        ),
        "delay.svg": plots.histogram(f"Steps from onset to alarm, {where}", delays),
    }


def points(m: Measured) -> list[plots.Point]:
    scored = [(name, m.score(name)) for name in m.alarms]
    return [plots.Point(name, s.false_alarms, s.f1, name in (OURS, OURS_WARNING)) for name, s in scored]


def results(measured: Sequence[Measured]) -> dict[str, dict[str, dict[str, float]]]:
    """The main numbers for other programs."""
    out: dict[str, dict[str, dict[str, float]]] = {}
    for m in measured:
        healthy = [run for run in m.data.runs if not run.loop]
        out[m.data.name] = {
            name: {"precision": s.precision, "recall": s.recall, "f1": s.f1, "false_alarms": s.false_alarms}
            for name, s in ((name, m.score(name)) for name in m.alarms)
        }
        out[m.data.name][OURS]["wrongful_stops"] = stopped(healthy, m.found)
    return out


def write(file: Path, content: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content, encoding="utf-8")
    print(f"quality: wrote {file.relative_to(ROOT)}", file=sys.stderr)


if __name__ == "__main__":
    main()
