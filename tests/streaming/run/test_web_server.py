"""What the monitor answers over HTTP: to whom, what, and that nobody holds it up."""

import socket
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest

from wirecheck.streaming.run import web_server
from wirecheck.streaming.run.metrics_page import HANGS_S, Page, Query
from wirecheck.streaming.run.web_server import healthy, is_this_machine, ready, serve


@contextmanager
def served(page=None, front=None):
    server = serve(page or Page(), "127.0.0.1", 0, front)
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def answered(url):
    """Status, headers, text; of an error, too."""
    try:
        with urllib.request.urlopen(url, timeout=20) as told:
            return told.status, told.headers, told.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read().decode()


def test_a_batch_that_hangs_is_unhealthy_and_one_that_ends_well_again():
    page = Page()
    assert (healthy(page), ready(page)) == ("", "starting")
    page.ready = True
    page.alive_s -= HANGS_S + 1
    assert (healthy(page), ready(page)) == (f"no batch has ended for {HANGS_S + 1} s", "")
    page.hear(Query({}))
    assert healthy(page)
    page.hear(Query({}), batch_s=1000)
    assert healthy(page) == ""


def test_health_stands_beside_the_metrics():
    page = Page()
    server = serve(page, "127.0.0.1", 0)
    base = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        assert urllib.request.urlopen(f"{base}/-/healthy").status == 200
        with pytest.raises(urllib.error.HTTPError, match="503") as starting:
            urllib.request.urlopen(f"{base}/-/ready")
        starting.value.close()
        page.ready = True
        assert urllib.request.urlopen(f"{base}/-/ready").read() == b"ok\n"
        assert b"wirecheck_build_info" in urllib.request.urlopen(f"{base}/metrics").read()
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("path", ["/nothing", "/metrics/more", "/-/", "/etc/passwd"])
def test_what_is_not_there_is_not_found(path):
    with served() as base:
        assert answered(base + path)[::2] == (404, "there are /metrics, /-/healthy, /-/ready\n")


def test_without_a_page_there_is_none():
    with served() as base:
        assert answered(base + "/")[0] == 404


def test_the_page_is_made_when_asked_for_and_not_for_each_who_asks():
    made = []
    with served(front=lambda agents: made.append(agents) or "<p>open findings</p>") as base:
        shown = [answered(base + "/") for _ in range(3)]
    assert {text for _, _, text in shown} == {"<p>open findings</p>"}
    assert shown[0][1]["Content-Type"] == "text/html; charset=utf-8"
    assert (shown[0][1]["X-Frame-Options"], shown[0][1]["Cache-Control"]) == ("DENY", "no-store")
    assert made == [[]]


def test_where_nothing_is_written_yet_the_page_says_so_and_metrics_go_on():
    def front(_):
        raise LookupError("no batch is written")

    with served(front=front) as base:
        assert answered(base + "/")[::2] == (503, "nothing to show yet: no batch is written\n")
        assert answered(base + "/metrics")[0] == 200


def test_only_get_is_answered():
    with served() as base:
        request = urllib.request.Request(base + "/metrics", data=b"x", method="POST")
        with pytest.raises(urllib.error.HTTPError, match="405") as refused:
            urllib.request.urlopen(request, timeout=20)
        refused.value.close()


def test_clients_that_say_nothing_are_let_go_and_hold_nobody_up(monkeypatch):
    monkeypatch.setattr(web_server.Handler, "timeout", 0.5)
    with served() as base:
        port = int(base.rpartition(":")[2])
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(web_server.MOST + 4)]
        idle[0].sendall(b"GET /met")
        assert answered(base + "/metrics")[0] == 200
        idle[1].settimeout(20)
        assert idle[1].recv(1) == b""  # the server closed it
        for one in idle:
            one.close()


def test_a_slow_page_holds_up_no_metrics():
    slow = threading.Event()
    with served(front=lambda _: slow.wait(20) and "late") as base:
        waiting = threading.Thread(target=answered, args=[base + "/"])
        waiting.start()
        time.sleep(0.05)
        assert answered(base + "/metrics")[0] == 200
        slow.set()
        waiting.join(20)


@pytest.mark.parametrize(
    ("address", "own"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False),
     ("10.0.0.7", False), ("::", False), ("broker-1", False), ("", False)],
)  # fmt: skip
def test_an_address_is_this_machines_own_or_not(address, own):
    assert is_this_machine(address) == own
