"""Warnings, budgets, providers that refuse an edit, and whose session a request is."""

import json

import anthropic
import openai
import pytest
from google import genai

import hints
from agents import AGENTS, Anthropic, Chat, Gemini, Responses
from loops import LOOPS, run, script

REPEAT = LOOPS[0]
by_name = {"ids": lambda value: value.__name__}


def policy(**spec):
    return {"policies": [{"id": "test", "spec": {"selector": {"pathPrefix": "/"}, **spec}}]}


@pytest.mark.parametrize("kind", AGENTS, **by_name)
def test_the_second_occurrence_is_a_warning_in_headers_only(lab, kind):
    mock, hop = lab.chain()
    mock.script(*script(REPEAT))
    run(kind(hop.url), REPEAT, rounds=3)
    warned, got = hop.settled()[-1], mock.requests()[-1]
    assert warned.verdict == "warn"
    assert warned.header("x-loopbreaker-warning") == "loop_warn"
    assert warned.header("x-loopbreaker-loop-count") == "2"
    assert warned.header("x-loopbreaker-loop") == "kind=repeat; count=2"
    assert got.body == warned.body


def test_identical_requests_are_a_warning_by_default(lab):
    mock, hop = lab.chain()
    for _ in range(5):
        agent = Chat(hop.url)
        agent.user("what time is it?")
        agent.ask()
    exchanges = hop.settled()
    assert [exchange.verdict for exchange in exchanges] == ["allow"] * 4 + ["warn"]
    assert exchanges[-1].header("x-loopbreaker-loop") == "kind=identical_request; count=5"


def test_identical_requests_are_rejected_where_the_policy_says_so(lab):
    counted = {"enabled": True, "window_seconds": 30, "threshold_identical_requests": 2, "action": "reject"}
    mock, hop = lab.chain(policy(loop_detection=counted))
    agents = [Chat(hop.url) for _ in range(2)]
    for agent in agents:
        agent.user("what time is it?")
    agents[0].ask()
    with pytest.raises(openai.RateLimitError) as raised:
        agents[1].ask()
    assert raised.value.code == "loop_detected"
    assert hop.settled()[-1].header("retry-after") == "30"
    assert len(hop.settled()) == 2, "one attempt"


@pytest.mark.parametrize("kind", AGENTS, **by_name)
def test_a_used_up_budget_is_a_429_of_the_provider(lab, kind):
    mock, hop = lab.chain(policy(rules=[{"id": "rpm", "key": "tenant", "requests_per_minute": 2}]))
    agent = kind(hop.url).with_retries(0)
    with pytest.raises(agent.rate_limited):
        run(agent, LOOPS[4], rounds=3)
    refused = hop.settled()[-1]
    assert refused.status == 429
    assert "budget_exceeded" in json.dumps(json.loads(refused.answer))
    assert refused.header("ratelimit").startswith('"rpm";r=0;t=')
    assert refused.header("ratelimit-policy") == '"rpm";q=2;w=60'
    assert 0 < int(refused.header("retry-after")) <= 60
    assert len(mock.requests()) == 2


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("kind", AGENTS, **by_name)
def test_money_is_counted_from_the_usage_of_the_answer(lab, kind, stream):
    rules = [{"id": "budget", "key": "session", "cost_usd": 5.00, "on_exceed": "reject"}]
    mock, hop = lab.chain(policy(rules=rules))
    usage = {"input": 200_000_000, "output": 1_000_000}
    mock.script(*[{**turn, "usage": usage} for turn in script(LOOPS[4])])
    agent = kind(hop.url, stream=stream).with_retries(0)
    with pytest.raises(agent.rate_limited):
        run(agent, LOOPS[4], rounds=3)
    statuses = [exchange.status for exchange in hop.settled()]
    assert statuses == [200, 429]
    assert "budget_exceeded" in hop.settled()[-1].answer.decode()


def test_usage_that_only_the_gateway_wants_is_not_seen_by_the_client(lab):
    rules = [{"id": "tpm", "key": "tenant", "tokens_per_minute": 1_000_000}]
    mock, hop = lab.chain(policy(rules=rules))
    client = openai.OpenAI(base_url=f"{hop.url}/v1", api_key="k")
    asked = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "hi"}], "stream": True}
    chunks = list(client.chat.completions.create(**asked))
    assert all(chunk.choices for chunk in chunks)
    assert mock.requests()[0].json["stream_options"] == {"include_usage": True}
    chunks = list(client.chat.completions.create(**asked, stream_options={"include_usage": True}))
    assert chunks[-1].usage.total_tokens > 0


@pytest.mark.parametrize("kind", AGENTS, **by_name)
def test_a_provider_that_refuses_an_edit_gets_the_original(lab, kind):
    mock, hop = lab.chain()
    turn = {**REPEAT.turns[0], "status_if_edited": 400}
    mock.script(turn)
    run(kind(hop.url), REPEAT, rounds=5)
    exchanges, received = hop.settled(), mock.requests()
    assert [exchange.status for exchange in exchanges] == [200] * 5
    assert [request.status for request in received] == [200, 200, 200, 400, 200, 400, 200]
    for sent, edited, original in ((exchanges[3], *received[3:5]), (exchanges[4], *received[5:7])):
        hints.inserted(sent.body, edited.body)
        assert original.body == sent.body
    first, second = received[3].json, received[5].json
    hints.take_out(kind, json.loads(exchanges[3].body), first, "prepend")
    hints.take_out(kind, json.loads(exchanges[4].body), second, "extend")


def test_a_credential_never_reaches_another_provider(lab):
    mocks = {name: lab.mock() for name in ("openai", "anthropic", "gemini")}
    gateway = lab.gateway(config={"upstreams": {name: mock.url for name, mock in mocks.items()}})
    keys = {name: f"secret-of-{name}" for name in mocks}
    for kind, name in ((Chat, "openai"), (Responses, "openai"), (Anthropic, "anthropic"), (Gemini, "gemini")):
        agent = kind(gateway.url, key=keys[name])
        agent.user("hello")
        agent.ask()
    openai_client = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key=keys["openai"])
    assert [model.id for model in openai_client.models.list()] == ["gpt-mock"]
    anthropic_client = anthropic.Anthropic(base_url=gateway.url, api_key=keys["anthropic"])
    assert [model.id for model in anthropic_client.models.list()] == ["claude-mock"]
    # A bearer token for Anthropic, the other version of Gemini's path, and Gemini through the OpenAI SDK.
    bearer = anthropic.Anthropic(base_url=gateway.url, auth_token=keys["anthropic"])
    bearer.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}])
    gemini = genai.Client(api_key=keys["gemini"], http_options={"base_url": gateway.url, "api_version": "v1"})
    gemini.models.generate_content(model="m", contents="hi")
    assert [model.name for model in gemini.models.list()] == ["models/gemini-mock"]
    compatible = openai.OpenAI(base_url=f"{gateway.url}/v1beta/openai", api_key=keys["gemini"])
    compatible.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])
    counts = {name: len(mock.requests()) for name, mock in mocks.items()}
    assert counts == {"openai": 3, "anthropic": 3, "gemini": 4}
    for name, mock in mocks.items():
        requests = mock.requests()
        for request in requests:
            seen = f"{request.headers} {request.query}"
            assert [other for other in mocks if keys[other] in seen] == [name]


@pytest.mark.parametrize("kind", AGENTS, **by_name)
def test_a_session_is_known_by_its_transcript(lab, kind):
    mock, hop = lab.chain()
    mock.script(*script(LOOPS[4]))
    run(kind(hop.url), LOOPS[4], rounds=3)
    other = kind(hop.url)
    other.user("Write a poem about the sea.")
    other.ask()
    sessions = [exchange.session for exchange in hop.settled()]
    assert all(sessions)
    assert len(set(sessions[:3])) == 1
    assert sessions[3] != sessions[0]


@pytest.mark.parametrize("kind", AGENTS, **by_name)
def test_tenants_share_no_session_and_no_strikes(lab, kind):
    mock, hop = lab.chain()
    verdicts = {}
    for tenant in ("a", "b"):
        mock.script(*script(REPEAT))
        agent = kind(hop.url, key=f"key-of-{tenant}")
        with pytest.raises(agent.rate_limited):
            run(agent, REPEAT, rounds=20)
        exchanges = hop.settled()[len(verdicts.get("a", [])) :]
        verdicts[tenant] = [(exchange.verdict, exchange.session) for exchange in exchanges]
    assert [verdict for verdict, _ in verdicts["a"]] == [verdict for verdict, _ in verdicts["b"]]
    assert not {session for _, session in verdicts["a"]} & {session for _, session in verdicts["b"]}


def test_a_tenant_header_names_the_tenant_on_a_loopback_listener(lab):
    mock, hop = lab.chain()
    for tenant in ("a", "b", "a"):
        agent = Chat(hop.url, headers={"X-Tenant-ID": tenant})
        agent.user("hello")
        agent.ask()
    first, second, third = [exchange.session for exchange in hop.settled()]
    assert first != second
    assert first == third
