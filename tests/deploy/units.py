"""The systemd units: sound, tight, and not too tight for what the binary does.

usage: python3 units.py; needs systemd-analyze and strace. See scripts/check-deploy.sh.
"""

import os
import re
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path

from shipped import LOOPBREAKER, ROOT

UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))
# systemd's own measure, of 10; its "OK" ends at 2.
MOST_EXPOSED = 2.0


def analyze(*arguments):
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, timeout=60)


def calls_of(group):
    """The system calls of a group such as @system-service, groups inside of it included."""
    listed = analyze("syscall-filter", group).stdout
    names = set()
    for line in listed.splitlines()[1:]:
        name = line.strip()
        if name.startswith("@"):
            names |= calls_of(name)
        elif name and not name.startswith("#"):
            names.add(name)
    return names


def allowed(unit):
    names = set()
    for line in re.findall(r"^SystemCallFilter=(.*)$", unit.read_text(), re.MULTILINE):
        words = line.removeprefix("~").split()
        calls = set().union(*(calls_of(word) if word.startswith("@") else {word} for word in words))
        names = names - calls if line.startswith("~") else names | calls
    return names


class Units(unittest.TestCase):
    def test_systemd_reads_them_without_complaint(self):
        with tempfile.TemporaryDirectory() as folder:
            for unit in UNITS:
                # The binary is not installed here, so its place is another.
                text = unit.read_text().replace("/usr/local/bin/loopbreaker", LOOPBREAKER)
                (Path(folder) / unit.name).write_text(text)
            run = analyze("verify", *(str(Path(folder) / unit.name) for unit in UNITS))
        ours = [line for line in run.stderr.splitlines() if "loopbreaker" in line]
        self.assertEqual((ours, run.returncode), ([], 0), run.stderr)

    def test_they_may_do_little(self):
        for unit in UNITS:
            run = analyze("security", "--offline=true", str(unit))
            level = float(re.search(r"Overall exposure level for \S+: ([\d.]+)", run.stdout).group(1))
            print(f"{unit.name}: exposure {level}")
            self.assertLessEqual(level, MOST_EXPOSED)

    def traced(self, command, env, ready):
        """The system calls of a program from its start to its end."""
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "calls"
            tracing = ["strace", "-f", "-qq", "-e", "signal=none", "-o", str(log), *command]
            running = subprocess.Popen(tracing, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            try:
                ready(running)
            finally:
                children = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
                subprocess.run(["kill", f"-{signal.SIGTERM.value}", *children], check=True)
                running.wait(60)
                running.stdout.close()
            return set(re.findall(r"^\d+ +(\w+)\(", log.read_text(), re.MULTILINE))

    def test_the_gateway_makes_no_call_that_its_unit_forbids(self):
        with tempfile.TemporaryDirectory() as folder:
            command = [LOOPBREAKER, "serve", "--listen", "127.0.0.1:0", "--data-dir", f"{folder}/data"]

            def ready(running):
                url = re.search(rb"http://\S+", running.stdout.readline()).group().decode()
                for path in ("/metrics", "/readyz", "/api/v1/sessions", "/v1/models"):
                    try:
                        urllib.request.urlopen(url + path, timeout=30).close()
                    except urllib.error.HTTPError as refused:
                        refused.close()
                subprocess.run([LOOPBREAKER, "probe", url], check=True, capture_output=True, timeout=60)

            calls = self.traced(command, {"PATH": "/usr/bin:/bin"}, ready)
        if os.geteuid() == 0:
            # SQLite gives its files the owner of the database, if it runs as root and only then.
            calls.discard("fchown")
        self.assertGreater(len(calls), 30)
        self.assertEqual(calls - allowed(UNITS[1]), set())

    def test_the_sidecar_makes_no_call_that_its_unit_forbids(self):
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "embed.sock"

            def ready(running):
                deadline = time.monotonic() + 120
                while not place.exists():
                    self.assertIsNone(running.poll(), "the sidecar ended")
                    self.assertLess(time.monotonic(), deadline, "the sidecar does not listen")
                    time.sleep(0.1)

            calls = self.traced([LOOPBREAKER, "sidecar"], {"UDS_PATH": str(place), "PATH": "/usr/bin:/bin"}, ready)
        self.assertGreater(len(calls), 20)
        self.assertEqual(calls - allowed(UNITS[0]), set())


if __name__ == "__main__":
    unittest.main()
