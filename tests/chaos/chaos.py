#!/usr/bin/env python3
"""Breaks one part after the other under real traffic, and says what it cost. Exit code 1 when a floor is broken.

usage: chaos.py [--markdown FILE] [--list] [PART OF A ROW'S NAME…]

LOOPBREAKER_BIN and MOCK_BIN say where the binaries are.
"""

import argparse
import os
import sys
import time

from play import play
from rows import ROWS
from table import markdown, write


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help="play only rows with one of these in their names")
    parser.add_argument("--markdown", metavar="FILE", help="also write the table into this file")
    parser.add_argument("--list", action="store_true", help="only name the rows")
    arguments = parser.parse_args()
    rows = [row for row in ROWS if not arguments.parts or any(part in row.name for part in arguments.parts)]
    if not rows:
        parser.error("no row has that in its name; see --list")
    if arguments.list:
        print("\n".join(f"{row.name:24} {row.about}" for row in rows))
        return 0
    binaries = {"loopbreaker": os.environ["LOOPBREAKER_BIN"], "mock": os.environ["MOCK_BIN"]}
    began, load = time.time(), os.getloadavg()[0]
    results = []
    for at, row in enumerate(rows, 1):
        say = lambda words, name=row.name: print(f"chaos: {name}: {words}", file=sys.stderr, flush=True)
        say(f"{at} of {len(rows)}: {row.about}")
        result = play(row, binaries, say)
        results.append(result)
        for floor in result.broken_floors():
            say(f"FAILED: {floor}")
    print(markdown(results))
    about = (
        f"{len(results)} rows in {(time.time() - began) / 60:.0f} minutes on {os.cpu_count()} cores; load of the "
        f"machine {load:.1f} before and {os.getloadavg()[0]:.1f} after."
    )
    if arguments.markdown:
        write(arguments.markdown, results, about)
    return 1 if any(result.broken_floors() for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
