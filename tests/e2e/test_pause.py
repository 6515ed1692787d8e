"""A paused session is held until an operator decides, and the SDKs come back by themselves."""

import json
import os
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

import node
from agents import AGENTS, Anthropic, Chat, Gemini
from loops import LOOPS, run, script

REPEAT = LOOPS[0]
#: The request that shows the loop for the first time.
PAUSED = 4
by_name = {"ids": lambda value: value.__name__}
real_sleep = time.sleep


def chain(lab, hold):
    spec = {"selector": {"pathPrefix": "/"}, "tool_loops": {"enabled": True, "ladder": ["pause"]}}
    config = {"pause": {"hold": hold}, "policies": [{"id": "pausing", "spec": spec}]}
    mock, hop = lab.chain(config)
    mock.script(*script(REPEAT))
    return mock, hop


def order(hop, action, **body):
    """Gives an operator's order about the session that the hop has seen."""
    url = f"{hop.url_of_upstream}/api/v1/sessions/{hop.exchanges[0].session}/{action}"
    request = urllib.request.Request(url, json.dumps(body).encode(), method="POST")
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


@contextmanager
def when_held(hop, attempt, action, **body):
    """Gives an order as soon as the given attempt of the paused request is held; before that it is only noted."""

    def give():
        deadline = time.monotonic() + 20
        while len(hop.exchanges) < PAUSED - 1 + attempt or "note" in order(hop, action, **body):
            assert time.monotonic() < deadline, f"attempt {attempt} was never held"
            real_sleep(0.01)

    with ThreadPoolExecutor() as pool:
        given = pool.submit(give)
        yield
        given.result()


@pytest.fixture
def hurried(monkeypatch):
    """The SDKs wait for as long as they are told, only faster."""
    waits = []
    monkeypatch.setattr(time, "sleep", lambda seconds: (waits.append(seconds), real_sleep(seconds / 100)))
    return waits


@pytest.mark.parametrize("kind", AGENTS, **by_name)
def test_a_held_call_goes_on_when_the_session_is_resumed(lab, kind):
    mock, hop = chain(lab, "20s")
    with when_held(hop, 1, "resume"):
        run(kind(hop.url), REPEAT, rounds=PAUSED)
    exchanges = hop.settled()
    assert [exchange.status for exchange in exchanges] == [200] * PAUSED
    assert len(mock.requests()) == PAUSED


@pytest.mark.parametrize("kind", AGENTS, **by_name)
def test_a_call_that_is_held_for_too_long_is_told_to_come_back(lab, kind):
    mock, hop = chain(lab, "1s")
    agent = kind(hop.url).with_retries(0)
    with pytest.raises(agent.rate_limited):
        run(agent, REPEAT, rounds=PAUSED)
    held = hop.settled()[-1]
    assert (held.status, held.verdict) == (429, "pause")
    assert held.header("x-should-retry") == "true"
    assert held.header("retry-after") == "30"
    assert held.seconds >= 1
    assert "paused" in held.answer.decode()
    assert len(mock.requests()) == PAUSED - 1


@pytest.mark.parametrize("kind", [Chat, Anthropic], **by_name)
def test_the_python_sdks_survive_a_pause_of_three_attempts(lab, hurried, kind):
    mock, hop = chain(lab, "1s")
    with when_held(hop, 3, "resume"):
        run(kind(hop.url), REPEAT, rounds=PAUSED)
    assert [exchange.status for exchange in hop.settled()][PAUSED - 1 :] == [429, 429, 200]
    assert hurried == [30, 30]


@pytest.mark.parametrize("api", ["chat", "messages"])
def test_the_node_sdks_survive_a_pause_of_three_attempts(lab, api):
    mock, hop = chain(lab, "1s")
    with when_held(hop, 3, "resume"):
        ran = node.agent(hop.url, api, rounds=PAUSED, result="main.rs lib.rs", hurry=100)
    assert ran["error"] is None
    assert [exchange.status for exchange in hop.settled()][PAUSED - 1 :] == [429, 429, 200]


def test_google_genai_makes_one_attempt(lab):
    mock, hop = chain(lab, "1s")
    agent = Gemini(hop.url)
    with pytest.raises(agent.rate_limited):
        run(agent, REPEAT, rounds=PAUSED)
    assert len(hop.settled()) == PAUSED


@pytest.mark.parametrize("kind", AGENTS, **by_name)
def test_an_operator_may_reject_a_held_call(lab, kind):
    mock, hop = chain(lab, "20s")
    with when_held(hop, 1, "reject", message="stop here, the disk is full"):
        agent = kind(hop.url)
        with pytest.raises(Exception) as raised:
            run(agent, REPEAT, rounds=PAUSED)
    assert getattr(raised.value, "status_code", None) == 403 or raised.value.code == 403
    exchanges = hop.settled()
    assert len(exchanges) == PAUSED, "one attempt"
    assert exchanges[-1].header("x-should-retry") == "false"
    assert "rejected_by_operator" in exchanges[-1].answer.decode()
    assert "stop here, the disk is full" in exchanges[-1].answer.decode()
    assert len(mock.requests()) == PAUSED - 1


def survive_a_pause_of_90_seconds(lab):
    chains = [chain(lab, "25s") for _ in range(4)]
    hops = [hop for _, hop in chains]

    def python(kind, hop):
        run(kind(hop.url), REPEAT, rounds=PAUSED)

    def with_node(api, hop):
        assert node.agent(hop.url, api, rounds=PAUSED, result="main.rs lib.rs")["error"] is None

    with ThreadPoolExecutor() as pool:
        runs = [
            pool.submit(python, Chat, hops[0]),
            pool.submit(python, Anthropic, hops[1]),
            pool.submit(with_node, "chat", hops[2]),
            pool.submit(with_node, "messages", hops[3]),
        ]
        for hop in hops:
            while len(hop.exchanges) < PAUSED:
                time.sleep(0.1)
        time.sleep(90)
        for hop in hops:
            order(hop, "resume")
        for done in runs:
            done.result()
    for hop in hops:
        assert [exchange.status for exchange in hop.settled()][PAUSED - 1 :] == [429, 429, 200]


# It takes two minutes, so it is only there when it is asked for.
if os.environ.get("E2E_LONG") == "1":
    test_the_sdks_survive_a_pause_of_90_seconds = survive_a_pause_of_90_seconds
