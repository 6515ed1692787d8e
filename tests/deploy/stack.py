"""The services of deploy/compose.yaml as real processes, with its config and its variables; only hosts and ports differ.

There is no Docker engine where this runs: what is tried is everything but the containers.
usage: python3 stack.py, with PyYAML; REDIS_STACK is the server of scripts/redis-stack.sh, PostgreSQL is Debian's.
"""

import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path

import yaml
from shipped import LOOPBREAKER, ROOT, Mock

TOKEN = "an operator's token"


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def wait(what, is_so, seconds=60):
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, f"{what} did not happen"
        time.sleep(0.1)


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        return False


class Stack(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Short, since a socket's path has an end; and open, since PostgreSQL refuses to run as root.
        cls.folder = Path(tempfile.mkdtemp(prefix="lb-", dir="/tmp"))
        cls.folder.chmod(0o755)
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.compose = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())
        cls.ports = {name: free_port() for name in ("redis", "redis-embedding", "postgres", "gateway", "admin")}
        cls.start_stores()
        cls.mock = Mock(cls.folder, "mock")
        cls.addClassCleanup(cls.mock.stop)
        cls.start_ours()

    @classmethod
    def run_beside(cls, *command, **more):
        running = subprocess.Popen(
            [str(part) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more
        )
        cls.addClassCleanup(running.wait)
        cls.addClassCleanup(running.terminate)
        return running

    @classmethod
    def start_stores(cls):
        command = cls.compose["services"]["redis"]["command"]
        cls.run_beside(*command, "--port", cls.ports["redis"], "--dir", cls.folder)
        server = Path(os.environ["REDIS_STACK"])
        module = ["--loadmodule", server.parent / "lib" / "redisearch.so"]
        cls.run_beside(server, "--port", cls.ports["redis-embedding"], "--save", "", "--dir", cls.folder, *module)
        programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1]
        data = cls.folder / "postgres"
        data.mkdir()
        as_user = {}
        if os.geteuid() == 0:
            shutil.chown(data, "postgres", "postgres")
            as_user = {"user": "postgres", "group": "postgres", "extra_groups": []}
        cls.environment = cls.compose["services"]["postgres"]["environment"]
        password = cls.folder / "password"
        password.write_text("secret")
        password.chmod(0o644)
        made = [programs / "initdb", "-D", data, "-U", cls.environment["POSTGRES_USER"], "-A", "scram-sha-256"]
        made += [f"--pwfile={password}"]
        subprocess.run([str(part) for part in made], check=True, capture_output=True, cwd="/tmp", **as_user)
        port = cls.ports["postgres"]
        cls.run_beside(programs / "postgres", "-D", data, "-p", port, "-k", data, cwd="/tmp", **as_user)
        for name in ("redis", "redis-embedding", "postgres"):
            wait(f"{name} listens", lambda name=name: listens(cls.ports[name]))
        create = [programs / "createdb", "-h", "127.0.0.1", "-p", port, "-U", cls.environment["POSTGRES_USER"]]
        create += [cls.environment["POSTGRES_DB"]]
        env = {**os.environ, "PGPASSWORD": "secret"}

        def is_made():
            run = subprocess.run([str(part) for part in create], env=env, capture_output=True, cwd="/tmp")
            return run.returncode == 0 or b"already exists" in run.stderr

        wait("the database is made", is_made)

    @classmethod
    def here(cls, text):
        """A text of the file, with the names of services as they are here."""
        text = text.replace("/run/loopbreaker/", f"{cls.folder}/")
        for name, port in (("redis-embedding", 6379), ("redis", 6379), ("postgres", 5432)):
            text = re.sub(rf"(?<=[/@]){name}:{port}", f"127.0.0.1:{cls.ports[name]}", text)
        text = text.replace("0.0.0.0:4141", f"127.0.0.1:{cls.ports['gateway']}")
        return text.replace("0.0.0.0:4142", f"127.0.0.1:{cls.ports['admin']}")

    @classmethod
    def start_ours(cls):
        values = {"POSTGRES_PASSWORD": "secret", "OPERATOR_TOKEN_SHA256": hashlib.sha256(TOKEN.encode()).hexdigest()}
        content = cls.compose["configs"]["gateway"]["content"]
        content = re.sub(r"\$\{(\w+)[^}]*\}", lambda found: values[found.group(1)], content)
        config = cls.folder / "loopbreaker.yaml"
        config.write_text(cls.here(content))
        sidecar, gateway = (cls.compose["services"][name] for name in ("embedding-sidecar", "gateway"))
        path = {"PATH": os.environ["PATH"]}
        variables = {name: cls.here(value) for name, value in sidecar["environment"].items()}
        variables["METRICS_LISTEN"] = f"127.0.0.1:{free_port()}"
        cls.run_beside(LOOPBREAKER, *sidecar["command"], env={**path, **variables})
        wait("the sidecar's socket is there", Path(variables["UDS_PATH"]).exists)
        variables = {name: cls.here(value) for name, value in gateway["environment"].items()}
        # An unoptimised build on a busy machine embeds slowly; whether it is asked at all is what is tried here.
        variables["LOOP_EMBEDDING_SIDECAR_TIMEOUT"] = "20s"
        command = [part.replace("/etc/loopbreaker/loopbreaker.yaml", str(config)) for part in gateway["command"]]
        command += ["--upstream", cls.mock.url, "--data-dir", cls.folder / "data"]
        cls.gateway = cls.run_beside(LOOPBREAKER, *command, env={**path, **variables})
        wait("the gateway listens", lambda: listens(cls.ports["gateway"]))

    def get(self, path, **headers):
        request = urllib.request.Request(f"http://127.0.0.1:{self.ports['admin']}{path}", headers=headers)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.read().decode()

    def ask(self, *words):
        messages = [{"role": "user", "content": text} for text in words]
        body = json.dumps({"model": "gpt-4o", "messages": messages}).encode()
        url = f"http://127.0.0.1:{self.ports['gateway']}/v1/chat/completions"
        sent = {"content-type": "application/json", "x-session-id": "stack", "authorization": "Bearer sk-stack"}
        with urllib.request.urlopen(urllib.request.Request(url, body, sent), timeout=30) as answer:
            return answer.status

    def test_everything_is_ready_and_nothing_degraded(self):
        ready = json.loads(self.get("/readyz"))
        self.assertEqual((ready["status"], ready["degraded"]), ("ready", []), ready)
        self.assertEqual(ready["parts"]["store"]["state"], "ok")

    def test_the_guard_is_alive(self):
        subprocess.run(
            [LOOPBREAKER, "probe", f"http://127.0.0.1:{self.ports['gateway']}"], check=True, capture_output=True, timeout=60
        )

    def test_decisions_are_in_postgres_and_the_api_wants_the_token(self):
        self.assertEqual(self.ask("what is the capital of France?"), 200)
        with self.assertRaises(urllib.error.HTTPError) as refused:
            self.get("/api/v1/sessions")
        self.assertEqual(refused.exception.code, 401)
        refused.exception.close()
        token = {"authorization": f"Bearer {TOKEN}"}
        wait("the session is in the log", lambda: '"stack"' in self.get("/api/v1/sessions", **token))
        self.assertFalse((self.folder / "data" / "decisions.db").exists())

    def test_the_sidecar_is_asked_and_keeps_vectors_in_redis_stack(self):
        said = ["please tell me once more which town is the capital of France"]
        for more in (
            "which town, tell me please, is the capital of France once more",
            "please tell me which town is once more the capital of France",
            "once more: please tell me which town is the capital of France",
        ):
            self.assertEqual(self.ask(*said), 200)
            said.append(more)

        def embedded():
            found = re.search(r'checks_total\{result="embedded",reason=""\} (\d+)', self.get("/metrics"))
            return found and int(found.group(1)) > 0

        wait("something was embedded", embedded)
        port = str(self.ports["redis-embedding"])
        run = subprocess.run(["redis-cli", "-p", port, "FT._LIST"], capture_output=True, text=True, check=True)
        self.assertIn("loop:embeddings", run.stdout)


if __name__ == "__main__":
    unittest.main()
