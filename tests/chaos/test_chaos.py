"""The faults are the faults that they say, and what is counted is what happened."""

import socket
import threading
import time
import unittest

from play import Result, tell_loops
from proxy import Proxy
from servers import free_port
from traffic import Balancer, Book, Run, quantiles


class Echo:
    """A server that sends back what it gets."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            connection, _ = self.listener.accept()
            threading.Thread(target=self.answer, args=(connection,), daemon=True).start()

    def answer(self, connection):
        with connection:
            while piece := connection.recv(1024):
                connection.sendall(piece)


class TheLink(unittest.TestCase):
    def setUp(self):
        self.proxy = Proxy(free_port(), Echo().port)
        self.addCleanup(self.proxy.end)

    def ask(self, patience=5.0):
        """What comes back for eight bytes, and after how long."""
        began = time.monotonic()
        with socket.create_connection(("127.0.0.1", self.proxy.port), timeout=patience) as connection:
            connection.sendall(b"12345678")
            got = b""
            try:
                while len(got) < 8 and (piece := connection.recv(8)):
                    got += piece
            except TimeoutError:
                pass
        return got, time.monotonic() - began

    def test_it_carries_what_it_gets(self):
        self.assertEqual(self.ask()[0], b"12345678")

    def test_a_slow_link_carries_all_of_it_later(self):
        self.proxy.set("delay 0.3")
        got, seconds = self.ask()
        self.assertEqual(got, b"12345678")
        self.assertGreaterEqual(seconds, 0.3)

    def test_a_link_that_is_cut_ends_in_the_middle_of_an_answer(self):
        self.proxy.set("cut")
        self.assertEqual(self.ask()[0], b"1234")

    def test_a_byte_is_missing(self):
        self.proxy.set("drop")
        self.assertEqual(self.ask(0.5)[0], b"1234678")

    def test_a_half_open_link_takes_everything_and_gives_nothing_until_it_is_mended(self):
        self.proxy.set("stall")
        self.assertEqual(self.ask(0.3)[0], b"")
        self.proxy.set("pass")
        self.assertEqual(self.ask()[0], b"12345678")


class Counting(unittest.TestCase):
    def late(self, refused_at, asked, degraded=0):
        """What is said of a run whose outage lasted from 10 to 20."""
        book, result = Book(), Result(None)
        book.runs = [Run(0.0, asked, sessions={"s"}, hinted_at=3, refused_at=refused_at)]
        line = {"at": "1970-01-01T00:00:05Z", "session": "s", "degraded": ["state"]}
        tell_loops(result, book, (10.0, 20.0), [line] * degraded, clock=0.0)
        return result.late, len(result.missed)

    def test_a_loop_in_time_is_neither_late_nor_missed(self):
        self.assertEqual(self.late(6, [1.0] * 7), (0, 0))

    def test_steps_of_the_outage_excuse_as_many_steps(self):
        self.assertEqual(self.late(8, [1.0] * 7 + [12.0, 13.0]), (1, 0))
        self.assertEqual(self.late(9, [1.0] * 8 + [12.0, 13.0]), (0, 1))

    def test_steps_that_were_judged_without_the_shared_state_excuse_as_many(self):
        self.assertEqual(self.late(7, [1.0] * 8, degraded=1), (1, 0))
        self.assertEqual(self.late(8, [1.0] * 8, degraded=1), (0, 1))

    def test_a_loop_that_nobody_stopped_is_missed_whatever_was_broken(self):
        self.assertEqual(self.late(None, [12.0] * 41), (0, 1))

    def test_an_early_refusal_is_a_mistake(self):
        self.assertEqual(self.late(5, [1.0] * 6), (0, 1))

    def test_who_is_not_well_is_not_asked(self):
        gateways = [type("Gateway", (), {"name": name}) for name in "abc"]
        balancer = Balancer(gateways)
        balancer.well["b"] = False
        self.assertEqual({balancer.next().name for _ in range(6)}, {"a", "c"})

    def test_quantiles_are_in_milliseconds(self):
        self.assertEqual(quantiles([0.001] * 98 + [0.5, 2.0]), (1.0, 2000.0, 2000.0))
        self.assertIsNone(quantiles([]))


if __name__ == "__main__":
    unittest.main()
