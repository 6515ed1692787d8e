"""Real proxies with our snippets before the scripted provider: they ask us, and send what is allowed by themselves.

usage: python3 proxies.py; ENVOY says where Envoy is. nginx is tried by crates/cli/tests/gateway/nginx.rs.
"""

import http.client
import json
import os
import re
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path
from urllib.parse import urlsplit

from shipped import ROOT, Gateway, Mock

BUDGET = {"policies": [{"id": "p", "spec": {"rules": [{"id": "r", "key": "tenant", "requests": 2, "period": "1h"}]}}]}
LOOPS = {"policies": [{"id": "p", "spec": {"tool_loops": {"enabled": True, "ladder": ["warn", "reject"]}}}]}


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def looping(turns):
    """A transcript in which one call was made again and again, with one result."""
    messages = [{"role": "user", "content": "what is in a.txt?"}]
    for turn in range(turns):
        call = {"id": f"c{turn}", "type": "function", "function": {"name": "read_file", "arguments": '{"path":"a.txt"}'}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{turn}", "content": "nothing new"})
    return {"model": "gpt-4o", "messages": messages}


class Proxied(unittest.TestCase):
    """What holds for every proxy. Subclasses start one in `start_proxy`, which gives its address."""

    def lab(self, config):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.mock = Mock(self.folder, "mock")
        self.addCleanup(self.mock.stop)
        self.gateway = Gateway(self.folder, "gateway", config, self.mock.url)
        self.addCleanup(self.gateway.stop)
        self.proxy = self.start_proxy(urlsplit(self.gateway.url).port, urlsplit(self.mock.url).port)

    def ask(self, body, query="", **headers):
        connection = http.client.HTTPConnection(self.proxy, timeout=20)
        sent = {"content-type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
        connection.request("POST", f"/v1/chat/completions{query}", json.dumps(body), sent)
        answer = connection.getresponse()
        answer.text = answer.read().decode()
        connection.close()
        return answer


class Behaviour:
    def test_what_is_allowed_is_sent_and_the_rest_is_refused_in_our_words(self):
        self.lab(BUDGET)
        key = {"authorization": "Bearer sk-one"}
        for turn in (0, 1):
            answer = self.ask(looping(turn), **key)
            self.assertEqual((answer.status, answer.getheader("x-loopbreaker-verdict")), (200, "allow"), answer.text)
        self.assertEqual(self.mock.requests()[1].json, looping(1))
        refused = self.ask(looping(2), **key)
        self.assertEqual(refused.status, 429)
        self.assertEqual(json.loads(refused.text)["error"]["code"], "budget_exceeded")
        self.assertEqual(refused.getheader("x-should-retry"), "false")
        self.assertIsNotNone(refused.getheader("retry-after"))
        self.assertEqual(len(self.mock.requests()), 2)
        self.assertEqual(self.ask(looping(0), authorization="Bearer sk-two").status, 200)

    def test_clients_cannot_choose_their_tenant(self):
        self.lab({**BUDGET, "kill_switches": [{"tenant": "acme"}]})
        self.assertEqual(self.ask(looping(0), authorization="Bearer sk-one", x_tenant_id="acme").status, 200)

    def test_clients_cannot_say_what_they_are_judged_by(self):
        self.lab({"kill_switches": [{"scope_key": "agent", "scope_value": "bad", "route": "/v1/chat/completions"}]})
        for query in ("", "?deny=200", "?deny=503"):
            refused = self.ask(looping(0), query, x_agent_id="bad", x_original_uri="/v1/models", x_original_method="GET")
            self.assertEqual(refused.status, 403, query)
        self.assertEqual(self.mock.requests(), [])

    def test_a_loop_in_the_transcript_is_seen_in_the_body(self):
        self.lab(LOOPS)
        answers = [self.ask(looping(turns), authorization="Bearer sk-one") for turns in range(1, 7)]
        verdicts = [answer.getheader("x-loopbreaker-verdict") for answer in answers]
        self.assertEqual(verdicts[0], "allow")
        self.assertIn("warn", verdicts)
        self.assertEqual((verdicts[-1], answers[-1].status), ("reject", 429))
        self.assertIn("loop_detected", answers[-1].text)

    def test_when_we_are_away_requests_pass(self):
        self.lab(LOOPS)
        self.gateway.process.kill()
        self.gateway.process.wait()
        self.assertEqual(self.ask(looping(6), authorization="Bearer sk-one").status, 200)


class Envoy(Behaviour, Proxied):
    def start_proxy(self, gateway, provider):
        port = free_port()
        text = (ROOT / "deploy" / "proxies" / "envoy.yaml").read_text()
        for known, own in ((8080, port), (4141, gateway), (9000, provider)):
            self.assertIn(f"port_value: {known}", text)
            text = text.replace(f"port_value: {known}", f"port_value: {own}")
        config = self.folder / "envoy.yaml"
        config.write_text(text)
        command = [os.environ["ENVOY"], "-c", str(config), "--concurrency", "1", "--log-level", "error"]
        command += ["--disable-hot-restart"]
        running = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        deadline = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return f"127.0.0.1:{port}"
            except OSError:
                self.assertIsNone(running.poll(), "Envoy ended")
                self.assertLess(time.monotonic(), deadline, "Envoy does not listen")
                time.sleep(0.05)


class Kong(Behaviour, Proxied):
    """Kong itself is not to be had here: its Lua runs in plain Lua 5.1 with a stand-in for Kong's functions, and asks
    the real gateway over HTTP."""

    def start_proxy(self, gateway, _):
        text = (ROOT / "deploy" / "proxies" / "kong.yaml").read_text()
        code = re.search(r"^( +)- \|\n((?:\1  .*\n|\n)+)", text, re.MULTILINE).group(2)
        self.assertIn("http://127.0.0.1:4141/", code)
        self.code = self.folder / "access.lua"
        self.code.write_text(code.replace("127.0.0.1:4141", f"127.0.0.1:{gateway}"))

    def ask(self, body, query="", **headers):
        asked = self.folder / "asked.json"
        asked.write_text(json.dumps(body))
        sent = [f"{name.replace('_', '-')}={value}" for name, value in headers.items()]
        stub = str(Path(__file__).with_name("kong_stub.lua"))
        command = ["lua5.1", stub, str(self.code), str(asked), f"/v1/chat/completions{query}", *sent]
        run = subprocess.run(command, capture_output=True, timeout=20)
        self.assertEqual(run.returncode, 0, run.stderr.decode())
        head, _, text = run.stdout.decode().partition("\n\n")
        status, *lines = head.split("\n")
        answer = Told(int(status), dict(line.split("=", 1) for line in lines if line), text)
        if answer.status == 200:
            connection = http.client.HTTPConnection(urlsplit(self.mock.url).netloc, timeout=20)
            connection.request("POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"})
            answer.status = connection.getresponse().status
            connection.close()
        return answer


class Told:
    def __init__(self, status, headers, text):
        self.status, self.headers, self.text = status, headers, text

    def getheader(self, name):
        return self.headers.get(name)


if __name__ == "__main__":
    unittest.main()
