"""What the monitor answers over HTTP: metrics for Prometheus, health for who restarts it, a page for people.

Knows: the paths, which of them is shown to whom, and how clients are kept from holding it up: each has IDLE_S to say or
take something, MOST at a time are answered. Refuses to know what metrics and page say.
Rule: it only answers. The page shows names out of the traffic: by itself only to this machine, or where it was asked
for. Whatever is wrong with it, the monitor goes on.
"""

import ipaddress
import math
import time
from collections.abc import Callable, Iterable
from socketserver import ThreadingMixIn
from threading import BoundedSemaphore, Lock, Thread
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app

from wirecheck.streaming.run.metrics_page import Agent, Page

Front = Callable[[list[Agent]], str]
"""The page for people, as HTML. Raises OSError or LookupError where there is nothing to show."""
IDLE_S = 10
MOST = 32
FRESH_S = 5.0
"""A page that was made is shown for so long; making it reads the tables."""
TEXT = ("Content-Type", "text/plain; charset=utf-8")
HTML = (
    ("Content-Type", "text/html; charset=utf-8"),
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
)


class Handler(WSGIRequestHandler):
    timeout = IDLE_S

    def log_message(self, *_: Any) -> None:
        """Nothing: who asks is nobody's business."""


class Server(ThreadingMixIn, WSGIServer):
    """A thread a client, MOST at a time; who comes then waits in the kernel's queue."""

    daemon_threads = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.room = BoundedSemaphore(MOST)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self.room.acquire(timeout=IDLE_S):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self.room.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.room.release()

    def handle_error(self, *_: Any) -> None:
        """A client that went away is nobody's news."""


class Cached:
    """The page, made when it is asked for and not more often than every FRESH_S."""

    def __init__(self, front: Front) -> None:
        self.front, self.lock = front, Lock()
        self.text, self.made_s = "", -math.inf

    def __call__(self, page: Page) -> str:
        with self.lock:
            if time.monotonic() - self.made_s >= FRESH_S:
                self.text = self.front(page.agents())
                self.made_s = time.monotonic()
            return self.text


def serve(page: Page, address: str, port: int, front: Front | None = None) -> WSGIServer:
    """/metrics, /-/healthy, /-/ready and, where there is a `front`, the page at /; from threads of their own.

    Raises OSError where the port is taken.
    """
    registry = CollectorRegistry()
    registry.register(page)
    metrics = make_wsgi_app(registry)
    shown = Cached(front) if front else None

    def app(environ: dict[str, Any], respond: Any) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if environ.get("REQUEST_METHOD") not in {"GET", "HEAD"}:
            return answer(respond, "405 Method Not Allowed", "only GET", ("Allow", "GET, HEAD"))
        if path == "/metrics":
            return metrics(environ, respond)  # type: ignore[no-any-return]
        if path == "/" and shown:
            return people(respond, shown, page)
        asked = {"/-/healthy": healthy, "/-/ready": ready}.get(path)
        if asked is None:
            return answer(respond, "404 Not Found", f"there are {', '.join(paths(shown))}")
        wrong = asked(page)
        return answer(respond, "503 Service Unavailable" if wrong else "200 OK", wrong or "ok")

    server = make_server(address, port, app, Server, handler_class=Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    return server


def paths(shown: Cached | None) -> list[str]:
    return [*(["/"] if shown else []), "/metrics", "/-/healthy", "/-/ready"]


def people(respond: Any, shown: Cached, page: Page) -> Iterable[bytes]:
    try:
        text = shown(page)
    except (OSError, LookupError) as wrong:  # no batch is written yet, or the tables are away
        return answer(respond, "503 Service Unavailable", f"nothing to show yet: {wrong}")
    respond("200 OK", list(HTML))
    return [text.encode("utf-8", "replace")]


def answer(respond: Any, status: str, text: str, *headers: tuple[str, str]) -> Iterable[bytes]:
    respond(status, [TEXT, *headers])
    return [f"{text}\n".encode()]


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


def ready(page: Page) -> str:
    return "" if page.ready else "starting"
