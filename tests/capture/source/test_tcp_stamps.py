"""What TCP's timestamps show of a capture's clock, and what they cannot: a law has the steps of real captures."""

import numpy as np
import pytest

from tests import traffic as t
from tests.capture.reading import frames_of
from wirecheck.capture import frames
from wirecheck.capture.link.packet import NO_STAMP
from wirecheck.capture.source import tcp_stamps
from wirecheck.capture.source.clocks_apart import ahead_ns
from wirecheck.capture.source.pcap import CaptureFile

MS = 1_000_000
S = 1_000_000_000


def stamped(written, ticks, since_ns=0, every_ns=10 * MS):
    """Rows of the two ends of a connection in turn, with so many ticks each."""
    talk = t.Talk(mss=40).open()
    while len(talk.segments) < len(ticks):
        talk.request(b"q" * 20)
        talk.response(b"r" * 20)
    path = written(t.pcap([t.Packet(0, t.ethernet(t.ip(s))) for s in talk.segments[3 : 3 + len(ticks)]]), "s.pcap")
    with_rows = CaptureFile(path)
    rows = next(with_rows.batches(frames.Stamp("", ""))).rows
    with_rows.close()
    times = since_ns + np.arange(rows.num_rows, dtype=np.int64) * every_ns
    return tcp_stamps.Stamped(rows, times, np.array(ticks[: rows.num_rows], np.int64))


TICKS = [at * 10 for at in range(40)]


@pytest.mark.parametrize(
    ("elapsed_ms", "step_s", "ticks", "found_s"),
    [
        (400, 60, TICKS, 60),  # the clock was set ahead
        (400, -60, TICKS, -60),
        (60_400, 0, TICKS, 0),  # a true pause
        (10_400, 60, TICKS, 60),  # in a pause
        (400, 60, [NO_STAMP] * 40, None),
        (400, 60, [7] * 40, None),  # a middlebox writes one timestamp
        (400, 60, [at * 37 for at in range(40)], None),  # at no known rate
        (400, 60, [NO_STAMP if at % 2 else at * 10 for at in range(40)], None),  # one host alone
    ],
)
def test_a_step_is_what_hosts_agree_on(elapsed_ms, step_s, ticks, found_s, written):
    before = stamped(written, ticks)
    later = [tick if tick == NO_STAMP else tick + elapsed_ms * (ticks[2] - ticks[0]) // 20 for tick in ticks]
    behind = stamped(written, later, elapsed_ms * MS + step_s * S)
    found = tcp_stamps.step_ns(before, behind)
    assert found is None if found_s is None else found == found_s * S


def test_a_host_whose_timestamps_agree_with_the_clock_shows_that_it_was_not_set(written):
    before = stamped(written, TICKS)
    other = [tick + (60_400 if at % 2 else 400) for at, tick in enumerate(TICKS)]
    assert tcp_stamps.step_ns(before, stamped(written, other, 60_400 * MS)) == 0


@pytest.mark.parametrize(
    ("off_s", "ways", "found"),
    [
        ([60] * 20, [1, 2] * 10, 60 * S),
        ([60] * 19 + [61], [1, 2] * 10, 60 * S),  # one was sent again on one way
        ([60] * 7, [1, 2, 1, 2, 1, 2, 1], None),  # too few
        ([60] * 20, [1] * 20, None),  # one direction alone: its sender may send what it likes again
        ([60] * 10 + [0] * 10, [1, 2] * 10, None),  # they disagree
        ([0] * 19 + [60], [1, 2] * 9 + [1, 3], None),  # a connection disagrees
    ],
)
def test_clocks_are_apart_as_far_as_all_segments_in_common_show(off_s, ways, found):
    assert ahead_ns(np.array(off_s, np.int64) * S, np.array(ways, np.uint64)) == found


def test_a_timestamp_is_read_wherever_it_is_among_the_options(written):
    stamp = bytes([8, 10, 0, 0, 1, 2, 0, 0, 0, 0])
    options = [b"\1\1" + stamp, stamp + b"\0\0", b"\2\4\5\xb4" + stamp + b"\1\1", b"\1\1\1\1", b"", b"\0\0\0\0",
               b"\5\0\1\1" + b"\1" * 8, b"\x08\x04\0\1"]  # fmt: skip
    segments = t.Talk().open().request(b"q" * 40).segments
    packets = []
    for option in options:
        ip = t.ip(segments[3])
        tcp = ip[20:40]
        length = len(ip) + len(option)
        header = ip[:2] + length.to_bytes(2, "big") + ip[4:10] + b"\0\0" + ip[12:20]
        tcp = tcp[:12] + bytes([(20 + len(option)) // 4 << 4]) + tcp[13:16] + b"\0\0" + tcp[18:]
        packets.append(t.Packet(segments[3].ts_ns, t.ethernet(header + tcp + option + ip[40:])))
    file = CaptureFile(written(t.pcap(packets), "options.pcap"))
    (batch,) = file.batches(frames.Stamp("", ""))
    file.close()
    assert batch.stamps.tolist() == [258, 258, 258, *[NO_STAMP] * 5]
    assert len(frames_of(written(t.pcap(packets), "options.pcap"))) == len(options)
