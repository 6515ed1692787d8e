"""An answer that is given again is a whole answer to every SDK, and the provider is not asked for it."""

import pytest

import node
from agents import AGENTS, Chained

CACHE = {"policies": [{"id": "answers", "spec": {"cache": {"enabled": True}}}]}
by_name = {"ids": lambda value: value.__name__}


def ask(kind, url, stream, words="What is the answer?"):
    agent = kind(url, stream=stream)
    agent.user(words)
    return agent.ask()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("kind", AGENTS, **by_name)
def test_an_equal_request_is_answered_again_for_each_sdk(lab, kind, stream):
    mock = lab.mock()
    gateway = lab.gateway(mock, CACHE)
    mock.script({"text": "It is 42, of course."}, {"text": "another answer"})
    first = ask(kind, gateway.url, stream)
    again = ask(kind, gateway.url, stream)
    assert (first.text, again.text) == ("It is 42, of course.",) * 2
    assert len(mock.requests()) == 1
    assert ask(kind, gateway.url, stream, "And now?").text == "another answer"


@pytest.mark.parametrize("kind", AGENTS, **by_name)
def test_calls_of_tools_that_read_are_answered_again_and_others_are_not(lab, kind):
    mock = lab.mock()
    gateway = lab.gateway(mock, CACHE)
    read = {"calls": [{"tool": "read_file", "args": {"input": "a.txt"}}]}
    write = {"calls": [{"tool": "write_file", "args": {"input": "a.txt"}}]}
    mock.script(read, write)
    for _ in range(2):
        assert [call.tool for call in ask(kind, gateway.url, True, "Look.").calls] == ["read_file"]
    assert len(mock.requests()) == 1
    for asked in (2, 3):
        assert [call.tool for call in ask(kind, gateway.url, True, "Change it.").calls] == ["write_file"]
        assert len(mock.requests()) == asked


@pytest.mark.parametrize("kind", AGENTS, **by_name)
def test_a_stream_that_is_given_again_has_the_same_bytes(lab, kind):
    mock, hop = lab.chain(CACHE)
    mock.script({"text": "One, two, three and so on until the end of it."})
    ask(kind, hop.url, True)
    ask(kind, hop.url, True)
    first, again = hop.settled()
    assert first.answer == again.answer
    assert len(mock.requests()) == 1


@pytest.mark.parametrize("api", node.APIS)
def test_a_stream_is_given_again_to_the_node_sdks(lab, api):
    mock = lab.mock()
    gateway = lab.gateway(mock, CACHE)
    mock.script({"text": "It is 42."}, {"text": "another answer"})
    for _ in range(2):
        ran = node.agent(gateway.url, api, stream=True)
        assert ran["error"] is None
        assert ran["answers"][0]["text"] == "It is 42."
    assert len(mock.requests()) == 1


def test_a_response_that_was_given_again_can_be_named(lab):
    mock, hop = lab.chain(CACHE)
    mock.script({"text": "It is 42."}, {"text": "I said so."})
    ask(Chained, hop.url, False)
    agent = Chained(hop.url)
    agent.user("What is the answer?")
    agent.ask()
    assert len(mock.requests()) == 1
    agent.user("Are you sure?")
    assert agent.ask().text == "I said so."
    again, onward = hop.settled()[1:]
    assert again.header("x-loopbreaker-cache").startswith("hit; age=")
    assert onward.session == again.session, "the conversation goes on from what was given again"
