"""The law of secrets: whatever happens to packets, no record and no secret reaches the disk."""

import random
import tempfile
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from tests import traffic as t
from tests.build import CASES, build
from tests.capture import canaries
from tests.decode.connection.conversations import METADATA, request, response, sized
from tests.depth import examples
from wirecheck.capture import frames_file
from wirecheck.capture.agent.offline_agent import write_frames
from wirecheck.decode.dialect import DRAFTS, read_as_any
from wirecheck.decode.layouts.layout import SIDES
from wirecheck.decode.message import Dialect, Status, pack
from wirecheck.decode.show import message_lines
from wirecheck.decode.show.message_filter import Filter

KINDS = sorted(
    {(layout.key, version) for of, layout, version in CASES if of == Dialect.KAFKA and layout.side in SIDES[:2]}
)
HARM = st.sets(st.sampled_from(["loss", "repeat", "reorder", "middle"]))


@examples(30, deep=60)
@given(
    st.lists(st.sampled_from(sorted(canaries.EXCHANGES)), min_size=1, max_size=16),
    st.sampled_from([7, 40, 200, 1448, 60_000]),
    HARM,
    st.integers(0, 2**32),
    st.sampled_from([1 << 12, 1 << 14, 1 << 20]),
)
def test_no_canary_reaches_a_file(names, mss, harm, seed, batch_bytes):
    segments = canaries.mutated(canaries.traffic(names, mss), random.Random(seed), harm)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "capture.pcap"
        path.write_bytes(t.pcap(t.packets(segments)))
        files = write_frames([path], Path(folder) / "out", "c", batch_bytes=batch_bytes).files
        assert canaries.leaks(files) == []


def malformed(side, kind, rng):
    """A message of this kind, canaries in its content, which cannot be read on behind some place, and canaries there.

    None where it can be read on all the same.
    """
    _, layout, version = next(
        c for c in CASES if (c[0], SIDES.index(c[1].side), c[1].key, c[2]) == (Dialect.KAFKA, side, *kind)
    )
    built = build(layout, version, rng)
    data, at = bytearray(built.data), 4 if side == 0 else 0
    data[at : at + 4] = (7).to_bytes(4, "big")
    header = 10 + max(0, int.from_bytes(data[8:10], "big", signed=True)) if side == 0 else 4  # client ids are kept
    for offset, length in built.contents:
        if offset >= header:
            data[offset : offset + length] = (canaries.SECRET * (length // len(canaries.SECRET) + 1))[:length]
    cut = rng.choice([len(data), rng.randint(min(header, len(data)), len(data))])
    front = bytes(data[:cut]) + b"\xff" * rng.choice([0, 1, 2, 6])
    bent = front + canaries.SECRET
    readings = read_as_any(pack([bent], [side], [kind[0]], [version]))
    return sized(bent) if readings.status[0] >= Status.TRUNCATED and readings.error_at[0] <= len(front) else None


SOME_KINDS = st.lists(st.sampled_from(KINDS), min_size=5, max_size=5)
"""As many in one capture: what costs is the capture."""


def with_malformed(kinds, seed, mss):
    """For each kind a connection whose second request and its answer are malformed, as far as messages of this kind can
    be.
    """
    rng = random.Random(seed)
    segments = []
    for port, kind in enumerate(kinds, 40_000):
        talk = t.Talk(client=("10.0.0.1", port), mss=mss).open()
        talk.request(request(METADATA, 1, 1, bytes(4))).response(response(1, bytes(12)))
        asked, answered = (malformed(side, kind, rng) for side in (0, 1))
        talk.request(asked or request(*kind, 7)).response(answered or response(7))
        segments += talk.segments
    return sorted(segments, key=lambda segment: segment.ts_ns)


@examples(15, deep=30)
@given(SOME_KINDS, st.integers(0, 2**32), st.sampled_from([20, 1448]))
def test_of_a_malformed_message_of_any_kind_no_content_reaches_a_file(kinds, seed, mss):
    """It may be another message than its header says: then anything stands where a harmless field is expected."""
    segments = with_malformed(kinds, seed, mss)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "capture.pcap"
        path.write_bytes(t.pcap(t.packets(segments)))
        assert canaries.leaks(write_frames([path], Path(folder) / "out", "c").files) == []


DRAFTED = sorted({(layout.key, version) for of, layout, version in CASES if of in DRAFTS})


def drafted(of, side, key, version, rng):
    """A message of a draft with random values, names that Kafka forbids and tags that no layout has among them."""
    named = {d: layout for d, layout, v in CASES if (layout.key, layout.side, v) == (key, side, version)}
    fitting = named.get(of, named.get(Dialect.KAFKA))
    data = bytearray(build(fitting, version, rng).data)
    at = 4 if side == "request" else 0
    data[at : at + 4] = (7).to_bytes(4, "big")
    return bytes(data)


@examples(25, deep=60)
@given(st.sampled_from(DRAFTS), st.sampled_from(DRAFTED), st.integers(0, 2**32))
@example(Dialect.KIP516_DRAFT, (53, 0), 8721)  # a tag in the header, where a release has another field
def test_what_a_draft_reads_with_records_it_reads_without(of, kind, seed):
    """Redaction blanks secrets by the layout, and nothing else."""
    rng = random.Random(seed)
    asked, answered = (drafted(of, side, *kind, rng) for side in SIDES[:2])
    talk = t.Talk().open().request(request(METADATA, 1, 1, bytes(4))).response(response(1, bytes(12)))
    talk.request(sized(asked)).response(sized(answered))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "capture.pcap"
        path.write_bytes(t.pcap(t.packets(talk.segments)))
        found = []
        for keep in (True, False):
            files = write_frames([path], Path(folder) / str(keep), "c", keep_records=keep).files
            tables = (frames_file.read(file) for file in files)
            lines = message_lines.of(tables, Filter(), message_lines.Reading(["kip516-draft", "kip4-draft"]))
            found.append([{name: value for name, value in line.items() if name != "frame"} for line in lines])
        assert found[0] == found[1]
