"""Agents that look for a bug: with a debugger, by halves through a history, and test file by test file."""
from __future__ import annotations

from recorder import Session, scenario
from tools import Terminal, replace_in_file, shell

AGENT = "scripted agent with a debugger"
PROGRAM = """def total(prices):
    result = 0
    for price in prices:
        result = price
    return result


print(total([3, 4, 5, 6]))
"""


class Debugger:
    """The debugger of Python in a terminal."""

    def __init__(self, s: Session) -> None:
        self.s = s
        (s.folder / "shop.py").write_text(PROGRAM)
        self.terminal = Terminal(s.folder)
        self.terminal.type("python3 -m pdb shop.py\n")

    def do(self, command: str, thought: str = "") -> str:
        shown = self.terminal.type(f"{command}\n").split("\n", 1)[-1].removesuffix("(Pdb) ").strip()
        return self.s.call("debugger", {"command": command}, shown, thought)


def debugging(play):  # type: ignore[no-untyped-def]
    """Gives a script a debugger, and closes its terminal behind it."""

    def with_debugger(s: Session) -> None:
        debugger = Debugger(s)
        try:
            play(s, debugger)
        finally:
            debugger.terminal.close()

    with_debugger.__name__ = play.__name__
    return with_debugger


def run(s: Session, command: str, thought: str = "") -> str:
    return s.call("bash", {"command": command}, shell(s.folder, command), thought)


@scenario("debugger", AGENT, "none", "Why is the total wrong?", "the program goes round, the agent only follows")
@debugging
def steps_through_a_loop(s: Session, debugger: Debugger) -> None:
    debugger.do("break total")
    debugger.do("continue")
    for _ in range(8):
        debugger.do("next")
    debugger.do("p result, price", "It is not summed up.")
    s.call("edit", {"path": "shop.py", "old": "result = price", "new": "result += price"}, replace_in_file(s.folder, "shop.py", "result = price", "result += price"))
    run(s, "python3 shop.py")


@scenario("debugger", AGENT, "none", "Which commit broke the total?", "the same two commands for one commit after the other")
def goes_through_a_history(s: Session) -> None:
    shell(s.folder, "git init -q -b main .")
    for number in range(16):
        (s.folder / "shop.py").write_text(PROGRAM.replace("result = price", "result += price" if number < 11 else "result = price") + f"# {number}\n")
        shell(s.folder, f"git add -A && git commit -qm 'step {number}'")
    run(s, "git bisect start && git bisect bad && git bisect good HEAD~15")
    for _ in range(8):
        good = run(s, "python3 shop.py").startswith("18")
        if "is the first bad commit" in run(s, f"git bisect {'good' if good else 'bad'}"):
            break
    s.say("The commit is found.")


@scenario("debugger", AGENT, "none", "Which of the tests fail, and why?", "one report for each file, all of the same form")
def runs_each_file(s: Session) -> None:
    for number, name in enumerate(("cart", "mail", "login", "search", "export", "admin")):
        (s.folder / f"test_{name}.py").write_text(
            f"import unittest\n\n\nclass {name.title()}Test(unittest.TestCase):\n    def test_{name}(self):\n        self.assertEqual({number}, {number + 1})\n"
        )
    for name in ("cart", "mail", "login", "search", "export", "admin"):
        run(s, f"python3 -m unittest test_{name}.py")
    s.say("All six compare a number with the next one.")


@scenario("debugger", AGENT, "exact", "Why is the total wrong?", "one value is printed, and nothing runs in between")
@debugging
def prints_the_same_value(s: Session, debugger: Debugger) -> None:
    debugger.do("break total")
    debugger.do("continue")
    debugger.do("next")
    s.loop_starts()
    for thought in ("What is in it?", "I want to see the prices.", "Once more.", "Let me check them.", "And now?", "The prices again."):
        debugger.do("p prices", thought)


@scenario("debugger", AGENT, "near_duplicate", "Stop where the prices are summed up.", "names that the program does not have")
@debugging
def breaks_where_nothing_is(s: Session, debugger: Debugger) -> None:
    s.loop_starts()
    for name in ("sum_up", "sum_prices", "add_up", "summing", "compute_total", "get_total", "prices_total", "total_sum"):
        debugger.do(f"break {name}")


@scenario("debugger", AGENT, "cycle", "Why is the total wrong?", "from the start to the same line again and again")
@debugging
def starts_over(s: Session, debugger: Debugger) -> None:
    debugger.do("break total")
    debugger.do("continue")
    s.loop_starts()
    for _ in range(5):
        debugger.do("where")
        debugger.do("p prices")
        debugger.do("list 1, 5")
