"""Envelopes: what is inside, request and response, and what cannot be known."""

import base64
import random

import numpy as np

from tests.build import build, case
from wirecheck.decode.envelope import ENVELOPE, unwrapped
from wirecheck.decode.message import Status, decode
from wirecheck.decode.nested import nested
from wirecheck.decode.wire import REQUEST, RESPONSE, pack

RNG = random.Random(0)
INNER = [build(case("CreateTopics", side, 7)[1], 7, RNG) for side in ("request", "response")]


def envelope(side, data):
    name = "requestData" if side == "request" else "responseData"
    body = {name: None if data is None else base64.b64encode(data).decode(), "errorCode": 0}
    return build(case("Envelope", side, 0)[1], 0, random.Random(1), body).data


def batch(request=INNER[0].data, response=INNER[1].data, cuts=()):
    outer = [envelope("request", request), envelope("response", response)]
    return decode(pack(outer, [REQUEST, RESPONSE], [58, 58], [0, 0], [list(cuts), []]))


def test_the_inner_request_and_its_response_are_messages():
    messages, outer, _ = unwrapped(batch(), np.array([-1, 0]))
    out = decode(messages)
    assert (outer.tolist(), messages.version.tolist(), messages.key.tolist()) == ([0, 1], [7, 7], [19, 19])
    assert [nested(out, i) for i in range(2)] == [built.value for built in INNER]


def test_a_response_whose_request_was_not_seen_is_not_guessed():
    messages, *_ = unwrapped(batch(), np.array([-1, -1]))
    assert [Status(s).name for s in decode(messages).status] == ["OK", "NO_REQUEST"]


def test_an_empty_envelope_has_no_message_or_an_unknown_one():
    messages, outer, _ = unwrapped(batch(request=b"\0", response=None), np.array([-1, 0]))
    assert (outer.tolist(), messages.key.tolist()) == ([0], [-1])


def test_what_was_left_out_outside_is_left_out_inside():
    at = batch().messages.data.tobytes().index(INNER[0].data)
    messages, *_ = unwrapped(batch(cuts=[(at + 8, 2)]), np.array([-1, 0]))
    assert (messages.span_offset.tolist(), messages.span_length.tolist()) == ([8], [2])
    assert Status(decode(messages).status[0]) == Status.LEFT_OUT
    unseen, *_ = unwrapped(batch(cuts=[(at + 1, 2)]), np.array([-1, 0]))
    assert unseen.key.tolist() == [-1, -1]


def test_an_envelope_in_an_envelope_is_unwrapped_twice():
    outer = batch(*(envelope(side, data.data) for side, data in zip(("request", "response"), INNER, strict=True)))
    first = unwrapped(outer, np.array([-1, 0]))
    assert (first.messages.key.tolist(), first.request_of.tolist()) == ([ENVELOPE, ENVELOPE], [-1, 0])
    second = unwrapped(decode(first.messages), first.request_of)
    out = decode(second.messages)
    assert (second.outer.tolist(), second.request_of.tolist()) == ([0, 1], [-1, 0])
    assert [nested(out, i) for i in range(2)] == [built.value for built in INNER]
