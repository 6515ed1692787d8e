"""Recorded runs in the clothes of other harnesses: what is around each result, or beside each argument, is another one.

A detector that knows the forms of the recorded agents by heart falls here, and so will it in the field. The forms are
those that agents in use have; what happened in the run stays what it was.
"""
from __future__ import annotations

import hashlib
import json
import re
import tempfile
from pathlib import Path
from typing import Any, Callable

from data import DataSet, records

Step = dict[str, Any]
Dress = Callable[[Step, int, str], None]
"""Changes a step; its place and its run's id are given, for what counts or is drawn anew."""


def around(frame: Callable[[str, int, str], str]) -> Dress:
    def dress(step: Step, place: int, run: str) -> None:
        if step.get("tool") and isinstance(step.get("result"), str):
            step["result"] = frame(step["result"], place, run)

    return dress


def beside(field: str, value: Callable[[int, str], Any]) -> Dress:
    def dress(step: Step, place: int, run: str) -> None:
        args = step.get("args")
        if isinstance(args, str):
            try:
                args = json.loads(args)
            except ValueError:
                args = {"command": args}
        if step.get("tool") and isinstance(args, dict):
            step["args"] = {**args, field: value(place, run)}

    return dress


def drawn(place: int, run: str, length: int) -> str:
    return hashlib.sha256(f"{run} {place}".encode()).hexdigest()[:length]


def exit_code(result: str) -> int:
    """What the recording does not say: told from the words, so that success and failure stay what they were."""
    return int(bool(re.search("error|not found|no such|traceback|fail|invalid|denied|cannot|usage:|unable", result[:400], re.I)))


SENTENCES = (
    "Let me check this once more to be sure.", "I will run this to see what happens now.",
    "Trying to understand the current state.", "This should tell us whether the fix works.",
    "Looking at the output to decide what is next.", "We need this information before going on.",
    "Running it again after thinking about it.", "Checking the relevant part of the project.",
    "To verify the behaviour described in the task.", "Gathering more details on the problem.",
    "Next I want to see the details here.", "Making sure that everything is in place.",
)

CLOTHES: dict[str, Dress] = {
    "as recorded": lambda step, place, run: None,
    "`Observation:` before each result": around(lambda text, place, run: f"Observation:\n{text}"),
    "in a tag with the call's id": around(lambda text, place, run: f'<result id="call_{drawn(place, run, 10)}">\n{text}\n</result>'),
    "a counter of steps behind it": around(lambda text, place, run: f"{text}\n[Current step: {place + 1}/100]"),
    "exit code and wall time before it": around(
        lambda text, place, run: f"Exit code: {exit_code(text)}\nWall time: {place * 7 % 13 / 10:.1f} seconds\nOutput:\n{text}"
    ),
    "id of the chunk, tokens, exit code": around(
        lambda text, place, run: f"Chunk ID: {drawn(place, run, 6)}\nWall time: {place * 7 % 13 / 10:.4f} seconds\n"
        f"Process exited with code {exit_code(text)}\nOriginal token count: {len(text) // 4}\nOutput:\n{text}"
    ),
    "command, folder, exit code, process group": around(
        lambda text, place, run: f"Directory: (root)\nOutput: {text}\nError: (none)\nExit Code: {exit_code(text)}\n"
        f"Signal: (none)\nBackground PIDs: (none)\nProcess Group PGID: {4000 + 3 * place}"
    ),
    "the environment behind it": around(
        lambda text, place, run: f"{text}\n\n<environment_details>\n# Visible Files\nsrc/main.py\n\n# Context Window Usage\n"
        f"{12_000 + 731 * place:,} / 200K tokens used ({6 + place // 3}%)\n\n# Current Mode\nACT MODE\n</environment_details>"
    ),
    "as JSON with exit code and duration": around(
        lambda text, place, run: json.dumps(
            {"output": text, "metadata": {"exit_code": exit_code(text), "duration_seconds": place * 7 % 13 / 10}}
        )
    ),
    "as JSON with an id drawn anew": around(
        lambda text, place, run: json.dumps({"id": f"res_{drawn(place, run, 12)}", "exit_code": exit_code(text), "output": text})
    ),
    "as a numbered message of MCP": around(
        lambda text, place, run: json.dumps(
            {
                "jsonrpc": "2.0", "id": place + 1,
                "result": {"content": [{"type": "text", "text": text}], "isError": bool(exit_code(text))},
            }
        )
    ),
    "an `explanation` in the arguments": beside("explanation", lambda place, run: SENTENCES[place * 5 % 12]),
    "a `description` in the arguments": beside("description", lambda place, run: SENTENCES[place * 7 % 12]),
    "the call's id in the arguments": beside("tool_call_id", lambda place, run: f"call_{drawn(place, run, 12)}"),
}


def dressed(data: DataSet, dress: Dress, folder: Path) -> DataSet:
    """The same runs with the same labels in other clothes, in a file of their own."""
    file = folder / f"{data.name}.jsonl"
    with file.open("w", encoding="utf-8") as out:
        for record in (record for source in data.files for record in records(source)):
            for place, step in enumerate(record["steps"]):
                dress(step, place, record["id"])
            out.write(json.dumps(record) + "\n")
    return DataSet(data.name, (file,), data.runs)


def in_other_clothes(sets: list[DataSet], found: Callable[[DataSet], Any]) -> dict[str, list[Any]]:
    """What `found` says of each set in each of the clothes."""
    with tempfile.TemporaryDirectory() as folder:
        return {name: [found(dressed(data, dress, Path(folder))) for data in sets] for name, dress in CLOTHES.items()}
