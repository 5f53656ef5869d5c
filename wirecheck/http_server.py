"""The HTTP server of agent and monitor: a few GET routes, with bounded time and threads.

A request has REQUEST_S seconds from accept until its last byte is sent. At most MOST requests are unfinished; one more
closes the oldest. At most AT_ONCE are accepted at a time, so descriptors are bounded, too. One thread serves all
connections, and one each slow route.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException, parse_headers
from io import BytesIO
from queue import SimpleQueue
from threading import Thread
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry, make_wsgi_app

REQUEST_S = 10.0
MOST = 64
AT_ONCE = 8
WAITING = 1024
HEAD_BYTES = 16 << 10
"""The longest request line with headers."""
_PIECE = 64 << 10


class Request(NamedTuple):
    path: str
    query: str
    headers: Mapping[str, str]


class Answer(NamedTuple):
    body: bytes
    status: int = HTTPStatus.OK
    headers: Collection[tuple[str, str]] = (("Content-Type", "text/plain; charset=utf-8"),)


@dataclass(frozen=True)
class Route:
    answer: Callable[[Request], Answer]
    slow: bool = True
    """It may take more than a millisecond, so it has a thread of its own."""
    guarded: bool = False
    """It shows names from the traffic: only for a Host that DNS rebinding cannot present."""


def text(line: str, status: int = HTTPStatus.OK) -> Answer:
    return Answer(f"{line}\n".encode(), status)


def metrics(registry: CollectorRegistry) -> Route:
    """A page for Prometheus, in the format and encoding it asks for."""
    app = make_wsgi_app(registry)

    def answer(request: Request) -> Answer:
        taken: list[Any] = []
        environ = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in request.headers.items()}
        environ |= {"REQUEST_METHOD": "GET", "PATH_INFO": request.path, "QUERY_STRING": request.query}
        body = b"".join(app(environ, lambda status, headers: taken.extend((status, headers))))
        return Answer(body, int(taken[0].split()[0]), taken[1])

    return Route(answer)


def host_is_known(host: str, names: Collection[str]) -> bool:
    """Whether a Host header is an IP literal, localhost or one of these names. A rebound DNS name is none of them."""
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
    name = name.lower().removesuffix(".")
    with suppress(ValueError):
        return bool(ipaddress.ip_address(name))
    return name == "localhost" or name in {known.lower().removesuffix(".") for known in names}


class Worker:
    """One thread that answers a route's requests in turn. It is a daemon: a file system that hangs does not hold up the
    end of the process.
    """

    def __init__(self, route: Route, loop: asyncio.AbstractEventLoop) -> None:
        self._route, self._loop = route, loop
        self._waiting: SimpleQueue[tuple[Request, asyncio.Future[Answer]] | None] = SimpleQueue()
        Thread(target=self._work, name="http worker", daemon=True).start()

    def put(self, request: Request) -> asyncio.Future[Answer]:
        future = self._loop.create_future()
        self._waiting.put((request, future))
        return future

    def close(self) -> None:
        self._waiting.put(None)

    def _work(self) -> None:
        while job := self._waiting.get():
            request, future = job
            if future.cancelled():
                continue
            answer = answered(self._route, request)
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(_set, future, answer)


def _set(future: asyncio.Future[Answer], answer: Answer) -> None:
    if not future.done():  # its client was dropped meanwhile
        future.set_result(answer)


def answered(route: Route, request: Request) -> Answer:
    try:
        return route.answer(request)
    except Exception as wrong:  # noqa: BLE001  whatever is wrong with a page, agent and monitor continue
        return text(f"cannot answer: {type(wrong).__name__}", HTTPStatus.INTERNAL_SERVER_ERROR)


class Server:
    """Answers on one socket until `stopping` is set."""

    def __init__(self, routes: Mapping[str, Route], names: Collection[str]) -> None:
        self._routes, self._names = routes, names
        self._unfinished: dict[asyncio.Task[Any], None] = {}
        """In the order in which they came."""
        self._workers: dict[str, Worker] = {}

    async def run(self, listening: socket.socket, stopping: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda *_: None)  # what goes wrong with a connection ends that connection
        self._workers = {path: Worker(route, loop) for path, route in self._routes.items() if route.slow}
        server = await asyncio.start_server(self._serve, sock=listening, limit=HEAD_BYTES, backlog=AT_ONCE)
        listening.listen(WAITING)  # asyncio has one number for both
        await stopping.wait()
        server.close()
        for task in list(self._unfinished):
            task.cancel()
        for worker in self._workers.values():
            worker.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._unfinished) >= MOST:
            oldest = next(iter(self._unfinished))
            del self._unfinished[oldest]
            oldest.cancel()
        self._unfinished[task] = None
        try:
            async with asyncio.timeout(REQUEST_S):
                await self._exchange(reader, writer)
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # too slow, gone, or dropped for a newer one: there is nobody to answer
        finally:
            self._unfinished.pop(task, None)
            writer.transport.abort()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            method, answer = "GET", text("the request is too long", HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        else:
            method, answer = await self._answered(head)
        status = HTTPStatus(answer.status)
        lines = [f"HTTP/1.0 {status.value} {status.phrase}", *(f"{name}: {value}" for name, value in answer.headers)]
        lines += [f"Content-Length: {len(answer.body)}", "Connection: close", "", ""]
        writer.write("\r\n".join(lines).encode("latin-1"))
        body = memoryview(b"" if method == "HEAD" else answer.body)
        for at in range(0, len(body), _PIECE):
            writer.write(body[at : at + _PIECE])
            await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def _answered(self, head: bytes) -> tuple[str, Answer]:
        """The method, and what to answer."""
        line, _, rest = head.partition(b"\r\n")
        words = line.decode("latin-1").split(" ")
        if len(words) != 3 or not words[1].startswith("/") or not words[2].startswith("HTTP/1."):
            return "GET", text("not an HTTP/1 request", HTTPStatus.BAD_REQUEST)
        try:
            headers = parse_headers(BytesIO(rest))
        except HTTPException:
            return "GET", text("too many headers", HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        method, (path, _, query) = words[0], words[1].partition("?")
        if method not in {"GET", "HEAD"}:
            refused = text("only GET", HTTPStatus.METHOD_NOT_ALLOWED)
            return method, refused._replace(headers=[*refused.headers, ("Allow", "GET, HEAD")])
        route = self._routes.get(path)
        if route is None:
            return method, text(f"there are {', '.join(self._routes)}", HTTPStatus.NOT_FOUND)
        hosts = headers.get_all("Host") or []
        if route.guarded and not (len(hosts) == 1 and host_is_known(hosts[0], self._names)):
            return method, text(
                "this page is served to an IP address, localhost or a name given with --allowed-host",
                HTTPStatus.MISDIRECTED_REQUEST,
            )
        request = Request(path, query, dict(headers.items()))
        return method, await self._workers[path].put(request) if route.slow else answered(route, request)


@contextmanager
def serving(routes: Mapping[str, Route], address: str, port: int, allowed_hosts: Collection[str] = ()) -> Iterator[int]:
    """Answer from threads of its own meanwhile; yields the port. Raises OSError where it cannot listen there."""
    listening = listener(address, port)
    loop, stopping = asyncio.new_event_loop(), asyncio.Event()
    server = Server(routes, {address, *allowed_hosts} - {""})

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(server.run(listening, stopping))

    thread = Thread(target=run, name="http", daemon=True)
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        loop.call_soon_threadsafe(stopping.set)
        thread.join()
        listening.close()


def listener(address: str, port: int) -> socket.socket:
    found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, *_, place = found[0]
    both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
    return socket.create_server(place[:2], family=family, dualstack_ipv6=both)
