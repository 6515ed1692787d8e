"""An agent that goes round in circles is told so, slowed down and stopped, in every dialect."""

import json

import pytest

import hints
import node
from agents import AGENTS
from loops import LOOPS, expected_actions, run, script

REPEAT = LOOPS[0]
by_name = {"ids": lambda value: getattr(value, "name", getattr(value, "__name__", str(value)))}


def run_until_rejected(agent, course):
    with pytest.raises(agent.rate_limited) as raised:
        run(agent, course, rounds=40)
    return raised.value


REACHABLE = [(kind, course) for kind in AGENTS for course in LOOPS]


@pytest.mark.parametrize("kind, course", REACHABLE, **by_name)
def test_a_loop_is_hinted_throttled_and_rejected(lab, kind, course):
    mock, hop = lab.chain()
    mock.script(*script(course))
    agent = kind(hop.url)
    run_until_rejected(agent, course)
    exchanges, received = hop.settled(), mock.requests()

    stern = ("hint", "throttle", "pause", "reject")
    actions = [exchange.verdict if exchange.verdict in stern else None for exchange in exchanges]
    assert actions == expected_actions(agent.said), "the gateway and replay see the same"
    assert [action for action in actions if action] == ["hint", "hint", "throttle", "reject"]
    assert len(received) == len(exchanges) - 1, "a rejected request never reaches the provider"
    assert {request.status for request in received} == {200}, "the provider accepts every edit"

    told = []
    for exchange, request, action in zip(exchanges, received, actions):
        if not action:
            assert request.body == exchange.body
            continue
        hints.inserted(exchange.body, request.body)
        told.append((hints.take_out(kind, json.loads(exchange.body), request.json), exchange))
    # Later on the same loop may be seen as one of another kind as well.
    first_hint, exchange = told[0]
    assert course.word in first_hint
    first_kind = course.first_kind or course.name.split()[0]
    assert exchange.header("x-loopbreaker-loop").startswith(f"kind={first_kind}; count=")
    assert any(f"kind={course.name.split()[0]};" in exchange.header("x-loopbreaker-loop") for _, exchange in told)


@pytest.mark.parametrize("kind", AGENTS, **by_name)
def test_a_hint_stands_alone_where_there_is_no_system_text(lab, kind):
    mock, hop = lab.chain()
    mock.script(*script(REPEAT))
    run(kind(hop.url, system=None), REPEAT, rounds=4)
    sent, got = hop.settled()[-1], mock.requests()[-1]
    assert sent.verdict == "hint"
    hints.inserted(sent.body, got.body)
    hints.take_out(kind, json.loads(sent.body), got.json)


@pytest.mark.parametrize("placement", ["extend", "append"])
@pytest.mark.parametrize("kind", AGENTS, **by_name)
def test_a_hint_stands_where_the_config_wants_it(lab, kind, placement):
    mock, hop = lab.chain({"hint": {"placement": placement}})
    mock.script(*script(REPEAT))
    run(kind(hop.url), REPEAT, rounds=5)
    for sent, got in list(zip(hop.settled(), mock.requests()))[3:]:
        assert sent.verdict == "hint"
        hints.inserted(sent.body, got.body)
        hints.take_out(kind, json.loads(sent.body), got.json, placement)


@pytest.mark.parametrize("kind", AGENTS, **by_name)
def test_a_reject_is_an_error_of_the_provider_and_one_attempt(lab, kind):
    mock, hop = lab.chain()
    mock.script(*script(REPEAT))
    agent = kind(hop.url)
    error = run_until_rejected(agent, REPEAT)
    exchanges = hop.settled()
    assert [exchange.verdict for exchange in exchanges] == [
        "allow", "allow", "warn", "hint", "hint", "throttle", "reject",
    ]  # fmt: skip
    last = exchanges[-1]
    assert last.status == 429
    assert last.header("x-should-retry") == "false"
    assert last.header("retry-after") == "60"
    assert last.header("x-loopbreaker-loop") == "kind=repeat; count=6"
    body = json.loads(last.answer)["error"]
    if kind.path.startswith("/v1beta/"):
        assert (error.code, error.status) == (429, "RESOURCE_EXHAUSTED")
        assert (body["code"], body["status"]) == (429, "RESOURCE_EXHAUSTED")
        assert body["message"].startswith("loop_detected: ")
        assert body["details"] == [
            {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "loop_detected", "domain": "loopbreaker"}
        ]
    elif kind.path == "/v1/messages":
        assert error.body["type"] == "error"
        assert error.body["error"]["type"] == "rate_limit_error"
        assert error.body["error"]["message"].startswith("loop_detected: ")
    else:
        assert (error.code, error.type, error.param) == ("loop_detected", "loop_detected", None)
        assert sorted(body) == ["code", "message", "param", "type"]
    assert "bash" in body["message"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("api", node.APIS)
def test_the_node_sdks_are_stopped_by_one_reject(lab, api, stream):
    mock, hop = lab.chain()
    mock.script(*script(REPEAT))
    ran = node.agent(hop.url, api, stream=stream, rounds=20, result="main.rs lib.rs")
    assert (ran["error"]["name"], ran["error"]["status"]) == ("RateLimitError", 429)
    if api != "messages":
        assert ran["error"]["code"] == "loop_detected"
    verdicts = [exchange.verdict for exchange in hop.settled()]
    assert verdicts == ["allow", "allow", "warn", "hint", "hint", "throttle", "reject"]


@pytest.mark.parametrize("kind", AGENTS, **by_name)
def test_streaming_agents_are_stopped_too(lab, kind):
    mock, hop = lab.chain()
    mock.script(*script(REPEAT))
    run_until_rejected(kind(hop.url, stream=True), REPEAT)
    verdicts = [exchange.verdict for exchange in hop.settled()]
    assert verdicts == ["allow", "allow", "warn", "hint", "hint", "throttle", "reject"]


def test_a_throttled_request_is_late(lab):
    mock, hop = lab.chain()
    mock.script(*script(REPEAT))
    run(AGENTS[0](hop.url), REPEAT, rounds=6)
    throttled = hop.settled()[-1]
    assert throttled.verdict == "throttle"
    assert throttled.seconds >= 0.1


def test_a_retry_carries_the_same_hint_again(lab):
    mock, hop = lab.chain()
    failure = {"status": 503, "headers": {"retry-after-ms": "1"}}
    turn = REPEAT.turns[0]
    mock.script(turn, turn, turn, failure, turn)
    run(AGENTS[0](hop.url), REPEAT, rounds=4)
    assert [exchange.verdict for exchange in hop.settled()] == ["allow", "allow", "warn", "hint", "hint"]
    first, again = mock.requests()[-2:]
    assert (first.status, again.status) == (503, 200)
    assert first.body == again.body
