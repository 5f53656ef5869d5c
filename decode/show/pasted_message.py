"""One message by itself, as a user pasted it: which bytes are the message, its API and version, and its line.

It may begin with its size. A request states its own API and version, a response does not. If the bytes and the options
disagree, the error shows both; nothing is guessed from bytes that decode by chance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wirecheck.decode.api_names import names
from wirecheck.decode.dialect import read, suggested
from wirecheck.decode.layouts.layout import SIDES
from wirecheck.decode.message import Status
from wirecheck.decode.show.message_filter import key_of
from wirecheck.decode.show.message_head import facts
from wirecheck.decode.show.message_lines import PLAIN, enveloped, verdict
from wirecheck.decode.wire import REQUEST, known, pack

if TYPE_CHECKING:
    from wirecheck.decode.show.message_lines import Line, Reading

Ids = tuple[int, int]  # API key and version
SIZE_BYTES = IDS_BYTES = 4


def single(
    data: bytes, side: str, api: str | None = None, version: int | None = None, reading: Reading = PLAIN
) -> Line:
    """The line of one message, header and body; its size may stand in front.

    Raises ValueError if api and version are missing, unknown, or differ from those in the request.
    """
    key = None if api is None else key_of(api)
    candidates = _request(data, key, version) if SIDES.index(side) == REQUEST else _response(data, key, version)
    found = [_line(whole, side, ids, reading) for whole, ids in candidates]
    return next((line for line in found if "body" in line), found[-1])


def _request(data: bytes, key: int | None, version: int | None) -> list[tuple[bytes, Ids]]:
    """The bytes that may be the request, without and with a size in front, and what each is."""
    is_given = key is not None and version is not None
    if len(data) < IDS_BYTES:
        if key is None or version is None:
            raise ValueError(f"{len(data)} bytes do not say which API and version they are a request of")
        return [(data, (key, version))]
    behind_size = _sized(data) or (is_given and len(data) >= SIZE_BYTES + IDS_BYTES)
    parts = [data, data[SIZE_BYTES:]] if behind_size else [data]
    fitting = [(part, _ids(part)) for part in parts if _agree(_ids(part), key, version)]
    if not fitting and (key is not None or version is not None):
        asked = f"{'any API' if key is None else names()[key]} {'of any version' if version is None else f'v{version}'}"
        raise ValueError(
            f"these bytes begin as a request of {_named(_ids(data))}, not of {asked}: "
            "a request begins with its header, API key and version first"
        )
    return fitting or [(parts[-1], _ids(parts[-1]))]


def _agree(ids: Ids, key: int | None, version: int | None) -> bool:
    """Whether these may be the ids of what was asked for; where nothing was, of what Kafka has."""
    if key is None and version is None:
        low, high = known()[ids[0]][:2].tolist() if ids[0] in names() else (0, -1)
        return bool(low <= ids[1] <= high)
    return key in {None, ids[0]} and version in {None, ids[1]}


def _response(data: bytes, key: int | None, version: int | None) -> list[tuple[bytes, Ids]]:
    if key is None or version is None:
        raise ValueError("a response does not say its API and version: give those of its request")
    return [(part, (key, version)) for part in ([data, data[SIZE_BYTES:]] if _sized(data) else [data])]


def _sized(data: bytes) -> bool:
    """Whether the bytes are as long as their first four say."""
    return len(data) >= SIZE_BYTES + IDS_BYTES and int.from_bytes(data[:SIZE_BYTES], "big") == len(data) - SIZE_BYTES


def _ids(data: bytes) -> Ids:
    return int.from_bytes(data[:2], "big", signed=True), int.from_bytes(data[2:4], "big", signed=True)


def _named(ids: Ids) -> str:
    return f"{names().get(ids[0], f'key {ids[0]}')} v{ids[1]}"


def _line(data: bytes, side: str, ids: Ids, reading: Reading) -> Line:
    message = pack([data], [SIDES.index(side)], [ids[0]], [ids[1]])
    decoded = read(message, reading.dialects)
    found = {**facts(message, 0), "size": len(data), **verdict(decoded, 0, contents=reading.contents)}
    (draft,) = suggested(message) if decoded.status[0] == Status.POSSIBLY_A_DRAFT else (None,)
    if draft is not None:
        found["undecoded"] = f"{found['undecoded']}; it decodes with --dialect {draft}"
    inside = enveloped(decoded, np.full(1, -1, np.int64), reading)
    return found | ({"enveloped": inside[0]} if inside else {})
