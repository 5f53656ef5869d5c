"""Captures in which time steps back: sections in any order, rows of several files in one, pipes and packed files."""

import gzip
import os
import random
import threading
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from struct import pack

import numpy as np
import pyarrow as pa
import pytest

from tests import traffic as t
from tests.capture.reading import frames_of, marks_of
from tests.depth import some
from wirecheck.capture import frames
from wirecheck.capture.source import pcap, pcapng
from wirecheck.capture.source.merge import inputs_in_order, merged, sorted_within
from wirecheck.capture.source.pcap import Batch, Unread, first_look

PARTS, EACH, GAP_NS = 12, 20, 3_000_000_000
START_NS = t.Talk().ts_ns
NANOSECONDS = t.Interface(resolution=9)
"""Sections with clocks and byte orders of their own."""
KINDS = [("<", t.Interface()), (">", NANOSECONDS), ("<", NANOSECONDS)]


def packet(number, ts_ns):
    return t.packets(t.Talk(client=("10.1.0.1", 4000 + number), ts_ns=ts_ns).open().segments[:1])[0]


PACKETS = [packet(n, START_NS + n // EACH * GAP_NS + n % EACH * 1_000_000) for n in range(PARTS * EACH)]
ROTATED = [PACKETS[at : at + EACH] for at in range(0, PARTS * EACH, EACH)]
ORDERS = [
    range(PARTS),
    sorted(range(PARTS), key=lambda part: f"trace.pcapng{part + 1}"),
    range(PARTS)[::-1],
    *(random.Random(seed).sample(range(PARTS), PARTS) for seed in range(7)),
]
PORTS = [4000 + n for n in range(PARTS * EACH)]


def sections(order):
    """As `cat` makes them."""
    return b"".join(t.pcapng(ROTATED[part], [KINDS[part % 3][1]], order=KINDS[part % 3][0]) for part in order)


def one_section(order):
    """As `mergecap -a` makes it."""
    return t.pcapng([one for part in order for one in ROTATED[part]])


def classic(order):
    return t.pcap([one for part in order for one in ROTATED[part]])


def ports(rows):
    return [row["src_port"] for row in rows]


@pytest.mark.parametrize("order", some(ORDERS), ids=lambda order: ",".join(map(str, order)))
@pytest.mark.parametrize("form", [sections, one_section, classic])
def test_parts_of_a_file_in_any_order_come_in_the_order_of_time(form, order, written):
    path = written(form(order))
    found = frames_of(path)
    assert ports(found) == PORTS
    in_file = [packet for part in order for packet in ROTATED[part]]
    assert [in_file[row["frame_no"] - 1].ts_ns for row in found] == [row["ts_ns"] for row in found]
    assert marks_of(path) == []


def test_sections_closer_than_a_hundredth_of_a_second_are_sorted_too(written):
    close = [packet(n, START_NS + n * 1000) for n in range(10)]
    path = written(b"".join(t.pcapng([one]) for one in reversed(close)))
    assert ports(frames_of(path)) == [4000 + n for n in range(10)]


def test_a_file_in_order_is_one_stretch_and_jitter_stays_as_it_is(written):
    jitter = [packet(n, START_NS + n * 1_000_000 - n % 2 * 5_000_000) for n in range(40)]
    path = written(t.pcapng(jitter))
    assert [(one.begin, one.end, one.packets) for one in first_look(path).stretches] == [(0, None, 0)]
    assert ports(frames_of(path)) == [4000 + n for n in range(40)]


def test_packets_of_two_files_in_turn_are_sorted_within_the_window(written, monkeypatch):
    """Too many stretches to read them one by one."""
    monkeypatch.setattr(pcap, "MOST_STRETCHES", 8)
    in_turn = [one for pair in zip(PACKETS[: 6 * EACH], PACKETS[6 * EACH :], strict=True) for one in pair]
    path = written(t.pcapng(in_turn))
    assert first_look(path).stretches == ()
    assert ports(frames_of(path)) == PORTS
    assert marks_of(path) == []


@pytest.mark.parametrize("form", [sections, one_section, classic])
def test_a_packed_file_is_sorted_within_the_window(form, written):
    path = written(gzip.compress(form(ORDERS[2])), "capture.pcapng.gz")
    assert ports(frames_of(path)) == PORTS


def test_a_pipe_is_sorted_within_the_window(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)

    def write():
        with suppress(BrokenPipeError), path.open("wb") as file:
            file.write(sections(ORDERS[1]))

    writer = threading.Thread(target=write)
    writer.start()
    found = [row for rows in merged(inputs_in_order([path])[0], frames.Stamp("", "")) for row in rows.to_pylist()]
    writer.join()
    assert ports(found) == PORTS


def batches(times, size):
    """Rows of these times, in batches of a size."""
    clock = np.maximum.accumulate(np.array(times, np.int64))
    for at in range(0, len(times), size):
        ts_ns = times[at : at + size]
        ends = {"src_ip": "10.0.0.1", "src_port": 1, "dst_ip": "10.0.0.2", "dst_port": 9092}
        columns = {name: [value] * len(ts_ns) for name, value in {"kind": frames.FRAME, **ends}.items()}
        columns["tcp_seq"] = [ns // 10**8 for ns in ts_ns]
        yield Batch(pa.record_batch({"ts_ns": pa.array(ts_ns, pa.int64()), **columns}), clock[at : at + size])


ROW_BYTES = next(batches([0], 1)).rows.nbytes


@pytest.mark.parametrize("size", [1, 3, 7])
def test_rows_beyond_the_window_are_counted_and_none_is_lost(size):
    times = [n * 10**10 for n in (*range(50, 100), *range(50))]
    unread = Unread()
    found = list(sorted_within(batches(times, size), unread, 10 * ROW_BYTES))
    assert sorted(ts for batch in found for ts in batch.rows["ts_ns"].to_pylist()) == sorted(times)
    clock = [int(ns) for batch in found for ns in batch.clock]
    assert all(earlier <= later for earlier, later in pairwise(clock))
    assert unread.late >= 40
    (mark,) = unread.marks("x.pcap")
    assert "reordercap" in mark.reason


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_rows_within_the_window_are_sorted(size):
    times = [n * 10**10 for n in (0, 1, 5, 2, 3, 4, 9, 6, 7, 8, 10, 12, 11)]
    unread = Unread()
    found = [
        ts
        for batch in sorted_within(batches(times, size), unread, 8 * ROW_BYTES)
        for ts in batch.rows["ts_ns"].to_pylist()
    ]
    assert (found, unread.late) == (sorted(times), 0)


def test_batches_in_order_pass_as_they_are():
    given = list(batches([n * 10**8 for n in range(100)], 10))
    found = list(sorted_within(given, Unread(), 100))
    assert [one.rows for one in found] == [one.rows for one in given]


@pytest.mark.parametrize("back_ns", [2 * 10**9, 60 * 10**9])
@pytest.mark.parametrize("form", [t.pcap, t.pcapng, lambda packets: gzip.compress(t.pcap(packets))])
def test_a_clock_that_was_set_back_is_an_offset_of_later_rows(form, back_ns, written):
    """The sequence numbers go on over the step. How long the step itself took, the file does not say."""
    talk = t.Talk(mss=100).open().request(bytes(2000)).response(bytes(2000)).request(bytes(2000)).close()
    segments = [replace(one, ts_ns=START_NS + n * 10**8) for n, one in enumerate(talk.segments)]
    half = len(segments) // 2
    later = [replace(one, ts_ns=one.ts_ns - back_ns) for one in segments[half:]]
    packets = t.packets([*segments[:half], *later])
    path = written(form(packets))
    found = frames_of(path)
    assert [row["tcp_seq"] for row in found] == [one.seq for one in segments]
    assert [row["ts_ns"] for row in found[:half]] == [one.ts_ns for one in segments[:half]]
    assert [row["ts_ns"] for row in found[half:]] == [one.ts_ns - 10**8 for one in segments[half:]]
    (mark,) = (reason for kind, _, reason in marks_of(path) if kind == frames.CLOCK)
    assert mark.startswith(f"its clock was set by {(back_ns - 10**8) / 1e9:,.1f} s back at ")


PAUSE_NS = 600 * 10**9


def exchanges(late, again=False):
    """Data that is acknowledged at once, with a pause before the last segments; what it waits for may be sent again."""
    talk = t.Talk().open()
    for _ in range(6):
        for is_client in (True, False):
            talk._send(is_client, bytes(100))
            talk._say(not is_client, t.ACK)
    early, behind = talk.segments[:-late], talk.segments[-late:]
    copies = [replace(early[-1], ts_ns=behind[0].ts_ns - 10**6 + PAUSE_NS)] if again else []
    return [*early, *copies, *(replace(one, ts_ns=one.ts_ns + PAUSE_NS) for one in behind)]


@pytest.mark.parametrize(
    ("facts", "steps"),
    [({"late": 3}, 1), ({"late": 4}, 0), ({"late": 3, "again": True}, 0)],
    ids=["acknowledged behind it", "a pause", "an outage"],
)
def test_a_clock_that_was_set_ahead_shows_where_data_was_on_its_way(facts, steps, written):
    path = written(t.pcap(t.packets(exchanges(**facts))))
    assert len([kind for kind, _, _ in marks_of(path) if kind == frames.CLOCK]) == steps
    times = [row["ts_ns"] for row in frames_of(path)]
    assert (times[-1] - times[0] < 10**9) == bool(steps)


def test_a_few_rows_that_are_late_are_no_clock_that_was_set(written):
    """As of another queue of the network card."""
    talk = t.Talk(mss=100).open().request(bytes(4000)).response(bytes(4000)).request(bytes(4000)).close()
    segments = [replace(one, ts_ns=START_NS + n * 10**8) for n, one in enumerate(talk.segments)]
    moved = [*segments[:40], segments[70], *segments[40:70], *segments[71:]]
    path = written(gzip.compress(t.pcap(t.packets(moved))))
    assert [kind for kind, _, _ in marks_of(path) if kind == frames.CLOCK] == []
    assert [row["ts_ns"] for row in frames_of(path)] == sorted(one.ts_ns for one in segments)


def session(port, begin_ns, whole=True):
    """Packets of a connection, a tenth of a second apart."""
    talk = t.Talk(client=("10.1.0.1", port), mss=100).open().request(bytes(1500)).response(bytes(1500))
    segments = (talk.close() if whole else talk).segments
    return [replace(one, ts_ns=begin_ns + n * 10**8) for n, one in enumerate(segments)]


SESSION_NS = 10**8 * len(session(4000, 0))


@pytest.mark.parametrize(
    ("begin_s", "whole", "elsewhere", "steps"),
    [
        (1.5, True, False, 1),
        (-600, True, True, 1),
        (-600, True, False, 0),
        (0.05, True, False, 0),
        (1.5, False, False, 0),
    ],
    ids=["set back", "further, beside another file", "wrong order", "two queues", "still open"],
)
def test_a_clock_that_was_set_while_a_server_started_again(begin_s, whole, elsewhere, steps, written):
    """Its connections are over, and all behind it are new; what overlaps was not captured in another order."""
    second = session(4001, START_NS + round(begin_s * 10**9))
    paths = [written(t.pcap(t.packets([*session(4000, START_NS, whole), *second])))]
    if elsewhere:
        other = [replace(one, ts_ns=START_NS + n * 10**9) for n, one in enumerate(session(4002, 0)[:30])]
        paths.append(written(t.pcap(t.packets(other)), "other.pcap"))
    found = [row for rows in merged(inputs_in_order(paths)[0], frames.Stamp("", "")) for row in rows.to_pylist()]
    assert len([row for row in found if row["kind"] == frames.CLOCK and row["count"]]) == steps
    of_file = [row["frame_no"] for row in found if row["source"] == str(paths[0]) and row["kind"] == frames.FRAME]
    assert (of_file == sorted(of_file)) == bool(steps)


def test_a_single_packet_of_another_time_is_dated_by_the_one_before(written):
    """Unless TCP shows that its place is where its time is."""
    times = [START_NS + n * 10**8 for n in range(len(session(4000, 0)))]
    for wrong_ns in (0, 4_102_444_800 * 10**9, START_NS - 60 * 10**9):
        segments = session(4000, START_NS)
        segments[20] = replace(segments[20], ts_ns=wrong_ns)
        path = written(t.pcap(t.packets(segments)))
        expected = [*times[:20], times[19], *times[21:]]
        assert [row["ts_ns"] for row in frames_of(path)] == expected
        assert [count for kind, count, _ in marks_of(path) if kind == frames.CLOCK] == [1]
    late = session(4000, START_NS)
    moved = [*late[:4], *late[5:40], late[4], *late[40:]]
    path = written(t.pcap(t.packets(moved)))
    assert [row["ts_ns"] for row in frames_of(path)] == times
    assert marks_of(path) == []


def test_marks_of_a_file_in_several_parts_are_counted_once(written):
    cut = [t.cut(one, 60) for one in PACKETS]
    whole, parts = written(t.pcapng(cut)), written(t.pcapng([*cut[EACH:], *cut[:EACH]]), "parts.pcapng")
    texts = [[(kind, count, reason) for kind, count, reason in marks_of(path)] for path in (whole, parts)]
    assert texts[0] == texts[1]


def test_key_logs_of_all_sections_are_known_before_the_first_packet(written):
    secrets = [t.block(10, pack("<II", pcapng.TLS_KEY_LOG, len(text)) + text) for text in (b"one", b"two")]
    late, early = (t.section() + block + t.interface_block(t.Interface()) for block in secrets)
    data = late + b"".join(t.enhanced_packet(one, t.Interface()) for one in ROTATED[5])
    data += early + b"".join(t.enhanced_packet(one, t.Interface()) for one in ROTATED[0])
    found = []
    for rows in merged(inputs_in_order([written(data)])[0], frames.Stamp("", ""), on_keys=found.append):
        assert rows.num_rows == 0 or {b"one", b"two"} <= set(found)


def test_a_large_file_is_looked_at_in_places(written, monkeypatch):
    monkeypatch.setattr(pcap, "SURVEYED_BYTES", 1000)
    monkeypatch.setattr(pcap, "SAMPLE_BYTES", 1024)
    in_order, not_in_order = written(one_section(ORDERS[0]), "a.pcapng"), written(sections(ORDERS[1]), "b.pcapng")
    assert first_look(in_order).stretches == ()
    assert len(first_look(not_in_order).stretches) > 1
    assert ports(frames_of(not_in_order)) == PORTS
    assert first_look(written(classic(ORDERS[1]), "c.pcap")).stretches == ()


def test_the_first_packet_of_a_part_of_a_file_is_found():
    data = one_section(ORDERS[0])
    assert pcapng.ticks_in(data) == PACKETS[0].ts_ns // 1000
    later = pcapng.ticks_in(data[len(data) // 8 * 4 :])
    assert later in {one.ts_ns // 1000 for one in PACKETS}
    assert pcapng.ticks_in(bytes(400)) is None
    assert pcapng.ticks_in(b"") is None
