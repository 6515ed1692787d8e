"""What is done to whom."""

import shutil
import time
from dataclasses import dataclass
from typing import Callable

from servers import until


@dataclass
class Row:
    name: str
    #: What is done, in words.
    about: str
    begin: Callable
    heal: Callable
    seconds: float = 6.0
    #: Where the decision log is, where the state is, and which link goes through the proxy.
    log: str = "SQLite"
    state: str = "redis"
    link: str = ""
    small_disk: bool = False
    #: The gateway that is the victim: what it had begun is counted apart.
    victim: int | None = None
    #: Whether the provider itself fails or is slow; then its share is not ours.
    provider: str = ""
    #: Seconds that an answer may take at most, beside what the provider takes.
    slowest: float = 3.0

    @property
    def rate(self):
        """Requests per second. The log on PostgreSQL takes some twenty statements for a request, one after the other:
        more than these fill its queue on two busy cores, and a queue that is full before the fault shows nothing."""
        return 50 if self.log == "PostgreSQL" else 150


def kill_sidecars(*which):
    return lambda world: [world.sidecars[at].kill() for at in which]


def start_sidecars(*which):
    def start(world):
        for at in which:
            world.sidecars[at].start()
        for at in which:
            until("the sidecar is up", world.sidecars[at].is_up)

    return start


def start_redis(world):
    world.redis.start()
    until("Redis answers", world.redis.is_up)


def fill_redis(world):
    # What is there stays, nothing more is taken.
    world.redis.tell("CONFIG", "SET", "maxmemory-policy", "noeviction")
    world.redis.tell("CONFIG", "SET", "maxmemory", "1mb")


def kill_primary(world):
    world.dead = world.cluster.busiest_primary()
    world.dead.kill()


def start_primary(world):
    world.dead.start()
    until("the node answers", world.dead.is_up)
    until("the cluster is whole", world.cluster.is_whole)


def restart_postgres(world):
    world.postgres.shut_down()
    time.sleep(1)
    world.postgres.start()
    until("PostgreSQL answers", world.postgres.is_up)


def start_postgres(world):
    world.postgres.start()
    until("PostgreSQL answers", world.postgres.is_up)


def fill_disks(world):
    for gateway in world.gateways:
        with open(gateway.data / "ballast", "wb", buffering=0) as ballast:
            for size in (1 << 20, 1 << 12):
                try:
                    while ballast.write(b"x" * size) == size:
                        pass
                except OSError:
                    continue
        if shutil.disk_usage(gateway.data).free > 1 << 16:
            raise RuntimeError("the disk is not full")


def empty_disks(world):
    for gateway in world.gateways:
        (gateway.data / "ballast").unlink()


def bad_link(name, about, fault):
    """A row in which the way to Redis or to PostgreSQL is bad."""
    who = name.partition("-")[0]
    set_link = lambda what: lambda world: getattr(world, f"{who}_link").set(what)
    log = "PostgreSQL" if who == "postgres" else "SQLite"
    return Row(name, about, set_link(fault), set_link("pass"), log=log, link=who)


ROWS = [
    Row(
        "gateway-killed",
        "one of three gateways gets SIGKILL, and is started again after 6 s",
        lambda world: world.gateways[0].kill(),
        lambda world: world.gateways[0].start(),
        log="PostgreSQL",
        victim=0,
    ),
    Row(
        "gateway-killed-sqlite",
        "the same; each has a log of its own",
        lambda world: world.gateways[0].kill(),
        lambda world: world.gateways[0].start(),
        victim=0,
    ),
    Row(
        "gateway-stopped",
        "one of three gateways stands still (SIGSTOP) for 6 s",
        lambda world: world.gateways[0].stop(),
        lambda world: world.gateways[0].go_on(),
        log="PostgreSQL",
        slowest=12.0,
    ),
    Row("sidecar-one-killed", "one of two sidecars is killed", kill_sidecars(0), start_sidecars(0)),
    Row(
        "sidecar-one-stopped",
        "one of two sidecars stands still",
        lambda world: world.sidecars[0].stop(),
        lambda world: world.sidecars[0].go_on(),
    ),
    Row("sidecar-all-killed", "both sidecars are killed", kill_sidecars(0, 1), start_sidecars(0, 1)),
    Row(
        "sidecar-all-stopped",
        "both sidecars stand still",
        lambda world: [sidecar.stop() for sidecar in world.sidecars],
        lambda world: [sidecar.go_on() for sidecar in world.sidecars],
    ),
    Row(
        "redis-killed",
        "Redis is killed, and comes back empty after 6 s",
        lambda world: world.redis.kill(),
        start_redis,
        log="PostgreSQL",
    ),
    Row(
        "redis-stopped",
        "Redis stands still",
        lambda world: world.redis.stop(),
        lambda world: world.redis.go_on(),
    ),
    bad_link("redis-slow-50ms", "every answer of Redis comes 50 ms later", "delay 0.05"),
    bad_link("redis-slow-2s", "every answer of Redis comes 2 s later", "delay 2"),
    bad_link("redis-cut", "every answer of Redis is cut in its middle, with the connection", "cut"),
    bad_link("redis-garbled", "a byte is missing in every answer of Redis", "drop"),
    bad_link("redis-half-open", "connections to Redis stay open, new ones too, and nothing passes", "stall"),
    Row(
        "redis-full",
        "Redis is full (`maxmemory` with `noeviction`) and refuses to write",
        fill_redis,
        lambda world: world.redis.tell("CONFIG", "SET", "maxmemory", "0"),
    ),
    Row(
        "cluster-primary-killed",
        "of six nodes the primary with the most keys is killed; its replica takes over; it comes back after 10 s",
        kill_primary,
        start_primary,
        seconds=10.0,
        state="cluster",
    ),
    Row(
        "postgres-killed",
        "PostgreSQL is killed with all its processes, and started again after 6 s",
        lambda world: world.postgres.kill(),
        start_postgres,
        log="PostgreSQL",
    ),
    Row(
        "postgres-stopped",
        "PostgreSQL stands still",
        lambda world: world.postgres.stop(),
        lambda world: world.postgres.go_on(),
        log="PostgreSQL",
    ),
    Row(
        "postgres-restarted",
        "PostgreSQL is shut down and started again, as for an update",
        restart_postgres,
        lambda world: None,
        seconds=0.5,
        log="PostgreSQL",
    ),
    bad_link("postgres-half-open", "connections to PostgreSQL stay open, new ones too, and nothing passes", "stall"),
    Row("disk-full", "the data folder's disk is full, at all three gateways", fill_disks, empty_disks, small_disk=True),
    Row(
        "provider-slow",
        "the provider takes 2 s for every answer",
        lambda world: world.mock.script(delay_ms=2000),
        lambda world: world.mock.script(),
        provider="slow",
    ),
    Row(
        "provider-failing",
        "the provider answers 500 to everything",
        lambda world: world.mock.script(status=500),
        lambda world: world.mock.script(),
        provider="failing",
    ),
]
