"""The two binaries as processes, each on a port of its own."""

import base64
import json
import os
import re
import subprocess
import threading
import urllib.request
from dataclasses import dataclass

LOOPBREAKER = os.environ["LOOPBREAKER_BIN"]
MOCK = os.environ["MOCK_BIN"]
START_SECONDS = 20


class Process:
    """A server that says on its first lines where it listens."""

    def __init__(self, command, log, env=None):
        self.log = log
        with open(log, "wb") as errors:
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL, env=env
            )
        found = threading.Event()
        self.url = None

        def read():
            for line in self.process.stdout:
                match = re.search(rb"listening on (https?://\S+)", line)
                if match and not self.url:
                    self.url = match.group(1).decode()
                    found.set()
            found.set()

        self.reader = threading.Thread(target=read, daemon=True)
        self.reader.start()
        found.wait(START_SECONDS)
        if not self.url:
            self.stop()
            raise AssertionError(f"{command[0]} did not say where it listens\n{self.errors()}")

    def errors(self):
        with open(self.log, errors="replace") as log:
            return log.read()[-4000:]

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.reader.join(START_SECONDS)
        self.process.stdout.close()


@dataclass
class Received:
    """A request as the provider got it."""

    method: str
    path: str
    query: str | None
    headers: list
    body: bytes
    status: int
    chunks: int
    outcome: str

    @property
    def json(self):
        return json.loads(self.body)


class Mock(Process):
    """The scripted provider. It is strict: it refuses what the real ones refuse."""

    def __init__(self, folder, name):
        super().__init__([MOCK, "--strict"], folder / f"{name}.log")

    def script(self, *turns, repeat_last=True):
        self._call("POST", "/mock/script", {"turns": turns, "repeat_last": repeat_last})

    def requests(self):
        listed = self._call("GET", "/mock/requests")["requests"]
        return [
            Received(
                method=one["method"],
                path=one["path"],
                query=one["query"],
                headers=[(name, value) for name, value in one["headers"]],
                body=base64.b64decode(one["body_base64"]),
                status=one["status"],
                chunks=one["chunks"],
                outcome=one["outcome"],
            )
            for one in listed
        ]

    def _call(self, method, path, value=None):
        data = None if value is None else json.dumps(value).encode()
        request = urllib.request.Request(self.url + path, data, method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)


class Gateway(Process):
    """`loopbreaker serve` with a config, in front of one provider or of those that the config names."""

    def __init__(self, folder, name, config, upstream, data=None):
        path = folder / f"{name}.json"
        path.write_text(json.dumps(config))
        self.data = data or folder / f"{name}.data"
        command = [LOOPBREAKER, "serve", "--listen", "127.0.0.1:0", "-c", str(path)]
        command += ["--data-dir", str(self.data)]
        if upstream:
            command += ["--upstream", upstream]
        super().__init__(command, folder / f"{name}.log")

    def ready(self):
        """What it says about itself."""
        with urllib.request.urlopen(f"{self.url}/readyz", timeout=10) as answer:
            return json.load(answer)

    def held(self):
        """How many calls wait for an operator, or for their time."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=10) as answer:
            found = re.search(r"^loopbreaker_held (\d+)", answer.read().decode(), re.MULTILINE)
        return int(found.group(1))
