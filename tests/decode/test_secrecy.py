"""Secrets: every marked field is found where it lies, in Envelopes too; a message without them decodes as well."""

import base64
import random
import re

import numpy as np
import pytest

from tests.build import CASES, build, case, plain
from tests.depth import some
from wirecheck.decode.envelope import DEEPEST, ENVELOPE
from wirecheck.decode.layouts.form import Kind
from wirecheck.decode.layouts.layout import SIDES
from wirecheck.decode.layouts.program import Dialect, programs
from wirecheck.decode.message import Status, decode
from wirecheck.decode.nested import nested
from wirecheck.decode.secrecy import RECORDS, SECRET, confidential
from wirecheck.decode.wire import REQUEST, RESPONSE, pack

WITH_SECRETS = [
    c for c in CASES
    if c[0] == Dialect.KAFKA and c[1].side in {"request", "response"} and c[1].key != ENVELOPE
    and any(s.secret or s.kind == Kind.RECORDS for s in programs().forms[SIDES.index(c[1].side), c[1].key].root.walk())
]  # fmt: skip
ALONE = np.array([-1])


KEPT = {"requestData", "requestPrincipal", "clientHostAddress", "responseData"}
"""Bytes of an Envelope, which is read and redacted inside."""
CONTENT = re.compile(r"(^|[a-z])([vV]alue|[mM]etadata|[pP]ayload|[tT]oken(Id)?|[rR]eason|[eE]rrorMessage)$")


def test_bytes_and_content_are_secret_in_every_message():
    """An allow list: a field that a new release brings is secret unless its layout says `open`."""
    fields = [field for layout in {id(c[1]): c[1] for c in CASES}.values() for field in walk(layout.fields)]
    assert {field.name for field in fields if field.type == "bytes" and not field.secret} == KEPT
    assert [f.name for f in fields if f.type == "string" and CONTENT.search(f.name) and not f.secret] == []


def walk(fields):
    for field in fields:
        yield field
        yield from walk(field.fields)


@pytest.mark.parametrize("seed", some(range(3)))
def test_bytes_of_tags_that_no_layout_has_are_secret(seed):
    rng, seen = random.Random(seed), 0
    for c in WITH_SECRETS:
        _, layout, version = c
        built = build(layout, version, rng)
        spans, _ = confidential(pack([built.data], [SIDES.index(layout.side)], [layout.key], [version]), ALONE)
        found = [built.data[at : at + n] for at, n in zip(spans.offset, spans.length, strict=True)]
        tags = [data for data in unknown_tags(built.value) if data]
        assert [data for data in tags if data not in found] == []
        seen += len(tags)
    assert seen > 100


def unknown_tags(value):
    if isinstance(value, list):
        for one in value:
            yield from unknown_tags(one)
    elif isinstance(value, dict):
        for name, one in value.items():
            if name == "_unknownTaggedFields":
                yield from (base64.b64decode(tag["data"]) for tag in one)
            else:
                yield from unknown_tags(one)


def test_names_are_no_secrets():
    names = {
        "transactionalId",
        "groupId",
        "clientId",
        "memberId",
        "principal",
        "ownerPrincipalName",
        "topic",
        "mechanism",
    }
    fields = [slot for form in programs().names.values() for slot in form.root.walk()]
    assert not [slot.label for slot in fields if slot.name in names and slot.secret]


@pytest.mark.parametrize("seed", some(range(3)))
def test_a_message_without_its_secrets_says_the_same_and_only_lengths_of_them(seed):
    rng = random.Random(seed)
    for c in WITH_SECRETS:
        _, layout, version = c
        data = build(layout, version, rng).data
        side = SIDES.index(layout.side)
        whole = pack([data], [side], [layout.key], [version])
        spans, status = confidential(whole, ALONE)
        assert Status(status[0]) == Status.OK
        cuts = list(zip(spans.offset.tolist(), spans.length.tolist(), strict=True))
        trimmed = pack([data], [side], [layout.key], [version], [cuts])
        kept, full = decode(trimmed), decode(whole)
        assert nested(kept, 0, contents=False) == nested(full, 0, contents=False)
        again, _ = confidential(trimmed, ALONE)
        assert [column.tolist() for column in again] == [column.tolist() for column in spans]


def test_records_and_secrets_are_told_apart():
    produce, sasl = case("Produce", "request", 9), case("SaslAuthenticate", "request", 2)
    token = base64.b64encode(b"token").decode()
    body = {"topicData": [{"partitionData": [{"records": token}]}]}
    built = [build(produce[1], 9, random.Random(0), body), build(sasl[1], 2, random.Random(0), {"authBytes": token})]
    spans, _ = confidential(pack([b.data for b in built], [REQUEST] * 2, [0, 36], [9, 2]), np.array([-1, -1]))
    assert spans.kind.tolist() == [RECORDS, SECRET]
    assert spans.message.tolist() == [0, 1]
    assert [b.data[o : o + n] for b, o, n in zip(built, spans.offset, spans.length, strict=True)] == [b"token"] * 2


CONFIGS = {"resources": [{"configs": [{"name": "n", "value": "hidden"}]}]}


def wrapped(side, data):
    name = "requestData" if side == "request" else "responseData"
    body = {name: base64.b64encode(data).decode()}
    return plain("Envelope", side, 0, body)[4:]


def test_secrets_inside_envelopes_are_found_where_they_lie_outside():
    inner = plain("IncrementalAlterConfigs", "request", 1, CONFIGS)[4:]
    answer = plain("IncrementalAlterConfigs", "response", 1, {"responses": []})[4:]
    outer = [wrapped("request", inner), wrapped("response", answer)]
    spans, status = confidential(pack(outer, [REQUEST, RESPONSE], [58, 58], [0, 0]), np.array([-1, 0]))
    assert not status.any()
    assert spans.message.tolist() == [0]
    assert outer[0][spans.offset[0] : spans.offset[0] + spans.length[0]] == b"hidden"


def test_an_enveloped_response_without_its_request_is_a_secret_as_a_whole():
    outer = wrapped("response", b"who knows")
    spans, _ = confidential(pack([outer], [RESPONSE], [58], [0]), ALONE)
    assert outer[spans.offset[0] : spans.offset[0] + spans.length[0]] == b"who knows"


def test_of_a_message_that_does_not_decode_nothing_is_said():
    spans, status = confidential(pack([b"\0\0\0\x09"], [REQUEST], [0], [9]), ALONE)
    assert (len(spans.message), Status(status[0])) == (0, Status.TRUNCATED)


def test_an_enveloped_request_that_does_not_decode_keeps_its_ids_only():
    outer = wrapped("request", b"\x00\x21\x00\x01\x00\x00\x00\x09" + b"who knows")
    spans, _ = confidential(pack([outer], [REQUEST], [58], [0]), ALONE)
    assert outer[spans.offset[0] : spans.offset[0] + spans.length[0]] == b"who knows"


def test_a_secret_is_found_in_envelopes_within_envelopes():
    inner = plain("IncrementalAlterConfigs", "request", 1, CONFIGS)[4:]
    for steps in range(1, DEEPEST + 1):
        outer = inner
        for _ in range(steps):
            outer = wrapped("request", outer)
        spans, status = confidential(pack([outer], [REQUEST], [58], [0]), ALONE)
        assert Status(status[0]) == Status.OK
        assert [outer[o : o + n] for o, n in zip(spans.offset, spans.length, strict=True)] == [b"hidden"]


def test_what_lies_deeper_than_envelopes_are_read_is_a_secret_behind_its_ids():
    inner = deepest = b"\x00\x13\x00\x07\x00\x00\x00\x09" + b"who knows"
    for steps in range(DEEPEST + 1):
        inner = wrapped("request", inner)
        deepest = inner if steps == 0 else deepest
    spans, _ = confidential(pack([inner], [REQUEST], [58], [0]), ALONE)
    assert [inner[o : o + n] for o, n in zip(spans.offset, spans.length, strict=True)] == [deepest[8:]]
