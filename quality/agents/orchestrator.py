"""Agents that give orders to others, and agents that talk: work that is handed on, and talk that goes round."""
from __future__ import annotations

from datetime import datetime, timezone

from recorder import Session, scenario
from tools import shell

AGENT = "scripted orchestrator"
TALK = "scripted group of agents"


def library(s: Session) -> None:
    """A few documents that a worker can really look into."""
    for number, name in enumerate(("harbour", "bridge", "tower", "market", "station", "museum")):
        (s.folder / f"{name}.txt").write_text(f"The {name} was opened in {1880 + 7 * number}.\nIt has {3 + number} entrances.\n")


def order(s: Session, text: str, answer: str, thought: str = "") -> str:
    return s.call("ask_worker", {"worker": "researcher", "task": text}, answer, thought, role="orchestrator")


def look_up(s: Session, name: str, words: str) -> str:
    found = shell(s.folder, f"grep -h '{words}' {name}.txt 2>&1").strip()
    return f"I looked into {name}.txt. {found}"


@scenario("orchestrator", AGENT, "none", "When was each building opened?", "one order in the same words for different buildings")
def asks_about_each(s: Session) -> None:
    library(s)
    for name in ("harbour", "bridge", "tower", "market", "station", "museum"):
        order(s, f"Please find out in which year the {name.title()} was opened, and tell me the sentence that says so.", look_up(s, name, "opened"))
    s.say("All six are known.", role="orchestrator")


@scenario("orchestrator", AGENT, "retry_legit", "A short note about the bridge.", "the order changes with what came back")
def refines_an_order(s: Session) -> None:
    library(s)
    order(s, "Write one sentence about the bridge.", look_up(s, "bridge", "bridge"))
    order(s, "Good. Add how many entrances it has.", look_up(s, "bridge", "entrances"))
    order(s, "Compare its year with that of the tower.", look_up(s, "tower", "opened"))
    order(s, "Put the three sentences together and count their words.", shell(s.folder, "cat bridge.txt tower.txt | wc -w"))
    s.say("The note is ready.", role="orchestrator")


@scenario("orchestrator", AGENT, "polling_legit", "Have the archive indexed.", "the worker reports progress")
def waits_for_a_worker(s: Session) -> None:
    order(s, "Please start to index the archive.", "I have started.")
    for percent in (15, 30, 55, 70, 90):
        order(s, "How far is the index of the archive by now?", f"It is {percent} % done, I go on.")
    order(s, "How far is the index of the archive by now?", "It is complete: 6 documents.")
    s.say("The archive is indexed.", role="orchestrator")


@scenario("orchestrator", TALK, "none", "Agree on a name for the boat.", "each answer brings something new")
def agrees_on_a_name(s: Session) -> None:
    for role, text in (
        ("planner", "I suggest Swallow. What do you think?"), ("critic", "Swallow is taken by the yacht next to us."),
        ("planner", "Then Heron, which stands in shallow water as we do."), ("critic", "Heron is good. Is it easy to say over the radio?"),
        ("planner", "Two clear syllables. The harbour office confirms that it is free."), ("critic", "Then I agree: Heron."),
    ):
        s.say(text, role=role)


@scenario("orchestrator", AGENT, "semantic", "When was the lighthouse opened?", "one order in other words, one answer: there is no such document")
def gives_the_same_order(s: Session) -> None:
    library(s)
    s.loop_starts()
    for text in (
        "Please find out in which year the lighthouse was opened.", "Find out the year in which the lighthouse was opened, please.",
        "Please look up in which year the lighthouse was opened.", "I need the year in which the lighthouse was opened. Please find it out.",
        "Please find out the year the lighthouse was opened in.", "Once more: please find out in which year the lighthouse was opened.",
    ):
        order(s, text, look_up(s, "lighthouse", "opened"), "The answer is still missing.")


@scenario("orchestrator", AGENT, "semantic", "Describe the video.", "the same order, and an answer that differs only in its time and words")
def orders_what_nobody_can(s: Session) -> None:
    s.loop_starts()
    answers = (
        "I cannot play videos, I only see the first frame of the page.", "Playing videos is not possible for me, I only see the first frame of the page.",
        "I am not able to play videos; what I see is the first frame of the page.", "I cannot play the video. I see only the first frame of the page.",
        "Videos cannot be played by me, only the first frame of the page is there.", "I still cannot play videos, I only see the first frame of the page.",
    )
    orders = (
        "Please watch the whole video and describe what happens in it from start to end.", "Please watch the video from start to end and describe what happens in it.",
        "Watch the whole video please, and describe from start to end what happens in it.", "Please describe what happens in the whole video, watch it from start to end.",
        "Please watch the whole video again and describe what happens from start to end.", "Please watch the whole video and describe what happens in it from the start to the end.",
    )
    for text, answer in zip(orders, answers):
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        order(s, text, f"[{now}] {answer}")


@scenario("orchestrator", TALK, "chanting", "Write the parser.", "each asks the other for what neither has")
def asks_each_other(s: Session) -> None:
    s.loop_starts()
    for turn in range(5):
        again = ("", "As I said, ", "Again, ", "Once more, ", "Still, ")[turn]
        s.say(f"{again}I need the grammar before I can write the parser. Please send me the grammar.", role="coder")
        s.say(f"{again}I need the parser before I can write down the grammar. Please send me the parser.", role="designer")


@scenario("orchestrator", AGENT, "chanting", "Book the room.", "says that it is done, again and again")
def says_it_is_done(s: Session) -> None:
    s.say("I will book the room.")
    s.loop_starts()
    for text in (
        "The room is booked. The task is complete.", "The room is booked, and the task is complete.", "The task is complete: the room is booked.",
        "The room is booked. The task is now complete.", "The room is booked. The task is complete.", "The task is complete. The room is booked.",
    ):
        s.say(text)
        s.hear("Please go on, or call finish when you are done.")


@scenario("orchestrator", TALK, "cycle", "Review the change.", "two agents hand the same thing to each other")
def hands_back_and_forth(s: Session) -> None:
    library(s)
    s.loop_starts()
    for _ in range(5):
        s.call("transfer_to_reviewer", {}, "Transferred to reviewer.", role="author")
        s.call("transfer_to_author", {}, "Transferred to author.", role="reviewer")
