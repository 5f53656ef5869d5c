"""Messages as lines: what `wirecheck decode` prints.

    for found in of(tables, Filter(apis=("Fetch",)), contents=False): print(json.dumps(found))

Knows the outer names of a line (snake case; the body keeps Kafka's own names and form, so that it can be held against
a broker's request log), which lines a person asked for, and their order. What an Envelope carries stands beside its
body, as `enveloped`. Refuses to know files, options and how a line is made pretty (decode/page.py).
Rule: a line is made of one message and its frame; a message that was not decoded has a reason where the body would be.
"""

from __future__ import annotations

import base64
import heapq
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from decode.dialect import AUTO, hear, read
from decode.envelope import CARRIED, ENVELOPE, unwrapped
from decode.following.connection import Follower
from decode.following.segments import segments
from decode.layout import layouts
from decode.message import REASONS, Dialect, Status, pack
from decode.nested import nested
from decode.wire import REQUEST, SIDES, client_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from decode.dialect import Heard
    from decode.following.connection import Exchanges
    from decode.message import Decoded
    from decode.wire import Ints, Messages

__all__ = ["Filter", "Reading", "of", "single"]

Line = dict[str, Any]
IDS_BYTES = 4  # a request begins with its API key and version
WAIT_NS = 10_000_000_000  # a line waits this long (capture time) for an earlier one: a long poll's request comes late


@dataclass(frozen=True)
class Reading:
    """How messages are read and shown."""

    dialect: str = AUTO
    """A name of decode.dialect.DIALECTS; auto: the one that each connection is found to speak."""
    contents: bool = False
    """Show records and secrets, not only their lengths."""


PLAIN = Reading()


@dataclass(frozen=True)
class Filter:
    """Which messages are wanted; empty fields want all. ValueError for an API that does not exist."""

    apis: tuple[str, ...] = ()
    """API names, in any case; an Envelope also passes by what it carries."""
    connection: str | None = None
    """ip:port of one end, or ip:port>ip:port, client first."""
    topic: str | None = None
    """A topic's name or id that the message must carry."""

    def __post_init__(self) -> None:
        names = {name.lower() for name in api_names().values()}
        unknown = [api for api in self.apis if api.lower() not in names]
        if unknown:
            raise ValueError(f"{unknown[0]}: no such API; Kafka calls them {', '.join(sorted(api_names().values()))}")

    def rows(self, exchanges: Exchanges, inside: dict[int, Line]) -> Iterator[int]:
        """Messages that pass by what is known before their values are built."""
        wanted = {key for key, api in api_names().items() if api.lower() in {name.lower() for name in self.apis}}
        here = [self.passes(connection.name) for connection in exchanges.connections]
        for i, key in enumerate(exchanges.messages.key.tolist()):
            if here[exchanges.connection[i]] and (not wanted or wanted & {key, inside.get(i, {}).get("key")}):
                yield i

    def passes(self, name: str) -> bool:
        return self.connection is None or self.connection == name or self.connection in name.split(">")

    def keeps(self, found: Line) -> bool:
        return self.topic is None or self.topic in texts([found.get("body"), found.get("enveloped", {}).get("body")])


def of(tables: Iterable[pa.Table], wanted: Filter, reading: Reading = PLAIN) -> Iterator[Line]:
    """Lines of all messages in frames tables, in order of time but for those that become known after WAIT_NS."""
    waiting: list[tuple[int, int, Line]] = []
    order, newest_ns = count(), 0
    heard: Heard = {}
    for exchanges in followed(tables):
        spoken = hear(exchanges.messages, exchanges.serial, exchanges.exchange, heard)
        decoded = read(exchanges.messages, spoken, reading.dialect)
        clients, inside = client_ids(exchanges), enveloped(decoded, answers(exchanges), reading)
        for i in wanted.rows(exchanges, inside):
            found = line(exchanges, decoded, i, clients.get(i), contents=reading.contents)
            if i in inside:
                found["enveloped"] = inside[i]
            newest_ns = max(newest_ns, int(exchanges.ts_ns[i]))
            if wanted.keeps(found):
                heapq.heappush(waiting, (int(exchanges.ts_ns[i]), next(order), found))
        while waiting and waiting[0][0] < newest_ns - WAIT_NS:
            yield heapq.heappop(waiting)[-1]
    while waiting:
        yield heapq.heappop(waiting)[-1]


def followed(tables: Iterable[pa.Table]) -> Iterator[Exchanges]:
    follower = Follower()
    for table in tables:
        here = segments(table)
        if len(here):
            yield follower.receive(here)
    yield follower.drain()


def client_ids(exchanges: Exchanges) -> dict[int, str | None]:
    """Of every message the client id of its request, where that was seen: only requests carry one."""
    out: dict[int, str | None] = {}
    for request, response in zip(exchanges.request.tolist(), exchanges.response.tolist(), strict=True):
        if request >= 0:
            out[request] = out[response] = client_id(exchanges.messages, request)
    return out


def answers(exchanges: Exchanges) -> Ints:
    """By message, the one it answers; -1 if none."""
    out = np.full(len(exchanges.messages), -1, np.int64)
    answered = exchanges.response >= 0
    out[exchanges.response[answered]] = exchanges.request[answered]
    return out


def enveloped(decoded: Decoded, request_of: Ints, reading: Reading) -> dict[int, Line]:
    """By Envelope, what it carries: a line without time, place and frame."""
    if not (decoded.messages.key == ENVELOPE).any():
        return {}
    messages, outer = unwrapped(decoded, request_of)
    inner, row = alone(messages, reading), {at: i for i, at in enumerate(outer.tolist())}
    found = {}
    for envelope, i in row.items():
        request = i if messages.side[i] == REQUEST else row.get(int(request_of[envelope]))
        named = {
            **facts(messages, i),
            "client_id": None if request is None else client_id(messages, request),
            "size": int(messages.size[i]),
        }
        found[envelope] = named | (without_ids(messages, i) or verdict(inner, i, contents=reading.contents))
    return found


def without_ids(messages: Messages, i: int) -> Line:
    """Why there is no body, of a carried request whose API key and version are not there; {} if they are."""
    if messages.side[i] != REQUEST or messages.key[i] >= 0:
        return {}
    if messages.size[i] < IDS_BYTES:
        return {"malformed": f"{REASONS[Status.TRUNCATED].__name__} at byte {messages.size[i]}"}
    first = messages.span_offset[messages.span_at[i] : messages.span_at[i + 1]][:1].tolist()
    return {"undecoded": f"left-out at byte {first[0]}"} if first and first[0] < IDS_BYTES else {}


def line(exchanges: Exchanges, decoded: Decoded, i: int, client: str | None, *, contents: bool) -> Line:
    """Message i as the JSON object of DESIGN section 7."""
    messages = exchanges.messages
    ends = exchanges.connections[exchanges.connection[i]].name.split(">")
    src, dst = ends if messages.side[i] == REQUEST else ends[::-1]
    return {
        "time": rfc3339(int(exchanges.ts_ns[i])),
        "src": src,
        "dst": dst,
        **facts(messages, i),
        "client_id": client,
        "size": int(messages.size[i]),
        "frame": {
            "source": exchanges.names[exchanges.source[i]],
            "first": int(exchanges.frame_first[i]),
            "last": int(exchanges.frame_last[i]),
        },
        **verdict(decoded, i, contents=contents),
    }


def single(digits: str, api: str, version: int, side: str, reading: Reading = PLAIN) -> Line:
    """One message given in hex, header and body. ValueError where the arguments name none."""
    keys = {name.lower(): key for key, name in api_names().items()}
    if api.lower() not in keys:
        raise ValueError(f"{api}: no such API; Kafka calls them {', '.join(sorted(api_names().values()))}")
    data = bytes.fromhex(digits)
    message = pack([data], [SIDES.index(side)], [keys[api.lower()]], [version])
    decoded = alone(message, reading)
    found = {**facts(message, 0), "size": len(data), **verdict(decoded, 0, contents=reading.contents)}
    inside = enveloped(decoded, np.full(1, -1, np.int64), reading)
    return found | ({"enveloped": inside[0]} if inside else {})


def alone(messages: Messages, reading: Reading) -> Decoded:
    """Messages of which nothing is known that was said before or after."""
    each = np.arange(len(messages))
    return read(messages, hear(messages, each, each, {}), reading.dialect)


def facts(messages: Messages, i: int) -> Line:
    """What is known of a message whether it decodes or not."""
    key, version = int(messages.key[i]), int(messages.version[i])
    return {
        "side": SIDES[messages.side[i]],
        "key": key if key >= 0 else None,
        "api": api_names().get(key),
        "version": version if version >= 0 else None,
        "correlation_id": int(messages.correlation_id[i]),
    }


def verdict(decoded: Decoded, i: int, *, contents: bool) -> Line:
    """The body, and of a draft its name; or why there is none: `undecoded` if we cannot know, `malformed` if wrong."""
    status = Status(decoded.status[i])
    if status == Status.OK:
        spoken = Dialect(decoded.dialect[i])
        drafted = {"dialect": spoken.label} if spoken >= Dialect.KIP516_DRAFT else {}
        body = nested(decoded, i, contents=contents)["body"]
        return {**drafted, "body": body if contents else body | carried(body)}
    where = f" at byte {int(decoded.error_at[i])}"
    if status < Status.TRUNCATED:
        return {"undecoded": status.name.lower().replace("_", "-") + (where if status == Status.LEFT_OUT else "")}
    return {"malformed": REASONS[status].__name__ + where}


def carried(body: Line) -> Line:
    """Of an Envelope the bytes that carry a message, as a length: they may hold secrets, and are shown decoded."""
    here = {name: body[name] for name in CARRIED if isinstance(body.get(name), str)}
    return {name: {"left_out": len(base64.b64decode(data))} for name, data in here.items()}


def rfc3339(ts_ns: int) -> str:
    """UTC with microseconds."""
    seconds, rest = divmod(ts_ns, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest // 1000:06d}Z"


@cache
def api_names() -> dict[int, str]:
    """Key to the name that Kafka's own log uses."""
    return {layout.key: layout.api for layout in layouts("kafka") if layout.side == "request"}


def texts(body: Any) -> Iterator[str]:
    """Every string in a body."""
    if isinstance(body, str):
        yield body
    elif isinstance(body, dict | list):
        for inner in body.values() if isinstance(body, dict) else body:
            yield from texts(inner)
