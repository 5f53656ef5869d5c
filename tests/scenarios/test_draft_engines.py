"""Every layout of the drafts, alone on its connection: `decode` and the query read it alike, trimmed or whole."""

import base64
import struct
from collections import Counter

import pytest
from pyarrow import parquet

from tests import traffic
from tests.build import CASES, Still, Writer
from wirecheck.capture.agent.offline_agent import read_frames, write_frames
from wirecheck.dashboards.verdict import suggestions
from wirecheck.decode.layouts.layout import SIDES
from wirecheck.decode.message import Dialect
from wirecheck.decode.nested import nested
from wirecheck.decode.show import message_filter, message_lines
from wirecheck.streaming.steps import decode_step
from wirecheck.streaming.steps.plain_loop import Loop
from wirecheck.streaming.steps.settings import Settings

ID = "JMxDMvfeRaOyTjPWGqDRbA"
LAYOUTS = {(dialect, layout.api, layout.side, version): layout for dialect, layout, version in CASES}
FORMS = [(Dialect.KIP516_DRAFT, tag) for tag in (0, 7)] + [(dialect, 0) for dialect in list(Dialect)[4:]]
SAID = [
    (dialect, tag, api, version)
    for dialect, tag in FORMS
    for api, version in {(api, version): 0 for d, api, _, version in LAYOUTS if d == dialect}
]
EXCHANGES = 3


class Told(Still):
    """One of everything, a draft's tags under one number."""

    def __init__(self, tag):
        self.tag = tag

    def choice(self, options):
        return {7: self.tag, 1: 1}.get(options[1], options[0]) if isinstance(options, list) else options[0]


def values(layout, version, fields=None):
    """A body with all tags and ids given."""
    out = {}
    for field in layout.fields if fields is None else fields:
        if version not in field.versions:
            continue
        if field.array and field.type == "struct":
            out[field.name] = [values(layout, version, field.fields)]
        elif field.type == "uuid":
            out[field.name] = ID
        elif field.type == "string" and not field.array:
            out[field.name] = "orders"
        elif field.type == "records":
            out[field.name] = base64.b64encode(b"not to be kept").decode()
        elif field.tag is not None:
            out[field.name] = 1
    return out


def body(layout, version, tag, value):
    writer = Writer(Told(tag))
    writer.struct(layout.fields, version, version in layout.flexible, value)
    return bytes(version in layout.flexible) + bytes(writer.out)  # the end of the header: no tags


def talk(dialect, tag, api, version, number=0):
    """Exchanges of one kind on one connection."""
    said = traffic.Talk(("10.0.0.1", 40000 + number), ts_ns=1_700_000_000_000_000_000 + number).open()
    asked, answered = (
        next(LAYOUTS[d, api, side, version] for d in (dialect, Dialect.KAFKA) if (d, api, side, version) in LAYOUTS)
        for side in SIDES[:2]
    )
    for correlation_id in range(EXCHANGES):
        value = values(asked, version)
        head = struct.pack(">hhih", asked.key, version, correlation_id, 2) + b"me"
        said.request(traffic.size_prefixed(head + body(asked, version, tag, value)))
        response = struct.pack(">i", correlation_id) + body(answered, version, tag, values(answered, version))
        said.response(traffic.size_prefixed(response))
    return said.close()


def capture(folder, talks):
    """A pcap of these, and its frames: trimmed, and with all they carry."""
    pcap = folder / "draft.pcap"
    segments = [segment for said in talks for segment in said.segments]
    pcap.write_bytes(traffic.pcap(traffic.packets(sorted(segments, key=lambda segment: segment.ts_ns))))
    trimmed, whole = (
        write_frames([pcap], folder / str(kept), "default", keep_records=kept).files for kept in (False, True)
    )
    return pcap, trimmed, whole


def by_decode(tables, dialect):
    return Counter(
        (
            int(min(found["src"], found["dst"])[-5:]), found["side"], found.get("dialect", "kafka"), "body" in found,
            ID in set(message_filter.texts(found.get("body"))),
        )
        for found in message_lines.of(tables, message_filter.Filter(), message_lines.Reading([dialect]))
    )  # fmt: skip


def by_query(files, dialect, monkeypatch):
    """What the plain loop reads, by the query's steps."""
    seen = Counter()
    claims = decode_step.claims

    def watched(exchanges, decoded, *batch):
        for i, (status, number) in enumerate(zip(decoded.status.tolist(), decoded.dialect.tolist(), strict=True)):
            label = Dialect(number).label if number >= Dialect.KIP516_DRAFT and not status else "kafka"
            carried = set() if status else set(message_filter.texts(nested(decoded, i)["body"]))
            port = exchanges.connections[exchanges.connection[i]].client[1]
            seen[port, SIDES[exchanges.messages.side[i]], label, not status, ID in carried] += 1
        return claims(exchanges, decoded, *batch)

    with monkeypatch.context() as patched:
        patched.setattr(decode_step, "claims", watched)
        Loop(Settings(dialects=(dialect,))).batch(files)
    return seen


@pytest.fixture(scope="module")
def every_layout(tmp_path_factory):
    return capture(tmp_path_factory.mktemp("drafts"), [talk(*kind, number) for number, kind in enumerate(SAID)])


def test_a_drafts_records_are_left_out(every_layout):
    _, trimmed, whole = every_layout
    kept = [b"".join(filter(None, parquet.read_table(files[0])["payload"].to_pylist())) for files in (trimmed, whole)]
    assert [payload.count(b"not to be kept") for payload in kept] == [0, 3 * EXCHANGES]  # Fetch, in three encodings


@pytest.mark.parametrize("said", ["kafka", "kip516-draft", "kip4-draft"])
def test_both_roads_read_every_draft_alike(said, every_layout, monkeypatch):
    pcap, trimmed, whole = every_layout
    found = by_decode(read_frames([pcap]), said)
    assert found.total() == 2 * EXCHANGES * len(SAID)
    assert by_decode([parquet.read_table(file) for file in trimmed], said) == found
    assert by_query(whole if said == "kafka" else trimmed, said, monkeypatch) == found
    for number, (dialect, _, api, _) in enumerate(SAID):
        if dialect.label.startswith(said):
            with_id = dialect != Dialect.KIP4_DRAFT and api != "Metadata"
            assert found[40000 + number, "request", dialect.label, True, with_id] == EXCHANGES, SAID[number]


def test_a_draft_that_nobody_named_is_suggested_and_nothing_is_malformed(every_layout):
    _, trimmed, _ = every_layout
    loop = Loop(Settings())
    loop.batch(trimmed)
    result = loop.result().json()
    suggested = result["coverage"]["details"]["draft_messages"]
    assert suggested.keys() == {"kip516-draft", "kip4-draft"}
    undecoded = result["coverage"]["details"]["undecoded_messages"]
    assert set(undecoded) == {"possibly_a_draft"}
    assert sum(suggested.values()) == undecoded["possibly_a_draft"]
    assert suggestions(loop.result().coverage())[1] == (
        f"{suggested['kip516-draft']:,} messages decode as kip516-draft: use `--dialect kip516-draft`"
    )
    assert not {finding["code"] for finding in result["findings"]} & {"DRF001", "WIR003"}
