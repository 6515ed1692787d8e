"""What a row plays in: three gateways, what they share, and the provider behind them."""

import shutil
import subprocess
import tempfile
from pathlib import Path

from proxy import Proxy
from servers import Cluster, Gateway, Mock, Postgres, Redis, Sidecar, free_port, until
from traffic import MEANING

GATEWAYS = 3


def policies(row):
    """The usual policy, with a budget that is never used up. Meanings are compared for those who say the same in other
    words, and for all where the sidecars themselves are what is broken."""
    selector = {"pathPrefix": "/v1/", "methods": ["POST"]}
    compared = {**selector, "tenants": [MEANING]} if "sidecar" not in row.name else selector
    identical = {"enabled": True, "window_seconds": 60, "threshold_identical_requests": 5, "action": "warn"}
    usual = {
        "selector": selector,
        "loop_detection": identical,
        "tool_loops": {"enabled": True, "ladder": ["hint", "hint", "throttle", "reject"]},
        "chant": {"enabled": True, "action": "cut"},
        "rules": [{"id": "calls", "key": "tenant", "requests": 1_000_000, "period": "1h"}],
    }
    meaning = {"selector": compared, "semantic": {"enabled": True, "threshold": 0.95, "action": "hint"}}
    return [{"id": "agents", "spec": usual}, {"id": "meaning", "spec": meaning}]


class World:
    def __init__(self, row, binaries):
        self.folder = Path(tempfile.mkdtemp(prefix="chaos-"))
        # PostgreSQL runs as another user.
        self.folder.chmod(0o755)
        self.running, self.disks = [], []
        self.binaries = binaries
        self.redis = self.cluster = self.redis_link = self.postgres = self.postgres_link = None
        try:
            self.start(row)
        except BaseException:
            self.end()
            raise

    def start(self, row):
        self.mock = self.keep(Mock(self.binaries["mock"], self.folder))
        self.sidecars = [self.keep(Sidecar(self.binaries["loopbreaker"], self.folder, f"sidecar-{at}")) for at in "ab"]
        config = {
            "state": self.state(row),
            "semantic": {"backend": "sidecar", "sidecars": [str(one.socket) for one in self.sidecars]},
            "policies": policies(row),
        }
        if row.log == "PostgreSQL":
            config["log"] = {"url": self.database(row)}
        for sidecar in self.sidecars:
            until("the sidecar is up", sidecar.is_up)
        self.gateways = []
        for at in range(GATEWAYS):
            name = f"gateway-{at}"
            data = self.folder / f"{name}.data"
            data.mkdir()
            if row.small_disk:
                self.mount(data)
            self.gateways.append(
                self.keep(Gateway(self.binaries["loopbreaker"], self.folder, name, config, self.mock.url, data))
            )
        until("the gateways are whole", self.is_whole)

    def state(self, row):
        if row.state == "cluster":
            self.cluster = self.keep(Cluster(self.folder))
            return self.cluster.url
        self.redis = self.keep(Redis(self.folder))
        if row.link != "redis":
            return f"redis://127.0.0.1:{self.redis.port}"
        self.redis_link = self.keep(Proxy(free_port(), self.redis.port))
        return f"redis://127.0.0.1:{self.redis_link.port}"

    def database(self, row):
        self.postgres = self.keep(Postgres(self.folder))
        port = self.postgres.port
        if row.link == "postgres":
            self.postgres_link = self.keep(Proxy(free_port(), port))
            port = self.postgres_link.port
        return f"postgres://postgres@127.0.0.1:{port}/postgres"

    def mount(self, folder):
        """A disk of its own, so small that it can be filled."""
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(folder)], capture_output=True)
        if mounted.returncode:
            raise RuntimeError("no small disk could be mounted: run this row as root")
        self.disks.append(folder)

    def is_whole(self):
        return all(gateway.is_whole() for gateway in self.gateways)

    def keep(self, one):
        self.running.append(one)
        return one

    def end(self):
        for one in reversed(self.running):
            one.end()
        for disk in self.disks:
            subprocess.run(["umount", "--lazy", str(disk)], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)
