"""Ways to go round in circles, and ways that only look like it.

A course says what the model answers, turn by turn, and what its tools then give back.
"""

import itertools
import json
import subprocess
import tempfile
from dataclasses import dataclass
from typing import Callable

from processes import LOOPBREAKER


@dataclass
class Course:
    name: str
    #: The model's answers, gone through again and again.
    turns: list
    #: What a tool gives, from the call and how many calls there were before.
    result: Callable
    #: A word that stands in the first hint about it.
    word: str = ""
    #: What the first hint calls it, if not by its name.
    first_kind: str = ""
    #: What the user says to an answer without a call.
    reply: str = "Go on."


def call(tool, **args):
    return {"calls": [{"tool": tool, "args": args}]}


LOOPS = [
    Course("repeat", [call("bash", command="ls src")], lambda call, n: "main.rs lib.rs", word="bash"),
    Course(
        "failing_repeat",
        [call("bash", command="make all")],
        lambda call, n: "cc: fatal error: parser.h: No such file or directory\nmake: *** [all] Error 1",
        word="bash",
    ),
    Course(
        "cycle",
        [call("read_file", path="src/a.rs"), call("read_file", path="src/b.rs")],
        lambda call, n: f"contents of {call.args['path']}",
        word="read_file",
        # The first file comes for the third time one step before the cycle does.
        first_kind="repeat",
    ),
    Course(
        "cycle of three",
        [call("read_file", path=f"src/{name}.rs") for name in "abc"],
        lambda call, n: f"contents of {call.args['path']}",
        word="read_file",
    ),
    Course(
        "churn",
        [call("edit_file", path="src/a.rs", old=f"let x{n} = 1;", new="let y = 2;") for n in range(12)],
        lambda call, n: "Error: old string not found in src/a.rs",
        word="edit_file",
    ),
    Course(
        "oscillation",
        [call("write_file", path="limit.txt", content=text) for text in ("10", "20")],
        lambda call, n: "File written.",
        word="write_file",
    ),
    Course(
        "monologue",
        [{"text": "I will now look into the parser and fix the failing test."}],
        lambda call, n: "",
    ),
    Course(
        "monologue to one reply",
        [
            call("bash", command="ls src"),
            {"text": "Is there anything else that I should do?"},
            {"text": "Thank you for working with me on this."},
            {"text": "It was a pleasure to explore the problem."},
            {"text": "Should more come up, tell me."},
            {"text": "Farewell, and all the best for the project."},
            {"text": "As nothing remains, this concludes it."},
            {"text": "Everything was said, and so it ends here."},
            {"text": "Until another day, then; good luck."},
        ],
        lambda call, n: "main.rs lib.rs",
        reply="Please go on with the task.",
    ),
    Course(
        "unknown_tool",
        [call("browse", url=f"https://example.com/{n}") for n in range(12)],
        lambda call, n: "Error: unknown tool `browse`",
        word="browse",
    ),
]

HEALTHY = [
    Course(
        "polling that moves",
        [call("job_status", job="build-17")],
        lambda call, n: f'{{"state": "running", "progress": {n * 7}}}',
    ),
    Course(
        "paging",
        [call("list_items", page=n) for n in range(1, 40)],
        lambda call, n: f"page {n + 1}: item-{n * 3}, item-{n * 3 + 1}, item-{n * 3 + 2}",
    ),
    Course(
        "test after edit",
        [
            turn
            for n in range(12)
            for turn in (
                call("bash", command="cargo test"),
                call("edit_file", path="src/lib.rs", old=f"step {n}", new=f"step {n + 1}"),
            )
        ],
        lambda call, n: f"test result: FAILED. {40 - n} failed" if call.tool == "bash" else "Edited src/lib.rs.",
    ),
]


def script(course, turns=60):
    """The course for the mock provider, gone through again and again."""
    return list(itertools.islice(itertools.cycle(course.turns), turns))


def run(agent, course, rounds):
    """Lets an agent run for some rounds."""
    agent.user("Find out why the build fails, and fix it.")
    calls = 0
    for _ in range(rounds):
        answer = agent.ask()
        results = [(called, course.result(called, calls + at)) for at, called in enumerate(answer.calls)]
        calls += len(results)
        if results:
            agent.give(results)
        else:
            agent.user(course.reply)


def expected_actions(said):
    """What the ladder does at each request of a conversation, `None` for nothing, as `loopbreaker replay` has it."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as recorded:
        json.dump({"messages": said}, recorded)
        recorded.flush()
        done = subprocess.run(
            [LOOPBREAKER, "replay", "--json", recorded.name], capture_output=True, text=True, check=True
        )
    by_step = {action["step"]: action["action"] for action in json.loads(done.stdout)["actions"]}
    actions, steps, known = [], 0, 0
    # The last answer is the one that never came.
    for message in [*said, {"role": "assistant"}]:
        if message["role"] == "assistant":
            new = (by_step[step] for step in range(known, steps) if step in by_step)
            actions.append(next(new, None))
            known = steps
        if message["role"] not in ("tool", "system"):
            # A call and its result are one step, and so is everything else that is said.
            steps += len(message.get("tool_calls", [])) or 1
    return actions
