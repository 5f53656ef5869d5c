"""The law of clocks: a clock that is set, back, ahead, or to and fro, adds no violation to a capture and takes none.
So it is with anomalies, and with what is said of the work.
"""

import gzip
import random
import struct
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from tests import traffic
from tests.depth import DEEP
from tests.laws.test_refused import LINK_HEADERS
from wirecheck import library

EXAMPLES = Path(__file__).parents[2] / "examples"
CAPTURES = ["kraft4-stale-broker", "zk39-inconsistent-id"]
SEEDS = range(40 if DEEP else 3)
S = 1_000_000_000
LEAST_S = 3
"""Less is a pause, or packets that are late."""
DAY_S = 86_400
FAR_S = 30
"""Captures of which an end is so far from that of the other were not begun and ended together."""
YEAR_2100_NS = 4_102_444_800 * S


def packets_of(name):
    """The head of a capture file, and each of its packets with its time."""
    data = gzip.decompress((EXAMPLES / name / "capture.pcap.gz").read_bytes())
    part_ns = 1 if struct.unpack("<I", data[:4])[0] == 0xA1B23C4D else 1000
    packets, at = [], 24
    while at < len(data):
        second, part, size = struct.unpack("<III", data[at : at + 12])
        packets.append((second * S + part * part_ns, data[at + 8 : at + 16 + size]))
        at += 16 + size
    return data[:24], part_ns, packets


def write(path, head, part_ns, packets):
    """In this order, whatever their times."""
    rows = (struct.pack("<II", ns // S, ns % S // part_ns) + rest for ns, rest in packets)
    path.write_bytes(head + b"".join(rows))
    return path


def offsets(count, dice):
    """Of each packet how far the clock is off: set once to four times, to any time up to a day off."""
    begins = sorted(dice.sample(range(count // 20, count), dice.choice([1, 1, 2, 4])))
    found, now_s = [0] * count, 0
    for begin in begins:
        step_s = round(LEAST_S * (DAY_S / LEAST_S) ** dice.random())
        now_s = dice.choice([now_s + step_s, now_s - step_s, 0 if abs(now_s) > LEAST_S else step_s])
        found[begin:] = [now_s * S] * (count - begin)
    return found


def said(verdict):
    found = (one for one in verdict.findings if one.kind in {"violation", "anomaly"})
    return verdict.marks.work.mark, sorted((one.code, one.topic or "", one.brokers, one.client_ids) for one in found)


@pytest.fixture(scope="module", params=CAPTURES)
def capture(request):
    path = EXAMPLES / request.param / "capture.pcap.gz"
    return packets_of(request.param), said(library.replay(path))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_clock_that_is_set_adds_no_finding_and_takes_none(capture, seed, tmp_path):
    (head, part_ns, packets), before = capture
    dice = random.Random(seed)
    off = offsets(len(packets), dice)
    stepped = [(ns + by_ns, rest) for (ns, rest), by_ns in zip(packets, off, strict=True)]
    after = library.replay(write(tmp_path / "stepped.pcap", head, part_ns, stepped))
    assert said(after) == before
    assert after.coverage.decoded_messages == after.coverage.messages
    backwards = any(later < earlier for (earlier, _), (later, _) in pairwise(stepped))
    assert not backwards or after.coverage.measures["clock_steps"]


@pytest.mark.parametrize("seed", SEEDS)
def test_packets_out_of_order_are_no_clock_that_is_set(capture, seed, tmp_path):
    """Of two queues of a network card, and of two files that were put together in the wrong order."""
    (head, part_ns, packets), before = capture
    dice = random.Random(seed)
    cut = dice.randrange(1, len(packets))
    rotated = [*packets[cut:], *packets[:cut]]
    after = library.replay(write(tmp_path / "rotated.pcap", head, part_ns, rotated))
    assert said(after) == before
    assert "clock_steps" not in after.coverage.measures


def files_of(packets, dice):
    """The packets in two to five parts."""
    cuts = sorted(dice.sample(range(len(packets) // 20, len(packets)), dice.choice([1, 1, 2, 4])))
    return [packets[begin:end] for begin, end in pairwise([0, *cuts, len(packets)])]


def write_each(folder, head, part_ns, parts, names):
    return [write(folder / name, head, part_ns, part) for name, part in zip(names, parts, strict=True)]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_clock_that_is_set_back_between_two_files_adds_no_finding_and_takes_none(capture, seed, tmp_path):
    """Rotated files; the clock may be set forward again between two later ones, or within one."""
    (head, part_ns, packets), before = capture
    dice = random.Random(seed)
    off, place = [0] * len(packets), 0
    now_s = 0
    parts = files_of(packets, dice)
    for number, part in enumerate(parts):
        step_s = round(LEAST_S * (DAY_S / LEAST_S) ** dice.random())
        now_s = dice.choice([now_s - step_s, now_s - step_s, now_s, 0]) if number else 0
        off[place : place + len(part)] = [now_s * S] * len(part)
        place += len(part)
    stepped = [(ns + by_ns, rest) for (ns, rest), by_ns in zip(packets, off, strict=True)]
    found, place = [], 0
    for part in parts:
        found.append(stepped[place : place + len(part)])
        place += len(part)
    names = [f"trace.pcap{number}" for number in range(len(parts))]
    after = library.replay(*write_each(tmp_path, head, part_ns, found, names))
    assert said(after) == before
    assert after.coverage.decoded_messages == after.coverage.messages
    assert ("clock_steps" in after.coverage.measures) == any(later < earlier for earlier, later in pairwise(off))


@pytest.mark.parametrize("seed", SEEDS)
def test_files_in_any_order_and_files_that_overlap_are_no_clock_that_is_set(capture, seed, tmp_path):
    (head, part_ns, packets), before = capture
    dice = random.Random(seed)
    parts = files_of(packets, dice)
    if seed % 2:  # two queues of a network card, each in its own file
        of_one = [dice.random() < 0.5 for _ in packets]
        parts = [[p for p, one in zip(packets, of_one, strict=True) if one == which] for which in (True, False)]
    names = [f"trace.pcap{number}" for number in range(len(parts))]
    dice.shuffle(names)
    after = library.replay(*write_each(tmp_path, head, part_ns, parts, names))
    assert said(after) == before
    assert "clock_steps" not in after.coverage.measures


@pytest.mark.parametrize("seed", SEEDS)
def test_single_packets_with_another_time_add_no_finding_and_take_none(capture, seed, tmp_path):
    """One, or 1 % of them: without a time (1970), of the year 2100, or any time off."""
    (head, part_ns, packets), before = capture
    dice = random.Random(seed)
    count = dice.choice([1, 3, len(packets) // 100])
    places = dice.sample(range(100, len(packets) - 100), count)
    off_ns = [dice.randrange(-DAY_S, DAY_S) * S for _ in places]
    times = [(0, YEAR_2100_NS, packets[at][0] + by_ns) for at, by_ns in zip(places, off_ns, strict=True)]
    wrong = {at: dice.choice(given) for at, given in zip(places, times, strict=True)}
    given = [(wrong.get(at, ns), rest) for at, (ns, rest) in enumerate(packets)]
    after = library.replay(write(tmp_path / "wrong.pcap", head, part_ns, given))
    assert said(after) == before
    assert after.coverage.decoded_messages == after.coverage.messages
    assert 0 < after.coverage.measures["clock_steps"] <= count


@pytest.mark.parametrize("seed", SEEDS)
def test_a_clock_of_one_interface_that_is_set_adds_no_finding_and_takes_none(capture, seed, tmp_path):
    """Two interfaces, by the address or by the direction of a packet."""
    (head, _, packets), before = capture
    dice = random.Random(seed)
    by_ns = dice.choice([-1, 1]) * round(LEAST_S * (DAY_S / LEAST_S) ** dice.random()) * S
    begin, key = dice.randrange(len(packets) // 20, len(packets) * 9 // 10), dice.random()
    link = struct.unpack("<I", head[20:24])[0]
    skipped = len(LINK_HEADERS[link])
    interface = traffic.Interface(link_type=link, resolution=9)
    blocks = [traffic.section(), traffic.interface_block(interface), traffic.interface_block(interface)]
    for at, (ns, rest) in enumerate(packets):
        sender = rest[8 + skipped + 12 : 8 + skipped + 22]  # its addresses and port
        number = random.Random(f"{key}{sender!r}").randrange(2) if seed % 2 else at // 40 % 2
        ticks = ns + by_ns * (number == 1 and at >= begin)
        size = len(rest) - 8
        body = struct.pack("<IIIII", number, ticks >> 32, ticks & (1 << 32) - 1, size, size) + rest[8:]
        blocks.append(traffic.block(6, body))
    path = tmp_path / "interfaces.pcapng"
    path.write_bytes(b"".join(blocks))
    after = library.replay(path)
    assert said(after) == before
    assert after.coverage.decoded_messages == after.coverage.messages
    assert after.coverage.measures["clock_steps"] == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_a_clock_that_goes_to_and_fro_adds_no_finding_and_takes_none(capture, seed, tmp_path):
    """Up to twelve times in a capture, by a few seconds, in quiet moments too."""
    (head, part_ns, packets), before = capture
    dice = random.Random(seed)
    times, by_ns = dice.randrange(3, 13), dice.choice([-1, 1]) * dice.choice([3, 5, 30, 600]) * S
    stepped = [(ns + by_ns * (at * times // len(packets) % 2), rest) for at, (ns, rest) in enumerate(packets)]
    after = library.replay(write(tmp_path / "fro.pcap", head, part_ns, stepped))
    assert said(after) == before
    assert after.coverage.decoded_messages == after.coverage.messages


def ends_of(head, rest):
    """The connection of a packet."""
    link = struct.unpack("<I", head[20:24])[0]
    ip = rest[8 + len(LINK_HEADERS[link]) :]
    return frozenset([(ip[12:16], ip[20:22]), (ip[16:20], ip[22:24])])


@pytest.mark.parametrize("seed", SEEDS)
def test_clocks_of_two_captures_that_differ_add_no_finding_and_take_none(capture, seed, tmp_path):
    """Two or three hosts capture one network, each some connections, and one in three is seen by two of them."""
    (head, part_ns, packets), before = capture
    dice = random.Random(seed)
    count = dice.choice([2, 3])
    off_s = [0] + [dice.choice([-1, 1]) * round(LEAST_S * (DAY_S / LEAST_S) ** dice.random()) for _ in range(count - 1)]
    sees = {}
    for _, rest in packets:
        own = random.Random(f"{seed} {sorted(ends_of(head, rest))}")
        sees.setdefault(ends_of(head, rest), own.sample(range(count), 1 + (own.random() < 0.33)))
    parts = [
        [(ns + by_s * S, rest) for ns, rest in packets if number in sees[ends_of(head, rest)]]
        for number, by_s in enumerate(off_s)
    ]
    after = library.replay(
        *write_each(tmp_path, head, part_ns, parts, ["east.pcap", "north.pcap", "west.pcap"][:count])
    )
    assert said(after) == before
    assert after.coverage.decoded_messages == after.coverage.messages
    assert after.coverage.measures["clock_steps"] == count - 1


@pytest.mark.parametrize("by_s", [-60, 30, 3_600])
def test_hosts_that_send_their_segments_again_past_the_other_capture_move_no_clock(capture, by_s, tmp_path):
    """Two captures without a connection in common, but for one whose two ends send all of it again, later."""
    (head, part_ns, packets), of_one_capture = capture
    link = LINK_HEADERS[struct.unpack("<I", head[20:24])[0]]
    of_one = {ends: number % 2 for number, ends in enumerate(dict.fromkeys(ends_of(head, rest) for _, rest in packets))}
    parts = [[(ns, rest) for ns, rest in packets if of_one[ends_of(head, rest)] == number] for number in (0, 1)]
    names = ["east.pcap", "west.pcap"]
    before = said(library.replay(*write_each(tmp_path, head, part_ns, parts, names)))
    assert before[0] == of_one_capture[0]
    assert {*before[1]} <= {*of_one_capture[1]}
    at_ns = packets[len(packets) // 2][0]
    talk = traffic.Talk(client=("127.0.77.1", 40_000), server=("127.0.77.2", 9_999), ts_ns=at_ns).open()
    for _ in range(20):
        talk.request(b"q" * 50).response(b"r" * 50)
    rows = []
    for segment in talk.close().segments:
        packet = link + traffic.ip(segment)
        rows.append((segment.ts_ns, struct.pack("<II", len(packet), len(packet)) + packet))
    parts[0] += rows
    parts[1] += [(ns + by_s * S, rest) for ns, rest in rows]
    for part in parts:
        part.sort(key=lambda row: row[0])
    after = library.replay(*write_each(tmp_path, head, part_ns, parts, names))
    assert said(after) == before
    assert "clock_steps" not in after.coverage.measures


def by_server(head, packets):
    """The packets in two parts: those of every other server, and those of the others."""
    connections = {ends_of(head, rest) for _, rest in packets}
    count = Counter(end for ends in connections for end in ends)
    serves = {ends: max(ends, key=lambda end: (count[end], end)) for ends in connections}
    of_first = {*sorted({*serves.values()})[::2]}
    first = [serves[ends_of(head, rest)] in of_first for _, rest in packets]
    return [[p for p, one in zip(packets, first, strict=True) if one == which] for which in (True, False)]


@pytest.mark.parametrize("by_s", [-60, -40, 40, 60, *(range(-60, 61, 3) if DEEP else ())])
def test_captures_that_show_nothing_of_each_others_clock_add_no_finding(capture, by_s, tmp_path):
    """Two captures without a packet in common, begun one after the other, by clocks that are up to a minute apart."""
    (head, part_ns, packets), before = capture
    parts = by_server(head, packets)
    parts[1] = [(ns + by_s * S, rest) for ns, rest in parts[1]]
    after = library.replay(*write_each(tmp_path, head, part_ns, parts, ["east.pcap", "west.pcap"]))
    mark, found = said(after)
    assert mark == before[0]
    assert {*found} <= {*before[1]}
    assert after.coverage.decoded_messages == after.coverage.messages
    assert after.coverage.measures.get("unknown_clocks", 0) >= (abs(by_s) > FAR_S)
    assert "clock_steps" not in after.coverage.measures


def test_captures_that_were_begun_and_ended_together_lose_no_finding(capture, tmp_path):
    """Without a packet in common, by clocks that agree within seconds: cut to the time in which both have packets."""
    (head, part_ns, packets), _ = capture
    parts = by_server(head, packets)
    begin, end = (get(part[at][0] for part in parts) for get, at in ((max, 0), (min, -1)))
    both = [(ns, rest) for ns, rest in packets if begin <= ns <= end]
    before = said(library.replay(write(tmp_path / "whole.pcap", head, part_ns, both)))
    parts = by_server(head, both)
    parts[1] = [(ns + 3 * S, rest) for ns, rest in parts[1]]
    after = library.replay(*write_each(tmp_path, head, part_ns, parts, ["east.pcap", "west.pcap"]))
    assert said(after) == before
    assert "unknown_clocks" not in after.coverage.measures


@pytest.mark.parametrize("name", ["trace_{:04d}.pcap", "{}.pcap"])
def test_files_of_one_capture_that_overlap_by_a_packet_have_one_clock(capture, name, tmp_path):
    """Twenty rotated files; queues of a network card put a packet into the file behind. With names of any kind."""
    (head, part_ns, packets), before = capture
    cuts = [len(packets) * number // 20 for number in range(21)]
    parts = [packets[begin:end] for begin, end in pairwise(cuts)]
    for earlier, later in pairwise(parts):
        later.insert(0, earlier.pop(-2))
    names = [name.format(number if "0" in name else chr(97 + number)) for number in range(20)]
    after = library.replay(*write_each(tmp_path, head, part_ns, parts, names))
    assert said(after) == before
    assert "unknown_clocks" not in after.coverage.measures
