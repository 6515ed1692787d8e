"""What every scripted agent stands on: scenarios, and the steps that they leave behind."""
from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

RESULT, ARGUMENT, THOUGHT = 2000, 3000, 1500
"""Texts are cut as in the other recorded runs."""


@dataclass
class Session:
    """One run while it is recorded: a folder of its own, and the steps so far."""

    folder: Path
    steps: list[dict[str, Any]] = field(default_factory=list)
    onset: int | None = None

    def loop_starts(self) -> None:
        """The next step is the first occurrence of what is then repeated."""
        self.onset = len(self.steps)

    def call(self, tool: str, args: Any, result: str, thought: str = "", role: str = "assistant") -> str:
        """Notes a call and what the real tool answered."""
        result = self.shown(result)
        self.note(role, thought, tool, args, result)
        return result

    def say(self, text: str, role: str = "assistant") -> None:
        self.note(role, text, None, None, None)

    def hear(self, text: str) -> None:
        self.note("user", text, None, None, None)

    def shown(self, text: str) -> str:
        """What a tool said, without the names of folders of this machine."""
        return text.replace(str(self.folder), "/workspace").replace(sys.base_prefix, "/usr")[:RESULT]

    def note(self, role: str, thought: str, tool: str | None, args: Any, result: str | None) -> None:
        if isinstance(args, dict):
            args = {name: cut(value) for name, value in args.items()}
        self.steps.append({
            "i": len(self.steps), "role": role, "thought": thought[:THOUGHT], "tool": tool, "args": cut(args),
            "result": result, "tokens": None,
        })


def cut(value: Any) -> Any:
    return value[:ARGUMENT] if isinstance(value, str) else value


@dataclass(frozen=True)
class Scenario:
    """A script, what it does, and what an attentive person would say of it."""

    family: str
    name: str
    agent: str
    task: str
    kind: str
    note: str
    play: Callable[[Session], None]

    @property
    def loops(self) -> bool:
        return self.kind not in ("none", "retry_legit", "polling_legit")

    def record(self) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            session = Session(Path(folder).resolve())
            self.play(session)
        if self.loops != (session.onset is not None):
            raise ValueError(f"{self.name}: a loop has an onset, and nothing else has one")
        return {
            "id": f"{self.family}:{self.name}",
            "source": "quality/agents",
            "license": "MIT OR Apache-2.0",
            "agent": self.agent,
            "task": self.task,
            "outcome": "failure" if self.loops else "success",
            "steps": session.steps,
            "label": {
                "loop": self.loops, "kind": self.kind, "onset_step": session.onset, "basis": "by construction",
                "note": self.note,
            },
            "meta": {"family": self.family, "stratum": "scripted", "weight": 1.0, "doubtful": False},
        }


SCENARIOS: list[Scenario] = []


def scenario(family: str, agent: str, kind: str, task: str, note: str) -> Callable[..., Callable[[Session], None]]:
    """Registers a script under the name of its function."""

    def register(play: Callable[[Session], None]) -> Callable[[Session], None]:
        SCENARIOS.append(Scenario(f"scripted-{family}", play.__name__, agent, task, kind, note, play))
        return play

    return register
