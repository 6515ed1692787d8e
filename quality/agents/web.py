"""Agents with a browser on a small shop: paging, comparing, forms, waiting; and clicks that lead nowhere."""
from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from recorder import Session, scenario
from tools import Site

AGENT = "scripted web agent"
PRODUCTS = [f"{colour} {thing}" for thing in ("lamp", "chair", "kettle", "shelf", "clock") for colour in ("red", "blue", "green", "black", "white", "oak")]
PER_PAGE = 5


class Shop:
    """The pages of the shop."""

    def __init__(self) -> None:
        self.waits = 0

    def __call__(self, path: str) -> tuple[int, str]:
        parts = urlsplit(path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path == "/search":
            return self.search(query.get("q", ""), int(query.get("page", "1")))
        if parts.path.startswith("/item/"):
            number = int(parts.path.rsplit("/", 1)[1])
            stock = "Sold out <button>Buy</button>" if number % 2 else "In stock <button>Buy</button>"
            return 200, f"<h1>{PRODUCTS[number]}</h1><p>Price {10 + 7 * number} EUR</p><p>{stock}</p><a>Back to the results</a>"
        if parts.path == "/login":
            return 401, "<h1>Sign in</h1><p>Wrong user name or password.</p><button>Sign in</button>"
        if parts.path == "/register":
            missing = [name for name in ("name", "street", "zip") if name not in query]
            text = f"Please fill in: {missing[0]}" if missing else "Welcome! Your account is ready."
            return 200, f"<h1>Register</h1><p>{text}</p><button>Send</button>"
        if parts.path == "/report":
            self.waits += 1
            text = "The report is ready: 41 orders." if self.waits > 5 else f"The report is being made: {self.waits * 18} %"
            return 200, f"<h1>Report</h1><p>{text}</p>"
        return 404, "<h1>Not found</h1><p>There is no such page.</p><a>Home</a>"

    def search(self, words: str, page: int) -> tuple[int, str]:
        found = [(n, name) for n, name in enumerate(PRODUCTS) if all(word in name for word in words.lower().split())]
        shown = found[(page - 1) * PER_PAGE:page * PER_PAGE]
        if not shown:
            return 200, "<h1>Results</h1><p>No products were found.</p><a>Home</a>"
        items = "".join(f"<p>item {n}: <a>{name}</a></p>" for n, name in shown)
        return 200, f"<h1>Results, page {page} of {-(-len(found) // PER_PAGE)}</h1>{items}<a>Next</a>"


class Browser:
    """A browser tool in the way of most web agents: one tool per act, answered with the page."""

    def __init__(self, s: Session) -> None:
        self.s, self.site = s, Site(Shop())

    def act(self, tool: str, args: object, path: str, thought: str = "") -> str:
        return self.s.call(tool, args, self.site.open(path), thought)

    def search(self, words: str, thought: str = "") -> str:
        return self.act("search", {"query": words}, f"/search?q={words.replace(' ', '+')}", thought)

    def item(self, number: int, thought: str = "") -> str:
        return self.act("click", {"element": PRODUCTS[number]}, f"/item/{number}", thought)


def browsing(play):  # type: ignore[no-untyped-def]
    """Gives a script a browser, and closes its site behind it."""

    def with_browser(s: Session) -> None:
        browser = Browser(s)
        try:
            play(s, browser)
        finally:
            browser.site.close()

    with_browser.__name__ = play.__name__
    return with_browser


@scenario("web", AGENT, "none", "List everything that the shop sells.", "pages in order, each another one")
@browsing
def pages_through(s: Session, browser: Browser) -> None:
    browser.act("goto", {"url": "http://shop.example/search?q="}, "/search?q=")
    for page in range(2, 7):
        browser.act("click", {"element": "Next"}, f"/search?q=&page={page}")
    s.say("It sells 30 products.")


@scenario("web", AGENT, "none", "Which lamp is cheapest and in stock?", "back to the same results between different items")
@browsing
def compares_items(s: Session, browser: Browser) -> None:
    browser.search("lamp")
    for number in range(5):
        browser.item(number)
        browser.act("click", {"element": "Back to the results"}, "/search?q=lamp")
    s.say("The red lamp.")


@scenario("web", AGENT, "retry_legit", "Open an account.", "the form asks for another field each time")
@browsing
def fills_a_form(s: Session, browser: Browser) -> None:
    browser.act("goto", {"url": "http://shop.example/register"}, "/register")
    filled = ""
    for name, value in (("name", "Ada"), ("street", "High Street 1"), ("zip", "3000")):
        s.call("type", {"element": name, "text": value}, "ok")
        filled += f"&{name}={value.replace(' ', '+')}"
        browser.act("click", {"element": "Send"}, f"/register?{filled}")
    s.say("The account is ready.")


@scenario("web", AGENT, "polling_legit", "Tell me what the report says.", "the page is loaded again until it is ready")
@browsing
def waits_for_a_report(s: Session, browser: Browser) -> None:
    for _ in range(6):
        browser.act("goto", {"url": "http://shop.example/report"}, "/report", "It is not ready yet, I look again.")
    s.say("41 orders.")


@scenario("web", AGENT, "none", "Find an oak clock, an oak shelf and a blue kettle.", "searches for different things")
@browsing
def finds_three_things(s: Session, browser: Browser) -> None:
    for words in ("oak clock", "oak shelf", "blue kettle"):
        browser.search(words)
        browser.item(PRODUCTS.index(words))
    s.say("All three are there.")


@scenario("web", AGENT, "cycle", "Buy a blue lamp.", "search, item, back, and the same again: it is sold out")
@browsing
def opens_the_same_item(s: Session, browser: Browser) -> None:
    s.loop_starts()
    for _ in range(5):
        browser.search("blue lamp", "I search for the lamp.")
        browser.item(1, "This is the one.")
        browser.act("click", {"element": "Back to the results"}, "/search?q=blue+lamp", "It is sold out, back.")


@scenario("web", AGENT, "near_duplicate", "Find a purple sofa with wooden legs.", "the same words in another order, no results")
@browsing
def shuffles_the_words(s: Session, browser: Browser) -> None:
    s.loop_starts()
    for words in (
        "purple sofa with wooden legs", "sofa purple wooden legs", "purple wooden legs sofa", "wooden legs purple sofa",
        "sofa with purple wooden legs", "purple sofa wooden legs", "wooden purple sofa legs", "purple sofa with legs wooden",
    ):
        browser.search(words, "Let me refine the search.")


@scenario("web", AGENT, "exact", "Buy the blue chair.", "a button that does nothing, with scrolling in between")
@browsing
def clicks_a_dead_button(s: Session, browser: Browser) -> None:
    browser.search("blue chair")
    browser.item(7)
    s.loop_starts()
    for turn in range(8):
        browser.act("click", {"element": "Buy"}, "/item/7", "I click on Buy.")
        if turn % 3 == 2:
            s.call("scroll", {"direction": "down"}, "ok", "Perhaps the cart is further down.")


@scenario("web", AGENT, "near_duplicate", "Sign in as ada.", "one password in ever new spellings")
@browsing
def tries_passwords(s: Session, browser: Browser) -> None:
    s.loop_starts()
    for password in ("lamp123", "Lamp123", "lamp123!", "Lamp123!", "lamp1234", "LAMP123", "lamp_123"):
        browser.act("login", {"user": "ada", "password": password}, f"/login?user=ada&password={password.replace('!', '')}", "Perhaps it is this one.")


@scenario("web", AGENT, "cycle", "Is there a golden clock?", "the same pages from the start, three times")
@browsing
def pages_round(s: Session, browser: Browser) -> None:
    s.loop_starts()
    for _ in range(3):
        for page in range(1, 5):
            browser.act("open_page", {"query": "", "page": page}, f"/search?q=&page={page}", "Let me look through the pages.")
