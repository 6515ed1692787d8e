"""Everything that is started: real processes on ports of their own, that can be killed, stopped and started again."""

import json
import os
import pwd
import re
import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

PATIENCE = 60


def until(what, is_so, seconds=PATIENCE):
    """Waits until something is so."""
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            raise RuntimeError(f"it never came to this: {what}")
        time.sleep(0.02)


_given = set()


def free_port():
    """A port that is free, and so is the one that a Redis cluster adds 10,000 to."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
            if port > 50_000 or port in _given:
                continue
            try:
                second.bind(("127.0.0.1", port + 10_000))
            except OSError:
                continue
            _given.add(port)
            return port


def descendants(pid):
    """A process and all that it has started."""
    children = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found


class Process:
    """A process that can be started again as it was."""

    def __init__(self, command, log, env=None, user=None):
        self.command, self.log, self.user = command, log, user
        self.env = {**os.environ, **(env or {})}
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.env,
                user=self.user,
                group=self.user,
                extra_groups=[] if self.user else None,
                cwd="/",
            )

    def signal(self, number):
        for pid in descendants(self.process.pid):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.signal(signal.SIGSTOP)

    def go_on(self):
        self.signal(signal.SIGCONT)

    def end(self):
        if self.process.poll() is None:
            self.kill()

    def said(self):
        return Path(self.log).read_text(errors="replace")


def get(url, timeout=10):
    with urllib.request.urlopen(url, timeout=timeout) as answer:
        return answer.read().decode()


class Mock(Process):
    """The scripted provider."""

    #: What it says when nothing is wrong, and after how long.
    WORDS = "Noted. Take the next step."
    SECONDS = 0.02

    def __init__(self, binary, folder):
        self.port = free_port()
        super().__init__([binary, "--listen", f"127.0.0.1:{self.port}", "--no-record"], folder / "mock.log")
        until("the provider listens", lambda: "listening" in self.said())
        self.script()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def script(self, **turn):
        """What it answers from now on."""
        turn = {"text": self.WORDS, "delay_ms": round(self.SECONDS * 1000), **turn}
        request = urllib.request.Request(f"{self.url}/mock/script", json.dumps([turn]).encode(), method="POST")
        urllib.request.urlopen(request, timeout=10).close()


class Gateway(Process):
    def __init__(self, binary, folder, name, config, upstream, data):
        self.name, self.port, self.data = name, free_port(), data
        path = folder / f"{name}.json"
        path.write_text(json.dumps(config))
        command = [binary, "serve", "--listen", f"127.0.0.1:{self.port}", "-c", str(path)]
        command += ["--data-dir", str(data), "--upstream", upstream, "--log-format", "json"]
        super().__init__(command, folder / f"{name}.log")

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def ready(self, timeout=1.0):
        """What it says of itself, `None` when it says nothing."""
        try:
            return json.loads(get(f"{self.url}/readyz", timeout))
        except (OSError, ValueError):
            return None

    def is_whole(self):
        ready = self.ready()
        return ready is not None and ready["status"] == "ready"

    def metrics(self):
        """Every metric by its name with its labels."""
        page = get(f"{self.url}/metrics")
        pairs = (line.rpartition(" ") for line in page.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, _, value in pairs}


class Sidecar(Process):
    def __init__(self, binary, folder, name):
        self.socket = folder / f"{name}.sock"
        super().__init__([binary, "sidecar"], folder / f"{name}.log", env={"UDS_PATH": str(self.socket)})

    def start(self):
        self.socket.unlink(missing_ok=True)
        super().start()

    def is_up(self):
        return self.socket.exists()


class Redis(Process):
    def __init__(self, folder, options=()):
        self.port = free_port()
        home = folder / f"redis-{self.port}"
        home.mkdir()
        command = ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(home)]
        command += ["--save", "", "--appendonly", "no", *options]
        super().__init__(command, folder / f"redis-{self.port}.log")
        until("Redis answers", self.is_up)

    def tell(self, *words):
        command = ["redis-cli", "-p", str(self.port), *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=30).stdout.strip()

    def is_up(self):
        return self.tell("PING") == "PONG"


class Cluster:
    """Three primaries, each with a replica."""

    def __init__(self, folder):
        options = ["--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--repl-diskless-sync-delay", "0"]
        self.nodes = [Redis(folder, options) for _ in range(6)]
        addresses = [f"127.0.0.1:{node.port}" for node in self.nodes]
        command = ["redis-cli", "--cluster", "create", *addresses, "--cluster-replicas", "1", "--cluster-yes"]
        subprocess.run(command, check=True, capture_output=True, timeout=60)
        until("the cluster is whole", self.is_whole)
        until("every replica has its primary", self.has_replicas)

    @property
    def url(self):
        return "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)

    def is_whole(self):
        return all("cluster_state:ok" in node.tell("CLUSTER", "INFO") for node in self.nodes)

    def has_replicas(self):
        said = [node.tell("INFO", "replication") for node in self.nodes]
        return sum("role:slave" in one and "master_link_status:up" in one for one in said) == 3

    def busiest_primary(self):
        """The primary with the most keys."""
        primaries = [node for node in self.nodes if "role:master" in node.tell("INFO", "replication")]
        return max(primaries, key=lambda node: int(node.tell("DBSIZE")))

    def end(self):
        for node in self.nodes:
            node.end()


class Postgres(Process):
    """Debian's server, as a user without rights: it refuses to run as root."""

    def __init__(self, folder):
        self.home, self.port = folder / "postgres", free_port()
        self.home.mkdir()
        user = "postgres" if os.getuid() == 0 else None
        if user:
            os.chown(self.home, pwd.getpwnam(user).pw_uid, -1)
        programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
        if not programs:
            raise RuntimeError("PostgreSQL is missing: run `scripts/setup.sh tests`")
        programs = programs[-1].parent
        made = [programs / "initdb", "--pgdata", self.home / "data", "--auth=trust", "--username=postgres"]
        made += ["--encoding=UTF8", "--locale=C", "--no-sync"]
        done = subprocess.run(
            made, user=user, group=user, extra_groups=[] if user else None, cwd="/", capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"initdb failed: {done.stderr}")
        # It keeps what it says it keeps: fsync stays on.
        command = [str(programs / "postgres"), "-D", str(self.home / "data"), "-k", str(self.home)]
        command += ["-p", str(self.port), "-c", "listen_addresses=127.0.0.1", "-c", "max_connections=200"]
        super().__init__(command, folder / "postgres.log", user=user)
        until("PostgreSQL answers", self.is_up)

    def is_up(self):
        command = ["psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "-c", "SELECT 1"]
        try:
            return subprocess.run(command, capture_output=True, timeout=5).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def shut_down(self):
        """As an operator does: connections are ended, everything is written."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)


def session_lines(gateways):
    """The log line of every request, from all gateways."""
    for gateway in gateways:
        for line in re.findall(r"^\{.*\}$", gateway.said(), re.MULTILINE):
            try:
                line = json.loads(line)
            except ValueError:
                continue
            if line.get("event") == "request":
                yield line
