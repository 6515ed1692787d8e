#!/usr/bin/env python3
"""Plays the scripted agents against real tools and records them into quality/runs, one file per family.

What an agent does is written down; what it gets is what the tools really answer, times and process numbers included.
"""
from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import coding  # noqa: E402,F401
import database  # noqa: E402,F401
import debugger  # noqa: E402,F401
import orchestrator  # noqa: E402,F401
import planner  # noqa: E402,F401
import server  # noqa: E402,F401
import terminal  # noqa: E402,F401
import web  # noqa: E402,F401
import world  # noqa: E402,F401
from data import SHIPPED  # noqa: E402
from recorder import SCENARIOS  # noqa: E402


def main() -> None:
    families: dict[str, list[str]] = defaultdict(list)
    for scenario in SCENARIOS:
        families[scenario.family].append(json.dumps(scenario.record(), ensure_ascii=False) + "\n")
    for family, lines in families.items():
        (SHIPPED / f"{family}.jsonl").write_text("".join(lines), encoding="utf-8")
    loops = sum(scenario.loops for scenario in SCENARIOS)
    print(f"record: {len(SCENARIOS)} runs, {loops} of them loops, in {len(families)} files")


if __name__ == "__main__":
    main()
