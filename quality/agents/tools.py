"""The real tools behind the scripted agents: a shell, a terminal, an editor, a database and a small web site."""
from __future__ import annotations

import os
import pty
import re
import select
import sqlite3
import subprocess
import time
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Callable
from urllib.error import HTTPError
from urllib.request import urlopen

LIMIT = 20.0
"""Seconds that any tool may take."""


def shell(folder: Path, command: str) -> str:
    """What a command prints, both streams together, and its exit code when it failed."""
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1",
        "GIT_AUTHOR_NAME": "Dev", "GIT_AUTHOR_EMAIL": "dev@example.org", "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_COMMITTER_NAME": "Dev", "GIT_COMMITTER_EMAIL": "dev@example.org",
    }
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT, check=False,
    )
    printed = re.sub(r"^bash: line \d+: ", "bash: ", done.stdout, flags=re.MULTILINE)
    return printed if done.returncode == 0 else f"{printed}[exit code {done.returncode}]"


class Terminal:
    """A shell in a pseudo terminal: what is typed, and what the screen shows after it."""

    def __init__(self, folder: Path) -> None:
        self.child, self.screen = pty.fork()
        if self.child == 0:
            os.chdir(folder)
            os.execve("/bin/bash", ["bash", "--norc", "--noprofile"], {"PS1": "$ ", "TERM": "dumb", "PATH": "/usr/bin:/bin"})
        self.read()

    def type(self, keys: str) -> str:
        os.write(self.screen, keys.encode())
        return self.read()

    def read(self) -> str:
        """Everything until the screen has been still for a moment."""
        shown, deadline = b"", time.monotonic() + LIMIT
        while time.monotonic() < deadline and select.select([self.screen], [], [], 0.3)[0]:
            try:
                shown += os.read(self.screen, 65536)
            except OSError:
                break
        return shown.decode(errors="replace").replace("\r", "")

    def close(self) -> None:
        os.close(self.screen)
        os.waitpid(self.child, 0)


def replace_in_file(folder: Path, path: str, old: str, new: str) -> str:
    """An edit as coding agents make it: the old text must stand there exactly once."""
    file = folder / path
    if not file.exists():
        return f"Error: file {path} does not exist."
    content = file.read_text()
    if content.count(old) != 1:
        found = "not found" if old not in content else f"found {content.count(old)} times"
        return f"Error: old_string {found} in {path}. It must match exactly once."
    file.write_text(content.replace(old, new))
    return f"The file {path} has been updated."


def read_file(folder: Path, path: str) -> str:
    file = folder / path
    if not file.exists():
        return f"Error: file {path} does not exist."
    return "".join(f"{number:4}\t{line}" for number, line in enumerate(file.read_text().splitlines(keepends=True), 1))


class Database:
    """SQLite, answered as a query tool answers."""

    def __init__(self, script: str) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.executescript(script)

    def query(self, sql: str) -> str:
        try:
            cursor = self.connection.execute(sql)
        except sqlite3.Error as error:
            return f"Error: {error}"
        if cursor.description is None:
            return f"OK, {max(cursor.rowcount, 0)} rows affected"
        rows = cursor.fetchall()
        names = " | ".join(column[0] for column in cursor.description)
        lines = [" | ".join("NULL" if value is None else str(value) for value in row) for row in rows]
        return "\n".join([names, *lines, f"({len(rows)} rows)"])


class Site:
    """A web site on this machine; `pages` answers a path with a status and a page."""

    def __init__(self, pages: Callable[[str], tuple[int, str]]) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, page = pages(self.path)
                self.send_response(status)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.end_headers()
                self.wfile.write(page.encode())

            def log_message(self, format: str, *args: object) -> None:
                """Nothing: a recording is quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=self.server.serve_forever, daemon=True).start()

    def open(self, path: str) -> str:
        """The page as a browsing agent sees it: its text, links in brackets."""
        try:
            with urlopen(f"http://127.0.0.1:{self.server.server_port}{path}", timeout=LIMIT) as answer:
                return text_of(answer.read().decode())
        except HTTPError as error:
            return f"HTTP {error.code}\n{text_of(error.read().decode())}"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.link = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.link = tag in ("a", "button")

    def handle_endtag(self, tag: str) -> None:
        self.link = False

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.lines.append(f"[{data.strip()}]" if self.link else data.strip())


def text_of(page: str) -> str:
    parser = _Text()
    parser.feed(page)
    return "\n".join(parser.lines)
