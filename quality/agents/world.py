"""Agents in a text world: a house with things in it, and a game master who counts the turns."""
from __future__ import annotations

from recorder import Session, scenario

AGENT = "scripted agent in a text world"
PLACES = {
    "shelf 1": ["vase 1"], "shelf 2": [], "drawer 1": ["key 1"], "drawer 2": [], "drawer 3": ["pen 1", "pen 2"],
    "cabinet 1": [], "cabinet 2": ["mug 1"], "fridge 1": ["apple 1"], "desk 1": ["lamp 1"], "sink 1": [],
}
CLOSED = ("drawer", "cabinet", "fridge")


class House:
    """The world: it answers what it understands, and to everything else that nothing happens."""

    def __init__(self, s: Session, turns: int | None = None) -> None:
        self.s, self.turns = s, turns
        self.things = {place: list(things) for place, things in PLACES.items()}
        self.open = {place for place in PLACES if not place.startswith(CLOSED)}
        self.here, self.hands = "", ""

    def act(self, action: str, thought: str = "") -> str:
        told = self.answer(action.split(" "))
        if self.turns is not None:
            self.turns -= 1
            told += f"\nYou have {self.turns} turns left."
        return self.s.call("act", {"action": action}, told, thought)

    def think(self, thought: str) -> None:
        self.s.call("think", {"thought": thought}, "OK.")

    def answer(self, words: list[str]) -> str:
        match words:
            case ["go", "to", *place] if " ".join(place) in self.things:
                self.here = " ".join(place)
                return self.sight()
            case ["open", *place] if " ".join(place) == self.here and self.here not in self.open:
                self.open.add(self.here)
                return f"You open the {self.here}. {self.sight()}"
            case ["take", kind, number] if f"{kind} {number}" in self.seen() and not self.hands:
                self.hands = f"{kind} {number}"
                self.things[self.here].remove(self.hands)
                return f"You pick up the {self.hands} from the {self.here}."
            case ["put", kind, number, "on", *place] if f"{kind} {number}" == self.hands and " ".join(place) == self.here:
                self.things[self.here].append(self.hands)
                self.hands = ""
                return f"You put the {kind} {number} on the {self.here}."
        return "Nothing happens."

    def seen(self) -> list[str]:
        return self.things.get(self.here, []) if self.here in self.open else []

    def sight(self) -> str:
        if self.here not in self.open:
            return f"The {self.here} is closed."
        return f"On the {self.here}, you see {', '.join(f'a {thing}' for thing in self.seen()) or 'nothing'}."


@scenario("world", AGENT, "none", "Put the mug on the desk.", "every place is another one, most of them empty")
def searches_the_house(s: Session) -> None:
    house = House(s)
    for place in ("shelf 1", "shelf 2", "drawer 1", "drawer 2", "drawer 3", "cabinet 1", "cabinet 2"):
        house.act(f"go to {place}")
        if place.startswith(CLOSED):
            house.act(f"open {place}")
    house.act("take mug 1")
    house.act("go to desk 1")
    house.act("put mug 1 on desk 1")


@scenario("world", AGENT, "none", "Bring both pens and the key to the desk.", "the same ways, with another thing each time")
def carries_one_after_the_other(s: Session) -> None:
    house = House(s, turns=30)
    for thing, place in (("pen 1", "drawer 3"), ("pen 2", "drawer 3"), ("key 1", "drawer 1")):
        house.act(f"go to {place}")
        if place not in house.open:
            house.act(f"open {place}")
        house.act(f"take {thing}")
        house.act("go to desk 1")
        house.act(f"put {thing} on desk 1")


@scenario("world", AGENT, "retry_legit", "Put the apple on the shelf.", "wrong words twice, then the right ones")
def finds_the_words(s: Session) -> None:
    house = House(s)
    house.act("go to fridge 1")
    house.act("grab apple 1", "I take the apple.")
    house.act("take apple 1 from fridge 1", "Perhaps with the place.")
    house.act("open fridge 1", "It is closed, of course.")
    house.act("take apple 1")
    house.act("go to shelf 2")
    house.act("place apple 1 on shelf 2")
    house.act("put apple 1 on shelf 2")


@scenario("world", AGENT, "exact", "Put the vase into the sink.", "the same words, the same nothing, the same thought")
def repeats_what_does_nothing(s: Session) -> None:
    house = House(s)
    house.act("go to shelf 1")
    house.act("take vase 1")
    house.act("go to sink 1")
    s.loop_starts()
    for _ in range(6):
        house.act("put vase 1 in sink 1")
        house.think("I am at the sink with the vase. Now I put it in.")


@scenario("world", AGENT, "near_duplicate", "Clean the mug.", "one wish in ever other words, and nothing happens")
def rephrases_what_does_nothing(s: Session) -> None:
    house = House(s, turns=20)
    house.act("go to cabinet 2")
    house.act("open cabinet 2")
    house.act("take mug 1")
    house.act("go to sink 1")
    s.loop_starts()
    for action in (
        "clean mug 1", "clean mug 1 with sink 1", "wash mug 1", "use sink 1", "turn on sink 1", "clean mug 1 in sink 1",
        "wash mug 1 with sink 1", "rinse mug 1",
    ):
        house.act(action)


@scenario("world", AGENT, "cycle", "Find the book.", "the same three places, in which nothing has changed")
def walks_in_circles(s: Session) -> None:
    house = House(s, turns=40)
    house.act("go to cabinet 1")
    house.act("open cabinet 1")
    s.loop_starts()
    for _ in range(5):
        for place in ("shelf 1", "desk 1", "sink 1"):
            house.act(f"go to {place}", "The book may be there.")
