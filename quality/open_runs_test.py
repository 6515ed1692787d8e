"""Checks against the open runs and their scorer; `quality/run.sh` runs them where those are present."""
from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

import baselines
import scoring
import ship
from data import OPEN, data_set, data_sets
from test_quality import Scoring

PUBLISHED_ON_DEV = {
    "same call 3 in 10": (0.71, 0.59, 0.64, 0.15),
    "3 identical in a row": (0.88, 0.34, 0.50, 0.03),
    "entropy, with input": (1.0, 0.18, 0.31, 0.0),
    "entropy, literal": (0.45, 0.59, 0.51, 0.46),
    "OpenHands": (0.96, 0.31, 0.47, 0.01),
    "gemini-cli (5 in a row)": (1.0, 0.18, 0.31, 0.0),
    "near-duplicate, 3 of 8": (0.70, 0.79, 0.74, 0.22),
}


class OpenRuns(unittest.TestCase):
    def test_baselines_reproduce_the_published_rows(self) -> None:
        runs = data_set("dev", [OPEN / "dev.jsonl"]).runs
        for name, expected in PUBLISHED_ON_DEV.items():
            s = scoring.score(runs, {run.id: baselines.BASELINES[name](run) for run in runs})
            for value, wanted in zip((s.precision, s.recall, s.f1, s.false_alarms), expected):
                self.assertAlmostEqual(value, wanted, delta=0.011, msg=name)

    def test_shipped_runs_are_what_the_rule_says(self) -> None:
        lines = [line for name in ("dev", "dev2") for line in (OPEN / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
        expected = {json.loads(line)["id"] for line in lines if ship.why_not(json.loads(line), line) is None}
        shipped = next(data for data in data_sets() if data.name == "shipped")
        self.assertEqual({run.id for run in shipped.runs}, expected)


class SharedScorer(Scoring):
    def test_agrees_with_the_shared_scorer(self) -> None:
        for severity in ("loop", "warning"):
            s = scoring.score(self.runs, scoring.alarms_of(self.found, severity))
            shared = shared_row(self.records, self.found, severity)
            ours = [f"{s.runs}", f"{s.loops}", f"{s.precision:.2f}", f"{s.recall:.2f}", f"{s.f1:.2f}", f"{s.false_alarms:.1%}",
                    f"{s.reweighted:.1%}", f"{s.delay:.1f}", f"{s.saved:.0%}", f"{s.early}"]
            self.assertEqual(ours, shared)


def shared_row(records: list[dict[str, Any]], results: dict[str, dict[str, Any]], severity: str) -> list[str]:
    """The first row of the shared scorer, without its name."""
    with tempfile.TemporaryDirectory() as folder:
        runs, lines = Path(folder, "runs"), Path(folder, "found")
        runs.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
        lines.write_text("\n".join(map(json.dumps, results.values())), encoding="utf-8")
        command = [sys.executable, str(OPEN / "score.py"), str(runs), str(lines), "--severity", severity]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [cell.strip() for cell in printed.splitlines()[1].split("|")][1:]


if __name__ == "__main__":
    unittest.main()
