"""The SDKs accept everything that the mock provider says."""

import anthropic
import openai
import pytest
from google import genai

import node
from agents import AGENTS, Chat, Gemini

TURN = {
    "reasoning": "First I look.",
    "text": "I look – “twice”.",
    "calls": [
        {"tool": "bash", "args": {"command": "ls -la", "depth": 1.5}},
        {"tool": "read_file", "args": {"path": "größe.txt"}},
    ],
    "usage": {"input": 100, "cache_read": 20, "output": 40, "reasoning": 5},
}
ARGS = [("bash", {"command": "ls -la", "depth": 1.5}), ("read_file", {"path": "größe.txt"})]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("kind", AGENTS)
def test_an_agent_gets_text_and_parallel_calls_and_may_go_on(lab, kind, stream):
    mock = lab.mock()
    mock.script(TURN, {"text": "Done."})
    agent = kind(mock.url, stream=stream)
    agent.user("hello")
    answer = agent.ask()
    assert TURN["text"] in answer.text
    assert [(call.tool, call.args) for call in answer.calls] == ARGS
    agent.give([(call, "ok") for call in answer.calls])
    assert agent.ask().text == "Done."
    assert [request.outcome for request in mock.requests()] == ["answered"] * 2


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("api", node.APIS)
def test_a_node_agent_gets_text_and_parallel_calls_and_may_go_on(lab, api, stream):
    mock = lab.mock()
    mock.script(TURN, {"text": "Done."})
    ran = node.agent(mock.url, api, stream=stream, rounds=2)
    assert ran["error"] is None
    assert TURN["text"] in ran["answers"][0]["text"]
    assert [(call["tool"], call["args"]) for call in ran["answers"][0]["calls"]] == ARGS
    assert ran["answers"][1]["text"] == "Done."


def test_usage_is_read_by_each_sdk(lab):
    mock = lab.mock()
    mock.script(TURN)
    asked = [{"role": "user", "content": "hi"}]
    chat = openai.OpenAI(base_url=f"{mock.url}/v1", api_key="k")
    usage = chat.chat.completions.create(model="m", messages=asked).usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.prompt_tokens_details.cached_tokens) == (120, 45, 20)
    with chat.chat.completions.stream(model="m", messages=asked, stream_options={"include_usage": True}) as stream:
        assert stream.get_final_completion().usage == usage
    usage = chat.responses.create(model="m", input="hi").usage
    assert (usage.input_tokens, usage.output_tokens, usage.output_tokens_details.reasoning_tokens) == (120, 45, 5)
    claude = anthropic.Anthropic(base_url=mock.url, api_key="k")
    with claude.messages.stream(model="m", max_tokens=9, messages=asked) as stream:
        usage = stream.get_final_message().usage
    assert (usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens) == (100, 20, 45)
    gemini = genai.Client(api_key="k", http_options={"base_url": mock.url})
    usage = gemini.models.generate_content(model="m", contents="hi").usage_metadata
    assert (usage.prompt_token_count, usage.candidates_token_count, usage.thoughts_token_count) == (120, 40, 5)


def test_errors_become_the_errors_of_each_sdk(lab):
    mock = lab.mock()
    mock.script({"status": 429})
    for kind in AGENTS:
        agent = kind(mock.url).with_retries(0)
        agent.user("hello")
        with pytest.raises(agent.rate_limited) as raised:
            agent.ask()
        assert getattr(raised.value, "status_code", None) == 429 or raised.value.code == 429


def test_models_are_listed_and_unknown_paths_are_not_found(lab):
    mock = lab.mock()
    chat = openai.OpenAI(base_url=f"{mock.url}/v1", api_key="k")
    assert [model.id for model in chat.models.list()] == ["gpt-mock"]
    claude = anthropic.Anthropic(base_url=mock.url, api_key="k")
    assert [model.id for model in claude.models.list()] == ["claude-mock"]
    gemini = Gemini(mock.url)
    assert [model.name for model in gemini.client.models.list()] == ["models/gemini-mock"]
    with pytest.raises(openai.NotFoundError):
        chat.embeddings.create(model="m", input="hi")


def test_a_provider_that_breaks_off_is_an_error(lab):
    mock = lab.mock()
    mock.script({"text": "one two three", "drop_after": 2})
    agent = Chat(mock.url, stream=True).with_retries(0)
    agent.user("hello")
    with pytest.raises(Exception):
        agent.ask()
    assert mock.requests()[0].outcome == "broken"
