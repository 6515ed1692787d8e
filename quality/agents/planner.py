"""Agents that plan and hand out work in forms: one form for many things, one plan for nothing."""
from __future__ import annotations

from recorder import Session, scenario
from tools import shell

AGENT = "scripted planner"
MODULES = {"accounts": 3, "billing": 5, "search": 2, "messages": 4, "reports": 1, "backups": 6, "invoices": 2, "calendar": 3}


def repository(s: Session) -> None:
    for name, files in MODULES.items():
        (s.folder / name).mkdir()
        for number in range(files):
            (s.folder / name / f"{'abcdef'[number]}.py").write_text("pass\n" * (number + len(name)))


def task(s: Session, text: str, answer: str, thought: str = "") -> None:
    s.call("run_subagent", {"kind": "explorer", "prompt": text}, answer, thought, role="planner")


def count(s: Session, name: str) -> str:
    return f"I counted. {shell(s.folder, f'wc -l {name}/*.py | tail -n 1').strip()} of lines in {len(list((s.folder / name).iterdir()))} files."


@scenario("planner", AGENT, "none", "How large is each module?", "one form, filled in for one module after the other")
def sends_a_form_to_each(s: Session) -> None:
    repository(s)
    for name in MODULES:
        task(s, f"Please look at all files of the {name} module of this repository, and count their lines for me.", count(s, name))
    s.say("All modules are counted.", role="planner")


@scenario("planner", AGENT, "none", "How large is the repository?", "the ledger stays the same, the work goes on")
def keeps_a_ledger(s: Session) -> None:
    repository(s)
    for name in MODULES:
        s.say("Ledger: the request is not satisfied yet, there is progress, and nobody goes round in circles.", role="planner")
        s.call("count_lines", {"folder": name}, count(s, name), role="planner")
    s.say("Ledger: the request is satisfied.", role="planner")


@scenario("planner", AGENT, "none", "Plan the work, then do it.", "a plan that is ticked off")
def ticks_off_a_plan(s: Session) -> None:
    repository(s)
    names = list(MODULES)
    for done in range(len(names)):
        plan = [{"step": f"count {name}", "status": "completed" if number < done else "pending"} for number, name in enumerate(names)]
        s.call("update_plan", {"plan": plan}, "Plan updated", role="planner")
        s.call("count_lines", {"folder": names[done]}, count(s, names[done]), role="planner")


@scenario("planner", AGENT, "semantic", "How large is each module?", "a form that is refused for every module")
def sends_a_form_that_is_refused(s: Session) -> None:
    repository(s)
    s.loop_starts()
    for name in MODULES:
        task(s, f"Please look at all files of the {name} module of this repository, and count their lines for me.", "I have no tool to look at files with.")


@scenario("planner", AGENT, "chanting", "How large is the repository?", "a plan, and the plan once more")
def plans_again(s: Session) -> None:
    s.hear("How large is the repository?")
    s.loop_starts()
    for start in ("To answer this", "In order to answer this", "So, to answer this", "Well, to answer this", "To answer this now", "Then, to answer this", "Now, to answer this", "Again, to answer this"):
        s.say(f"{start}, I will first list the modules, then count the lines of each file, and then add up the numbers.", role="planner")


@scenario("planner", AGENT, "semantic", "Have the logo drawn.", "one order to somebody who cannot do it, who says so in ever other words")
def orders_what_cannot_be_done(s: Session) -> None:
    s.loop_starts()
    orders = (
        "Draw a logo with a ship on it and save it as a picture.", "Please draw a logo with a ship and save it as a picture.",
        "Draw the logo with the ship on it, then save it as a picture.", "Please draw a logo with a ship on it, and save the picture.",
        "Draw a logo that has a ship on it and save it as a picture.", "Once more: draw a logo with a ship on it and save it as a picture.",
        "Please draw the logo with a ship on it and save it as a picture.", "Draw a logo with a ship on it now and save it as a picture.",
    )
    answers = (
        "I can only read files, so there is no picture.", "Drawing is beyond what I am able to do here.", "My tools are for reading; nothing was drawn.",
        "There is no way for me to make pictures.", "I looked for a tool that draws and have none.", "Sorry, no picture came of it.",
        "Nothing that I have could make one.", "As before, all that I do is read.",
    )
    for text, answer in zip(orders, answers):
        task(s, text, answer)
