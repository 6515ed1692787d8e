"""Coding agents with files, edits and tests; some write by an edit tool, some by the shell, some in cells."""
from __future__ import annotations

import io
import traceback
from contextlib import redirect_stdout
from typing import Any

from recorder import Session, scenario
from tools import read_file, replace_in_file, shell

EDITS = "scripted coding agent with an edit tool"
SHELL = "scripted coding agent with a shell only"
CELLS = "scripted notebook agent"
TEST = "python3 -m unittest -q"
STACK = """class Stack:
    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.insert(0, item)

    def pop(self):
        return self.items.pop(0)

    def peek(self):
        return self.items[-1]

    def size(self):
        return len(self.items) + 1
"""
STACK_TEST = """import unittest
from stack import Stack


class StackTest(unittest.TestCase):
    def setUp(self):
        self.stack = Stack()
        self.stack.push(1)
        self.stack.push(2)

    def test_peek(self):
        self.assertEqual(self.stack.peek(), 2)

    def test_pop(self):
        self.assertEqual(self.stack.pop(), 2)

    def test_size(self):
        self.assertEqual(self.stack.size(), 2)
"""


def project(s: Session) -> None:
    (s.folder / "stack.py").write_text(STACK)
    (s.folder / "test_stack.py").write_text(STACK_TEST)


def bash(s: Session, command: str, thought: str = "") -> str:
    return s.call("Bash", {"command": command, "description": "Run a command"}, shell(s.folder, command), thought)


def read(s: Session, path: str, thought: str = "") -> str:
    return s.call("Read", {"file_path": f"/workspace/{path}"}, read_file(s.folder, path), thought)


def edit(s: Session, path: str, old: str, new: str, thought: str = "") -> str:
    args = {"file_path": f"/workspace/{path}", "old_string": old, "new_string": new}
    return s.call("Edit", args, replace_in_file(s.folder, path, old, new), thought)


@scenario("coding", EDITS, "none", "Make the tests pass.", "tests after every edit, fewer failures each time")
def mends_by_edits(s: Session) -> None:
    project(s)
    bash(s, TEST)
    read(s, "stack.py")
    edit(s, "stack.py", "return len(self.items) + 1", "return len(self.items)")
    bash(s, TEST)
    read(s, "stack.py")
    edit(s, "stack.py", "return self.items[-1]", "return self.items[0]")
    bash(s, TEST)
    edit(s, "stack.py", "self.items.insert(0, item)", "self.items.append(item)", "An append is faster.")
    bash(s, TEST)
    edit(s, "stack.py", "return self.items.pop(0)", "return self.items.pop()")
    bash(s, TEST)
    edit(s, "stack.py", "return self.items[0]", "return self.items[-1]")
    bash(s, TEST)
    s.say("All tests pass.")


@scenario("coding", SHELL, "none", "Write a slug function with tests.", "files written by here-documents and sed, tests in between")
def writes_by_the_shell(s: Session) -> None:
    bash(s, "cat > slug.py <<'EOF'\ndef slug(text):\n    return text.lower()\nEOF")
    bash(s, "cat > test_slug.py <<'EOF'\nimport unittest\nfrom slug import slug\n\n\nclass SlugTest(unittest.TestCase):\n    def test_slug(self):\n        self.assertEqual(slug(' Hello, World! '), 'hello-world')\nEOF")
    bash(s, TEST)
    bash(s, "sed -i 's/text.lower()/text.lower().replace(\" \", \"-\")/' slug.py")
    bash(s, TEST)
    bash(s, "cat slug.py")
    bash(s, "sed -i 's/text.lower()/text.strip().lower()/' slug.py")
    bash(s, TEST)
    bash(s, "cat slug.py")
    bash(s, "cat > slug.py <<'EOF'\nimport re\n\n\ndef slug(text):\n    return '-'.join(re.findall('[a-z0-9]+', text.lower()))\nEOF")
    bash(s, TEST)
    bash(s, "git init -q . && git add -A && git commit -q -m 'Add slug' && git log --oneline | wc -l")
    s.say("Done.")


@scenario("coding", EDITS, "none", "How does this package load its settings?", "many files, some searches without a match")
def reads_a_package(s: Session) -> None:
    for number, name in enumerate(("app", "cli", "config", "loader", "paths", "server", "session", "store", "views")):
        (s.folder / f"{name}.py").write_text(f"from . import {name}_base\n\nLIMIT = {number}\n\n\ndef start_{name}(settings):\n    return settings['{name}']\n")
    bash(s, "ls")
    for pattern in ("load_settings", "read_yaml", "environ", "settings\\[", "configparser", "LIMIT"):
        s.call("Grep", {"pattern": pattern, "path": "/workspace"}, shell(s.folder, f"grep -rln '{pattern}' . | sort || true") or "No files found")
    for name in ("app", "cli", "config", "loader", "paths", "server", "session"):
        read(s, f"{name}.py")
    bash(s, "wc -l *.py | tail -n 1")
    s.say("Settings come in as a mapping.")


@scenario("coding", CELLS, "none", "What is the mean after the outliers are gone?", "cells that build on each other, one of them again after changes")
def works_in_cells(s: Session) -> None:
    names: dict[str, Any] = {}

    def cell(code: str, thought: str = "") -> None:
        out = io.StringIO()
        with redirect_stdout(out):
            try:
                exec(code, names)
            except Exception:
                print(traceback.format_exc().splitlines()[-1])
        s.call("execute_ipython_cell", {"code": code}, out.getvalue() or "[no output]", thought)

    cell("values = [3, 4, 5, 400, 6, 5, 4, 380, 5]")
    cell("print(sum(values) / len(values))")
    cell("values.remove(max(values))")
    cell("print(sum(values) / len(values))")
    cell("values = [value for value in values if value < 100]")
    cell("print(sum(values) / len(values))")
    cell("print(statistics.median(values))")
    cell("import statistics")
    cell("print(statistics.median(values))")
    cell("print(sorted(values))")
    s.say("The mean is about 4.6.")


@scenario("coding", EDITS, "retry_legit", "Rename push to add.", "two edits miss, a look at the file, then they fit")
def looks_before_it_edits_again(s: Session) -> None:
    project(s)
    edit(s, "stack.py", "def push(item):", "def add(item):")
    edit(s, "stack.py", "  def push(self,item):", "  def add(self, item):")
    read(s, "stack.py", "I should look at the exact text.")
    edit(s, "stack.py", "def push(self, item):", "def add(self, item):")
    bash(s, "sed -i 's/stack.push/stack.add/' test_stack.py")
    bash(s, f"{TEST} 2>&1 | tail -n 1")
    bash(s, "grep -n 'push' *.py || echo none left")
    s.say("Renamed.")


@scenario("coding", EDITS, "retry_legit", "Make the tests pass.", "three edits that do not help, and a fourth that does")
def tries_four_ideas(s: Session) -> None:
    project(s)
    test = "python3 -m unittest -q test_stack.StackTest.test_size"
    bash(s, test)
    edit(s, "stack.py", "self.items = []", "self.items = list()")
    bash(s, test)
    edit(s, "stack.py", "self.items.insert(0, item)", "self.items.append(item)")
    bash(s, test)
    edit(s, "stack.py", "return self.items.pop(0)", "return self.items.pop()")
    bash(s, test)
    edit(s, "stack.py", "len(self.items) + 1", "len(self.items)")
    bash(s, test)
    s.say("It passes.")


@scenario("coding", EDITS, "near_duplicate", "Make size return the right number.", "an edit whose old text is not there, with the file read in between")
def edits_what_is_not_there(s: Session) -> None:
    project(s)
    read(s, "stack.py")
    s.loop_starts()
    for old in ("return len(self.item) + 1", "return len(self.item)+1", "        return len(self.item) + 1\n", "return len(self.item) + 1 ", "return len( self.item ) + 1"):
        edit(s, "stack.py", old, "return len(self.items)", "The edit did not apply. I try once more.")
        read(s, "stack.py", "Let me look at the file again.")
    edit(s, "stack.py", "return len(self.item) + 1", "return len(self.items)")


@scenario("coding", EDITS, "near_duplicate", "Make the tests pass.", "the tests again with other options, and no edit")
def only_runs_the_tests(s: Session) -> None:
    project(s)
    read(s, "stack.py")
    s.loop_starts()
    for options in ("", " -v", " -q", " -f", " -v -f", " -b", " -q -f", " -c"):
        bash(s, f"python3 -m unittest{options} test_stack.StackTest.test_size", "Let me run the test again.")


@scenario("coding", EDITS, "stagnation", "Make both tests pass.", "one line there and back, each state breaks a test")
def edits_there_and_back(s: Session) -> None:
    project(s)
    bash(s, TEST)
    s.loop_starts()
    first, second = "return self.items[-1]", "return self.items[len(self.items) - 1]"
    for _ in range(4):
        edit(s, "stack.py", first, second, "This should be right.")
        bash(s, TEST)
        edit(s, "stack.py", second, first, "That broke it, back again.")
        bash(s, TEST)


@scenario("coding", SHELL, "stagnation", "Make test_size pass.", "the file written anew in other words, the same failure each time")
def rewrites_without_effect(s: Session) -> None:
    project(s)
    test = "python3 -m unittest -q test_stack.StackTest.test_size"
    s.loop_starts()
    for remark in ("counts the items", "returns the size", "the number of items", "size of the stack", "how many items", "fixed", "final", "now correct"):
        body = STACK.replace("    def size(self):", f"    # {remark}\n    def size(self):")
        bash(s, f"cat > stack.py <<'EOF'\n{body}EOF", "I rewrite the method.")
        bash(s, test, "Now it should pass.")


@scenario("coding", EDITS, "semantic", "Where is the retry policy implemented?", "a name that is nowhere, searched for in ever new ways")
def searches_for_a_ghost(s: Session) -> None:
    project(s)
    bash(s, "ls")
    s.loop_starts()
    for pattern in ("RetryPolicy", "retry_policy", "class RetryPolicy", "class Retry", "RetryPolicy(", "retrypolicy", "Retry_Policy", "RETRY_POLICY", "def retry_policy", "retry policy"):
        answer = shell(s.folder, f"grep -rn '{pattern}' . || true") or "No matches found"
        s.call("Grep", {"pattern": pattern, "path": "/workspace"}, answer, "It must be somewhere.")


@scenario("coding", EDITS, "exact", "Plan the change.", "one thought written down again and again")
def thinks_the_same(s: Session) -> None:
    project(s)
    read(s, "stack.py")
    s.loop_starts()
    for _ in range(6):
        s.call("think", {"thought": "I need to look at how the stack counts its items, then change size, then run the tests."}, "Your thought has been logged.")
