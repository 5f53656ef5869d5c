"""Where in messages lie records and secrets.

A span covers a field's content, never its length, so that a message decodes without it. Of a message that does not
decode nothing is known. In an Envelope these are secret as a whole: messages that do not decode (of a request what
follows its IDs), responses whose request was not seen, and what lies deeper than Envelopes are read.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from wirecheck.decode.dialect import ID_BYTES, ID_IS_AN_EXTRA_TAG
from wirecheck.decode.envelope import DEEPEST, ENVELOPE, unwrapped
from wirecheck.decode.layouts.form import Kind
from wirecheck.decode.layouts.layout import SIDES
from wirecheck.decode.layouts.program import form, programs
from wirecheck.decode.message import Projection, Status, decode, only
from wirecheck.decode.principals import principal_slots
from wirecheck.decode.wire import RESPONSE, wire_offset

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from wirecheck.decode.envelope import Unwrapped
    from wirecheck.decode.message import Decoded
    from wirecheck.decode.wire import Ints, Messages

SECRET, RECORDS = 0, 1
IDS_BYTES = 8  # of a request: key, version, correlation id


class Spans(NamedTuple):
    """Content in messages, as on the wire; ascending within a message."""

    message: Ints
    offset: Ints
    length: Ints
    kind: NDArray[np.int8]
    """SECRET or RECORDS."""


def confidential(messages: Messages, request_of: Ints, *, principals: bool = True) -> tuple[Spans, NDArray[np.int8]]:
    """The spans, and each message's status: of one that is not OK nothing is known.

    `request_of` is, by message, the one in the batch that it answers, -1 if none. Without `principals` these are
    secrets.
    """
    decoded = decode(messages, projection())
    return _all_spans(decoded, request_of, DEEPEST, marked(principals=principals)), decoded.status


def _all_spans(decoded: Decoded, request_of: Ints, steps: int, secret: NDArray[np.bool_]) -> Spans:
    """The spans of messages, and of what their Envelopes carry so many steps down."""
    own = spans_of(decoded, secret)
    if not (decoded.messages.key == ENVELOPE).any():
        return own
    inner = unwrapped(decoded, request_of)
    return joined(own, _within(decoded, inner, steps, secret)) if len(inner.outer) else own


@cache
def confidential_slots() -> NDArray[np.uint8]:
    """By slot: whether its tokens are needed for the spans. Bytes of an unknown tag come with the tag only."""
    kept = principal_slots().astype(np.uint8)
    for slot in programs().slots:
        if slot.secret or slot.kind == Kind.RECORDS:
            kept[slot.number] = 1
            if slot.parent is not None and slot.parent.kind == Kind.UNKNOWN_TAG:
                kept[slot.parent.number] = 1
    return kept


@cache
def projection() -> Projection:
    kept = confidential_slots()
    request = ["request_data", "request_principal", "client_host_address"]
    carried = only({("Envelope", "request"): request, ("Envelope", "response"): ["response_data"]}).kept_slots
    assert carried is not None
    return Projection(kept | carried)


@cache
def marked(*, principals: bool) -> NDArray[np.bool_]:
    """By slot: whether it is a secret or records, or, without `principals`, one of these."""
    found = np.array([slot.secret or slot.kind == Kind.RECORDS for slot in programs().slots])
    return found if principals else found | principal_slots()


def _number(key: int, side: str, name: str) -> int:
    """Of a field of a message's body."""
    return form(key, side).root.children["body"].children[name].number


@cache
def _kinds() -> NDArray[np.int8]:
    return np.array([RECORDS if slot.kind == Kind.RECORDS else SECRET for slot in programs().slots], np.int8)


@cache
def _may_be_draft_id() -> NDArray[np.bool_]:
    """By slot: bytes of an unknown tag where a draft has a topic ID."""
    found = np.zeros(len(programs().slots), np.bool_)
    for (key, side), path in ID_IS_AN_EXTRA_TAG.items():
        found[form(key, SIDES[side]).tables[f"{path}._unknown_tagged_fields"].children["data"].number] = True
    return found


def spans_of(decoded: Decoded, secret: NDArray[np.bool_]) -> Spans:
    """What the tokens of these slots hold."""
    of_draft = _may_be_draft_id()[decoded.field] & (decoded.length == ID_BYTES)
    messages, tokens = decoded.messages, np.flatnonzero(secret[decoded.field] & (decoded.length > 0) & ~of_draft)
    message = np.searchsorted(decoded.token_at[1:], tokens, "right")
    place = decoded.value[tokens]
    place = np.where(place < 0, -1 - place, place)
    return Spans(
        message, wire_offset(messages, message, place), decoded.length[tokens].astype(np.int64),
        _kinds()[decoded.field[tokens]],
    )  # fmt: skip


def _within(decoded: Decoded, carried: Unwrapped, steps: int, secret: NDArray[np.bool_]) -> Spans:
    """Spans of inner messages, in the coordinates of those they came in."""
    inner, outer, request_of = carried
    found = decode(inner, projection())
    readable = (found.status == Status.OK) & ((inner.key != ENVELOPE) | (steps > 1))
    spans = _all_spans(found, request_of, steps - 1, secret) if steps > 1 else spans_of(found, secret)
    begin = _carried_at(decoded, outer)
    open_bytes = np.where(inner.side == RESPONSE, 0, IDS_BYTES)  # which request it was is no secret
    unread = np.flatnonzero(~readable & (inner.size > open_bytes))
    return Spans(
        np.concatenate([outer[spans.message], outer[unread]]),
        np.concatenate([begin[spans.message] + spans.offset, (begin + open_bytes)[unread]]),
        np.concatenate([spans.length, (inner.size - open_bytes)[unread]]),
        np.concatenate([spans.kind, np.full(len(unread), SECRET, np.int8)]),
    )


def _carried_at(decoded: Decoded, outer: Ints) -> Ints:
    """Where the inner message begins in each of these Envelopes."""
    numbers = [
        _number(ENVELOPE, side, name) for side, name in (("request", "requestData"), ("response", "responseData"))
    ]
    tokens = np.flatnonzero(np.isin(decoded.field, numbers))
    place = dict(zip((np.searchsorted(decoded.token_at, tokens, "right") - 1).tolist(), tokens.tolist(), strict=True))
    value = decoded.value[[place[message] for message in outer.tolist()]]
    return wire_offset(decoded.messages, outer, np.where(value < 0, -1 - value, value))


def joined(a: Spans, b: Spans) -> Spans:
    """Both, ascending."""
    order = np.lexsort((np.concatenate([a.offset, b.offset]), np.concatenate([a.message, b.message])))
    return Spans(*(np.concatenate([left, right])[order] for left, right in zip(a, b, strict=True)))
