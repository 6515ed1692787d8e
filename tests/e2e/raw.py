"""Bytes as they are: a client that sends what it likes, a provider that keeps what it gets, frames of HTTP/2 by hand."""

import re
import socket
import struct
import threading
from urllib.parse import urlsplit

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RESET, SETTINGS, PING, GOAWAY, WINDOW, CONTINUATION = 0, 1, 2, 3, 4, 6, 7, 8, 9
END_STREAM, END_HEADERS = 1, 4


class RawProvider:
    """Answers every request with the same bytes, and keeps what came over each connection."""

    def __init__(self, answer=None):
        body = b'{"ok":true}'
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
        self.answer = answer or head + body
        self.connections = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def received(self):
        return b"".join(bytes(received) for received in self.connections)

    @property
    def requests(self):
        """The first lines of everything that was taken for a request."""
        return re.findall(rb"^([A-Z]+ \S+) HTTP/1\.1\r$", self.received, re.MULTILINE)

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
        received = bytearray()
        self.connections.append(received)
        stream = client.makefile("rb")

        def take(content):
            received.extend(content)
            return content

        try:
            while True:
                head = b""
                while not head.endswith(b"\r\n\r\n"):
                    line = take(stream.readline())
                    if not line:
                        return
                    head += line
                length = re.search(rb"\ncontent-length: *(\d+)", head.lower())
                if b"\ntransfer-encoding: chunked" in head.lower():
                    while int(take(stream.readline()).split(b";")[0], 16):
                        take(stream.readline())
                    take(stream.readline())
                elif length:
                    take(stream.read(int(length.group(1))))
                client.sendall(self.answer)
        except (OSError, ValueError):
            pass
        finally:
            client.close()


class Wire:
    """A connection that sends bytes as they are."""

    def __init__(self, url, seconds=10):
        parts = urlsplit(url)
        self.socket = socket.create_connection((parts.hostname, parts.port), timeout=seconds)

    def send(self, content):
        """Whether all of it was taken; whoever refuses us may close while we still speak."""
        try:
            self.socket.sendall(content)
            return True
        except OSError:
            return False

    def status(self):
        """The status of the next answer of HTTP/1; `None` when the connection ended without one."""
        found = re.match(rb"HTTP/1\.[01] (\d{3})", self.head())
        return int(found.group(1)) if found else None

    def head(self):
        content = b""
        try:
            while b"\r\n\r\n" not in content:
                more = self.socket.recv(65536)
                if not more:
                    break
                content += more
        except OSError:
            pass
        return content

    def rest(self):
        """Everything until the other side closes, or says nothing for as long as we wait."""
        content = b""
        try:
            while more := self.socket.recv(65536):
                content += more
        except OSError:
            pass
        return content

    def close(self):
        self.socket.close()


def frame(kind, flags=0, stream=0, payload=b""):
    """One frame of HTTP/2."""
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def field(name, value):
    """One header in HPACK: literal, not indexed, not compressed."""
    return b"\x00" + _string(name) + _string(value)


def asked(path=b"/v1/models", method=b"GET", authority=b"127.0.0.1", extra=b""):
    """The header block of a request."""
    named = ((b":method", method), (b":scheme", b"http"), (b":authority", authority), (b":path", path))
    return b"".join(field(name, value) for name, value in named) + extra


def frames(content):
    """The frames of an answer: kind, flags and payload."""
    found = []
    while len(content) >= 9:
        length = int.from_bytes(content[:3], "big")
        found.append((content[3], content[4], content[9 : 9 + length]))
        content = content[9 + length :]
    return found


def _string(text):
    if len(text) < 127:
        return bytes([len(text)]) + text
    size, out = len(text) - 127, b"\x7f"
    while size >= 128:
        out += bytes([size % 128 + 128])
        size //= 128
    return out + bytes([size]) + text
