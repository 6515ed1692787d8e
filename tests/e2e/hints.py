"""Where a hint stands, and that nothing else has changed."""

import copy


def inserted(sent, received):
    """The bytes that were put into a body; everything else must be as it was sent."""
    prefix = 0
    while prefix < len(sent) and sent[prefix] == received[prefix]:
        prefix += 1
    suffix = len(sent) - prefix
    assert suffix == 0 or received.endswith(sent[-suffix:]), "more was changed than one place"
    assert len(received) > len(sent), "nothing was put in"
    return received[prefix : len(received) - suffix]


def take_out(agent, sent, received, placement="prepend"):
    """The hint in a request. `received` without it must be what was sent."""
    received = copy.deepcopy(received)
    hint = PLACES[placement][agent.__name__](sent, received)
    assert received == sent
    assert len(hint) > 20
    return hint


def added_to_text(container, key, sent, at_start):
    """A text that was put to another one, or stands alone where there was none."""
    text = container[key]
    if key not in sent:
        del container[key]
        return text
    container[key] = sent[key]
    if at_start:
        assert text.endswith(sent[key])
        return text.removesuffix(sent[key])
    assert text.startswith(sent[key])
    return text.removeprefix(sent[key])


def chat_prepend(sent, received):
    hint = received["messages"].pop(0)
    assert hint["role"] == "system"
    return hint["content"]


def chat_extend(sent, received):
    return added_to_text(received["messages"][0], "content", sent["messages"][0], at_start=False)


def chat_append(sent, received):
    hint = received["messages"].pop()
    assert hint["role"] == "user", "only api.openai.com takes a system message at the end"
    return hint["content"]


def instructions(sent, received):
    return added_to_text(received, "instructions", sent, at_start=False)


def last_item(sent, received):
    hint = received["input"].pop()
    content = hint["content"]
    return content if isinstance(content, str) else content[0]["text"]


def anthropic_prepend(sent, received):
    return added_to_text(received, "system", sent, at_start=True)


def anthropic_extend(sent, received):
    return added_to_text(received, "system", sent, at_start=False)


def anthropic_append(sent, received):
    hint = received["messages"][-1]["content"].pop()
    assert hint["type"] == "text"
    return hint["text"]


def gemini_prepend(sent, received):
    hint = received["systemInstruction"]["parts"].pop(0)
    if "systemInstruction" not in sent:
        assert received.pop("systemInstruction")["parts"] == []
    return hint["text"]


def gemini_extend(sent, received):
    part, before = received["systemInstruction"]["parts"][0], sent["systemInstruction"]["parts"][0]
    return added_to_text(part, "text", before, at_start=False)


def gemini_append(sent, received):
    return received["contents"][-1]["parts"].pop()["text"]


PLACES = {
    "prepend": {
        "Chat": chat_prepend,
        "Responses": instructions,
        "Chained": instructions,
        "Anthropic": anthropic_prepend,
        "Gemini": gemini_prepend,
    },
    "extend": {
        "Chat": chat_extend,
        "Responses": instructions,
        "Chained": instructions,
        "Anthropic": anthropic_extend,
        "Gemini": gemini_extend,
    },
    "append": {
        "Chat": chat_append,
        "Responses": last_item,
        "Chained": last_item,
        "Anthropic": anthropic_append,
        "Gemini": gemini_append,
    },
}
