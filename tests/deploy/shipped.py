"""What these tests look at: files beside the code, and the binary that they talk about."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
os.environ.setdefault("LOOPBREAKER_BIN", str(TARGET / "debug" / "loopbreaker"))
os.environ.setdefault("MOCK_BIN", str(TARGET / "debug" / "mock-provider"))
LOOPBREAKER = os.environ["LOOPBREAKER_BIN"]

# The servers of the end-to-end tests need nothing but Python itself.
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from processes import Gateway, Mock  # noqa: E402,F401


def check(text, folder=None):
    """What `loopbreaker check` says about a config: its exit code, and its words."""
    run = subprocess.run(
        [LOOPBREAKER, "check", "-c", "-"], input=text.encode(), capture_output=True, cwd=folder, timeout=30
    )
    return run.returncode, (run.stdout + run.stderr).decode()


def said(*arguments):
    """What a command prints on a terminal of 100 columns without colours."""
    env = {"PATH": os.environ["PATH"], "COLUMNS": "100", "NO_COLOR": "1", "HOME": "/nonexistent"}
    run = subprocess.run([LOOPBREAKER, *arguments], capture_output=True, env=env, timeout=30)
    return run.stdout.decode()


def pages():
    """Every page of prose."""
    return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("deploy/**/*.md")])


def blocks(page, language):
    """The fenced blocks of a page in one language, each with its line."""
    text = page.read_text()
    for found in re.finditer(rf"^( *)```{language}\n(.*?)^\1```$", text, re.MULTILINE | re.DOTALL):
        indent = len(found.group(1))
        content = "".join(line[indent:] for line in found.group(2).splitlines(keepends=True))
        yield text.count("\n", 0, found.start()) + 2, content
