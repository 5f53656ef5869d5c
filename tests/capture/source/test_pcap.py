"""Files: every variant of the two containers, damage at every byte, and windows of every size."""

import contextlib
import gzip
import ipaddress
import socket
import struct
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import traffic as t
from tests.capture.reading import as_segments, expected, frames_of, marks_of, rows, skipped
from tests.depth import examples, some
from wirecheck.capture import frames
from wirecheck.capture.agent.offline_agent import NothingReadableError
from wirecheck.capture.source.merge import inputs_in_order
from wirecheck.capture.source.pcap import SMALL_STEP_NS, InputError
from wirecheck.capture.source.pcapng import MOST_INTERFACES

TALK = t.Talk(mss=40).open().request(b"q" * 100).response(b"r" * 90).close().segments
MICROSECONDS = t.pcap(t.packets(TALK))


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("nanoseconds", [False, True])
def test_a_pcap_of_either_unit_and_order_gives_its_segments(order, nanoseconds, written):
    path = written(t.pcap(t.packets(TALK), order=order, nanoseconds=nanoseconds))
    assert as_segments(frames_of(path)) == expected(TALK)


def test_nanoseconds_are_kept(written):
    path = written(t.pcap([t.Packet(1_700_000_000_123_456_789, t.ethernet(t.ip(TALK[0])))], nanoseconds=True))
    assert [row["ts_ns"] for row in frames_of(path)] == [1_700_000_000_123_456_789]


def test_frame_numbers_are_those_of_wireshark(written):
    noise = t.Packet(TALK[0].ts_ns, t.ethernet(bytes(28), kind=0x0806))
    first, second = t.packets(TALK[:2])
    path = written(t.pcap([noise, first, noise, second]))
    assert [row["frame_no"] for row in frames_of(path)] == [2, 4]
    assert marks_of(path) == [(frames.SKIPPED, 2, "not-ip")]


RESOLUTIONS = [None, 0, 3, 6, 9, 12, 0x80 | 10, 0x80 | 30, 0x80 | 40]


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("resolution", RESOLUTIONS)
def test_pcapng_times_are_read_in_their_interface_s_unit(order, resolution, written):
    interface = t.Interface(resolution=resolution, offset_s=1_699_999_000)
    packets = [t.Packet(s.ts_ns // 10**9 * 10**9, t.ethernet(t.ip(s))) for s in TALK]
    path = written(t.pcapng(packets, [interface], order=order))
    assert [row["ts_ns"] for row in frames_of(path)] == [packet.ts_ns for packet in packets]


def test_a_power_of_two_keeps_its_fraction(written):
    half = t.Packet(1_700_000_000_500_000_000, t.ethernet(t.ip(TALK[0])))
    for resolution in (0x80 | 1, 0x80 | 20, 0x80 | 34):
        path = written(t.pcapng([half], [t.Interface(resolution=resolution, offset_s=1_699_999_000)]))
        assert [row["ts_ns"] for row in frames_of(path)] == [half.ts_ns]


def test_a_time_beyond_reason_does_not_overflow(written):
    body = struct.pack("<IIIII", 0, 0xFFFFFFFF, 0xFFFFFFFF, 0, 0)
    for resolution in (0, 6, 9, 0x80, 0x80 | 40):
        interface = t.Interface(resolution=resolution)
        rows(written(t.section() + t.interface_block(interface) + t.block(6, body)))


def test_interfaces_of_several_sections_are_their_own(written):
    raw, ether = t.Interface(t.RAW), t.Interface(t.ETHERNET)
    first = t.pcapng([t.Packet(TALK[0].ts_ns, t.ip(TALK[0]), interface=1)], [ether, raw], order="<")
    second = t.pcapng([t.Packet(TALK[1].ts_ns, t.ethernet(t.ip(TALK[1])))], [ether], order=">")
    found = frames_of(written(first + second, "two.pcapng"))
    assert as_segments(found) == expected(TALK[:2])
    assert [row["frame_no"] for row in found] == [1, 2]


def test_old_and_simple_packet_blocks_are_packets_too(written):
    ethernet = t.Interface(snaplen=60)
    packet = t.packets(TALK)[0]
    data = t.section() + t.interface_block(ethernet) + t.old_packet(packet, ethernet, dropped=3)
    data += t.simple_packet(t.Packet(0, packet.data[:60], wire=90))
    found = frames_of(written(data))
    assert as_segments(found[:1]) == expected(TALK[:1])
    assert [row["ts_ns"] for row in found] == [packet.ts_ns] * 2  # a simple packet has no time: the one before it
    untimed = "packets without a time (simple packet blocks): 1; times and durations are unknown"
    assert marks_of(written(data)) == [
        (frames.DROPPED, 3, "reported by the capture file"),
        (frames.INPUT_ERROR, 0, untimed),
    ]


def test_unknown_blocks_are_stepped_over_and_journal_entries_numbered(written):
    data = t.section() + t.block(0xBAD, bytes(20)) + t.interface_block(t.Interface()) + t.block(4, bytes(8))
    data += t.block(9, b"MESSAGE=x") + t.enhanced_packet(t.packets(TALK)[0], t.Interface(), options=t.option(0, b""))
    found = frames_of(written(data))
    assert [row["frame_no"] for row in found] == [2]
    assert marks_of(written(data)) == [(frames.SKIPPED, 1, "not-a-packet")]


def test_drops_that_pcapng_states_are_told(written):
    data = t.pcapng(t.packets(TALK)) + t.statistics_block(0, 5) + t.statistics_block(0, 7)
    assert marks_of(written(data)) == [(frames.DROPPED, 7, "reported by the capture file")]


NG = t.section() + t.interface_block(t.Interface())
ONE = t.enhanced_packet(t.packets(TALK)[0], t.Interface())
BROKEN = {
    "block of 8 bytes": (NG + ONE + struct.pack("<II", 6, 8) + bytes(8), "impossible block length"),
    "block of a gigabyte": (NG + ONE + struct.pack("<II", 6, 1 << 30) + bytes(8), "impossible block length"),
    "two lengths": (NG + ONE + ONE[:-4] + struct.pack("<I", 64), "block lengths that disagree"),
    "interface 7": (
        NG + ONE + t.enhanced_packet(t.Packet(0, b"", interface=7), t.Interface()),
        "packet of an undeclared interface",
    ),
    "packet larger than its block": (
        NG + ONE + t.block(6, struct.pack("<IIIII", 0, 0, 0, 99, 99)),
        "impossible packet length",
    ),
    "packet block too short": (NG + ONE + t.block(6, bytes(8)), "impossible packet length"),
    "simple packet block too short": (NG + ONE + t.block(3, b""), "impossible packet length"),
    "section of no byte order": (
        NG + ONE + b"\n\r\r\n" + bytes(24),
        "section of no known byte order",
    ),
    "section of 12 bytes": (NG + ONE + struct.pack("<III", 0x0A0D0D0A, 12, 0x1A2B3C4D), "impossible block length"),
}


@pytest.mark.parametrize(("data", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_damaged_pcapng_gives_what_stands_before(data, reason, written):
    path = written(data)
    assert as_segments(frames_of(path)) == expected(TALK[:1])
    assert marks_of(path) == [(frames.INPUT_ERROR, 0, f"{reason} at byte offset {len(NG + ONE)}")]


def options(*given):
    return b"".join(t.option(*one) for one in given) + t.option(0, b"")


def declared(*given):
    """An interface block with these options."""
    return t.block(1, struct.pack("<HHI", t.ETHERNET, 0, 0) + options(*given))


def statistics(*given, interface=0):
    return t.block(5, struct.pack("<III", interface, 0, 0) + options(*given))


MOST = 1 << 64
LYING = {
    "a decimal fraction that int64 does not hold": (
        declared((9, b"\x13")),
        "if_tsresol 19, a fraction of a second that cannot be, read as microseconds",
    ),
    "a decimal fraction whose power of ten is 0 in int64": (
        declared((9, b"\x64")),
        "if_tsresol 100, a fraction of a second that cannot be, read as microseconds",
    ),
    "a binary fraction that int64 does not hold": (
        declared((9, b"\xff")),
        "if_tsresol 255, a fraction of a second that cannot be, read as microseconds",
    ),
    "a unit of no bytes": (declared((9, b"")), "option 9 of 0 bytes, ignored"),
    "an offset of three billion centuries": (
        declared((14, struct.pack("<q", 1 << 62))),
        f"if_tsoffset of {1 << 62} seconds, ignored",
    ),
    "an offset of four bytes": (declared((14, bytes(4))), "option 14 of 4 bytes, ignored"),
    "an option that is longer than its block": (
        t.block(1, struct.pack("<HHI", t.ETHERNET, 0, 0) + struct.pack("<HH", 9, 60000)),
        "option that runs beyond its block, ignored",
    ),
}


@pytest.mark.parametrize(("interface", "said"), LYING.values(), ids=LYING)
def test_an_option_that_lies_is_ignored_and_said_once(interface, said, written):
    path = written(t.section() + interface + 3 * ONE)
    assert as_segments(frames_of(path)) == 3 * expected(TALK[:1])
    assert marks_of(path) == [(frames.INPUT_ERROR, 0, f"{said} at byte offset {len(t.section())}")]


def test_a_fraction_at_the_edge_is_believed(written):
    for resolution in (18, 0x80 | 62):
        interface = t.Interface(resolution=resolution, offset_s=1_700_000_000)
        packet = t.Packet(1_700_000_001_500_000_000, t.ethernet(t.ip(TALK[0])))
        path = written(t.pcapng([packet], [interface]))
        assert [row["ts_ns"] for row in frames_of(path)] == [packet.ts_ns]
        assert marks_of(path) == []


def test_a_time_before_1970_is_1970(written):
    interface = t.Interface(offset_s=-1_800_000_000)
    body = struct.pack("<IIIII", 0, 0, 5, len(packet_bytes()), len(packet_bytes())) + t.padded(packet_bytes())
    path = written(t.section() + t.interface_block(interface) + t.block(6, body))
    assert [row["ts_ns"] for row in frames_of(path)] == [0]


def packet_bytes():
    return t.ethernet(t.ip(TALK[0]))


@pytest.mark.parametrize(
    ("counts", "said"),
    [(((5, MOST - 1),), MOST - 1), (((5, MOST - 1), (7, MOST - 1)), 2 * MOST - 2), (((7, 1 << 49),), 1 << 49)],
)
def test_a_count_that_cannot_be_is_clamped(counts, said, written):
    lies = statistics(*((code, struct.pack("<Q", value)) for code, value in counts))
    path = written(NG + ONE + lies + ONE + lies + t.section() + t.interface_block(t.Interface()) + lies + ONE)
    assert as_segments(frames_of(path)) == 3 * expected(TALK[:1])
    assert marks_of(path) == [
        (frames.DROPPED, frames.MOST_COUNT, "reported by the capture file"),
        (
            frames.INPUT_ERROR,
            0,
            f"{said} dropped packets, counted as {frames.MOST_COUNT} at byte offset {len(NG + ONE)}, the first of 3",
        ),
    ]


def test_what_comes_on_top_of_such_a_count_stays_clamped(written):
    """Found by fuzzing: an old packet block says how many packets were dropped before it."""
    old = t.old_packet(t.packets(TALK)[0], t.Interface(), dropped=3)
    path = written(NG + statistics((5, struct.pack("<Q", MOST - 1))) + old)
    assert marks_of(path)[0] == (frames.DROPPED, frames.MOST_COUNT, "reported by the capture file")


@pytest.mark.parametrize(
    ("block", "said"),
    [
        (statistics((5, struct.pack("<Q", 7)), interface=1), "statistics of an undeclared interface, ignored"),
        (t.block(5, bytes(8)), "statistics block too short, ignored"),
        (statistics((5, bytes(4))), "option 5 of 4 bytes, ignored"),
    ],
)
def test_statistics_that_cannot_be_are_ignored(block, said, written):
    path = written(NG + ONE + block + ONE)
    assert as_segments(frames_of(path)) == 2 * expected(TALK[:1])
    assert marks_of(path) == [(frames.INPUT_ERROR, 0, f"{said} at byte offset {len(NG + ONE)}")]


STEPPED_OVER = {name: data for name, (data, _) in BROKEN.items() if name.startswith(("interface", "packet", "simple"))}


@pytest.mark.parametrize("data", STEPPED_OVER.values(), ids=STEPPED_OVER)
def test_a_packet_that_cannot_be_is_stepped_over_and_has_its_number(data, written):
    """The blocks around it follow each other as they should."""
    path = written(data + data[len(NG + ONE) :] + ONE)
    found = frames_of(path)
    assert as_segments(found) == 2 * expected(TALK[:1])
    assert [row["frame_no"] for row in found] == [1, 4]
    ((kind, _, reason),) = marks_of(path)
    assert kind == frames.INPUT_ERROR
    assert reason.endswith(f" at byte offset {len(NG + ONE)}, the first of 2")


def test_an_impossible_interface_has_a_number_and_its_packets_are_not_read(written):
    interfaces = t.block(1, bytes(4)) + t.interface_block(t.Interface())
    of_second = t.enhanced_packet(t.Packet(TALK[0].ts_ns, packet_bytes(), interface=1), t.Interface())
    path = written(t.section() + interfaces + ONE + of_second)
    assert as_segments(frames_of(path)) == expected(TALK[:1])
    reason = f"impossible interface, its packets are not read at byte offset {len(t.section())}"
    assert marks_of(path) == [(frames.SKIPPED, 1, "unsupported-link-type"), (frames.INPUT_ERROR, 0, reason)]


def test_interfaces_of_a_section_are_bounded(written):
    path = written(t.section() + (MOST_INTERFACES + 2) * t.interface_block(t.Interface()) + ONE)
    assert as_segments(frames_of(path)) == expected(TALK[:1])
    ((_, _, reason),) = marks_of(path)
    assert reason.startswith(f"more than {MOST_INTERFACES} interfaces in a section, not read at byte offset ")


def test_a_length_on_the_wire_that_cannot_be_is_no_segment(written):
    """Where the IP header leaves its length to the card, the record says it."""
    segment = t.ipv4("10.0.0.1", "10.0.0.2", t.tcp(TALK[3]), total=0)
    for wire, count in ((1 << 20, 1), (1 << 21, 0), (0xFFFFFFFF, 0)):
        found = frames_of(written(t.pcap([t.Packet(1, t.ethernet(segment), wire=wire)])))
        assert [row["payload_len"] for row in found] == [wire - 54] * count


def test_a_file_that_begins_with_a_journal_entry_begins_at_0(written):
    found = rows(written(t.section() + t.block(9, b"MESSAGE=x")))
    assert {row["ts_ns"] for row in found} == {0}


def test_an_impossible_packet_length_in_a_pcap_ends_it(written):
    path = written(MICROSECONDS + struct.pack("<IIII", 0, 0, 0x7FFFFFFF, 0))
    assert as_segments(frames_of(path)) == expected(TALK)
    reason = f"impossible packet length {0x7FFFFFFF} at byte offset {len(MICROSECONDS)}"
    assert marks_of(path) == [(frames.INPUT_ERROR, 0, reason)]


def whole_packets(data, at, size_of):
    """(packets before the cut, where the cut one begins) for every record's end."""
    ends = [at]
    while ends[-1] < len(data):
        ends.append(ends[-1] + size_of(data, ends[-1]))
    return ends


def record_bytes(data, at):
    return 16 + struct.unpack_from("<I", data, at + 8)[0]


def block_bytes(data, at):
    return struct.unpack_from("<I", data, at + 4)[0]


FEW = t.packets(TALK[:5])
CUTS = {
    "pcap": (t.pcap(FEW), whole_packets(t.pcap(FEW), 24, record_bytes), 0),
    "pcapng": (t.pcapng(FEW), whole_packets(t.pcapng(FEW), 0, block_bytes), 2),
}


@pytest.mark.parametrize("name", CUTS)
def test_a_file_cut_at_any_byte_gives_the_packets_before_and_one_line(name, written):
    data, ends, headers = CUTS[name]
    every = range(len(data))
    near = {end + beside for end in ends for beside in (-1, 0, 1)}
    for size in sorted({*some(every, each=6), *near.intersection(every)}):
        path = written(data[:size])
        before = sum(end <= size for end in ends[1:])
        count = max(before - headers, 0)
        if count == 0 and not (size in ends and size):
            with pytest.raises(InputError):
                rows(path)
            continue
        found = rows(path)
        assert as_segments(row for row in found if row["kind"] == frames.FRAME) == expected(TALK[:count])
        errors = [row["reason"] for row in found if row["kind"] == frames.INPUT_ERROR]
        if size in ends:
            assert errors == []
        else:
            assert [reason.split(" at ")[1] for reason in errors] == [f"byte offset {ends[before]}"]
            assert errors[0].startswith("truncated ")


@settings(examples(30, deep=60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(window=st.integers(1, 4096), form=st.sampled_from(["pcap", "pcapng", "pcap.gz"]))
def test_windows_of_any_size_give_the_same_rows(window, form, written):
    data = {"pcap": MICROSECONDS, "pcapng": t.pcapng(t.packets(TALK)), "pcap.gz": gzip.compress(MICROSECONDS)}[form]
    path = written(data)
    assert rows(path, batch_bytes=window) == rows(path)


@st.composite
def segments(draw):
    version = draw(st.sampled_from([4, 6]))
    ends = st.tuples(st.ip_addresses(v=version).map(canonical), st.integers(0, 65535))
    seconds, rest = draw(st.integers(0, 2**32 - 1)), draw(st.integers(0, 10**9 - 1))
    numbers = [draw(st.integers(0, 2**32 - 1)) for _ in range(2)]
    return t.Segment(
        draw(ends),
        draw(ends),
        *numbers,
        draw(st.integers(0, 511)),
        draw(st.binary(max_size=60)),
        seconds * 10**9 + rest,
    )


def copied(segment):
    """What a packet and its copy under a translated address have alike: of these one is left out."""
    return segment.seq, segment.ack, segment.flags, segment.payload


def canonical(address):
    """The text that inet_ntop makes: ipaddress writes embedded IPv4 differently."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    return socket.inet_ntop(family, address.packed)


@settings(examples(30, deep=60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(given_segments=st.lists(segments(), max_size=12, unique_by=copied), big=st.booleans(), ng=st.booleans())
def test_what_was_written_is_read(given_segments, big, ng, written):
    order = ">" if big else "<"
    packets = t.packets(given_segments)
    if ng:
        data = t.pcapng(packets, [t.Interface(resolution=9)], order=order)
    else:
        data = t.pcap(packets, order=order, nanoseconds=True)
    found = frames_of(written(data))
    in_file = sorted(found, key=lambda row: row["frame_no"])  # where time steps back, packets come in another order
    assert as_segments(in_file) == expected(given_segments)
    assert [row["frame_no"] for row in in_file] == list(range(1, len(given_segments) + 1))
    assert all(later["ts_ns"] >= earlier["ts_ns"] - SMALL_STEP_NS for earlier, later in pairwise(found))


@settings(examples(40, deep=80), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(prefix=st.sampled_from([MICROSECONDS, MICROSECONDS[:24], NG, NG + ONE, b""]), garbage=st.binary(max_size=300))
def test_garbage_is_an_input_error_or_ends_the_file_and_never_anything_else(prefix, garbage, written):
    with contextlib.suppress(InputError):
        rows(written(prefix + garbage))


def test_gzip_of_several_members_with_padding_is_one_file(written):
    half = len(MICROSECONDS) // 2
    data = gzip.compress(MICROSECONDS[:half]) + bytes(512) + gzip.compress(MICROSECONDS[half:]) + bytes(512)
    assert as_segments(frames_of(written(data))) == expected(TALK)
    assert marks_of(written(data)) == []


def test_a_cut_gzip_gives_what_could_be_unpacked(written):
    many = t.Talk(mss=40).open().request(bytes(range(256)) * 40).segments
    packed = gzip.compress(t.pcap(t.packets(many)), compresslevel=1)
    path = written(packed[: len(packed) - 40])
    found = as_segments(frames_of(path))
    assert 0 < len(found) <= len(many)
    assert found == expected(many)[: len(found)]
    ((kind, _, reason),) = marks_of(path)
    assert (kind, reason.split(" at ")[0]) == (frames.INPUT_ERROR, "truncated gzip stream")


def test_a_damaged_gzip_and_garbage_behind_one_are_told(written):
    packed = bytearray(gzip.compress(MICROSECONDS, compresslevel=0))
    behind = written(bytes(packed) + b"garbage")
    assert as_segments(frames_of(behind)) == expected(TALK)
    assert "garbage after the gzip stream" in marks_of(behind)[0][2]
    packed[-6] ^= 1  # its checksum
    corrupt = written(bytes(packed))
    assert "corrupt gzip stream" in marks_of(corrupt)[0][2]
    assert as_segments(frames_of(corrupt)) == expected(TALK[:-1])  # zlib gives the last byte with its check only


UNREADABLE = {
    "an empty file": (b"", "empty file"),
    "a text file": (b"this is no capture\n" * 9, "not a pcap or pcapng file"),
    "Network Monitor's": (b"GMBU" + bytes(60), "a Network Monitor file; convert it with Wireshark's editcap"),
    "one byte": (b"\xd4", "not a pcap or pcapng file"),
    "half a file header": (MICROSECONDS[:20], "truncated file header at byte offset 20"),
    "half a first packet": (MICROSECONDS[:50], "truncated packet at byte offset 24"),
    "a packed text file": (gzip.compress(b"text"), "not a pcap or pcapng file"),
    "an empty packed file": (gzip.compress(b""), "empty file"),
    "two bytes of gzip": (b"\x1f\x8b", "truncated gzip stream"),
}


@pytest.mark.parametrize(("data", "reason"), UNREADABLE.values(), ids=UNREADABLE)
def test_a_file_with_nothing_to_read_says_why_in_one_line(data, reason, written):
    path = written(data)
    with pytest.raises(NothingReadableError) as caught:
        rows(path)
    assert str(caught.value) == f"{path}: {reason}"


def test_a_missing_file_and_a_folder_say_so(tmp_path):
    with pytest.raises(NothingReadableError, match=r"a folder, not a capture file\n.*missing.pcap: no such file$"):
        rows(tmp_path / "missing.pcap", tmp_path)


def test_a_capture_without_packets_is_readable(written):
    assert marks_of(written(MICROSECONDS[:24])) == []


def test_a_path_is_named_as_it_was_given(written, monkeypatch):
    monkeypatch.chdir(written(MICROSECONDS).parent)
    assert {row["source"] for row in frames_of(Path("capture.pcap"))} == {"capture.pcap"}


@pytest.mark.parametrize("form", ["pcap", "pcapng"])
def test_packets_of_a_link_type_that_is_not_read_are_said_with_its_number(tmp_path, form):
    packets = [t.Packet(1, bytes(80)), t.Packet(2, bytes(80))]
    data = t.pcap(packets, link_type=105) if form == "pcap" else t.pcapng(packets, [t.Interface(105)])
    (tmp_path / f"air.{form}").write_bytes(data)
    said = [reason for kind, _, reason in marks_of(tmp_path / f"air.{form}") if kind == frames.INPUT_ERROR]
    assert len(said) == 1
    assert said[0].startswith("2 packets of link type 105 are not supported; supported: Ethernet, raw IP, ")
    assert skipped(tmp_path / f"air.{form}") == {"unsupported-link-type": 2}


def exported(segments, *, name=b"kafka", drop=(), port_type=2):
    """Each payload as a PDU that Wireshark exported: its tags, as `tshark -U "OSI layer 7"` writes them."""
    for segment in (s for s in segments if s.payload):
        v6 = ":" in segment.src[0]
        tags = [(12, name + bytes(-len(name) % 4)), (22 if v6 else 20, ipaddress.ip_address(segment.src[0]).packed)]
        tags += [(23 if v6 else 21, ipaddress.ip_address(segment.dst[0]).packed), (24, struct.pack(">I", port_type))]
        tags += [(25, struct.pack(">I", segment.src[1])), (26, struct.pack(">I", segment.dst[1]))]
        tags += [(30, struct.pack(">I", 7)), (0, b"")]
        head = b"".join(struct.pack(">HH", tag, len(value)) + value for tag, value in tags if tag not in drop)
        yield t.Packet(segment.ts_ns, head + segment.payload)


@pytest.mark.parametrize("form", ["pcap", "pcapng"])
@pytest.mark.parametrize("client", [("10.0.0.1", 40000), ("fd00::1", 40000)])
def test_pdus_that_wireshark_exported_are_read_with_the_ports_and_addresses_in_their_tags(written, form, client):
    talk = t.Talk(client=client, server=(client[0][:-1] + "2", 9092)).open()
    for number in range(5):
        talk.request(bytes([number]) * 30)
        talk.response(bytes([number]) * 3_000)
    packets = list(exported(talk.segments))
    path = written(t.pcap(packets, link_type=252) if form == "pcap" else t.pcapng(packets, [t.Interface(252)]))
    found = frames_of(path)
    sent = {}
    for row, segment in zip(found, [s for s in talk.segments if s.payload], strict=True):
        ends = (row["src_ip"], row["src_port"]), (row["dst_ip"], row["dst_port"])
        assert (ends, row["payload"], row["ts_ns"]) == ((segment.src, segment.dst), segment.payload, segment.ts_ns)
        assert row["tcp_seq"] == sent.get(ends, 1)
        assert row["tcp_ack"] == sent.get(ends[::-1], 1)
        sent[ends] = row["tcp_seq"] + len(segment.payload)
    assert marks_of(path) == []


NO_FRAMES = {"address": ({"drop": (20,)}, "not-ip"), "port": ({"drop": (26,)}, "non-tcp"),
             "of UDP": ({"port_type": 3}, "non-tcp"), "no end": ({"drop": (0,)}, "bad-header")}  # fmt: skip


@pytest.mark.parametrize(("changed", "reason"), NO_FRAMES.values(), ids=NO_FRAMES)
def test_an_exported_pdu_of_no_tcp_connection_is_counted_with_the_reason(written, changed, reason):
    (packet,) = exported(TALK[3:4], **changed)
    assert skipped(written(t.pcap([packet], link_type=252))) == {reason: 1}


def test_an_exported_pdu_is_read_as_far_as_it_was_captured(written):
    (packet,) = exported(TALK[3:4])
    whole = len(packet.data)
    for size in range(whole):
        path = written(t.pcap([t.cut(packet, size)], link_type=252))
        assert len(frames_of(path)) == (whole - size <= len(TALK[3].payload))


def test_the_name_of_a_file_begins_no_line_of_its_own(tmp_path):
    path = tmp_path / "a\nwirecheck: all is well.pcap"
    path.write_bytes(b"x")
    _, (error,) = inputs_in_order([path])
    assert "\n" not in str(error)
    assert "a\\nwirecheck: all is well.pcap: not a pcap or pcapng file" in str(error)
