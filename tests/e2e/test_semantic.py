"""The same in other words is seen through the gateway, in process and by a sidecar, and nothing that fails is felt."""

import os
import signal
import subprocess
import time

import pytest

from agents import Anthropic, Chat
from loops import Course, call, run, script
from processes import LOOPBREAKER, Gateway

#: One intent, told anew each time; every answer is the same.
WORDS = [
    "Let me search the documentation for the retry setting of the client.",
    "I will search the documentation for the client's retry setting.",
    "I should look in the documentation for the retry setting of the client.",
    "Now I search the client documentation for the setting of retries.",
    "Let me look for the retry setting of the client in the documentation.",
    "I am going to search the documentation for the retry setting of the client.",
    "Searching the documentation for the retry setting of the client now.",
    "Let me search through the documentation for the client retry setting.",
]
PARAPHRASES = Course(
    "paraphrases", [{"text": words} for words in WORDS], lambda call, n: "", reply="Nothing was found there."
)
ONLY_MEANING = {
    "semantic": {"timeout": "5s", "threshold": 0.9},
    "policies": [{"id": "meaning", "spec": {"semantic": {"enabled": True, "action": "hint"}}}],
}
SENTENCE = "You seem to be repeating similar requests."


#: One order to another agent, put anew each time; every answer is another one.
ORDERS = [
    "Please scan the video of the harbour and note the times at which two birds are in the picture.",
    "Please look through the video of the harbour and note the times at which two birds are in the picture.",
    "Please scan the harbour video and write down the times at which two birds are in the picture.",
    "Please go through the video of the harbour and note the times when two birds are in the picture.",
    "Please scan the video of the harbour again and note each time at which two birds are in the picture.",
]
ANSWERS = ["I scrolled down one page.", "I clicked on `play`.", "Here is a picture of the page.", "I went back."]
ORDERED = Course(
    "orders", [call("researcher", task=words) for words in ORDERS], lambda call, n: ANSWERS[n % len(ANSWERS)]
)


def hinted(mock):
    return [SENTENCE in request.body.decode() for request in mock.requests()]


def play(mock, url, rounds=8, kind=Chat, course=PARAPHRASES):
    """One conversation of a tenant of its own; says for each of its requests whether the model was told."""
    before = len(mock.requests())
    mock.script(*script(course))
    run(kind(url, key=f"key-{before}"), course, rounds=rounds)
    return hinted(mock)[before:]


def play_until_hinted(mock, url, kind=Chat, course=PARAPHRASES):
    """The model is loaded at the first need, and what is said until then is not compared."""
    deadline = time.monotonic() + 60
    while not any(told := play(mock, url, kind=kind, course=course)):
        assert time.monotonic() < deadline, "the model was never told"
    return told


@pytest.mark.parametrize("kind", [Chat, Anthropic], ids=lambda kind: kind.__name__)
def test_the_same_intent_in_other_words_is_hinted(lab, kind):
    mock = lab.mock()
    gateway = lab.gateway(mock, ONLY_MEANING)
    told = play_until_hinted(mock, gateway.url, kind)
    assert not any(told[:3]), "two things that were said are no loop"


@pytest.mark.parametrize("kind", [Chat, Anthropic], ids=lambda kind: kind.__name__)
def test_an_order_for_the_same_is_hinted_whatever_the_worker_answers(lab, kind):
    mock = lab.mock()
    told = play_until_hinted(mock, lab.gateway(mock, ONLY_MEANING).url, kind, ORDERED)
    assert not any(told[:3]), "two orders are no loop"


def test_orders_about_different_people_are_work(lab):
    people = ["Anna", "Otto", "Ines", "Paul", "Rosa", "Emil"]
    turns = [call("researcher", task=f"Please find out where the songwriter {name} was born and when.") for name in people]
    course = Course("people", turns, lambda call, n: f"In town {n}.")
    mock = lab.mock()
    url = lab.gateway(mock, ONLY_MEANING).url
    play_until_hinted(mock, url)
    assert not any(play(mock, url, rounds=6, course=course))


def test_the_designs_literal_rule_takes_other_sessions_of_a_tenant_for_the_same_and_no_other_tenant(lab):
    """`scope: full` and `history: tenant`: one prompt like another is enough, whoever of the tenant said it."""
    literal = {**ONLY_MEANING, "semantic": {**ONLY_MEANING["semantic"], "scope": "full", "history": "tenant"}}
    mock = lab.mock()
    url = lab.gateway(mock, literal).url
    mock.script(*script(PARAPHRASES))

    def begin(key, words):
        """A session of one request; says whether the model was told."""
        agent = Chat(url, key=key)
        agent.user(words)
        agent.ask()
        return hinted(mock)[-1]

    deadline, tries = time.monotonic() + 60, 0
    while not begin(f"key-{tries}", WORDS[0]) and not begin(f"key-{tries}", WORDS[1]):
        assert time.monotonic() < deadline, "the model was never told"
        tries += 1
    assert not begin("key-of-another", WORDS[2]), "another tenant has not said that"
    assert begin("key-of-another", WORDS[0]), "its own other session has"
    assert not begin("key-of-another", "Write a short poem about the sea in winter.")


def test_the_switch_of_the_environment_turns_it_off(lab, monkeypatch):
    monkeypatch.setenv("LOOP_DETECTION_ENABLED", "false")
    mock = lab.mock()
    play(mock, lab.gateway(mock, ONLY_MEANING).url)
    assert not any(hinted(mock))


def test_a_bad_variable_stops_the_start_with_its_name(tmp_path):
    env = {**os.environ, "LOOP_SIMILARITY_THRESHOLD": "much"}
    command = [LOOPBREAKER, "serve", "--listen", "127.0.0.1:0", "--data-dir", str(tmp_path)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=20)
    assert done.returncode == 1
    assert "LOOP_SIMILARITY_THRESHOLD" in done.stderr


class Started:
    """A process that listens on a socket of its own, once the socket is there."""

    def __init__(self, socket, command, within, **how):
        self.socket = str(socket)
        self.process = subprocess.Popen(command, **how)
        deadline = time.monotonic() + within
        while not os.path.exists(self.socket):
            assert self.process.poll() is None and time.monotonic() < deadline, "it did not start"
            time.sleep(0.05)

    def stop(self):
        self.process.kill()
        self.process.wait()


def start_sidecar(folder):
    socket = folder / "embed.sock"
    return Started(socket, [LOOPBREAKER, "sidecar"], 60, env={**os.environ, "UDS_PATH": str(socket)})


def start_redis(folder):
    """A redis-server that keeps nothing on disk."""
    socket = folder / "redis.sock"
    command = ["redis-server", "--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", str(folder)]
    return Started(socket, command, 20, stdout=subprocess.DEVNULL)


def with_sidecar(socket, timeout="5s"):
    return {**ONLY_MEANING, "semantic": {"backend": "sidecar", "sidecars": [socket], "timeout": timeout, "threshold": 0.9}}


@pytest.mark.parametrize("course", [PARAPHRASES, ORDERED], ids=lambda course: course.name)
def test_a_sidecar_finds_the_same(lab, tmp_path, course):
    sidecar = lab._keep(start_sidecar(tmp_path))
    mock = lab.mock()
    told = play_until_hinted(mock, lab.gateway(mock, with_sidecar(sidecar.socket)).url, course=course)
    assert not any(told[:3]), "two of them are no loop"


@pytest.mark.parametrize("course", [PARAPHRASES, ORDERED], ids=lambda course: course.name)
def test_a_store_on_redis_finds_the_same(lab, tmp_path, course):
    redis = lab._keep(start_redis(tmp_path))
    mock = lab.mock()
    stored = {**ONLY_MEANING, "semantic": {**ONLY_MEANING["semantic"], "store": f"redis+unix://{redis.socket}"}}
    told = play_until_hinted(mock, lab.gateway(mock, stored).url, course=course)
    assert not any(told[:3]), "two of them are no loop"


@pytest.mark.parametrize("fault", ["stopped", "killed"])
def test_a_sidecar_that_fails_is_not_felt(lab, tmp_path, fault):
    sidecar = lab._keep(start_sidecar(tmp_path))
    mock = lab.mock()
    gateway = lab.gateway(mock, with_sidecar(sidecar.socket, "50ms"))
    sidecar.process.send_signal(signal.SIGSTOP if fault == "stopped" else signal.SIGKILL)
    mock.script(*script(PARAPHRASES))
    agent = Chat(gateway.url)
    agent.user("Find the setting.")
    agent.ask()
    took = []
    for _ in range(6):
        agent.user("Nothing was found there.")
        before = time.monotonic()
        agent.ask()
        took.append(time.monotonic() - before)
    assert max(took) < 1.0, took
    assert len(mock.requests()) == 7
    if fault == "stopped":
        sidecar.process.send_signal(signal.SIGCONT)
