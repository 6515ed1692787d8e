#!/usr/bin/env bash
# Reads 2 GB of recorded runs from a pipe, and prints how much memory that took. The runs are made on the fly, so
# nothing is written to the disk. The limit of the product is 200 MB.
#
#   scripts/replay-2gb.sh                     builds the release binary and measures it
#   GIGABYTES=4 scripts/replay-2gb.sh --html /tmp/report.html
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --release --package loopbreaker-cli
binary="${CARGO_TARGET_DIR:-target}/release/loopbreaker"

python3 - "$binary" "${GIGABYTES:-2}" "$@" <<'PYTHON'
import os, random, subprocess, sys, time

binary, gigabytes, extra = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
words = " ".join(random.Random(7).choices("the agent reads a file and runs its tests again".split(), k=400))


def run(number):
    """A run of about 200 kB; every tenth ends in a loop."""
    steps = []
    for step in range(80):
        loops = number % 10 == 0 and step > 40
        args, result = ("ls", "a b") if loops else (f"cat page-{step}", f"{number} {step} {words}")
        steps.append(f'{{"tool":"bash","args":{{"command":"{args}"}},"result":"{result}","tokens":700}}')
    return f'{{"id":"run-{number}","steps":[{",".join(steps)}]}}\n'.encode()


started = time.monotonic()
child = subprocess.Popen([binary, "replay", "-", "-q", *extra], stdin=subprocess.PIPE)
written = number = 0
while written < gigabytes << 30:
    written += child.stdin.write(run(number))
    number += 1
child.stdin.close()
_, status, usage = os.wait4(child.pid, 0)
seconds = time.monotonic() - started
peak = usage.ru_maxrss / 1024
print(f"{written / 2**30:.1f} GiB in {seconds:.0f} s, peak resident memory {peak:.0f} MB")
sys.exit(os.waitstatus_to_exitcode(status) or int(peak >= 200))
PYTHON
