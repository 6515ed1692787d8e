"""What the gateways say of themselves, asked again and again."""

import threading
import time
from collections import Counter

#: Between two questions, and how long one may take before a load balancer sends nobody there.
EVERY, PATIENCE = 0.1, 0.3


class Watch:
    def __init__(self, gateways, balancer):
        self.gateways, self.balancer = gateways, balancer
        self.stopping = threading.Event()
        #: What was said, with its time: (time, gateway, what).
        self.said = []
        self.threads = [threading.Thread(target=self.look, args=(one,), daemon=True) for one in gateways]

    def start(self):
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join()

    def look(self, gateway):
        while not self.stopping.wait(EVERY):
            ready = gateway.ready(PATIENCE)
            self.balancer.well[gateway.name] = ready is not None and ready["status"] != "draining"
            self.said.append((time.monotonic(), gateway.name, words(ready)))

    def meanwhile(self, began, ended):
        """What each answer said between two moments, the commonest first."""
        said = Counter((what, name) for at, name, what in self.said if began <= at <= ended)
        gateways = {}
        for (what, name), _ in said.most_common():
            gateways.setdefault(what, set()).add(name)
        return [f"{what} ({len(names)} of {len(self.gateways)})" for what, names in gateways.items() if what != "ready"]


    def ill_for(self, began, ended):
        """Seconds from the first answer that was not `ready` to the last one, between two moments."""
        ill = [at for at, _, what in self.said if began <= at <= ended and what != "ready"]
        return max(ill) - min(ill) if ill else 0.0


def words(ready):
    """An answer of `/readyz` in short."""
    if ready is None:
        return "no answer"
    if ready["status"] == "ready":
        return "ready"
    parts = ready["degraded"] + (["open breaker"] if ready["parts"]["open_breakers"] else [])
    return f"{ready['status']}: {', '.join(parts)}"


def counted(before, after):
    """What `/metrics` counted as done without a part, summed up over gateways that were not started again."""
    sums = Counter()
    for name in before:
        for metric, value in after.get(name, {}).items():
            if metric.startswith(("loopbreaker_degraded_total", "loopbreaker_panics_total")):
                more = value - before[name].get(metric, 0)
                if more > 0:
                    sums[metric] += int(more)
    return [f"`{metric}` +{more}" for metric, more in sums.most_common()]
