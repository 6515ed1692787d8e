"""What others do against loops, each as a pure function from a run to the step of its first alarm, or None.

All work online: the answer for a step uses that step and those before it.
Where a rule needs to know whether a result is an error and the recording does not say,
the first 1,000 characters of the result are searched for the usual words (`failed`).
"""
from __future__ import annotations

import re
import zlib
from collections import Counter, deque
from typing import Callable, Hashable, Iterable

from data import Run, Step, text

Baseline = Callable[[Run], "int | None"]


def same_call_3_in_10(run: Run) -> int | None:
    """The same call stands three times in the last ten calls, this one included.

    The tool-recursion sentinel read as "three is a loop"; the row "the sentinel" of the notes on the recorded runs.
    """
    recent: deque[Hashable] = deque(maxlen=10)
    for i, call in calls(run):
        recent.append(call)
        if recent.count(call) >= 3:
            return i
    return None


def sentinel(run: Run) -> int | None:
    """A call that already stands three times among the last ten admitted calls is blocked: the fourth.

    The tool-recursion sentinel as its code has it (threshold 3, window 10). Only the first block counts here.
    """
    admitted: deque[Hashable] = deque(maxlen=10)
    for i, call in calls(run):
        if admitted.count(call) >= 3:
            return i
        admitted.append(call)
    return None


def three_in_a_row(run: Run) -> int | None:
    """Three identical calls in a row: a common home-made guard."""
    return in_a_row(run, 3)


def gemini_cli(run: Run) -> int | None:
    """Five identical calls in a row: gemini-cli, `TOOL_CALL_LOOP_THRESHOLD` in its loopDetectionService.

    Its two other checks are left out: one reads the token stream, which is not recorded, one asks a model.
    """
    return in_a_row(run, 5)


def entropy_literal(run: Run) -> int | None:
    """Uniqueness of the last five {intent, tool_call, status} below 0.25: the entropy score of ADR-018.

    The recordings state no intent, so the tuple is tool and status; a step of text is a tuple without a tool.
    """
    return low_uniqueness(enumerate((step.tool, failed(step.result)) for step in run.steps))


def entropy_with_input(run: Run) -> int | None:
    """The entropy score of ADR-018 with the tool's input in the tuple, over tool calls."""
    return low_uniqueness((i, (*call, failed(run.steps[i].result))) for i, call in calls(run))


def openhands(run: Run) -> int | None:
    """The four stuck rules of OpenHands (`controller/stuck.py`, headless: user messages are left out).

    1. four equal actions with four equal observations;
    2. three equal actions with three errors (at least four actions so far);
    3. three equal messages of the agent without an observation between them;
    4. two actions with their observations in turn, over six steps.
    """
    actions: list[Hashable] = []
    observations: list[str] = []
    messages: list[str] = []
    for i, step in enumerate(run.steps):
        if step.role == "user":
            continue
        # A message is an action too; it has no observation.
        actions.append(step.call or ("", step.thought))
        if step.tool is None:
            messages.append(step.thought)
            if step.thought and same(messages[-3:], 3):
                return i
        elif step.result is not None:
            observations.append(step.result)
            messages.clear()
        if same(actions[-4:], 4) and same(observations[-4:], 4):
            return i
        if min(len(actions), len(observations)) >= 4 and same(actions[-3:], 3) and all(map(failed, observations[-3:])):
            return i
        if alternates(actions[-6:]) and alternates(observations[-6:]):
            return i
    return None


def exact_and_cycle(run: Run) -> int | None:
    """The last 3·p calls with their results are three copies of the last p, p from 1 to 8."""
    seen: list[Hashable] = []
    for i, call in calls(run):
        seen.append((call, run.steps[i].result))
        for period in range(1, 9):
            tail = seen[-3 * period :]
            if len(tail) == 3 * period and tail[:period] == tail[period : 2 * period] == tail[2 * period :]:
                return i
    return None


def whole_request_crc(run: Run) -> int | None:
    """Five requests with the same CRC32 of the body (Fairvisor's loop detection, threshold 5 as in its example).

    The body of a chat request holds the conversation so far and grows with every step, so equal bodies do not occur.
    The time window is left out, which can only make it find more.
    """
    counts: Counter[int] = Counter()
    crc = zlib.crc32(run.task.encode())
    for i, step in enumerate(run.steps):
        counts[crc] += 1
        if counts[crc] >= 5:
            return i
        crc = zlib.crc32(spoken(step).encode(), crc)
    return None


def near_duplicate(run: Run) -> int | None:
    """Three of the last eight steps alike: same tool, word-set Jaccard of arguments and of results both ≥ 0.7.

    The crude reference of the notes on the recorded runs. A step of text is compared by its text.
    """
    recent: deque[tuple[str | None, frozenset[str], frozenset[str]]] = deque(maxlen=7)
    for i, step in enumerate(run.steps):
        if step.role == "user":
            continue
        now = (step.tool, words(text(step.args) if step.tool else step.thought), words(step.result or ""))
        alike = sum(
            tool == now[0] and jaccard(args, now[1]) >= 0.7 and jaccard(result, now[2]) >= 0.7
            for tool, args, result in recent
        )
        if alike >= 2:
            return i
        recent.append(now)
    return None


BASELINES: dict[str, Baseline] = {
    "same call 3 in 10": same_call_3_in_10,
    "sentinel (4th of 10 blocked)": sentinel,
    "3 identical in a row": three_in_a_row,
    "entropy, literal": entropy_literal,
    "entropy, with input": entropy_with_input,
    "OpenHands": openhands,
    "gemini-cli (5 in a row)": gemini_cli,
    "exact + cycle (p ≤ 8)": exact_and_cycle,
    "CRC of the whole request": whole_request_crc,
    "near-duplicate, 3 of 8": near_duplicate,
}


def calls(run: Run) -> Iterable[tuple[int, tuple[str, str]]]:
    return ((i, step.call) for i, step in enumerate(run.steps) if step.call is not None)


def spoken(step: Step) -> str:
    """What a step adds to the conversation, as text."""
    parts = (step.thought, step.tool or "", text(step.args), step.result or "")
    return "\n".join(part for part in parts if part) + "\n"


def in_a_row(run: Run, threshold: int) -> int | None:
    last: Hashable = None
    count = 0
    for i, call in calls(run):
        count = count + 1 if call == last else 1
        last = call
        if count >= threshold:
            return i
    return None


def low_uniqueness(tuples: Iterable[tuple[int, Hashable]], window: int = 5, threshold: float = 0.25) -> int | None:
    recent: deque[Hashable] = deque(maxlen=window)
    for i, entry in tuples:
        recent.append(entry)
        if len(set(recent)) / len(recent) < threshold:
            return i
    return None


ERROR_WORDS = re.compile(r"error|fail|exception|traceback|not found|no such", re.IGNORECASE)


def failed(result: str | None) -> bool:
    return ERROR_WORDS.search((result or "")[:1000]) is not None


def same(items: list, count: int) -> bool:
    return len(items) == count and all(item == items[0] for item in items)


def alternates(items: list) -> bool:
    return len(items) == 6 and items[0] == items[2] == items[4] and items[1] == items[3] == items[5]


WORD = re.compile(r"\w+")


def words(value: str) -> frozenset[str]:
    return frozenset(WORD.findall(value.lower()))


def jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    return len(a & b) / len(a | b) if a or b else 1.0
