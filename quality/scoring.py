"""Alarms against labels: precision, recall, delay and the rest, and how sure these numbers are."""
from __future__ import annotations

import math
import random
import statistics
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Iterable, Mapping, Sequence

from data import Run

Alarms = Mapping[str, "int | None"]
"""Run id to the step of the first alarm."""
Found = Mapping[str, Mapping[str, Any]]
"""Run id to what `loopbreaker replay --json` printed for it."""

NAN = math.nan
LEVELS = {"loop": ("loop",), "warning": ("loop", "warning")}
RESAMPLES = 1000
SEED = 20260101


@dataclass(frozen=True)
class Score:
    runs: int
    loops: int
    hits: int
    false: int
    delays: tuple[int, ...]
    early: int
    saved: float
    reweighted: float
    f1_interval: tuple[float, float] = (NAN, NAN)
    false_interval: tuple[float, float] = (NAN, NAN)

    @property
    def precision(self) -> float:
        return ratio(self.hits, self.hits + self.false)

    @property
    def recall(self) -> float:
        return ratio(self.hits, self.loops)

    @property
    def f1(self) -> float:
        return f1(self.hits, self.false, self.loops)

    @property
    def false_alarms(self) -> float:
        """Share of the healthy runs with an alarm."""
        return ratio(self.false, self.runs - self.loops)

    @property
    def delay(self) -> float:
        """Median of the steps from onset to alarm, over alarms at or after the onset."""
        return statistics.median(self.delays) if self.delays else NAN


def score(runs: Sequence[Run], alarms: Alarms, intervals: bool = False) -> Score:
    loops = [run for run in runs if run.loop]
    healthy = [run for run in runs if not run.loop]
    hits = [run for run in loops if alarms[run.id] is not None]
    f1_interval, false_interval = bootstrap(runs, alarms) if intervals else ((NAN, NAN), (NAN, NAN))
    return Score(
        runs=len(runs),
        loops=len(loops),
        hits=len(hits),
        false=sum(alarms[run.id] is not None for run in healthy),
        delays=tuple(alarms[run.id] - run.onset for run in hits if alarms[run.id] >= run.onset),
        early=sum(alarms[run.id] < run.onset for run in hits),
        saved=mean(steps_saved(run, alarms[run.id]) for run in loops),
        reweighted=reweighted(healthy, alarms),
        f1_interval=f1_interval,
        false_interval=false_interval,
    )


def steps_saved(run: Run, alarm: int | None) -> float:
    """Share of the steps after the onset that an end at the alarm would have spared."""
    if alarm is None:
        return 0.0
    last = len(run.steps) - 1
    return max(0, last - max(alarm, run.onset)) / max(1, last - run.onset)


def reweighted(healthy: Sequence[Run], alarms: Alarms) -> float:
    """False alarms with the over-sampling of hard runs undone inside each family, then the mean over families."""
    total: dict[str, float] = defaultdict(float)
    false: dict[str, float] = defaultdict(float)
    for run in healthy:
        total[run.family] += run.weight
        false[run.family] += run.weight * (alarms[run.id] is not None)
    return mean(false[family] / total[family] for family in total)


def bootstrap(runs: Sequence[Run], alarms: Alarms) -> tuple[tuple[float, float], tuple[float, float]]:
    """95 % intervals of F1 and of false alarms: runs drawn with replacement, the same draws for every detector."""
    outcomes = [(run.loop, alarms[run.id] is not None) for run in runs]
    draw = random.Random(SEED)
    f1s, shares = [], []
    for _ in range(RESAMPLES):
        sample = draw.choices(outcomes, k=len(outcomes))
        hits, missed, false = sample.count((True, True)), sample.count((True, False)), sample.count((False, True))
        healthy = len(sample) - hits - missed
        if hits + missed and healthy:
            f1s.append(f1(hits, false, hits + missed))
            shares.append(false / healthy)
    return interval(f1s), interval(shares)


def interval(values: list[float]) -> tuple[float, float]:
    if not values:
        return NAN, NAN
    values = sorted(values)
    return values[int(0.025 * len(values))], values[min(len(values) - 1, int(0.975 * len(values)))]


def alarms_of(found: Found, severity: str) -> dict[str, int | None]:
    """The first finding of at least this severity, per run."""
    return {
        run: min((f["step"] for f in result["findings"] if f["severity"] in LEVELS[severity]), default=None)
        for run, result in found.items()
    }


def leave_one_family_out(
    runs: Sequence[Run], found: Found, severity: str, elsewhere: Sequence[tuple[Sequence[Run], Found]] = ()
) -> dict[str, int | None]:
    """Alarms with, in each family, only those rules that find a labelled loop in some other family.

    Our rules are not fitted, so there is nothing to fit per fold. What can be asked is whether a rule
    that speaks up in a family has proved itself anywhere else: in these runs, or in those of other sets.
    """
    proved: dict[str, set[str]] = defaultdict(set)
    for some, their in ((runs, found), *elsewhere):
        for run in some:
            if run.loop:
                for finding in at_least(their[run.id], severity):
                    proved[rule(finding)].add(run.family)
    return {
        run.id: min(
            (f["step"] for f in at_least(found[run.id], severity) if proved[rule(f)] - {run.family}),
            default=None,
        )
        for run in runs
    }


def without_early(runs: Sequence[Run], alarms: Alarms) -> dict[str, int | None]:
    """The strict reading: an alarm before the labelled onset of a loop found something else, so it is no hit."""
    return {run.id: early_as_none(run, alarms[run.id]) for run in runs}


def early_as_none(run: Run, alarm: int | None) -> int | None:
    return None if alarm is not None and run.loop and alarm < run.onset else alarm


def at_least(result: Mapping[str, Any], severity: str) -> list[Mapping[str, Any]]:
    return [f for f in result["findings"] if f["severity"] in LEVELS[severity]]


def rule(finding: Mapping[str, Any]) -> str:
    """The kind of a finding and, where given, the rule inside that kind."""
    return f"{finding['detector']}/{finding['kind']}/{finding.get('rule') or ''}"


def false_per_1000_steps(runs: Sequence[Run], found: Found, severity: str) -> float:
    """Distinct loops reported in healthy runs, per 1,000 steps of healthy runs."""
    healthy = [run for run in runs if not run.loop]
    reports = sum(len({f["identity"] for f in at_least(found[run.id], severity)}) for run in healthy)
    return 1000 * ratio(reports, sum(len(run.steps) for run in healthy))


def stopped(runs: Iterable[Run], found: Found) -> int:
    """Runs that the default ladder would have ended or held, had the agent ignored every hint."""
    return sum(any(a["action"] in ("reject", "pause") for a in found[run.id].get("actions", [])) for run in runs)


def ratio(part: float, whole: float) -> float:
    return part / whole if whole else NAN


def f1(hits: int, false: int, loops: int) -> float:
    return 2 * hits / (hits + false + loops) if hits else 0.0


def mean(values: Iterable[float]) -> float:
    values = list(values)
    return statistics.mean(values) if values else NAN
