"""What is published, as tables: the same rows as text for the terminal and as Markdown for the docs."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Mapping, Sequence

from data import DataSet, Run
from measure import OURS, OURS_WARNING, Measured
from scoring import Score, alarms_of, false_per_1000_steps, score, stopped, without_early

NONE = "–"
Found = Mapping[str, dict[str, Any]]
"""What replay said of each run of a set."""
EASY_FAMILY = "react-webshop"
"""Many old and easy loops: the table is shown with and without them."""


@dataclass(frozen=True)
class Table:
    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def text(self) -> str:
        widths = [max(len(row[c]) for row in (self.header, *self.rows)) for c in range(len(self.header))]
        lines = [
            "  ".join(cell.ljust(width) if c == 0 else cell.rjust(width) for c, (cell, width) in enumerate(zip(row, widths)))
            for row in (self.header, *self.rows)
        ]
        return "\n".join([self.title, lines[0], "─" * len(lines[0]), *lines[1:], ""])

    def markdown(self) -> str:
        lines = [f"| {' | '.join(row)} |" for row in (self.header, *self.rows)]
        rule = "|---" + "|--:" * (len(self.header) - 1) + "|"
        return "\n".join([f"**{self.title}**", "", lines[0], rule, *lines[1:], ""])


def detectors(measured: Measured) -> Table:
    rows = []
    for name, alarms in measured.alarms.items():
        s = score(measured.data.runs, alarms, intervals=True)
        rows.append([
            name, number(s.precision), number(s.recall), number(s.f1), span(s.f1_interval),
            percent(s.false_alarms), percent_span(s.false_interval), steps(s.delay), str(s.early),
        ])
    for name, reason in measured.not_measured.items():
        rows.append([name, f"not measured: {reason}", *[""] * 7])
    header = ["detector", "precision", "recall", "F1", "95 %", "false alarms", "95 %", "onset→alarm", "before onset"]
    return Table(f"{title(measured)}: all detectors", header, rows)


def ours(measured: Measured, opened: Sequence[Measured]) -> Table:
    runs = measured.data.runs
    sure = [run for run in runs if not run.doubtful]
    rows = []
    for severity, name in (("loop", OURS), ("warning", OURS_WARNING)):
        alarms = measured.alarms[name]
        rows.append(score_row(f"{severity}, all", score(runs, alarms)))
        rows.append(score_row(f"{severity}, not doubtful", score(sure, alarms)))
        rows.append(score_row(f"{severity}, leave one family out", measured.left_out(severity, opened)))
        rows.append(score_row(f"{severity}, leave one family out, this set alone", measured.left_out(severity)))
        rows.append(score_row(f"{severity}, early alarms as misses", score(runs, without_early(runs, alarms))))
        if EASY_FAMILY in {run.family for run in runs}:
            rows.append(score_row(f"{severity}, without {EASY_FAMILY}", score([r for r in runs if r.family != EASY_FAMILY], alarms)))
    return Table(f"{title(measured)}: ours", ["at", *SCORE_HEADER], rows)


def families(measured: Measured) -> Table:
    groups: dict[str, list[Run]] = {}
    for run in measured.data.runs:
        groups.setdefault(run.family, []).append(run)
    rows = [score_row(family, score(groups[family], measured.alarms[OURS])) for family in sorted(groups)]
    return Table(f"{title(measured)}: ours at loop, per family", ["family", *SCORE_HEADER], rows)


def kinds(measured: Sequence[Measured]) -> Table:
    rows = []
    for kind in kinds_of(measured):
        row = [kind]
        for m in measured:
            of_kind = [run for run in m.data.runs if run.loop and run.kind == kind]
            for name in (OURS, OURS_WARNING):
                row.append(f"{sum(m.alarms[name][run.id] is not None for run in of_kind)}/{len(of_kind)}" if of_kind else NONE)
        rows.append(row)
    header = ["kind", *(f"{m.data.name}, {at}" for m in measured for at in ("loop", "warning"))]
    return Table("Loops found per kind", header, rows)


def quietness(measured: Sequence[Measured]) -> Table:
    rows = []
    for m in measured:
        healthy = [run for run in m.data.runs if not run.loop]
        loops = [run for run in m.data.runs if run.loop]
        rows.append([
            m.data.name,
            str(sum(len(run.steps) for run in healthy)),
            f"{false_per_1000_steps(m.data.runs, m.found, 'loop'):.2f}",
            f"{false_per_1000_steps(m.data.runs, m.found, 'warning'):.2f}",
            f"{stopped(healthy, m.found)}/{len(healthy)}",
            f"{stopped(loops, m.found)}/{len(loops)}",
        ])
    header = ["set", "healthy steps", "false loops per 1,000", "false warnings or loops per 1,000", "wrongful stops", "loops stopped"]
    return Table("Quietness and the default ladder", header, rows)


def clothes(sets: Sequence[DataSet], found: Mapping[str, Sequence[Found]]) -> Table:
    """How much hangs on the form in which a harness hands over results and takes calls."""
    rows = []
    for name, per_set in found.items():
        row = [name]
        for data, of_set in zip(sets, per_set):
            s = score(data.runs, alarms_of(of_set, "loop"))
            healthy = [run for run in data.runs if not run.loop]
            row += [number(s.f1), percent(s.false_alarms), steps(s.delay), f"{stopped(healthy, of_set)}/{len(healthy)}"]
        rows.append(row)
    header = ["clothes", *(f"{data.name}: {what}" for data in sets for what in ("F1", "false alarms", "onset→alarm", "wrongful stops"))]
    return Table("The same runs in other clothes: ours at loop", header, rows)


def kinds_of(measured: Sequence[Measured]) -> list[str]:
    return sorted({run.kind for m in measured for run in m.data.runs if run.loop})


def recall_per_kind(measured: Sequence[Measured], detector: str) -> dict[str, tuple[int, int]]:
    """Kind to (found, all), over several data sets."""
    counts = {}
    for kind in kinds_of(measured):
        found = [m.alarms[detector][run.id] is not None for m in measured for run in m.data.runs if run.loop and run.kind == kind]
        counts[kind] = (sum(found), len(found))
    return counts


SCORE_HEADER = [
    "runs", "loops", "precision", "recall", "F1", "false alarms", "re-weighted", "onset→alarm", "steps saved", "before onset",
]


def score_row(name: str, s: Score) -> list[str]:
    return [
        name, str(s.runs), str(s.loops), number(s.precision), number(s.recall), number(s.f1 if s.loops else math.nan),
        f"{percent(s.false_alarms)} ({s.false})", percent(s.reweighted), steps(s.delay), percent(s.saved, 0), str(s.early),
    ]


def title(measured: Measured) -> str:
    loops = sum(run.loop for run in measured.data.runs)
    return f"{measured.data.name} ({len(measured.data.runs)} runs, {loops} loops)"


def number(value: float) -> str:
    return NONE if math.isnan(value) else f"{value:.2f}"


def percent(value: float, digits: int = 1) -> str:
    return NONE if math.isnan(value) else f"{value:.{digits}%}"


def steps(value: float) -> str:
    return NONE if math.isnan(value) else f"{value:g}"


def span(interval: tuple[float, float]) -> str:
    return NONE if math.isnan(interval[0]) else f"{interval[0]:.2f}–{interval[1]:.2f}"


def percent_span(interval: tuple[float, float]) -> str:
    return NONE if math.isnan(interval[0]) else f"{interval[0]:.0%}–{interval[1]:.0%}"
