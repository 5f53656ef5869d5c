"""The HTTP server of agent and monitor: deadlines, bounds, hosts, and what a bad request costs."""

import socket
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from wirecheck import http_server
from wirecheck.http_server import Answer, Route, host_is_known, serving, text

PATIENCE_S = 20
HEALTH = b"GET /-/healthy HTTP/1.0\r\n\r\n"
ROUTES = {"/-/healthy": Route(lambda _: text("ok"), slow=False)}


@contextmanager
def connected(port, *sent):
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as client:
        for data in sent:
            client.sendall(data)
        yield client


def received(client):
    """Everything until the server closes the connection."""
    parts = []
    with suppress(ConnectionResetError):
        while part := client.recv(65536):
            parts.append(part)
    return b"".join(parts)


def asked(port, request=HEALTH):
    with connected(port, request) as client:
        return received(client)


def is_closed(client, within_s):
    client.settimeout(within_s)
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


def drips(client, stop):
    """One byte of a header ten times a second: never silent."""
    with suppress(OSError):
        while not stop.wait(0.1):
            client.sendall(b"a")


def test_an_answer_is_complete_and_the_connection_closed():
    with serving(ROUTES, "127.0.0.1", 0) as port:
        assert asked(port) == (
            b"HTTP/1.0 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n"
            b"Content-Length: 3\r\nConnection: close\r\n\r\nok\n"
        )
        assert asked(port, HEALTH.replace(b"GET", b"HEAD")).endswith(b"Content-Length: 3\r\nConnection: close\r\n\r\n")


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"POST /-/healthy HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", 405),
        (b"GET /nothing HTTP/1.1\r\n\r\n", 404),
        (b"GET /-/healthy/ HTTP/1.1\r\n\r\n", 404),
        (b"GET /../etc/passwd HTTP/1.1\r\n\r\n", 404),
        (b"GET http://evil/-/healthy HTTP/1.1\r\n\r\n", 400),
        (b"GET /-/healthy HTTP/2\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\r\n\r\n", 400),
        (b"\r\n\r\n", 400),
        (b"GET /-/healthy HTTP/1.1\r\n" + 200 * b"X: y\r\n" + b"\r\n", 431),
        (b"GET /-/healthy HTTP/1.1\r\nX: " + 20_000 * b"y" + b"\r\n\r\n", 431),
    ],
)
def test_what_is_not_a_get_of_a_route_is_refused(request_bytes, status):
    with serving(ROUTES, "127.0.0.1", 0) as port:
        assert asked(port, request_bytes).startswith(f"HTTP/1.0 {status} ".encode())
        assert asked(port).endswith(b"ok\n")


@pytest.mark.parametrize("sent", [b"", b"GET /-/healthy HTTP/1.1\r\nX: "], ids=["silent", "half a request"])
def test_a_client_that_sends_nothing_more_is_closed_at_the_deadline(monkeypatch, sent):
    monkeypatch.setattr(http_server, "REQUEST_S", 0.5)
    with serving(ROUTES, "127.0.0.1", 0) as port, connected(port, sent) as client:
        assert not is_closed(client, 0.2)
        assert is_closed(client, PATIENCE_S)


def test_a_client_that_is_never_silent_is_closed_at_the_same_deadline(monkeypatch):
    monkeypatch.setattr(http_server, "REQUEST_S", 1.0)
    stop = threading.Event()
    with serving(ROUTES, "127.0.0.1", 0) as port, connected(port, b"GET / HTTP/1.1\r\nX: ") as client:
        thread = threading.Thread(target=drips, args=[client, stop])
        began_s = time.monotonic()
        thread.start()
        assert is_closed(client, PATIENCE_S)
        assert 0.5 < time.monotonic() - began_s < 5
        stop.set()
        thread.join(PATIENCE_S)


def test_a_client_that_does_not_read_its_answer_is_closed_at_the_deadline(monkeypatch):
    monkeypatch.setattr(http_server, "REQUEST_S", 0.5)
    large = {"/large": Route(lambda _: Answer(bytes(64 << 20)))}
    with serving(large, "127.0.0.1", 0) as port, connected(port, b"GET /large HTTP/1.0\r\n\r\n") as client:
        time.sleep(1)
        assert len(received(client)) < 64 << 20


def test_slow_and_silent_clients_beyond_the_bound_delay_no_health_check(monkeypatch):
    """Each further connection closes the oldest unfinished one, and none of them takes a thread."""
    stop = threading.Event()
    with serving(ROUTES, "127.0.0.1", 0) as port:
        threads_before = threading.active_count()
        slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(http_server.MOST + 20)]
        for client in slow[::2]:
            client.sendall(b"GET /-/healthy HTTP/1.1\r\nX: ")
        thread = threading.Thread(target=drips, args=[slow[-1], stop])
        thread.start()
        for _ in range(5):
            began_s = time.monotonic()
            assert asked(port).endswith(b"ok\n")
            assert time.monotonic() - began_s < 1
        assert threading.active_count() == threads_before + 1
        assert [is_closed(client, PATIENCE_S) for client in slow[:20]] == [True] * 20
        assert not is_closed(slow[-2], 0.1)
        stop.set()
        thread.join(PATIENCE_S)
        for client in slow:
            client.close()


def descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_flood_of_connections_takes_few_descriptors(monkeypatch):
    """They are the agent's, too: without one it writes no file."""
    taken, serve = [], http_server.Server._serve

    async def counted(server, reader, writer):
        taken.append(descriptors())
        await serve(server, reader, writer)

    monkeypatch.setattr(http_server.Server, "_serve", counted)
    before = descriptors()
    with serving(ROUTES, "127.0.0.1", 0) as port, ExitStack() as clients:
        for _ in range(300):
            clients.enter_context(connected(port))
        assert asked(port).endswith(b"ok\n")
    assert max(taken) - before - 300 < 2 * http_server.MOST


def test_a_route_that_hangs_holds_up_no_other_route_and_not_the_end():
    hangs = threading.Event()
    routes = {**ROUTES, "/page": Route(lambda _: hangs.wait(60) and text("late"))}
    began_s = time.monotonic()
    with serving(routes, "127.0.0.1", 0) as port, connected(port, b"GET /page HTTP/1.0\r\n\r\n"):
        assert asked(port).endswith(b"ok\n")
    assert time.monotonic() - began_s < PATIENCE_S
    hangs.set()


def test_a_route_that_fails_is_an_answer():
    with serving({"/page": Route(lambda _: text(str(1 / 0)))}, "127.0.0.1", 0) as port:
        for _ in range(2):
            assert asked(port, b"GET /page HTTP/1.0\r\n\r\n").endswith(b"cannot answer: ZeroDivisionError\n")


@pytest.mark.parametrize(
    ("host", "known"),
    [
        ("127.0.0.1", True), ("10.0.4.12:9108", True), ("[::1]:9108", True), ("[fe80::1]", True), ("localhost", True),
        ("LocalHost:9108", True), ("localhost.", True), ("wirecheck.example.org:443", True),
        ("evil.example", False), ("127.0.0.1.evil.example", False), ("localhost.evil.example:80", False),
        ("evil.example:127.0.0.1", False), ("", False), (":9108", False), ("10.0.4.12@evil.example", False),
    ],
)  # fmt: skip
def test_a_host_that_dns_rebinding_can_present_is_not_known(host, known):
    assert host_is_known(host, {"Wirecheck.example.org"}) == known


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (b"Host: 127.0.0.1\r\n", 200), (b"Host: evil.example\r\n", 421), (b"", 421),
        (b"Host: 127.0.0.1\r\nHost: evil.example\r\n", 421),
    ],
)  # fmt: skip
def test_a_guarded_route_needs_one_known_host(headers, status):
    with serving({"/": Route(lambda _: text("findings"), guarded=True)}, "127.0.0.1", 0) as port:
        answer = asked(port, b"GET / HTTP/1.1\r\n" + headers + b"\r\n")
    assert answer.startswith(f"HTTP/1.0 {status} ".encode())
    assert (b"findings" in answer) == (status == 200)


def test_the_name_it_is_bound_to_is_known(monkeypatch):
    listener = http_server.listener
    monkeypatch.setattr(http_server, "listener", lambda _, port: listener("127.0.0.1", port))
    with serving({"/": Route(lambda _: text("findings"), guarded=True)}, "broker-1", 0) as port:
        assert asked(port, b"GET / HTTP/1.1\r\nHost: broker-1:9108\r\n\r\n").startswith(b"HTTP/1.0 200 ")
        assert asked(port, b"GET / HTTP/1.1\r\nHost: broker-2:9108\r\n\r\n").startswith(b"HTTP/1.0 421 ")


@pytest.mark.skipif(not socket.has_ipv6, reason="needs IPv6")
def test_an_address_of_ipv6_is_served():
    with serving(ROUTES, "::1", 0) as port, socket.create_connection(("::1", port), PATIENCE_S) as client:
        client.sendall(HEALTH)
        assert received(client).endswith(b"ok\n")


def test_a_port_that_is_taken_is_an_error_at_the_start():
    with serving(ROUTES, "127.0.0.1", 0) as port, pytest.raises(OSError), serving(ROUTES, "127.0.0.1", port):
        pass
