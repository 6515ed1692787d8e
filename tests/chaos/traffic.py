"""Agents at work: steady traffic over keep-alive connections, spread round-robin over every gateway that is well."""

import http.client
import itertools
import json
import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field

from servers import Mock

#: Nobody waits longer than this for an answer.
PATIENCE = 30.0
#: A looping agent makes one call again and again. So many repetitions are in the transcript that is first hinted,
#: and in the one that is refused.
HINTED_AT, REFUSED_AT = 3, 6
#: A looping agent that nobody stops gives up here.
GIVES_UP_AT = 40
PATH = "/v1/chat/completions"
#: The tenant of those who say the same in other words.
MEANING = "meaning"


@dataclass
class Asked:
    """A request that was answered."""

    began: float
    seconds: float
    verdict: str
    status: int


@dataclass
class Run:
    """A looping agent from its first request to its refusal."""

    began: float
    asked: list = field(default_factory=list)
    #: What it was answered, request by request.
    verdicts: list = field(default_factory=list)
    sessions: set = field(default_factory=set)
    hinted_at: int | None = None
    refused_at: int | None = None


class Book:
    """What all clients have seen."""

    def __init__(self):
        self.lock = threading.Lock()
        self.asked, self.runs = [], []
        self.sent = 0
        self.lost, self.mistaken = [], []
        #: Begun at the very gateway that was killed then, and asked again elsewhere.
        self.broken_off = 0
        self.provider_errors, self.breaker = 0, 0
        self.meant_hints = []

    def lose(self, why):
        with self.lock:
            self.lost.append(why)


class Balancer:
    """Which gateway is asked next: round-robin over those that are well, as a load balancer does it."""

    def __init__(self, gateways):
        self.gateways = gateways
        self.well = {gateway.name: True for gateway in gateways}
        self.turn = itertools.count()

    def next(self):
        turn = next(self.turn)
        well = [gateway for gateway in self.gateways if self.well[gateway.name]] or self.gateways
        return well[turn % len(well)]


class Client:
    """One thread's connections, one to each gateway."""

    def __init__(self, traffic):
        self.traffic, self.book = traffic, traffic.book
        self.open = {}

    def ask(self, body, headers, streamed):
        """Sends a request until somebody answers it; `None` when it was lost."""
        book, balancer = self.book, self.traffic.balancer
        with book.lock:
            book.sent += 1
        deadline = time.monotonic() + PATIENCE
        while True:
            gateway = balancer.next()
            began = time.monotonic()
            try:
                connection = self.open.get(gateway.name) or self.connect(gateway)
            except OSError as error:
                # Nobody is there, so nothing was sent: the next one is asked.
                balancer.well[gateway.name] = False
                if time.monotonic() > deadline:
                    book.lose(f"nobody could be reached: {error}")
                    return None
                time.sleep(0.02)
                continue
            try:
                connection.request("POST", PATH, body, headers)
                answer = connection.getresponse()
                text = answer.read()
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                self.open.pop(gateway.name, None)
                killed = self.traffic.victims.get(gateway.name)
                if killed is not None:
                    balancer.well[gateway.name] = False
                    # Who comes later only finds that the connection is closed, and nothing was sent.
                    with book.lock:
                        book.broken_off += began <= killed
                    continue
                book.lose(f"{gateway.name}: {type(error).__name__} {error} after {time.monotonic() - began:.2f} s")
                return None
            verdict = answer.getheader("x-loopbreaker-verdict", "none")
            asked = Asked(began, time.monotonic() - began, verdict, answer.status)
            return asked, answer, self.joined(text) if streamed and answer.status == 200 else text

    def connect(self, gateway):
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=PATIENCE)
        connection.connect()
        self.open[gateway.name] = connection
        return connection

    @staticmethod
    def joined(text):
        """What a stream said, if it came to its end."""
        events = [line[6:] for line in text.split(b"\n") if line.startswith(b"data: ")]
        if not events or events[-1] != b"[DONE]":
            return b""
        said = [json.loads(event)["choices"] for event in events[:-1]]
        return "".join(one[0]["delta"].get("content") or "" for one in said if one).encode()


class Traffic:
    """Threads that are agents, until they are told to stop."""

    def __init__(self, gateways, rate, threads, reworders):
        self.book, self.balancer = Book(), Balancer(gateways)
        #: Gateways that were killed on purpose, and when.
        self.victims = {}
        self.stopping = threading.Event()
        # Numbers of six digits: one such as 503 in a result would be taken for a failure in passing.
        self.numbers = itertools.count(100_001)
        self.pace = threads / rate
        works = [self.loop if at % 3 == 0 else self.work for at in range(threads)] + [self.reword] * reworders
        lives = [(work, at) for at, work in enumerate(works)]
        self.threads = [threading.Thread(target=self.live, args=life, daemon=True) for life in lives]

    def start(self):
        for thread in self.threads:
            thread.start()

    def stop(self):
        """Everybody ends what they have begun to ask."""
        self.stopping.set()
        for thread in self.threads:
            thread.join(PATIENCE + 5)
            if thread.is_alive():
                self.book.lose("a client never got its answer")

    def live(self, work, at):
        client = Client(self)
        luck = random.Random(at)
        # Not everybody begins at once.
        self.stopping.wait(self.pace * luck.random())
        while not self.stopping.is_set():
            try:
                work(client, luck)
            except Exception as error:  # A client that dies would be a loss that nobody counts.
                self.book.lose(f"a client gave up: {type(error).__name__} {error}")

    def ask(self, client, messages, luck, tenant):
        """One request. What comes back is the provider's own, or a verdict, or it is lost."""
        streamed = luck.random() < 0.25
        body = {"model": "gpt-4o-mini", "messages": messages, "stream": streamed}
        headers = {"authorization": "Bearer sk-chaos", "content-type": "application/json", "x-tenant-id": tenant}
        began = time.monotonic()
        got = client.ask(json.dumps(body), headers, streamed)
        # The next one is due when it is due, not when this one was answered.
        due = began + self.pace * (0.75 + luck.random() / 2)
        self.stopping.wait(max(0.0, due - time.monotonic()))
        if got is None:
            return None
        asked, answer, text = got
        book = self.book
        if answer.status == 200:
            if Mock.WORDS.encode() not in text:
                book.lose(f"200, but not what the provider said: {text[:120]!r}")
                return None
        elif asked.verdict != "reject" and answer.status >= 500:
            of_provider = answer.getheader("openai-version") is not None
            with book.lock:
                if of_provider:
                    book.provider_errors += 1
                else:
                    book.breaker += 1
            if not of_provider and not (answer.status == 503 and answer.getheader("retry-after")):
                book.lose(f"{answer.status} of our own: {text[:160]!r}")
            return None
        elif asked.verdict != "reject":
            book.lose(f"{answer.status} {asked.verdict}: {text[:160]!r}")
            return None
        with book.lock:
            book.asked.append(asked)
        return asked, answer

    def work(self, client, luck):
        """A healthy agent: every call is another one, and brings something new."""
        number, tenant = next(self.numbers), f"tenant-{luck.randrange(8)}"
        messages = begin(f"Task {number}: read the files of module {luck.choice(WORDS)}.")
        for turn in range(12):
            asked = self.ask(client, messages, luck, tenant)
            if asked and (asked[0].verdict not in ("allow", "warn") or asked[0].status != 200):
                loop = asked[1].getheader("x-loopbreaker-loop")
                with self.book.lock:
                    self.book.mistaken.append(f"healthy turn {turn}: {asked[0].verdict} {loop}")
            if self.stopping.is_set():
                return
            path = f"src/{luck.choice(WORDS)}_{number}_{turn}.rs"
            found = " ".join(luck.choices(WORDS, k=12))
            messages += call(turn, "read_file", {"path": path}, f"{turn * number}: {found}")

    def loop(self, client, luck):
        """An agent that makes the same call again and again until it is refused."""
        number, tenant = next(self.numbers), f"tenant-{luck.randrange(8)}"
        messages = begin(f"Build {number} is broken: mend it.")
        run = Run(time.monotonic())
        repeated = 0
        while repeated <= GIVES_UP_AT:
            asked = self.ask(client, messages, luck, tenant)
            if self.stopping.is_set():
                return
            if asked is None:
                # It was told to come back, and asks the same again.
                run.asked.append(time.monotonic())
                run.verdicts.append("unanswered")
                continue
            asked, answer = asked
            run.asked.append(asked.began)
            run.verdicts.append(asked.verdict)
            run.sessions.add(answer.getheader("x-loopbreaker-session"))
            if asked.verdict in ("hint", "throttle", "reject") and run.hinted_at is None:
                run.hinted_at = repeated
            if asked.verdict == "reject":
                run.refused_at = repeated
                break
            messages += call(repeated, "bash", {"command": "make all"}, f"make: *** no rule to make target {number}")
            repeated += 1
        with self.book.lock:
            self.book.runs.append(run)

    def reword(self, client, luck):
        """An agent that says the same in other words, for the detector that compares meanings."""
        messages = begin(f"Look after service {luck.choice(WORDS)}, run {next(self.numbers)}.")
        for words in luck.sample(REWORDED, len(REWORDED)):
            messages.append({"role": "assistant", "content": words})
            messages.append({"role": "user", "content": "Nothing has changed."})
            asked = self.ask(client, messages, luck, MEANING)
            with self.book.lock:
                # The detector of tool loops knows the words as well, so the ladder may have gone on from the hint.
                if asked and asked[0].verdict not in ("allow", "warn"):
                    self.book.meant_hints.append(asked[0].began)
            self.stopping.wait(0.7)
            if self.stopping.is_set():
                return


def begin(task):
    return [{"role": "system", "content": "You are a careful engineer."}, {"role": "user", "content": task}]


def call(number, tool, arguments, result):
    function = {"name": tool, "arguments": json.dumps(arguments)}
    calls = [{"id": f"call_{number}", "type": "function", "function": function}]
    return [
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": f"call_{number}", "content": result},
    ]


def quantiles(seconds):
    """Median, 99th percentile and maximum, in milliseconds."""
    ordered = sorted(seconds)
    if not ordered:
        return None
    at = lambda share: ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000
    return at(0.5), at(0.99), ordered[-1] * 1000


def reasons(texts):
    """Equal reasons once, with their number."""
    return [f"{count} × {text}" for text, count in Counter(texts).most_common(5)]


WORDS = (
    "account adapter answer batch branch buffer cache channel column commit config cursor decode deploy digest driver "
    "encode entry export fallback field filter folder format handler header index insert invoice kernel ledger lookup "
    "method migrate module offset option packet parser payload policy query record region report schema server socket"
).split()
REWORDED = [
    "Let me check the deployment status of the billing service now.",
    "Let me check the status of the billing service deployment now.",
    "Now let me check the deployment status of the billing service.",
    "I will check the deployment status of the billing service now.",
    "I check the billing service deployment status now.",
    "Let me now check the deployment status of the billing service.",
]
