"""What is no loop passes byte for byte, both ways."""

import gzip
import json
import time
import urllib.request

import anthropic
import openai
import pytest

import node
from agents import AGENTS, Chat
from loops import HEALTHY, LOOPS, run, script

by_name = {"ids": lambda value: getattr(value, "name", getattr(value, "__name__", str(value)))}
HOP_BY_HOP = {"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}


def end_to_end(headers, without=()):
    return [(name, value) for name, value in headers if name not in HOP_BY_HOP and name not in without]


def chain(lab, config=None):
    """A hop on each side of the gateway: what the client sees, and what the provider sees."""
    mock = lab.mock()
    inner = lab.hop(mock)
    return mock, lab.hop(lab.gateway(inner, config)), inner


def assert_nothing_changed(outer, inner, ours=("x-loopbreaker-session", "x-loopbreaker-verdict")):
    outside, inside = outer.settled(), inner.settled()
    assert len(outside) == len(inside) > 0
    for sent, got in zip(outside, inside):
        assert (got.method, got.target) == (sent.method, sent.target)
        assert got.body == sent.body
        assert end_to_end(got.headers, {"host"}) == end_to_end(sent.headers, {"host"})
        assert sent.status == got.status
        assert sent.answer == got.answer
        assert end_to_end(sent.answer_headers, ours) == end_to_end(got.answer_headers)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("course", HEALTHY, **by_name)
@pytest.mark.parametrize("kind", AGENTS, **by_name)
def test_healthy_work_passes_unchanged(lab, kind, course, stream):
    mock, outer, inner = chain(lab)
    mock.script(*script(course))
    run(kind(outer.url, stream=stream), course, rounds=14)
    assert_nothing_changed(outer, inner)
    assert {exchange.verdict for exchange in outer.settled()} == {"allow"}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("api", node.APIS)
def test_healthy_work_of_the_node_sdks_passes_unchanged(lab, api, stream):
    mock, outer, inner = chain(lab)
    mock.script({"calls": [{"tool": "bash", "args": {"command": "kubectl get job build"}}]})
    ran = node.agent(outer.url, api, stream=stream, rounds=10, result="{n} of 12 pods ready")
    assert ran["error"] is None
    assert_nothing_changed(outer, inner)
    assert {exchange.verdict for exchange in outer.settled()} == {"allow"}


@pytest.mark.parametrize("kind", AGENTS, **by_name)
def test_shadow_mode_changes_nothing_that_can_be_seen(lab, kind):
    mock, outer, inner = chain(lab, {"global_shadow": True})
    loop = LOOPS[0]
    mock.script(*script(loop))
    run(kind(outer.url), loop, rounds=9)
    assert_nothing_changed(outer, inner, ours={"x-loopbreaker-session"})
    for exchange in outer.settled():
        ours = [name for name, _ in exchange.answer_headers if name.startswith("x-loopbreaker-")]
        assert ours == ["x-loopbreaker-session"]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500, 503, 529])
def test_errors_of_the_provider_are_passed_on_unchanged(lab, status):
    mock, outer, inner = chain(lab)
    mock.script({"status": status, "headers": {"retry-after": "7", "x-should-retry": "false"}})
    agent = Chat(outer.url)
    agent.user("hello")
    with pytest.raises(openai.APIStatusError) as raised:
        agent.ask()
    assert raised.value.status_code == status
    assert_nothing_changed(outer, inner)
    assert outer.settled()[0].header("retry-after") == "7"


def test_retries_of_an_outage_are_no_loop(lab):
    spec = {
        "selector": {"pathPrefix": "/v1/"},
        "loop_detection": {
            "enabled": True, "window_seconds": 60, "threshold_identical_requests": 3, "action": "reject",
        },
    }  # fmt: skip
    mock, outer, inner = chain(lab, {"policies": [{"id": "strict", "spec": spec}]})
    quick = {"retry-after-ms": "1"}
    outage = [{"status": 429, "headers": quick}] * 5 + [{"status": 503, "headers": quick}] * 3
    mock.script(*outage, {"text": "There."})
    agent = Chat(outer.url).with_retries(10)
    agent.user("hello")
    assert agent.ask().text == "There."
    assert [exchange.status for exchange in outer.settled()] == [429] * 5 + [503] * 3 + [200]
    assert_nothing_changed(outer, inner)


def test_streams_pass_chunk_by_chunk(lab):
    mock, outer, _ = chain(lab)
    mock.script({"text": "one two three four five six seven eight nine ten", "chunk_delay_ms": 60})
    client = openai.OpenAI(base_url=f"{outer.url}/v1", api_key="k")
    asked = {"model": "m", "messages": [{"role": "user", "content": "count"}], "stream": True}
    times = [time.monotonic() for _ in client.chat.completions.create(**asked)]
    assert len(times) >= 11
    assert times[-1] - times[0] > 0.3, "the first chunk did not wait for the last"


def test_other_paths_pass_too(lab):
    mock, outer, inner = chain(lab)
    client = openai.OpenAI(base_url=f"{outer.url}/v1", api_key="k")
    assert [model.id for model in client.models.list()] == ["gpt-mock"]
    with pytest.raises(openai.NotFoundError):
        client.embeddings.create(model="m", input="hi")
    claude = anthropic.Anthropic(base_url=outer.url, api_key="k")
    assert [model.id for model in claude.models.list()] == ["claude-mock"]
    assert [exchange.answer for exchange in outer.settled()] == [exchange.answer for exchange in inner.settled()]


def test_compressed_answers_reach_the_client_as_they_are(lab):
    mock, outer, inner = chain(lab)
    mock.script({"text": "packed", "encoding": "gzip"})
    for stream in (False, True):
        agent = Chat(outer.url, stream=stream)
        agent.user("hello")
        assert agent.ask().text == "packed"
    assert_nothing_changed(outer, inner)
    assert outer.settled()[0].header("content-encoding") == "gzip"


def test_a_compressed_request_reaches_the_provider_as_it_is(lab):
    mock, outer, inner = chain(lab)
    body = gzip.compress(json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode())
    headers = {"content-type": "application/json", "content-encoding": "gzip", "authorization": "Bearer k"}
    request = urllib.request.Request(f"{outer.url}/v1/chat/completions", body, headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert answer.status == 200
    assert mock.requests()[0].body == body
    assert_nothing_changed(outer, inner)
