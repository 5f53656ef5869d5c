"""The law of lenient readers: what Kafka's readers read is a change, whatever no writer of Kafka's would write.

For each administrative API, each version and each leniency: the change is listed as that of the request written well.
And whatever is judged of well-written requests is judged of such ones, with a note about their form besides.
"""

import struct
from itertools import cycle

import pytest

from tests.build import CASES, filled, plain
from tests.depth import some
from tests.judge.lab import Lab
from tests.judge.test_checks import CASES as OF_CHECKS
from tests.judge.test_checks import read
from tests.questions.test_changes import BROKER, CLIENT, MS, found
from tests.traffic import Talk
from wirecheck.decode.connection.exchanges import CLOSED_BY_SERVER
from wirecheck.decode.layouts.program import Dialect
from wirecheck.decode.wire import REQUEST
from wirecheck.questions.changes import ACTIONS, API_KEYS, UNREAD

SENDER, NAME = "lab-admin", "zzzzz"
LAYOUTS = {
    (API_KEYS[layout.key], version): layout
    for dialect, layout, version in CASES
    if dialect == Dialect.KAFKA and layout.side == "request" and layout.key in API_KEYS
}
DESCENDING = b"\x02\x84\x07\x01x\x05\x01y"
"""Tags 900 and 5."""
TWICE = b"\x02\x05\x01x\x05\x01y"


def name_or_nothing(_path, kind):
    return NAME if kind == "string" else ""


def sized(message):
    return struct.pack(">i", len(message)) + message


def client_id(message):
    return sized(message[4:].replace(SENDER.encode(), b"lab-admi\xff", 1))


def text(message):
    head, _, tail = message[4:].rpartition(NAME.encode())
    return sized(head + b"zz\xffzz" + tail) if head else None


def header_tags(tags):
    def changed(message):
        at = message.index(SENDER.encode()) + len(SENDER)
        return sized(message[4:at] + tags + message[at + 1 :])

    return changed


def body_tags(tags):
    return lambda message: sized(message[4:-1] + tags)


def leftover(message):
    return sized(message[4:] + b"\0\0\0")


ANYWHERE = {"client ID": client_id, "text": text, "leftover": leftover}
FLEXIBLE = {
    "header tags descend": header_tags(DESCENDING), "header tags twice": header_tags(TWICE),
    "tags descend": body_tags(DESCENDING), "tags twice": body_tags(TWICE),
}  # fmt: skip


def listed(message, api, version):
    talk = Talk(client=CLIENT, server=BROKER).open().request(message)
    talk.ts_ns += 200 * MS
    talk.response(plain(api, "response", version, {}, {"correlationId": 7}))
    every = found(talk.close())
    return [(one.action, one.object_type, one.object.replace("�", "z"), one.host, one.error) for one in every], [
        one.details for one in every
    ]


@pytest.mark.parametrize("api", sorted(ACTIONS))
def test_what_a_broker_reads_is_listed_as_a_change(api):
    tried = 0
    for (name, version), layout in LAYOUTS.items():
        if name != api:
            continue
        head = {"correlationId": 7, "clientId": SENDER}
        message = plain(api, "request", version, filled(layout.fields, version, name_or_nothing, tagged=False), head)
        well, details = listed(message, api, version)
        assert well
        assert not any(UNREAD in text for text in details)
        for lenient in (ANYWHERE | (FLEXIBLE if version in layout.flexible else {})).values():
            changed = lenient(message)
            if changed is not None:
                tried += 1
                now, details = listed(changed, api, version)
                assert now == well
                assert not any(UNREAD in text for text in details)
    assert tried >= 2


def spare_bytes(data, _flexible):
    return data + b"\7\7\7"


def tags_that_descend(data, flexible):
    """Behind a request's body, which most of them end with a section of tags without any."""
    return data[:-1] + DESCENDING if flexible and data[-1:] == b"\0" else data


BENDS = (spare_bytes, tags_that_descend)


def bent(code, case, bend):
    """The case with every request changed that a broker answered."""
    lab = Lab()
    OF_CHECKS[code, case](lab)
    flexible = {
        (layout.key, version)
        for dialect, layout, version in CASES
        if dialect == Dialect.KAFKA and layout.side == "request" and version in layout.flexible
    }
    for talk in lab.talks:
        for asked, answer, outcome in talk.exchanges:
            if asked >= 0 and answer >= 0 and outcome != CLOSED_BY_SERVER and talk.dialect == Dialect.KAFKA:
                data, side, key, version, *rest = talk.messages[asked]
                assert side == REQUEST
                talk.messages[asked] = (bend(data, (key, version) in flexible), side, key, version, *rest)
    return lab


def of_the_judge(rows):
    """Findings but those about bytes; and a host that was never granted anything sends odd ones then."""
    return sorted(
        (found["code"], found["kind"], found["summary"])
        for found in rows["findings"].values()
        if not found["code"].startswith(("WIR", "DRF", "CLU002"))
    )


@pytest.mark.parametrize(
    ("code", "case", "bend"),
    [(*one, bend) for one, bend in zip(some(sorted(OF_CHECKS), 7), cycle(BENDS), strict=False)],
)
def test_what_a_broker_reads_is_judged_as_any_other(code, case, bend):
    assert of_the_judge(bent(code, case, bend).judge()) == of_the_judge(read(code, case).rows)
