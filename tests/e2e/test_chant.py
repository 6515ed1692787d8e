"""A model that repeats itself without end is cut, and each SDK still gets a whole message."""

import pytest

import node
from agents import AGENTS

UNIT = "I need to check the configuration once more before going on. "
CHANT = {"text": "Let me see. ", "chant": UNIT, "copies": 400, "chunk_delay_ms": 1}
by_name = {"ids": lambda value: value.__name__}


def assert_cut(text, mock):
    assert text.startswith("Let me see. I need to check the configuration once more")
    assert len(text) < 200 * len(UNIT)
    request = mock.requests()[0]
    assert request.outcome == "dropped", "the provider was told to stop"


@pytest.mark.parametrize("kind", AGENTS, **by_name)
def test_a_chant_is_cut_and_the_stream_helper_returns_a_message(lab, kind):
    mock, hop = lab.chain()
    mock.script(CHANT)
    agent = kind(hop.url, stream=True)
    agent.user("go")
    assert_cut(agent.ask().text, mock)
    assert len(hop.settled()) == 1


@pytest.mark.parametrize("api", node.APIS)
def test_a_chant_is_cut_for_the_node_sdks(lab, api):
    mock, hop = lab.chain()
    mock.script(CHANT)
    ran = node.agent(hop.url, api, stream=True)
    assert ran["error"] is None
    assert_cut(ran["answers"][0]["text"], mock)


@pytest.mark.parametrize("kind", AGENTS, **by_name)
def test_a_list_of_like_lines_is_not_cut(lab, kind):
    mock, hop = lab.chain()
    text = "".join(f"- file {n}: checked the configuration, nothing to change\n" for n in range(120))
    mock.script({"text": text})
    agent = kind(hop.url, stream=True)
    agent.user("go")
    assert agent.ask().text == text
    assert mock.requests()[0].outcome == "answered"
