"""Stateless, by cell: exchanges in, what they claim out.

Knows: that one cell of exchanges is decoded in one run of the interpreter and reduced to claims at once, so that only
claims travel on. What a message says is `decode.message`'s affair, what it claims `streaming.judge.claims`'.
Rule: one row in, one row out, whatever is in it; a message that cannot be decoded is a value, never an exception. Its
dialect is what its connection was heard to speak by then, in whatever cell (`follow.py`): how a connection is cut into
cells does not change what is claimed.
"""

from dataclasses import dataclass

from decode.dialect import read
from decode.following.exchanges import Connection, Exchanges
from decode.message import Messages
from streaming.exchange_rows import exchange_rows
from streaming.judge.claims import claims, pack
from streaming.packed import from_cell, to_cell
from streaming.settings import Settings
from streaming.tagged import CLAIMS, EXCHANGES, Tagged


@dataclass(frozen=True)
class Claimed:
    """What one cell of exchanges came down to."""

    claims: bytes
    """Packed by `streaming.judge.claims`."""
    exchanges: bytes | None
    """Rows of the exchanges table, where they are wanted."""


def decode_row(row: Tagged, settings: Settings) -> Tagged:
    """Exchanges become claims; every other route passes."""
    if row.route != EXCHANGES:
        return row
    exchanges, spoken = from_cell(row.cell, Exchanges, Messages, Connection)
    decoded = read(exchanges.messages, spoken, settings.dialect)
    rows = exchange_rows(exchanges, decoded) if settings.exchanges else None
    return row._replace(route=CLAIMS, cell=to_cell(Claimed(pack(claims(exchanges, decoded)), rows)))
