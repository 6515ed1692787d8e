"""Agents with a database: exploring, filling, mending queries; and asking what the tables do not know."""
from __future__ import annotations

from recorder import Session, scenario
from tools import Database

AGENT = "scripted database agent"
SHOP = """
create table customers (id integer primary key, name text, city text);
create table orders (id integer primary key, customer_id integer, total real, placed text);
create table items (order_id integer, product text, quantity integer);
insert into customers (name, city) values ('Ada', 'Bern'), ('Ben', 'Rome'), ('Cleo', 'Oslo');
insert into orders (customer_id, total, placed) values (1, 40, '2026-01-03'), (1, 12, '2026-02-01'), (3, 99, '2026-02-09');
insert into items values (1, 'lamp', 2), (2, 'cup', 1), (3, 'chair', 1);
"""


def ask(s: Session, database: Database, sql: str, thought: str = "") -> str:
    return s.call("execute_sql", {"query": sql}, database.query(sql), thought)


@scenario("database", AGENT, "none", "Which city orders most?", "each question is another one")
def explores_a_schema(s: Session) -> None:
    database = Database(SHOP)
    ask(s, database, "select name from sqlite_master where type = 'table'")
    for table in ("customers", "orders", "items"):
        ask(s, database, f"select * from pragma_table_info('{table}')")
        ask(s, database, f"select count(*) from {table}")
    ask(s, database, "select city, sum(total) from customers join orders on customer_id = customers.id group by city")
    ask(s, database, "select city, sum(total) as spent from customers join orders on customer_id = customers.id group by city order by spent desc limit 1")
    s.say("Oslo orders most.")


@scenario("database", AGENT, "none", "Add these twenty customers.", "a batch that is answered alike")
def inserts_a_batch(s: Session) -> None:
    database = Database(SHOP)
    for number in range(20):
        ask(s, database, f"insert into customers (name, city) values ('Customer {number}', 'Town {number % 4}')")
        if number % 5 == 4:
            ask(s, database, "select count(*) from customers")
    s.say("Twenty customers are in.")


@scenario("database", AGENT, "retry_legit", "Total per customer name?", "another error each time, then right")
def corrects_a_query(s: Session) -> None:
    database = Database(SHOP)
    ask(s, database, "select customer, sum(amount) from orders group by customer")
    ask(s, database, "select customer_id, sum(amount) from orders group by customer_id")
    ask(s, database, "select * from orders limit 2", "I should look at the columns.")
    ask(s, database, "select name, sum(total) from orders join customers on id = customer_id group by name")
    ask(s, database, "select name, sum(total) from orders join customers on customers.id = customer_id group by name")
    s.say("Ada 52, Cleo 99.")


@scenario("database", AGENT, "none", "Give every order a state, and close those of January.", "the same check after each change")
def migrates_in_steps(s: Session) -> None:
    database = Database(SHOP)
    check = "select count(*) as left_over from pragma_table_info('orders') where name = 'state'"
    ask(s, database, check)
    ask(s, database, "alter table orders add column state text")
    ask(s, database, check)
    ask(s, database, "update orders set state = 'open'")
    ask(s, database, check)
    ask(s, database, "update orders set state = 'closed' where placed < '2026-02-01'")
    ask(s, database, check)
    ask(s, database, "select state, count(*) from orders group by state")
    s.say("Done: one closed, two open.")


@scenario("database", AGENT, "near_duplicate", "What is the average rating per product?", "a column that does not exist, under ever new names")
def asks_for_a_missing_column(s: Session) -> None:
    database = Database(SHOP)
    ask(s, database, "select name from sqlite_master where type = 'table'")
    s.loop_starts()
    for column in ("rating", "ratings", "avg_rating", "score", "stars", "review_score", "rate"):
        ask(s, database, f"select product, avg({column}) from items group by product", "The column may have another name.")


@scenario("database", AGENT, "near_duplicate", "Find the customer Dora.", "nobody of that name, in ever new spellings of the question")
def finds_nobody(s: Session) -> None:
    database = Database(SHOP)
    s.loop_starts()
    for condition in (
        "name = 'Dora'", "name like 'Dora'", "name like '%Dora%'", "lower(name) = 'dora'", "name like 'dora%'",
        "upper(name) = 'DORA'", "trim(name) = 'Dora'", "name = 'dora'", "name like '%dora%'",
    ):
        ask(s, database, f"select * from customers where {condition}", "Perhaps it is spelled in another way.")


@scenario("database", AGENT, "cycle", "Why is the total of order 7 missing?", "two questions in turns, two answers in turns")
def asks_two_things_in_turns(s: Session) -> None:
    database = Database(SHOP)
    ask(s, database, "select * from customers")
    s.loop_starts()
    for _ in range(7):
        ask(s, database, "select * from orders where id = 7", "Let me look at order 7.")
        ask(s, database, "select * from pragma_table_info('orders')", "Let me check the columns.")


@scenario("database", AGENT, "exact", "Set Ada's city to Paris.", "the same change, which was made the first time")
def makes_the_same_change(s: Session) -> None:
    database = Database(SHOP)
    ask(s, database, "select * from customers where name = 'Ada'")
    s.loop_starts()
    for turn in range(6):
        ask(s, database, "update customers set city = 'Paris' where name = 'Ada'", "I set the city.")
        if turn % 2:
            ask(s, database, "select * from customers where name = 'Ada'", "Let me verify.")
