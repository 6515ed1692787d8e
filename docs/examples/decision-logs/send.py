#!/usr/bin/env python3
"""Sends the decisions of a small agent to the observatory, and obeys what it answers. Needs only Python itself.

usage: send.py [URL of the API, http://127.0.0.1:4141/api/v1 by default]
"""

import datetime
import json
import os
import sys
import time
import urllib.error
import urllib.request
import uuid

API = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:4141/api/v1"


def send(log):
    """Sends one log. The same log may be sent again after an error: it is kept once."""
    headers = {"content-type": "application/json"}
    if token := os.environ.get("LOOPBREAKER_TOKEN"):
        headers["authorization"] = f"Bearer {token}"
    body = json.dumps(log).encode()
    for attempt in range(5):
        request = urllib.request.Request(f"{API}/decision-logs", body, headers)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code != 503:
                # Every violation of the schema is named at once.
                raise SystemExit(f"{error.code}: {error.read().decode()}") from error
            time.sleep(0.2 * 2**attempt)
    raise SystemExit("the observatory is not available")


def decision(intent, tool, arguments, output, status, parent=None):
    return {
        "meta": {
            "trace_id": str(uuid.uuid4()),
            "parent_step_id": parent,
            "timestamp": datetime.datetime.now(datetime.timezone.utc).isoformat(),
            "session_id": "example-python",
        },
        "identity": {"agent_id": "tester-1", "agent_type": "tester", "capability_version": "1.0.0"},
        "cognition": {"intent": intent, "reasoning_chain": ["the build is red"]},
        "action": {
            "tool_call": tool,
            "tool_input": arguments,
            "tool_output_summary": output,
            "status": status,
        },
        "state_delta": {"tokens_consumed": 412},
    }


def main():
    parent = None
    for number in range(1, 8):
        log = decision("run the tests", "bash", {"command": "make test"}, "1 failed", "failure", parent)
        answer = send(log)
        parent = log["meta"]["trace_id"]
        score = answer["log"]["cognition"]["entropy_score"]
        print(f"step {number}: entropy {score}, {answer['severity']}")
        if answer["control"]["interrupt_signal"] == "pause":
            print("an operator wants us to wait:", answer["control"].get("message", ""))
            return
        if answer["severity"] == "loop":
            print("this is a loop: the agent should try something else")
            return


if __name__ == "__main__":
    main()
