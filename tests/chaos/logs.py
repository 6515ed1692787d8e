"""Decision logs that are sent beside the traffic: what was answered 2xx must be kept."""

import datetime
import http.client
import itertools
import json
import threading
import time
import uuid

from servers import get

#: Logs per second.
RATE = 10
PATIENCE = 15.0


class Poster:
    """Sends one log after the other to the gateways in turn, and each again until it is acknowledged."""

    def __init__(self, balancer):
        self.balancer = balancer
        #: Acknowledged logs by the gateway that did it.
        self.acknowledged = {}
        self.refused = 0
        #: Seconds until each answer, acknowledged or not.
        self.seconds = []
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.post, daemon=True)

    def start(self):
        self.thread.start()

    def stop(self):
        self.stopping.set()
        self.thread.join(PATIENCE * 2)

    def post(self):
        for number in itertools.count():
            if self.stopping.wait(1 / RATE):
                return
            log = decision(number)
            while not self.stopping.is_set():
                gateway = self.balancer.next()
                began = time.monotonic()
                status = send(gateway, log)
                self.seconds.append(time.monotonic() - began)
                if status in (200, 201):
                    self.acknowledged[log["meta"]["trace_id"]] = gateway
                    break
                self.refused += 1
                self.stopping.wait(0.1)

    def lost(self):
        """Acknowledged logs that are not where they were acknowledged, or are there twice."""
        kept = {}
        for gateway in set(self.acknowledged.values()):
            for line in get(f"{gateway.url}/api/v1/export", 60).splitlines():
                trace = json.loads(line)["log"]["meta"]["trace_id"]
                kept[gateway.name, trace] = kept.get((gateway.name, trace), 0) + 1
        return [trace for trace, gateway in self.acknowledged.items() if kept.get((gateway.name, trace)) != 1]


def send(gateway, log, patience=PATIENCE):
    """The status of the answer, 0 for none."""
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=patience)
    try:
        connection.request("POST", "/api/v1/decision-logs", json.dumps(log), {"content-type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        return answer.status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


def decision(number):
    return {
        "meta": {
            "trace_id": str(uuid.uuid4()),
            "timestamp": datetime.datetime.now(datetime.timezone.utc).isoformat(),
            "session_id": f"chaos-{number // 20}",
        },
        "identity": {"agent_id": "chaos-1", "agent_type": "tester", "capability_version": "1.0.0"},
        "cognition": {"intent": f"look at case {number}"},
        "action": {"tool_call": "read", "tool_input": json.dumps({"case": number}), "status": "success"},
    }
