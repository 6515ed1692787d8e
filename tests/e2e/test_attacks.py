"""What somebody sends who wants to get past the gateway, through it or to bring it down. docs/security.md has the list."""

import datetime
import gzip
import hashlib
import json
import re
import socket
import sqlite3
import ssl
import threading
import time
import urllib.error
import urllib.request
import warnings
import zlib

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from raw import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PING,
    PREFACE,
    PRIORITY,
    RESET,
    SETTINGS,
    WINDOW,
    Wire,
    asked,
    field,
    frame,
    frames,
)

CHAT = b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
LOGS = b"POST /api/v1/decision-logs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
GET = b"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\n"
HIDDEN = b"GET /v1/hidden HTTP/1.1\r\nHost: x\r\n\r\n"
MIB = 1 << 20
# What an attack may cost while it lasts; a bomb of a gigabyte must not unfold.
MOST_MEMORY = 256 * MIB


class Target:
    """A gateway before a provider that keeps every byte."""

    def __init__(self, lab, config=None, answer=None):
        self.provider = lab.raw(answer)
        self.gateway = lab.gateway(self.provider, config)
        self.before = self.memory()

    def memory(self):
        status = open(f"/proc/{self.gateway.process.pid}/status").read()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) * 1024

    def wire(self, seconds=10):
        return Wire(self.gateway.url, seconds)

    def ask(self, content, seconds=10):
        """The status of the answer to these bytes, `None` when there is none."""
        wire = self.wire(seconds)
        wire.send(content)
        status = wire.status()
        wire.close()
        return status

    def is_well(self):
        """It lives, serves others and has not grown."""
        assert self.gateway.process.poll() is None, self.gateway.errors()
        assert self.ask(b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n") == 200
        assert self.ask(GET + b"\r\n") == 200
        assert self.memory() - self.before < MOST_MEMORY
        return True


@pytest.fixture
def target(lab):
    return Target(lab)


# --- messages whose end two readers might see in different places


@pytest.mark.parametrize(
    "framing",
    [
        b"Content-Length: 6\r\nContent-Length: 5\r\n\r\n123456",
        b"Content-Length: 6, 6\r\n\r\n123456",
        b"Content-Length: +6\r\n\r\n123456",
        b"Content-Length: -1\r\n\r\n123456",
        b"Content-Length: 6 6\r\n\r\n123456",
        b"Content-Length: 99999999999999999999999\r\n\r\n123456",
        b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
        b"X-A: 1\r\n folded\r\nContent-Length: 0\r\n\r\n",
        b"X-A: a\rX-B: b\r\nContent-Length: 0\r\n\r\n",
        b"X-A: a\0b\r\nContent-Length: 0\r\n\r\n",
        b"X\0A: b\r\nContent-Length: 0\r\n\r\n",
        b"X A: b\r\nContent-Length: 0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n5;a\nhello\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\nhello\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n5\r\nhelloXX0\r\n\r\n",
    ],
)
def test_a_request_that_can_be_read_in_two_ways_is_refused(target, framing):
    wire = target.wire()
    wire.send(CHAT + framing + HIDDEN)
    assert wire.status() in (400, 413, None)
    assert target.provider.requests == []


@pytest.mark.parametrize(
    ("framing", "body"),
    [
        (b"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b""),
        (b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n5\r\nhello\r\n0\r\n\r\n", b"hello"),
        (b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", b"hello"),
        (b"Transfer-Encoding: chunked\r\n\r\n5;a=b;c\r\nhello\r\n0\r\n\r\n", b"hello"),
        (b"Connection: content-length, host\r\nContent-Length: 5\r\n\r\nhello", b"hello"),
        (b"Transfer-Encoding: chunked\r\nTrailer: x\r\n\r\n5\r\nhello\r\n0\r\nContent-Length: 3\r\n\r\n", b"hello"),
    ],
)
def test_of_two_framings_the_provider_sees_one(target, framing, body):
    assert target.ask(CHAT + framing) == 200
    head, _, sent = target.provider.received.partition(b"\r\n\r\n")
    assert sent == body
    assert len(re.findall(rb"(?i)\r\n(content-length|transfer-encoding):", head)) <= 1
    assert head.lower().count(b"\r\nhost:") == 1


def test_what_stands_behind_a_body_is_no_request_of_the_provider(target):
    wire = target.wire(2)
    wire.send(CHAT + b"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + HIDDEN)
    wire.rest()
    assert b"GET /v1/hidden" not in target.provider.requests


# --- headers


def test_headers_that_are_too_large_or_too_many_are_refused(target):
    assert target.ask(GET + b"X-A: " + b"a" * 70_000 + b"\r\n\r\n") == 431
    assert target.ask(GET + b"".join(b"X-%d: 1\r\n" % n for n in range(10_000)) + b"\r\n") == 431
    assert target.ask(b"GET /v1/" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n") in (414, 431)
    assert target.provider.requests == []
    assert target.is_well()


def test_a_line_break_in_a_path_stays_written_out(target):
    assert target.ask(b"GET /v1/%0d%0aX-Evil:%20a HTTP/1.1\r\nHost: x\r\n\r\n") == 200
    assert b"\nx-evil" not in target.provider.received.lower()


def test_names_of_clients_come_back_in_no_other_header(target):
    wire = target.wire()
    wire.send(GET + b"X-Session-ID: a\tb; Set-Cookie: x=y\xff\r\nX-Agent-ID: <script>\r\n\r\n")
    head = wire.head().lower()
    assert b"\r\nset-cookie:" not in head
    assert b"<script>" not in head


# --- HTTP/2


@pytest.mark.parametrize(
    "flood",
    [
        b"".join(
            frame(HEADERS, END_STREAM | END_HEADERS, n, asked()) + frame(RESET, 0, n, b"\0\0\0\x08")
            for n in range(1, 20_001, 2)
        ),
        frame(HEADERS, END_STREAM, 1, asked()) + frame(CONTINUATION, 0, 1, field(b"x-a", b"a" * 100)) * 50_000,
        frame(HEADERS, END_STREAM, 1, asked()) + frame(CONTINUATION, 0, 1) * 100_000,
        frame(HEADERS, END_HEADERS, 1, asked(b"/v1/chat/completions", b"POST")) + frame(DATA, 0, 1) * 100_000,
        frame(HEADERS, 5, 1, asked() + b"\x40\x01a\x7f\xa1\x1e" + b"b" * 4_000 + b"\xbe" * 12_000),
        frame(WINDOW, 0, 0, b"\x7f\xff\xff\xff") * 3,
    ],
    ids=["rapid reset", "continuation", "empty continuation", "empty data", "header table", "window"],
)
def test_a_flood_of_http2_ends_its_connection_and_nothing_else(target, flood):
    wire = target.wire(5)
    wire.send(PREFACE + frame(SETTINGS) + flood)
    assert GOAWAY in [kind for kind, _, _ in frames(wire.rest())] or not wire.send(frame(PING, 0, 0, b"12345678"))
    assert target.is_well()


@pytest.mark.parametrize(
    "flood",
    [
        frame(SETTINGS) * 50_000,
        frame(PING, 0, 0, b"12345678") * 50_000,
        b"".join(frame(PRIORITY, 0, n, b"\0\0\0\0\x10") for n in range(1, 100_001, 2)),
    ],
    ids=["settings", "ping", "priority"],
)
def test_chatter_of_http2_costs_others_nothing(target, flood):
    wire = target.wire(1)
    wire.send(PREFACE + frame(SETTINGS) + flood)
    wire.rest()
    assert target.is_well()


@pytest.mark.parametrize(
    "block",
    [
        asked(extra=field(b"x-a", b"1\r\nx-evil: 2")),
        asked(extra=field(b"x-a", b"1\0")),
        asked(extra=field(b"X-Upper", b"1")),
        asked(b"/v1/a HTTP/1.1\r\nx-evil: 1\r\n"),
        asked(method=b"GET /v1/x HTTP/1.1\r\nx:"),
        asked(b"http://evil.example/v1/models"),
        asked(b"/v1/a") + field(b":path", b"/v1/b"),
        asked(extra=field(b"transfer-encoding", b"chunked")),
        asked(extra=field(b"connection", b"x-a")),
    ],
)
def test_headers_of_http2_that_http1_cannot_carry_go_no_further(target, block):
    wire = target.wire(2)
    wire.send(PREFACE + frame(SETTINGS) + frame(HEADERS, END_STREAM | END_HEADERS, 1, block))
    wire.rest()
    assert target.provider.requests == []
    assert target.is_well()


def test_a_body_of_http2_that_is_not_as_long_as_it_says_goes_no_further(target):
    wire = target.wire(2)
    block = asked(b"/v1/chat/completions", b"POST", extra=field(b"content-length", b"3"))
    wire.send(PREFACE + frame(SETTINGS) + frame(HEADERS, END_HEADERS, 1, block) + frame(DATA, END_STREAM, 1, HIDDEN))
    wire.rest()
    assert target.provider.requests == []


def test_an_offer_to_upgrade_to_http2_is_not_taken(target):
    wire = target.wire()
    offer = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n"
    wire.send(GET + offer)
    assert wire.status() == 200
    assert b"h2c" not in target.provider.received


# --- bodies that unfold


def bomb(mebibytes):
    """Zeros in gzip, a thousand times smaller than what they unfold to."""
    packer, zeros = zlib.compressobj(9, zlib.DEFLATED, 31), bytes(MIB)
    return b"".join(packer.compress(zeros) for _ in range(mebibytes)) + packer.flush()


def test_a_bomb_is_passed_on_unread(target):
    body = bomb(1024)
    for coding, content in ((b"gzip", body), (b"gzip, gzip", gzip.compress(body)), (b", ".join([b"gzip"] * 500), body)):
        head = CHAT + b"Content-Encoding: " + coding + b"\r\nContent-Length: %d\r\n\r\n" % len(content)
        assert target.ask(head + content, 30) == 200
    assert target.provider.received.count(body) >= 2, "it arrives as it came"
    assert target.is_well()


def test_a_bomb_for_the_api_is_not_unfolded(target):
    body = bomb(256)
    assert target.ask(LOGS + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body) + body) in (400, 413, 415)
    assert target.is_well()


def test_json_that_is_nested_without_end_is_no_problem(target):
    deep = b'{"model":"m","messages":' + b"[" * MIB + b"]" * MIB + b"}"
    assert target.ask(CHAT + b"Content-Length: %d\r\n\r\n" % len(deep) + deep) == 200
    open_only = b"[" * MIB
    assert target.ask(LOGS + b"Content-Length: %d\r\n\r\n" % len(open_only) + open_only) == 400
    guard = LOGS.replace(b"decision-logs", b"guard/check")
    assert target.ask(guard + b"Content-Length: %d\r\n\r\n" % len(open_only) + open_only) in (400, 413)
    assert target.is_well()


def test_lists_for_the_api_have_an_end(target):
    array = b"[" + b"1," * (20 * MIB // 2) + b"1]"
    assert target.ask(LOGS + b"Content-Length: %d\r\n\r\n" % len(array) + array) == 413
    # Lines are taken one by one, so that there may be many of them; each is answered.
    lines = b'{"a":1}\n' * 20_000
    request = urllib.request.Request(
        f"{target.gateway.url}/api/v1/decision-logs", lines, {"content-type": "application/x-ndjson"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        told = json.load(answer)
    assert (told["accepted"], told["rejected"], len(told["results"])) == (0, 20_000, 20_000)


# --- where requests go


@pytest.mark.parametrize(
    "line",
    [
        b"GET http://127.0.0.1:%d/v1/models HTTP/1.1\r\nHost: 127.0.0.1:%d",
        b"GET http://u:p@127.0.0.1:%d/v1/models HTTP/1.1\r\nHost: 127.0.0.1:%d",
        b"CONNECT 127.0.0.1:%d HTTP/1.1\r\nHost: 127.0.0.1:%d",
        b"GET //127.0.0.1:%d/v1/models HTTP/1.1\r\nHost: 127.0.0.1:%d",
        b"GET /v1/models HTTP/1.1\r\nHost: a\r\nX-Forwarded-Host: 127.0.0.1:%d\r\nForwarded: host=127.0.0.1:%d",
        b"GET /v1/decision HTTP/1.1\r\nX-Original-Host: 127.0.0.1:%d\r\nX-Original-URI: http://127.0.0.1:%d/",
    ],
)
def test_no_client_chooses_the_host_that_is_connected_to(target, lab, line):
    elsewhere = lab.raw()
    port = int(elsewhere.url.rsplit(":", 1)[1])
    target.ask(line % (port, port) + b"\r\n\r\n")
    assert elsewhere.connections == []


def test_a_redirect_of_the_provider_is_passed_on_and_not_followed(lab):
    elsewhere = lab.raw()
    moved = f"HTTP/1.1 307 Temporary Redirect\r\nlocation: {elsewhere.url}/v1/models\r\ncontent-length: 0\r\n\r\n"
    target = Target(lab, answer=moved.encode())
    assert target.ask(GET + b"Authorization: Bearer sk-one\r\n\r\n") == 307
    assert elsewhere.connections == []


def test_nobody_climbs_out_of_the_folder_of_a_base_url(lab):
    provider = lab.raw()
    route = {"prefix": "/groq/", "base_url": f"{provider.url}/openai", "dialect": "openai"}
    gateway = lab.gateway(None, {"upstreams": {"routes": [route]}})
    for path in ("../admin", "%2e%2e/admin", "..%2fadmin", "x/../../admin", "..;a/admin", "..%5cadmin"):
        wire = Wire(gateway.url)
        wire.send(f"GET /groq/{path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert wire.status() == 404, path
    wire = Wire(gateway.url)
    wire.send(b"GET /groq/v1/models HTTP/1.1\r\nHost: x\r\n\r\n")
    assert wire.status() == 200
    assert provider.requests == [b"GET /openai/v1/models"]


@pytest.mark.parametrize(
    "path", [b"/assets/../../../etc/passwd", b"/assets/%2e%2e/%2e%2e/etc/passwd", b"/..%2f..%2fetc/passwd", b"//etc/passwd"]
)
def test_files_of_the_machine_are_not_served(target, path):
    assert target.ask(b"GET " + path + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n") == 404
    assert target.provider.requests == []


# --- who may


def test_a_foreign_page_or_name_has_no_api(target):
    pause = b"POST /api/v1/sessions/x/pause HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n"
    assert target.ask(pause + b"Origin: https://evil.example\r\n\r\n{}") == 403
    assert target.ask(pause + b"Origin: null\r\n\r\n{}") == 403
    assert target.ask(b"GET /api/v1/sessions HTTP/1.1\r\nHost: evil.example\r\n\r\n") == 403
    assert target.ask(b"GET http://evil.example/api/v1/sessions HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n") == 403
    wire = target.wire(2)
    block = asked(b"/api/v1/sessions", authority=b"evil.example")
    wire.send(PREFACE + frame(SETTINGS) + frame(HEADERS, END_STREAM | END_HEADERS, 1, block))
    answers = [payload for kind, _, payload in frames(wire.rest()) if kind == DATA]
    assert b"forbidden" in b"".join(answers)


def with_token(token):
    return {"admin": {"tokens": [{"role": "operator", "sha256": hashlib.sha256(token.encode()).hexdigest()}]}}


def call(gateway, path, data=None, **headers):
    """Status and headers of an answer of the API."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(gateway.url + path, data, sent)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.headers
    except urllib.error.HTTPError as refused:
        return refused.code, refused.headers


def test_a_login_is_a_cookie_that_only_our_own_page_can_use(lab):
    gateway = lab.gateway(lab.raw(), with_token("secret"))
    assert call(gateway, "/api/v1/login", b'{"token":"wrong"}')[0] == 401
    assert call(gateway, "/api/v1/login", b'{"token":"secret"}', Origin="https://evil.example")[0] == 403
    status, headers = call(gateway, "/api/v1/login", b'{"token":"secret"}')
    cookie = headers["set-cookie"]
    assert status == 200 and "HttpOnly" in cookie and "SameSite=Strict" in cookie and "secret" not in cookie
    cookie = cookie.split(";")[0]
    assert call(gateway, "/api/v1/sessions", Cookie=cookie)[0] == 200
    order = ("/api/v1/sessions/x/pause", b"{}")
    assert call(gateway, *order, Cookie=cookie, Origin="https://evil.example")[0] == 403
    assert call(gateway, *order, Cookie=cookie, Origin=gateway.url)[0] in (200, 404)
    name, value = cookie.split("=")
    expires, tag = value.split(".")
    for forged in (f"{int(expires, 16) + 60:x}.{tag}", f"{expires}.{'0' * 32}", f"{expires}.", ".", "x"):
        assert call(gateway, "/api/v1/sessions", Cookie=f"{name}={forged}")[0] == 401, forged


def test_a_token_in_the_address_opens_nothing(lab):
    gateway = lab.gateway(lab.raw(), with_token("secret"))
    for path in ("/api/v1/sessions?token=secret", "/api/v1/sessions?access_token=secret", "/api/v1/events?token=secret"):
        assert call(gateway, path)[0] == 401


def certificate(folder):
    """A certificate for this machine, and its key."""
    moment = datetime.datetime.now(datetime.timezone.utc)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(moment - datetime.timedelta(days=1))
        .not_valid_after(moment + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(Encoding.PEM))
    (folder / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return {"cert": str(folder / "cert.pem"), "key": str(folder / "key.pem")}


def test_a_port_with_a_certificate_speaks_nothing_but_tls(lab, tmp_path):
    gateway = lab.gateway(lab.raw(), {"tls": certificate(tmp_path), **with_token("secret")})
    assert gateway.url.startswith("https://")
    plain = Wire(gateway.url)
    plain.send(b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    assert plain.status() is None
    trusting = ssl.create_default_context(cafile=tmp_path / "cert.pem")
    trusting.check_hostname = False
    request = urllib.request.Request(f"{gateway.url}/api/v1/login", b'{"token":"secret"}')
    with urllib.request.urlopen(request, timeout=10, context=trusting) as answer:
        assert "Secure" in answer.headers["set-cookie"]
    for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        old.set_ciphers("ALL:@SECLEVEL=0")
        with warnings.catch_warnings():
            # That nobody should use them any more is what is tried here.
            warnings.simplefilter("ignore", DeprecationWarning)
            old.minimum_version = old.maximum_version = version
        with pytest.raises(OSError):
            old.wrap_socket(Wire(gateway.url).socket)


def test_the_page_runs_nothing_but_its_own_files(target):
    _, headers = call(target.gateway, "/")
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src 'self'" in policy and "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"


def test_what_agents_wrote_comes_back_as_json_and_as_nothing_else(target):
    name = "%3Cscript%3Ealert(1)%3C%2Fscript%3E"
    for path in (f"/api/v1/sessions/{name}", f"/api/v1/search?q={name}", f"/api/v1/sessions?q={name}"):
        assert call(target.gateway, path)[1]["content-type"].startswith("application/json"), path


# --- those who take their time, and those who go


def test_whoever_has_no_token_cannot_keep_a_connection_by_a_slow_login(lab):
    gateway = lab.gateway(lab.raw(), with_token("secret"))
    wire = Wire(gateway.url, 20)
    wire.send(b"POST /api/v1/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 20\r\n\r\n{")
    begun = time.monotonic()
    assert wire.status() == 408
    assert time.monotonic() - begun < 15


def test_clients_that_leave_in_the_middle_leave_nothing_behind(target):
    starts = (CHAT + b"Content-Length: 100\r\n\r\n{", CHAT + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhel", GET, b"GE", LOGS)
    before = open_files(target)
    for start in starts * 40:
        wire = target.wire()
        wire.send(start)
        wire.close()
    deadline = time.monotonic() + 20
    while open_files(target) > before + 5:
        assert time.monotonic() < deadline, "connections stay open"
        time.sleep(0.1)
    assert target.provider.requests == []
    assert target.is_well()


def open_files(target):
    with urllib.request.urlopen(f"{target.gateway.url}/metrics", timeout=10) as answer:
        return int(re.search(r"^process_open_fds (\d+)", answer.read().decode(), re.MULTILINE).group(1))


def test_many_who_only_listen_do_not_stop_others(target):
    """A hundred open event streams that nobody reads."""
    listening = []
    for _ in range(100):
        wire = target.wire()
        wire.send(b"GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        listening.append(wire)
    done = threading.Event()
    threading.Thread(target=lambda: target.is_well() and done.set(), daemon=True).start()
    assert done.wait(10)
    for wire in listening:
        wire.close()


def test_a_port_that_speaks_no_http_is_not_answered_as_if_it_did(target):
    for greeting in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"SSH-2.0-x\r\n", b"\x00" * 64, b"EHLO x\r\n"):
        assert target.ask(greeting, 5) in (400, None)
    assert target.is_well()


def test_a_store_that_fails_is_told_by_metrics_alone(lab):
    """Prometheus asks for nothing but /metrics."""
    target = Target(lab)
    assert target.ask(GET + b"\r\n") == 200
    database = sqlite3.connect(target.gateway.data / "decisions.db", isolation_level=None, timeout=10)
    database.execute("BEGIN EXCLUSIVE")

    def is_degraded():
        with urllib.request.urlopen(f"{target.gateway.url}/metrics", timeout=10) as answer:
            return 'loopbreaker_degraded{part="store"} 1' in answer.read().decode()

    body = b'{"model":"m","messages":[{"role":"user","content":"%d"}]}'
    deadline = time.monotonic() + 60
    turn = 0
    while not is_degraded():
        assert time.monotonic() < deadline, "nobody hears of it"
        turn += 1
        content = body % turn
        assert target.ask(CHAT + b"Content-Length: %d\r\n\r\n" % len(content) + content) == 200, "requests go on"
        time.sleep(0.2)
    database.execute("ROLLBACK")
    database.close()
    while is_degraded():
        assert time.monotonic() < deadline + 60, "it never recovers"
        time.sleep(0.2)


def test_slow_heads_are_given_up(target):
    """Half a head, and a byte of it now and then: it has to be there after 30 s."""
    drip = target.wire(40)
    drip.send(b"GET /v1/models HTTP/1.1\r\n")
    begun = time.monotonic()
    ended = None
    while ended is None and time.monotonic() - begun < 45:
        drip.socket.settimeout(2)
        try:
            if not drip.socket.recv(1024):
                ended = time.monotonic() - begun
        except socket.timeout:
            drip.send(b"x")
        except OSError:
            ended = time.monotonic() - begun
    assert ended is not None and ended < 40
