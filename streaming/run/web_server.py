"""What the monitor serves over HTTP: metrics, health, and a page for people.

By default only this machine can see the page; `--page` shows it at other addresses.
"""

import ipaddress
import math
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from secrets import token_hex
from types import MappingProxyType
from urllib.parse import parse_qs

from prometheus_client import CollectorRegistry

from wirecheck.http_server import Answer, Route, metrics, text
from wirecheck.streaming.run.metrics_page import SLOW_S, JudgedAgent, Page
from wirecheck.wording import duration

Front = Callable[[list[JudgedAgent], str], str]
"""The page for people of one of RANGES, as HTML; its age stands in it as AGE. Raises OSError or LookupError where there
is nothing to show.
"""
DAY = "day"
RANGES: Mapping[str, tuple[str, float]] = MappingProxyType(
    {"hour": ("last hour", 3600.0), DAY: ("last day", 86400.0), "all": ("all", math.inf)}
)
"""By name in `?range=`: what a page calls it, and how many seconds it has. The last one is the page's own."""
AGE = f"age-{token_hex(8)}"
"""Stands in a page for how old it is, until it is sent. No text from the wire can know it."""
NO_RUNBOOKS: Mapping[str, str] = MappingProxyType({})
FRESH_S = 5.0
"""Seconds for which a page is reused; making it reads the tables."""
HTML = (
    ("Content-Type", "text/html; charset=utf-8"),
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
)


PLAIN = (("Content-Type", "text/plain; charset=utf-8"), ("Cache-Control", "no-store"))


class Cached:
    """The page of one range, made when a client asks for it and at most once in FRESH_S."""

    def __init__(self, front: Front, span: str) -> None:
        self.front, self.span = front, span
        self.body, self.made_s = b"", -math.inf
        self.read_s = 0.0
        """When the monitor had last looked for frames, as of the results that it shows."""

    def __call__(self, page: Page) -> bytes:
        if time.monotonic() - self.made_s >= FRESH_S:
            self.read_s = time.monotonic() - page.runs_s()
            self.body = self.front(page.agents(), self.span).encode("utf-8", "replace")
            self.made_s = time.monotonic()
        return self.body.replace(AGE.encode(), duration(time.monotonic() - self.read_s).encode())


def routes(page: Page, front: Front | None = None, runbooks: Mapping[str, str] = NO_RUNBOOKS) -> dict[str, Route]:
    """/metrics, /-/healthy, /-/ready, /runbooks/NAME and, where there is a `front`, the page of findings at /."""
    registry = CollectorRegistry()
    registry.register(page)
    shown: dict[str, Route] = {}
    if front:
        cached = {name: Cached(front, name) for name in RANGES}
        shown = {"/": Route(lambda request: people(cached, page, request.query), guarded=True)}
    shown |= {f"/runbooks/{name}": page_of(text) for name, text in runbooks.items()}
    return shown | {
        "/metrics": metrics(registry),
        "/-/healthy": Route(lambda _: state(healthy(page), slow(page)), slow=False),
        "/-/ready": Route(lambda _: state(ready(page)), slow=False),
    }


def page_of(runbook: str) -> Route:
    answer = Answer(runbook.encode(), headers=PLAIN)
    return Route(lambda _: answer, slow=False)


def state(wrong: str, well: str = "ok") -> Answer:
    return text(wrong, HTTPStatus.SERVICE_UNAVAILABLE) if wrong else text(well)


def people(shown: Mapping[str, Cached], page: Page, query: str = "") -> Answer:
    name = parse_qs(query).get("range", [list(RANGES)[-1]])[0]
    if name not in shown:
        return text(f"unknown range; use {', '.join(shown)}", HTTPStatus.BAD_REQUEST)
    try:
        return Answer(shown[name](page), headers=HTML)
    except LookupError:  # no batch is written yet
        return Answer(f"{page.starting()}\n".encode(), HTTPStatus.SERVICE_UNAVAILABLE, (*PLAIN, ("Refresh", "5")))
    except OSError as wrong:  # the tables are away
        return text(f"nothing to show yet: {wrong}", HTTPStatus.SERVICE_UNAVAILABLE)


def is_this_machine(address: str) -> bool:
    """Whether only this machine can ask there."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def healthy(page: Page) -> str:
    """What only a restart would fix. A lag that grows is not: it would grow faster."""
    hangs_s = page.hangs_s()
    return f"no batch has ended for {hangs_s:.0f} s" if hangs_s else ""


def slow(page: Page) -> str:
    """ok, and how long a batch has run if that is a minute or more: a restart would only repeat it."""
    running_s = page.runs_s()
    return "ok" if running_s < SLOW_S else f"ok; a batch has run for {running_s:.0f} s"


def ready(page: Page) -> str:
    return "" if page.ready else "starting"
