"""The observatory as an operator's script uses it: JSON over HTTP, and one stream of events."""

import json
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass


class Api:
    """The API of one gateway."""

    def __init__(self, url, token=None):
        self.url, self.token = url, token

    def call(self, method, path, body=None, headers=None):
        """The status and the JSON of an answer."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/api/v1{path}", data, headers or {}, method=method)
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            return refused.code, json.load(refused)

    def get(self, path):
        status, answer = self.call("GET", path)
        assert status == 200, f"GET {path}: {status} {answer}"
        return answer

    def order(self, session, action, **body):
        status, answer = self.call("POST", f"/sessions/{session}/{action}", body)
        assert status == 200, f"{action}: {status} {answer}"
        return answer

    def steps(self, session):
        """The steps of a session; none while nothing of it has been written down."""
        status, answer = self.call("GET", f"/sessions/{session}/steps?limit=1000")
        assert status in (200, 404), answer
        return answer.get("steps", [])


def until(what, seconds=10):
    """The first true answer to a question that is asked again and again."""
    deadline = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.02)
    return found


@dataclass
class Told:
    """One event."""

    id: int
    kind: str
    topic: str
    body: dict


class Events:
    """Everything that happens, as it is told."""

    def __init__(self, api, topics=None):
        query = f"?topics={topics}" if topics else ""
        self.stream = urllib.request.urlopen(f"{api.url}/api/v1/events{query}", timeout=60)
        self.told, self.changed = [], threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def wait_for(self, kind, fits=lambda body: True, seconds=15):
        """The first event of a kind whose body fits."""

        def found():
            return next((told for told in self.told if told.kind == kind and fits(told.body)), None)

        with self.changed:
            assert self.changed.wait_for(found, seconds), f"no {kind} among {[told.kind for told in self.told]}"
            return found()

    def _read(self):
        fields = {}
        try:
            for line in self.stream:
                name, _, value = line.decode().rstrip("\n").partition(":")
                if name:
                    fields[name] = value.strip()
                elif "data" in fields:
                    data = json.loads(fields["data"])
                    told = Told(int(fields["id"]), fields["event"], data["topic"], data["event"])
                    with self.changed:
                        self.told.append(told)
                        self.changed.notify_all()
                    fields = {}
        except (OSError, ValueError, AttributeError):
            pass  # The gateway has gone, or the test is over.
