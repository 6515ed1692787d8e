"""Runs our detector and every baseline over a data set."""
from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Sequence

from baselines import BASELINES
from data import ROOT, DataSet
from scoring import Alarms, Score, alarms_of, leave_one_family_out, score
from semantic import READINGS, Embedder, NotMeasured, first_alarm

OURS = "ours, loop"
OURS_WARNING = "ours, warning"
CACHE = ROOT / "target" / "quality-cache" / "vectors.sqlite"


@dataclass
class Measured:
    data: DataSet
    found: dict[str, dict[str, Any]]
    alarms: dict[str, Alarms] = field(default_factory=dict)
    not_measured: dict[str, str] = field(default_factory=dict)

    def score(self, detector: str, intervals: bool = False) -> Score:
        return score(self.data.runs, self.alarms[detector], intervals)

    def left_out(self, severity: str, others: Sequence[Measured] = ()) -> Score:
        """Leave one family out, with rules that proved themselves in another family, here or in the other sets."""
        elsewhere = [(other.data.runs, other.found) for other in others if other is not self]
        return score(self.data.runs, leave_one_family_out(self.data.runs, self.found, severity, elsewhere))


def measure(data: DataSet, binary: Path, embedder: Embedder | NotMeasured) -> Measured:
    measured = Measured(data, replay(binary, data))
    measured.alarms[OURS] = alarms_of(measured.found, "loop")
    measured.alarms[OURS_WARNING] = alarms_of(measured.found, "warning")
    for name, baseline in BASELINES.items():
        measured.alarms[name] = {run.id: baseline(run) for run in data.runs}
    for name, prompts in READINGS.items():
        if isinstance(embedder, NotMeasured):
            measured.not_measured[name] = str(embedder)
            continue
        print(f"quality: {name} on {data.name}", file=sys.stderr)
        measured.alarms[name] = {run.id: first_alarm(prompts(run), embedder) for run in data.runs}
        embedder.save()
    return measured


def replay(binary: Path, data: DataSet) -> dict[str, dict[str, Any]]:
    command = [str(binary), "replay", "--json", "--explain", *map(str, data.files)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found = {result["id"]: result for result in map(json.loads, done.stdout.splitlines())}
    missing = [run.id for run in data.runs if run.id not in found]
    if missing:
        sys.exit(f"quality: replay said nothing about {len(missing)} runs of {data.name}, the first is {missing[0]}")
    return found


def embedder_or_reason(wanted: bool) -> Embedder | NotMeasured:
    if not wanted:
        return NotMeasured("left out on request")
    try:
        return Embedder(CACHE)
    except NotMeasured as reason:
        return reason
