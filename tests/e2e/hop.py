"""A recording hop: passes HTTP/1.1 on byte for byte, and keeps what went both ways."""

import socket
import threading
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass
class Exchange:
    """One request and its answer."""

    method: str
    target: str
    headers: list
    body: bytes
    asked_at: float
    status: int = 0
    answer_headers: list = field(default_factory=list)
    answer: bytes = b""
    answered_at: float = 0.0
    done: threading.Event = field(default_factory=threading.Event)

    def header(self, name):
        return first(self.answer_headers, name)

    @property
    def verdict(self):
        return self.header("x-loopbreaker-verdict")

    @property
    def session(self):
        return self.header("x-loopbreaker-session")

    @property
    def seconds(self):
        """How long the answer's head took."""
        return self.answered_at - self.asked_at


class Hop:
    """Stands before a server; clients are pointed at `url`."""

    def __init__(self, upstream):
        parts = urlsplit(upstream)
        self.url_of_upstream = upstream
        self.upstream = (parts.hostname, parts.port)
        self.exchanges = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def settled(self):
        """All exchanges, each with its answer read to the end."""
        for exchange in self.exchanges:
            assert exchange.done.wait(30), f"{exchange.target} was never answered to its end"
        return list(self.exchanges)

    def stop(self):
        self.listener.close()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        server = socket.create_connection(self.upstream)
        for side in (client, server):
            side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        asked, answered = client.makefile("rb"), server.makefile("rb")
        exchange = None
        try:
            while head := read_head(asked):
                line, headers = parse(head)
                method, target, _ = line.split(" ", 2)
                raw, body = zip(*pieces(asked, headers, is_request=True)) if has_body(headers) else ((), ())
                exchange = Exchange(method, target, headers, b"".join(body), time.monotonic())
                self.exchanges.append(exchange)
                server.sendall(head + b"".join(raw))
                self._pass_answer(exchange, answered, client)
                exchange.done.set()
        except OSError:
            pass  # One side went away, and so does the other.
        finally:
            if exchange:
                exchange.done.set()
            for side in (client, server):
                try:
                    side.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
                side.close()

    def _pass_answer(self, exchange, answered, client):
        head = read_head(answered)
        if not head:
            raise OSError("the server went away")
        line, headers = parse(head)
        exchange.answered_at = time.monotonic()
        exchange.status = int(line.split(" ", 2)[1])
        exchange.answer_headers = headers
        client.sendall(head)
        for raw, body in pieces(answered, headers, is_request=False):
            client.sendall(raw)
            exchange.answer += body


def read_head(stream):
    """The bytes up to the empty line, or none at the end."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = stream.readline()
        if not line:
            return b""
        head += line
    return head


def parse(head):
    """The first line, and the headers with their names in lower case."""
    line, *rest = head.decode("latin-1").split("\r\n")
    split = [field.split(":", 1) for field in rest if field]
    return line, [(name.lower(), value.strip()) for name, value in split]


def first(headers, name):
    return next((value for known, value in headers if known == name), None)


def has_body(headers):
    return first(headers, "transfer-encoding") is not None or int(first(headers, "content-length") or 0) > 0


def pieces(stream, headers, is_request):
    """The body as (bytes on the wire, bytes of the content), piece by piece."""
    if (first(headers, "transfer-encoding") or "").lower() == "chunked":
        while True:
            size_line = stream.readline()
            size = int(size_line.split(b";")[0], 16)
            content = stream.read(size)
            end = stream.readline()
            yield size_line + content + end, content
            if size == 0:
                return
    length = first(headers, "content-length")
    if length is not None:
        content = stream.read(int(length))
        yield content, content
    elif not is_request:
        while content := stream.read1(65536):
            yield content, content
