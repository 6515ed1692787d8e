"""Agents that try out a server from a shell: what it refuses, what it lacks, what it has not done yet."""
from __future__ import annotations

import json
import time
from urllib.parse import parse_qs, urlsplit

from recorder import Session, scenario
from tools import Site, shell

AGENT = "scripted tester of a server"


class Shop:
    """A server that answers in JSON."""

    def __init__(self) -> None:
        self.started = time.monotonic()

    def __call__(self, path: str) -> tuple[int, str]:
        parts = urlsplit(path)
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        match parts.path.strip("/").split("/"):
            case ["users", number] if number in ("1", "2", "3"):
                return 200, json.dumps({"id": int(number), "name": f"user {number}"})
            case ["users", "new"]:
                known = query.get("name", "").isalpha() and query.get("age", "").isdigit()
                return (201, json.dumps({"id": 4})) if known else (400, json.dumps({"error": "validation failed"}))
            case ["export"]:
                return 200, json.dumps({"state": "done" if time.monotonic() - self.started > 1.2 else "preparing"})
        return 404, json.dumps({"error": "not found"})


def served(play):  # type: ignore[no-untyped-def]
    """Gives a script a server and a shell that knows it as `shop:8000`."""

    def with_server(s: Session) -> None:
        site = Site(Shop())

        def run(command: str, thought: str = "") -> str:
            real = command.replace("shop:8000", f"127.0.0.1:{site.server.server_port}")
            return s.call("Bash", {"command": command}, shell(s.folder, real), thought)

        try:
            play(s, run)
        finally:
            site.close()

    with_server.__name__ = play.__name__
    return with_server


@scenario("server", AGENT, "none", "Check that the server refuses bad users.", "one refusal for each of many bad requests: that is what is tested")
@served
def tries_what_is_refused(s: Session, run) -> None:  # type: ignore[no-untyped-def]
    for query in ("", "?name=", "?name=Ann", "?age=7", "?name=Ann&age=", "?name=Ann&age=old", "?name=7&age=7", "?name=&age=7"):
        run(f"curl -s 'http://shop:8000/users/new{query}'")
    run("curl -s 'http://shop:8000/users/new?name=Ann&age=7'", "And a good one.")


@scenario("server", AGENT, "none", "Which users are there?", "each request is for another one; some are not there")
@served
def looks_up_each(s: Session, run) -> None:  # type: ignore[no-untyped-def]
    for number in (1, 2, 3, 4, 5, 6, 10, 100):
        run(f"curl -s http://shop:8000/users/{number}")
    s.say("Users 1 to 3 are there.")


@scenario("server", AGENT, "polling_legit", "Tell me when the export is done.", "a wait and a look, in two steps")
@served
def waits_and_looks(s: Session, run) -> None:  # type: ignore[no-untyped-def]
    for _ in range(40):
        run("sleep 0.2")
        if "done" in run("curl -s http://shop:8000/export | grep -o '\"state.*\"'"):
            break
    s.say("The export is done.")


@scenario("server", AGENT, "retry_legit", "Where does the server keep its settings?", "three guesses, then a search")
@served
def guesses_at_places(s: Session, run) -> None:  # type: ignore[no-untyped-def]
    (s.folder / "deploy").mkdir()
    (s.folder / "deploy" / "shop.conf").write_text("port = 8000\n")
    run("cat etc/shop.conf")
    run("cat config/shop.yaml")
    run("cat settings/main.toml")
    run("find . -name '*.conf'", "I should search instead.")
    run("cat deploy/shop.conf")


@scenario("server", AGENT, "exact", "Get user 9.", "a user who is not there is asked for again and again")
@served
def asks_for_the_same_user(s: Session, run) -> None:  # type: ignore[no-untyped-def]
    run("curl -s http://shop:8000/users/1")
    s.loop_starts()
    for thought in ("Now user 9.", "Not found? Once more.", "Perhaps now.", "Let me retry.", "It should be there.", "Again."):
        run("curl -s http://shop:8000/users/9", thought)


@scenario("server", AGENT, "near_duplicate", "Get the prices from the price service.", "a host that has no address, in ever other ways")
@served
def calls_a_host_that_is_not_there(s: Session, run) -> None:  # type: ignore[no-untyped-def]
    s.loop_starts()
    for options in ("-s", "-sS", "-sSL", "-v", "-sS --ipv4", "-sS --max-time 5", "-sS --retry 0", "-sSk"):
        run(f"curl {options} http://prices.invalid/all 2>&1 | tail -n 1")


@scenario("server", AGENT, "stagnation", "Let user 9 be found.", "a file that nobody reads is changed, the answer stays")
@served
def changes_what_nobody_reads(s: Session, run) -> None:  # type: ignore[no-untyped-def]
    s.loop_starts()
    for number in range(9):
        run(f"echo 'retries = {number}' > client.conf")
        run("curl -sf http://shop:8000/users/9", "Does it work now?")
