"""What the monitor answers over HTTP, and to which clients."""

import re
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest

from wirecheck.http_server import serving
from wirecheck.streaming.run.metrics_page import HANGS_S, Page, Query
from wirecheck.streaming.run.web_server import AGE, NO_RUNBOOKS, healthy, is_this_machine, ready, routes


@contextmanager
def served(page=None, front=None, allowed_hosts=(), runbooks=NO_RUNBOOKS):
    with serving(routes(page or Page(), front, runbooks), "127.0.0.1", 0, allowed_hosts) as port:
        yield f"http://127.0.0.1:{port}"


def answered(url):
    """Status, headers, text; of an error, too."""
    try:
        with urllib.request.urlopen(url, timeout=20) as response:
            return response.status, response.headers, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read().decode()


def test_a_batch_that_hangs_is_unhealthy_and_one_that_ends_well_again():
    page = Page()
    assert (healthy(page), ready(page)) == ("", "starting")
    page.ready = True
    page.alive_s -= HANGS_S + 1
    assert (healthy(page), ready(page)) == (f"no batch has ended for {HANGS_S + 1} s", "")
    page.update(Query({}))
    assert healthy(page)
    page.update(Query({}), batch_s=1000)
    assert healthy(page) == ""


def test_health_stands_beside_the_metrics():
    page = Page()
    with served(page) as base:
        assert urllib.request.urlopen(f"{base}/-/healthy").status == 200
        with pytest.raises(urllib.error.HTTPError, match="503") as starting:
            urllib.request.urlopen(f"{base}/-/ready")
        starting.value.close()
        page.ready = True
        assert urllib.request.urlopen(f"{base}/-/ready").read() == b"ok\n"
        assert b"wirecheck_build_info" in urllib.request.urlopen(f"{base}/metrics").read()


@pytest.mark.parametrize("path", ["/nothing", "/metrics/more", "/-/", "/etc/passwd"])
def test_what_is_not_there_is_not_found(path):
    with served() as base:
        assert answered(base + path)[::2] == (404, "there are /metrics, /-/healthy, /-/ready\n")


def test_without_a_page_there_is_none():
    with served() as base:
        assert answered(base + "/")[0] == 404


def test_the_page_is_made_when_asked_for_and_not_for_each_who_asks():
    made = []
    with served(front=lambda agents, _: made.append(agents) or "<p>open findings</p>") as base:
        shown = [answered(base + "/") for _ in range(3)]
    assert {text for _, _, text in shown} == {"<p>open findings</p>"}
    assert shown[0][1]["Content-Type"] == "text/html; charset=utf-8"
    assert (shown[0][1]["X-Frame-Options"], shown[0][1]["Cache-Control"]) == ("DENY", "no-store")
    assert made == [[]]


def test_a_page_is_of_the_range_asked_for_and_says_how_old_it_is():
    page = Page()
    page.alive_s -= 3
    with served(page, front=lambda _, name: f"{name}, updated {AGE} ago") as base:
        for query, name in {"": "all", "?range=hour": "hour", "?range=day": "day", "?other=1": "all"}.items():
            assert re.fullmatch(rf"{name}, updated [3-9] s ago", answered(base + "/" + query)[2])
        assert answered(base + "/?range=week")[::2] == (400, "unknown range; use hour, day, all\n")


def test_a_page_of_results_that_no_batch_renews_gets_older():
    """It is as old as the results: a page that was made a second ago shows what a batch wrote that hangs since."""
    page = Page()
    page.alive_s -= 600
    with served(page, front=lambda *_: f"updated {AGE} ago") as base:
        assert answered(base + "/")[2] == "updated 10 min ago"


def test_where_nothing_is_written_yet_the_page_says_so_and_metrics_go_on():
    def front(*_):
        raise LookupError("no batch is written")

    with served(front=front) as base:
        status, headers, body = answered(base + "/")
        assert (status, headers["Refresh"]) == (503, "5")
        assert re.fullmatch(r"Starting: Spark has been starting for \d s, 0 files wait\n", body)
        assert answered(base + "/metrics")[0] == 200


def test_the_first_page_says_how_long_the_first_batch_has_run():
    page = Page()
    page.ready, page.alive_s = True, time.monotonic() - 14
    page.update(Query({}, 1, 4000))
    assert page.starting() == "Starting: the first batch has run for 14 s, 1 file waits"


def test_runbooks_are_served_by_name():
    with served(runbooks={"WirecheckMonitorDown.md": "# WirecheckMonitorDown\n"}) as base:
        assert answered(base + "/runbooks/WirecheckMonitorDown.md")[::2] == (200, "# WirecheckMonitorDown\n")
        assert answered(base + "/runbooks/other.md")[0] == 404


def test_the_page_of_findings_is_not_shown_to_a_rebound_name():
    def asked(base, path, host):
        return answered(urllib.request.Request(base + path, headers={"Host": host}))[0]

    with served(front=lambda *_: "<p>open findings</p>", allowed_hosts=["wirecheck.example.org"]) as base:
        assert asked(base, "/", "evil.example") == 421
        assert asked(base, "/", "evil.example:9108") == 421
        assert asked(base, "/", "wirecheck.example.org:9108") == 200
        assert asked(base, "/", "127.0.0.1:9108") == 200
        # the compose stack's Prometheus and health checks use names such as these
        assert {asked(base, path, "monitor:9108") for path in ("/metrics", "/-/healthy")} == {200}
        assert asked(base, "/-/ready", "monitor:9108") == 503


def test_a_slow_page_holds_up_no_metrics():
    slow = threading.Event()
    with served(front=lambda *_: slow.wait(20) and "late") as base:
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
