"""The Node SDKs, as small programs that print JSON."""

import json
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
APIS = ("chat", "responses", "chained", "messages")


def agent(url, api, **options):
    """Runs `agent.mjs` to its end."""
    asked = json.dumps({"url": url, "api": api, **options})
    done = subprocess.run(
        ["node", os.path.join(HERE, "agent.mjs"), asked], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
