"""What agents decide through the gateway is seen, and a person can really stop one."""

import hashlib
import json
import threading

import openai
import pytest

from agents import AGENTS, Anthropic, Chat, Gemini, Responses
from loops import HEALTHY, LOOPS, run, script
from operator_api import Api, Events, until
from processes import Gateway

REPEAT = LOOPS[0]
by_name = {"ids": lambda value: value.__name__}
WATCH_ONLY = {"policies": [{"id": "watch", "spec": {"tool_loops": {"enabled": True, "ladder": ["warn"]}}}]}


class Runner(threading.Thread):
    """An agent that goes on until its model has nothing more to call."""

    def __init__(self, agent):
        super().__init__(daemon=True)
        self.agent, self.rounds, self.said, self.failed = agent, 0, None, None
        self.stopping = False

    def run(self):
        self.agent.user("Find out why the build fails, and fix it.")
        try:
            while not self.stopping:
                answer = self.agent.ask()
                self.rounds += 1
                if not answer.calls:
                    self.said = answer.text
                    return
                self.agent.give([(call, REPEAT.result(call, 0)) for call in answer.calls])
        except Exception as failed:
            self.failed = failed


def test_a_looping_agent_is_seen_paused_helped_and_ends_well(lab):
    mock = lab.mock()
    mock.script(*script(REPEAT))
    gateway = lab.gateway(mock, WATCH_ONLY)
    api = Api(gateway.url)
    events = Events(api)
    runner = Runner(Chat(gateway.url, headers={"X-Agent-ID": "fixer", "X-Session-ID": "run-17"}))
    runner.start()

    alert = events.wait_for("entropy_alert")
    assert alert.topic == "gateway:entropy_alerts"
    assert set(alert.body) == {
        "event_type", "session_id", "agent_id", "entropy_score", "window_size", "repeated_pattern", "occurrence_count",
    }
    assert (alert.body["session_id"], alert.body["agent_id"]) == ("run-17", "fixer")
    finding = events.wait_for("finding", lambda body: body["finding"]["kind"] == "repeat")
    assert finding.body["session_id"] == "run-17"

    paused = api.order("run-17", "pause", reason="it goes round in circles")
    assert paused["state"] == "paused"
    # The call that is under way may still come back; the next one is held.
    until(lambda: api.get("/sessions/run-17")["state"] == "paused")
    until(lambda: gateway.held() == 1)
    asked = len(mock.requests())
    graph = api.get("/sessions/run-17/graph")
    assert any(node["tool_call"] == "bash" for node in graph["nodes"])
    checked = api.call("POST", "/guard/check", {"session_id": "run-17", "tool": "bash", "args": {"command": "ls"}})[1]
    assert (checked["allowed"], checked["paused"]) == (False, True)

    mock.script({"text": "The build needs parser.h; I ask for it."})
    api.order("run-17", "inject", message="You have listed src often enough: say what is missing.")
    assert len(mock.requests()) == asked, "an injected message is no approval"
    api.order("run-17", "resume")
    runner.join(20)
    assert runner.said == "The build needs parser.h; I ask for it.", runner.failed
    last = mock.requests()[-1].body.decode()
    assert "[Operator] You have listed src often enough" in last

    actions = [entry["action"] for entry in api.get("/audit")["entries"]]
    assert actions[-3:] == ["pause", "inject", "resume"]
    hitl = [told.body["order"] for told in events.told if told.kind == "hitl"]
    assert hitl == ["pause", "inject", "resume"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("kind", AGENTS, **by_name)
def test_each_tool_call_becomes_one_log_with_its_result(lab, kind, stream):
    course = HEALTHY[1]
    mock = lab.mock()
    mock.script(*script(course))
    gateway = lab.gateway(mock)
    agent = kind(gateway.url, stream=stream, headers={"X-Session-ID": "paging"})
    run(agent, course, rounds=4)
    mock.script({"text": "All pages were read."})
    assert agent.ask().text == "All pages were read."

    api = Api(gateway.url)
    steps = until(lambda: (found := api.steps("paging")) and len(found) == 5 and found)
    logs = [step["log"] for step in steps]
    assert [log["action"]["status"] for log in logs] == ["success"] * 5
    assert [json.loads(log["action"]["tool_input"]) for log in logs[:4]] == [{"page": n} for n in range(1, 5)]
    assert "page 4: item-9" in logs[3]["action"]["tool_output_summary"]
    assert "All pages were read." in logs[4]["action"]["tool_output_summary"]
    parents = [log["meta"].get("parent_step_id") for log in logs]
    assert parents == [None, *[log["meta"]["trace_id"] for log in logs[:4]]]
    session = api.get("/sessions/paging")
    assert session["tokens"] > 0 and session["cost_usd"] > 0
    assert session["state"] == "active"


def test_a_transcript_that_comes_again_writes_nothing_twice(lab):
    mock = lab.mock()
    mock.script(*script(HEALTHY[1]))
    gateway = lab.gateway(mock)
    api = Api(gateway.url)
    agent = Chat(gateway.url, headers={"X-Session-ID": "again"})
    run(agent, HEALTHY[1], rounds=3)
    until(lambda: len(api.steps("again")) == 3)
    messages = list(agent.messages)
    for _ in range(2):
        agent.messages = list(messages)
        agent.ask()
    agent.messages = list(messages)
    # Its calls are known, so each new answer is all that is new.
    steps = until(lambda: (found := api.steps("again")) and len(found) >= 5 and found)
    assert len({step["log"]["meta"]["trace_id"] for step in steps}) == len(steps)
    completed = [step for step in steps if step["log"]["action"]["status"] == "success"]
    assert len(completed) == 3


@pytest.mark.parametrize("kind", [Chat, Responses, Anthropic, Gemini], **by_name)
def test_a_rewritten_result_is_what_the_model_sees_from_then_on(lab, kind):
    mock = lab.mock()
    mock.script(*script(HEALTHY[1]))
    gateway = lab.gateway(mock)
    api = Api(gateway.url)
    agent = kind(gateway.url, headers={"X-Session-ID": "rewritten"})
    run(agent, HEALTHY[1], rounds=3)
    mock.script({"text": "I see."})
    steps = until(lambda: (found := api.steps("rewritten")) and len(found) == 3 and found)
    second = steps[1]["log"]["meta"]["trace_id"]
    api.order("rewritten", "rewrite", trace_id=second, content="page 2 is empty")
    unknown = {"trace_id": "3f2a9c1e-7b54-4e0d-9a61-0c5d8e2f7a10", "content": "x"}
    assert api.call("POST", "/sessions/rewritten/rewrite", unknown)[0] == 404
    for _ in range(2):
        agent.ask()
        agent.user("Go on.")
        sent = mock.requests()[-1].body.decode()
        assert "page 2 is empty" in sent
        assert "page 2: item-3" not in sent
        assert "page 1: item-0" in sent and "page 3: item-6" in sent


def test_a_pause_survives_a_restart(lab, tmp_path):
    mock = lab.mock()
    mock.script({"text": "hello"})
    config = {"pause": {"hold": "1s"}}
    gateway = lab.gateway(mock, config)
    api = Api(gateway.url)
    agent = Chat(gateway.url, headers={"X-Session-ID": "kept"})
    agent.user("hi")
    agent.ask()
    until(lambda: api.call("GET", "/sessions/kept")[0] == 200)
    api.order("kept", "pause", reason="wait for me")
    gateway.stop()

    again = lab.again(gateway, mock, config)
    asked = len(mock.requests())
    agent = Chat(again.url, headers={"X-Session-ID": "kept"}).with_retries(0)
    agent.user("hi again")
    with pytest.raises(openai.RateLimitError):
        agent.ask()
    assert len(mock.requests()) == asked
    Api(again.url).order("kept", "resume")
    agent.ask()


def test_a_refused_call_is_skipped_in_the_log_and_seen_in_the_session(lab):
    mock = lab.mock()
    mock.script(*script(REPEAT))
    gateway = lab.gateway(mock)
    api = Api(gateway.url)
    agent = Chat(gateway.url, headers={"X-Session-ID": "stopped"}).with_retries(0)
    with pytest.raises(openai.RateLimitError):
        run(agent, REPEAT, rounds=12)
    skipped = until(
        lambda: [step for step in api.steps("stopped") if step["log"]["action"]["status"] == "skipped"]
    )
    assert "loop_detected" in skipped[0]["log"]["action"]["tool_output_summary"]
    session = api.get("/sessions/stopped")
    assert session["state"] == "loop"
    assert [finding["kind"] for finding in session["findings"] if finding["detector"] == "redundancy"] == ["repeat"]


def test_tokens_have_roles_and_a_cookie_stands_for_one(lab):
    def sha256(text):
        return hashlib.sha256(text.encode()).hexdigest()

    mock = lab.mock()
    mock.script({"text": "hello"})
    tokens = [{"role": "operator", "sha256": sha256("op")}, {"role": "viewer", "sha256": sha256("view")}]
    gateway = lab.gateway(mock, {"admin": {"tokens": tokens}})
    agent = Chat(gateway.url, headers={"X-Session-ID": "run-1"})
    agent.user("hi")
    agent.ask()
    nobody, viewer, operator = Api(gateway.url), Api(gateway.url, "view"), Api(gateway.url, "op")
    until(lambda: viewer.call("GET", "/sessions/run-1")[0] == 200)
    assert nobody.call("GET", "/sessions")[0] == 401
    assert Api(gateway.url, "guess").call("GET", "/sessions")[0] == 401
    assert viewer.get("/whoami")["role"] == "viewer"
    assert viewer.call("POST", "/sessions/run-1/pause", {"reason": "x"})[0] == 403
    assert operator.order("run-1", "pause", reason="x")["state"] == "paused"
    assert operator.get("/audit")["entries"][-1]["operator"] == f"operator-{sha256('op')[:8]}"

    import urllib.request

    login = urllib.request.Request(f"{gateway.url}/api/v1/login", b'{"token":"op"}', method="POST")
    with urllib.request.urlopen(login, timeout=10) as answer:
        cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and "op;" not in cookie
    kept = cookie.split(";")[0]
    assert nobody.call("POST", "/sessions/run-1/resume", {}, {"Cookie": kept})[0] == 200
    foreign = {"Cookie": kept, "Origin": "https://evil.example"}
    assert nobody.call("POST", "/sessions/run-1/pause", {}, foreign)[0] == 403
    assert nobody.call("POST", "/login", {"token": "guess"})[0] == 401


def test_the_gateway_goes_on_when_the_store_cannot_be_opened(lab, tmp_path):
    mock = lab.mock()
    mock.script({"text": "hello"})
    data = tmp_path / "broken"
    data.mkdir()
    (data / "decisions.db").write_bytes(b"this is no database" * 1000)
    gateway = lab._keep(Gateway(tmp_path, "broken-store", {}, mock.url, data))
    agent = Chat(gateway.url)
    agent.user("hi")
    assert agent.ask().text == "hello"
    ready = gateway.ready()
    assert ready["status"] == "degraded" and "store" in ready["degraded"]
    assert Api(gateway.url).call("GET", "/sessions")[0] == 503


def test_budgets_are_shown_against_their_limits(lab):
    mock = lab.mock()
    mock.script({"text": "hello"})
    rule = {"id": "run", "key": "session", "cost_usd": 0.5, "warn_at": 0.8, "on_exceed": "pause"}
    gateway = lab.gateway(mock, {"policies": [{"id": "agents", "spec": {"rules": [rule]}}]})
    agent = Chat(gateway.url, headers={"X-Session-ID": "run-1"})
    agent.user("hi")
    agent.ask()
    api = Api(gateway.url)
    spent = until(lambda: api.call("GET", "/sessions/run-1")[1].get("cost_usd"))
    (budget,) = api.get("/budgets")["budgets"]
    assert (budget["policy"], budget["rule"], budget["value"], budget["state"]) == ("agents", "run", "run-1", "ok")
    assert (budget["limit_usd"], budget["used_usd"]) == (0.5, pytest.approx(spent))


def test_the_probe_says_whether_a_loop_would_be_stopped(lab):
    mock = lab.mock()
    probed = Api(lab.gateway(mock).url).call("POST", "/probe", {})[1]
    assert (probed["alive"], probed["enforced"]) == (True, True)
    assert [request["verdict"] for request in probed["requests"]] == [
        "allow", "allow", "warn", "hint", "hint", "throttle", "reject",
    ]
    shadow = Api(lab.gateway(mock, {"global_shadow": True}).url).call("POST", "/probe", {})[1]
    assert (shadow["alive"], shadow["enforced"]) == (True, False)
    assert mock.requests() == []
