"""What brokers forward to the controller: the exchanges inside Envelopes.

Knows: that an inner message is seen where and when its Envelope is. Does not know what it says.
Rule: an inner request is its client's word, forwarded; who forwards it is no client of that API.
"""

from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np

from wirecheck.decode.columns import tables
from wirecheck.decode.connection.exchanges import Exchanges
from wirecheck.decode.envelope import ENVELOPE, client_host, principal, unwrapped
from wirecheck.decode.message import Decoded, decode
from wirecheck.decode.wire import REQUEST, RESPONSE, Ints
from wirecheck.judge.claims.batch import Senders
from wirecheck.judge.claims.reduce import Column

PER_EXCHANGE = ("request", "response", "outcome", "out_of_order")
"""Columns of the exchanges; all others are facts that an inner message has from its Envelope."""


class Inside(NamedTuple):
    """The inner exchanges of a batch."""

    exchanges: Exchanges
    decoded: Decoded
    senders: Senders


def inside(exchanges: Exchanges, decoded: Decoded) -> Inside | None:
    """The inner exchanges of a batch; None where it has no Envelopes."""
    if not (decoded.messages.key == ENVELOPE).any():
        return None
    request_of = np.full(len(decoded), -1, np.int64)
    answered = exchanges.response >= 0
    request_of[exchanges.response[answered]] = exchanges.request[answered]
    messages, outer, _ = unwrapped(decoded, request_of)
    if not len(messages):
        return None
    inner = np.full(len(decoded), -1, np.int64)
    inner[outer] = np.arange(len(outer))
    request, response = halves(exchanges.request, inner), halves(exchanges.response, inner)
    facts: dict[str, Any] = {f.name: getattr(exchanges, f.name) for f in fields(exchanges)}
    columns: dict[str, Any] = {name: value for name, value in facts.items() if isinstance(value, np.ndarray)}
    rows = (request >= 0) | (response >= 0)
    found = replace(
        exchanges,
        messages=messages,
        **{name: column[outer] for name, column in columns.items() if name not in PER_EXCHANGE},
        request=request[rows],
        response=response[rows],
        outcome=exchanges.outcome[rows],
        out_of_order=exchanges.out_of_order[rows],
    )
    assert set(messages.side.tolist()) <= {REQUEST, RESPONSE}
    envelope = np.where(request_of[outer] >= 0, request_of[outer], outer)
    return Inside(found, decode(messages), senders(decoded, envelope))


def senders(decoded: Decoded, envelope: Ints) -> Senders:
    """By the Envelope request of each inner message: whom it names; None where it was not seen, or has another form."""
    table = tables(decoded, ENVELOPE, "request")[""]
    named: list[tuple[str | None, str | None]] = [(None, None)]
    for row in range(len(table)):
        data, address = (table[name].field(row) for name in ("request_principal", "client_host_address"))
        named.append(
            (
                principal(None if data is None else data.data.tobytes()),
                client_host(None if address is None else address.data.tobytes()),
            )
        )
    place = {int(message): row + 1 for row, message in enumerate(table.message)}
    codes = np.array([place.get(message, 0) for message in envelope.tolist()], np.int64)
    return Senders(*(Column(codes, [one[part] for one in named]) for part in (0, 1)))


def halves(half: Ints, inner: Ints) -> Ints:
    """Per exchange its inner message, -1 where it has none."""
    return np.where(half >= 0, inner[half], -1)
