"""One row, from the first request to what was lost."""

import datetime
import subprocess
import time
from dataclasses import dataclass, field

from logs import Poster, decision, send
from servers import session_lines
from traffic import HINTED_AT, REFUSED_AT, Traffic, quantiles, reasons
from watch import Watch, counted
from world import World

#: Threads that are agents, and those of them that say the same in other words.
THREADS, REWORDERS = 36, 2
WARM_UP, QUIET, AFTERWARDS = 3.0, 6.0, 5.0
#: Everything must be whole again within this time.
LONGEST_RECOVERY = 30.0
#: How much later an answer may come while something is broken, at the median. A busy machine sways by a few.
MEDIAN_MILLIS = 10.0


@dataclass
class Result:
    row: object
    #: Why it could not be played at all.
    trouble: str = ""
    sent: int = 0
    lost: list = field(default_factory=list)
    broken_off: int = 0
    provider_errors: int = 0
    breaker: int = 0
    mistaken: list = field(default_factory=list)
    quiet: tuple | None = None
    during: tuple | None = None
    own_quiet: tuple | None = None
    own_during: tuple | None = None
    loops: int = 0
    late: int = 0
    latest: int = 0
    missed: list = field(default_factory=list)
    recovery: float | None = None
    #: From the first to the last moment at which somebody did not say `ready`.
    ill_for: float = 0.0
    readyz: list = field(default_factory=list)
    metrics: list = field(default_factory=list)
    acknowledged: int = 0
    logs_refused: int = 0
    log_seconds: tuple | None = None
    logs_lost: list = field(default_factory=list)
    unwritten: int = 0
    #: Hints to agents that say the same in other words, each minute: quiet, broken, afterwards.
    meant_hints: tuple = (0.0, 0.0, 0.0)

    def broken_floors(self):
        """What must not be."""
        if self.trouble:
            return [f"not played: {self.trouble}"]
        found = []
        if self.lost:
            found.append(f"{len(self.lost)} requests lost: " + "; ".join(reasons(self.lost)))
        if self.mistaken:
            found.append(f"{len(self.mistaken)} healthy requests taken for loops: " + "; ".join(reasons(self.mistaken)))
        if self.missed:
            found.append(f"{len(self.missed)} loops missed: " + "; ".join(reasons(self.missed)))
        if not self.loops:
            found.append("no loop ran to its end")
        if self.recovery is None:
            found.append(f"not whole again within {LONGEST_RECOVERY:.0f} s")
        if self.logs_lost or not self.acknowledged:
            found.append(f"{len(self.logs_lost)} of {self.acknowledged} acknowledged logs lost")
        if self.quiet is None or self.during is None:
            found.append("no request was answered in one of the phases")
        else:
            # Of a failing provider only the last few answers are left to be compared.
            if self.row.provider != "failing" and self.during[0] - self.quiet[0] > MEDIAN_MILLIS:
                found.append(f"the median answer came {self.during[0] - self.quiet[0]:.0f} ms later")
            if self.during[2] > self.row.slowest * 1000:
                found.append(f"the slowest answer took {self.during[2] / 1000:.1f} s")
        return found


def play(row, binaries, say):
    """One row. One that cannot be played is a failure, and the others go on."""
    world = None
    try:
        world = World(row, binaries)
        return measure(row, world, say)
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        return Result(row, trouble=f"{type(error).__name__}: {error}")
    finally:
        if world:
            world.end()


def measure(row, world, say):
    result = Result(row)
    traffic = Traffic(world.gateways, row.rate, THREADS, REWORDERS)
    watch = Watch(world.gateways, traffic.balancer)
    poster = Poster(traffic.balancer)
    clock = datetime.datetime.now(datetime.timezone.utc).timestamp() - time.monotonic()
    for one in (watch, traffic, poster):
        one.start()
    time.sleep(WARM_UP)
    quiet = time.monotonic()
    time.sleep(QUIET)

    before = {gateway.name: gateway.metrics() for gateway in world.gateways}
    say("the fault begins")
    fault = time.monotonic()
    if row.victim is not None:
        traffic.victims[world.gateways[row.victim].name] = fault
    row.begin(world)
    time.sleep(row.seconds)
    row.heal(world)
    healed = time.monotonic()
    whole = wait_until_whole(world, healed + LONGEST_RECOVERY)
    result.recovery = whole and whole - healed
    say("whole again" if whole else "it does not become whole again")
    whole = whole or time.monotonic()
    time.sleep(AFTERWARDS)

    traffic.stop()
    poster.stop()
    watch.stop()
    after = {gateway.name: gateway.metrics() for gateway in world.gateways}
    if row.victim is not None:
        before.pop(world.gateways[row.victim].name)
    lines = list(session_lines(world.gateways))
    tell_requests(result, traffic.book, (quiet, fault, whole), lines, clock)
    tell_loops(result, traffic.book, (fault, whole), lines, clock)
    result.ill_for = watch.ill_for(fault, whole)
    result.readyz, result.metrics = watch.meanwhile(fault, whole), counted(before, after)
    result.unwritten = sum(store_unwritten(gateway) for gateway in world.gateways)
    ended = time.monotonic()
    result.meant_hints = tuple(
        sum(1 for at in traffic.book.meant_hints if began <= at < over) * 60 / max(over - began, 1.0)
        for began, over in ((quiet, fault), (fault, whole), (whole, ended))
    )
    result.acknowledged, result.logs_refused = len(poster.acknowledged), poster.refused
    result.log_seconds = quantiles(poster.seconds)
    result.logs_lost = poster.lost()
    return result


def wait_until_whole(world, deadline):
    """Whole is who says so, and who acknowledges a log."""
    while time.monotonic() < deadline:
        whole = time.monotonic()
        if world.is_whole() and all(send(gateway, decision(0), 2.0) == 201 for gateway in world.gateways):
            return whole
        time.sleep(0.02)
    return None


def store_unwritten(gateway):
    ready = gateway.ready(5)
    return (ready or {}).get("parts", {}).get("store", {}).get("unwritten", 0)


def tell_requests(result, book, moments, lines, clock):
    quiet, fault, whole = moments
    row = result.row
    result.sent, result.lost, result.mistaken = book.sent, book.lost, book.mistaken
    result.broken_off, result.provider_errors, result.breaker = book.broken_off, book.provider_errors, book.breaker
    if row.provider != "failing" and (book.provider_errors or book.breaker):
        book.lose(f"{book.provider_errors} errors of the provider, {book.breaker} of the breaker, and nobody was ill")
    # Who is throttled waits on purpose.
    free = [asked for asked in book.asked if asked.verdict != "throttle"]
    over = lambda asked: asked.began + asked.seconds
    result.quiet = quantiles(asked.seconds for asked in free if quiet <= asked.began and over(asked) < fault)
    # Who had begun before the fault may feel it, too.
    during = [asked.seconds for asked in free if fault <= over(asked) and asked.began < whole]
    if row.provider == "slow":
        # The provider's own two seconds are not ours.
        during = [seconds - 2.0 + 0.02 if seconds >= 2.0 else seconds for seconds in during]
    result.during = quantiles(during)
    own = [(when(line) - clock, line["overhead_us"] / 1e6) for line in lines if line["verdict"] != "throttle"]
    result.own_quiet = quantiles(own for at, own in own if quiet <= at < fault)
    result.own_during = quantiles(own for at, own in own if fault <= at < whole)


def when(line):
    return datetime.datetime.fromisoformat(line["at"]).timestamp()


def tell_loops(result, book, outage, lines, clock):
    """A loop may be seen later by as many steps as fell into the outage, or were judged without what all share."""
    fault, whole = outage
    blind = {}
    for line in lines:
        at = when(line) - clock
        if "state" in line.get("degraded", []) and not fault <= at <= whole:
            blind[line["session"]] = blind.get(line["session"], 0) + 1
    result.loops = len(book.runs)
    for run in book.runs:
        allowed = sum(1 for at in run.asked if fault <= at <= whole)
        allowed += sum(blind.get(session, 0) for session in run.sessions)
        if run.refused_at is None or run.hinted_at is None:
            result.missed.append(f"never refused, {allowed} steps without what all share")
            continue
        late = max(run.refused_at - REFUSED_AT, run.hinted_at - HINTED_AT)
        if late > allowed:
            begun = f"begun {run.began - fault:+.1f} s from the fault, in {len(run.sessions)} sessions"
            result.missed.append(f"{late} steps late, {allowed} excused, {begun}: {' '.join(run.verdicts)}")
        elif late > 0:
            result.late += 1
            result.latest = max(result.latest, late)
        elif run.refused_at < REFUSED_AT:
            result.missed.append(f"refused after {run.refused_at} repetitions, too early")
