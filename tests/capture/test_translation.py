"""Packets before and after NAT are counted once, and what only looks like that is not touched.

Each case is a capture made of bytes: a connection as the server's host sees it, and copies under other addresses.
"""

from dataclasses import replace

import pyarrow as pa
import pytest

from tests.capture.reading import as_segments, expected, frames_of, marks_of
from tests.traffic import ACK, RST, SYN, Segment, Talk, packets, pcap, size_prefixed
from wirecheck.capture import frames
from wirecheck.capture.agent.offline_agent import read_frames
from wirecheck.capture.translation import MOST_HELD_BYTES, TRANSLATED, WAIT_NS, Translation

CLIENT, SERVER = ("10.244.1.5", 41000), ("10.244.2.9", 9092)
SERVICE, GATEWAY = ("10.96.0.10", 9092), ("10.244.2.1", 1031)
MIDDLE = ("10.5.0.1", 30092)
LATER = 1_000
"""Nanoseconds that a translation takes."""


def talk(
    client=CLIENT, server=SERVER, *, numbers=(3_000_000_000, 2_100_000_000), ts_ns=Talk.ts_ns, texts=4, step_ns=100_000
):
    made = Talk(client, server, client_seq=numbers[0], server_seq=numbers[1], ts_ns=ts_ns, step_ns=step_ns).open()
    for n in range(texts):
        made.request(size_prefixed(b"\0\x12\0\3\0\0\0%d" % n))
        made.response(size_prefixed(b"\0\0\0%d answer" % n))
    return made.close().segments


def seen(segments, *legs):
    """The same packets as `legs` show them, from the client's side to the server's: (client, server) of each."""
    found = []
    for one in segments:
        from_client = one.src == CLIENT
        passed = range(len(legs)) if from_client else range(len(legs))[::-1]
        for k, leg in enumerate(passed):
            client, server = legs[leg]
            ends = (client, server) if from_client else (server, client)
            found.append(replace(one, src=ends[0], dst=ends[1], ts_ns=one.ts_ns + k * LATER))
    return found


def in_time(*parts):
    return sorted((one for part in parts for one in part), key=lambda one: one.ts_ns)


@pytest.fixture
def kept(tmp_path):
    """What of a capture stays; and how many copies were counted."""

    def read(segments, **options):
        path = tmp_path / "capture.pcap"
        path.write_bytes(pcap(packets(segments), nanoseconds=True))
        copies = sum(count for _, count, reason in marks_of(path, **options) if reason == TRANSLATED)
        return as_segments(frames_of(path, **options)), copies

    return read


def ends(rows):
    return {frozenset(((row[1], row[2]), (row[3], row[4]))) for row in rows}


@pytest.mark.parametrize(
    ("legs", "left"),
    [
        pytest.param([(CLIENT, SERVICE), (CLIENT, SERVER)], (CLIENT, SERVER), id="destination"),
        pytest.param([(CLIENT, SERVER), (GATEWAY, SERVER)], (CLIENT, SERVER), id="source"),
        pytest.param([(CLIENT, SERVICE), (GATEWAY, SERVER)], (CLIENT, SERVER), id="both"),
        pytest.param([(CLIENT, SERVICE), (CLIENT, MIDDLE), (GATEWAY, SERVER)], (CLIENT, SERVER), id="twice"),
        pytest.param([(CLIENT, SERVICE), (CLIENT, SERVICE), (CLIENT, SERVER)], (CLIENT, SERVER), id="and-a-bridge"),
    ],
)
@pytest.mark.parametrize("beginning", [0, 3], ids=["from the handshake", "midway"])
def test_packets_before_and_after_a_translation_are_counted_once(kept, legs, left, beginning):
    every = talk()[beginning:]
    rows, copies = kept(seen(every, *legs))
    again = legs.count(legs[0])  # a bridge shows packets twice under the same addresses: they stay for the follower
    assert ends(rows) == {frozenset(left)}
    assert len(rows) in {len(every), again * len(every)}
    assert copies == len(legs) * len(every) - len(rows)
    assert {row[8] for row in rows} == {one.payload for one in every}


def test_of_a_servers_addresses_the_one_that_brokers_advertise_stays(kept):
    own = rows_with_answers(kept, b"", (CLIENT, SERVICE), (GATEWAY, SERVER))
    assert own == {frozenset((CLIENT, SERVER))}
    by_name = rows_with_answers(kept, named("broker-1.kafka.svc", 9092), (CLIENT, SERVICE), (GATEWAY, SERVER))
    assert by_name == {frozenset((CLIENT, SERVER))}
    another_port = rows_with_answers(kept, named(SERVICE[0], 9093), (CLIENT, SERVICE), (GATEWAY, SERVER))
    assert another_port == {frozenset((CLIENT, SERVER))}
    for legs in ([(CLIENT, SERVICE), (CLIENT, SERVER)], [(CLIENT, SERVICE), (GATEWAY, SERVER)]):
        assert rows_with_answers(kept, named(*SERVICE), *legs) == {frozenset((CLIENT, SERVICE))}
        assert rows_with_answers(kept, named(*SERVER), *legs) == {frozenset((CLIENT, SERVER))}


def named(host, port):
    return len(host).to_bytes(2, "big") + host.encode() + port.to_bytes(4, "big")


def rows_with_answers(kept, text, *legs):
    every = talk()
    every[-4] = replace(every[-4], payload=every[-4].payload + text)
    found = {ends(kept(seen(every[beginning:], *legs))[0]).pop() for beginning in (0, 3)}
    assert every[-4].src == SERVER
    return found


def test_a_refused_connection_is_counted_once(kept):
    syn = talk()[0]
    refusal = replace(syn, src=SERVICE, dst=CLIENT, seq=0, ack=syn.seq + 1, flags=RST | ACK, ts_ns=syn.ts_ns + 50_000)
    rows, copies = kept(seen([syn, refusal], (CLIENT, SERVICE), (CLIENT, SERVER)))
    assert (ends(rows), copies) == ({frozenset((CLIENT, SERVER))}, 2)


def acknowledged(segments, later_ns=40_000_000):
    """Each packet with payload, and its acknowledgement a delay later; the answers of the server are left out."""
    made = []
    for one in segments:
        if one.src == CLIENT and one.payload:
            ack = one.seq + len(one.payload)
            reply = Segment(SERVER, CLIENT, one.ack, ack, ACK, b"", one.ts_ns + later_ns, one.window)
            made += [replace(one, ts_ns=one.ts_ns), reply]
    return sorted(made, key=lambda one: one.ts_ns)


@pytest.mark.parametrize("legs", [[(CLIENT, SERVICE), (CLIENT, SERVER)], [(CLIENT, SERVICE), (GATEWAY, SERVER)]])
def test_a_producer_without_acks_that_began_before_the_capture_is_counted_once(kept, legs):
    """Its brokers send no answer: only acknowledgements show the other direction."""
    every = acknowledged(talk(texts=3))
    rows, copies = kept(seen(every, *legs))
    assert (ends(rows), len(rows), copies) == ({frozenset((CLIENT, SERVER))}, len(every), len(every))


RETRIES_NS = (0, 1_000_000_000, 3_000_000_000, 7_000_000_000)
"""When Linux repeats a SYN."""


def repeated_syn(client=CLIENT, number=3_000_000_000, window=64_240, server=SERVER):
    syn = replace(talk(numbers=(number, 1))[0], src=client, dst=server, window=window)
    return [replace(syn, ts_ns=syn.ts_ns + later_ns) for later_ns in RETRIES_NS]


@pytest.mark.parametrize(
    "legs",
    [
        pytest.param([(CLIENT, SERVICE), (CLIENT, SERVER)], id="destination"),
        pytest.param([(CLIENT, SERVER), (GATEWAY, SERVER)], id="source, another port"),
        pytest.param([(CLIENT, SERVER), ((GATEWAY[0], CLIENT[1]), SERVER)], id="source, the port kept"),
        pytest.param([(CLIENT, SERVICE), (CLIENT, MIDDLE), (GATEWAY, SERVER)], id="twice"),
    ],
)
def test_syns_that_no_server_answers_are_counted_once(kept, legs):
    rows, copies = kept(seen(repeated_syn(), *legs))
    assert (ends(rows), len(rows)) == ({frozenset((CLIENT, SERVER))}, len(RETRIES_NS))
    assert copies == (len(legs) - 1) * len(rows)


def test_a_connection_that_is_accepted_at_the_third_syn_is_counted_once(kept):
    late_ns = RETRIES_NS[2]
    accepted = [replace(one, ts_ns=one.ts_ns + late_ns) for one in talk()]
    rows, copies = kept(seen([*repeated_syn(window=65535)[:2], *accepted], (CLIENT, SERVICE), (GATEWAY, SERVER)))
    assert (ends(rows), len(rows)) == ({frozenset((CLIENT, SERVER))}, 2 + len(talk()))
    assert copies == len(rows)


def test_each_connection_through_a_service_keeps_its_own_server(kept):
    second = replace_ports(talk(numbers=(1_000_000_007, 4_000_000_000)), 41001)
    rows, copies = kept(
        in_time(
            seen(talk(), (CLIENT, SERVICE), (CLIENT, SERVER)),
            seen_as(second, ((CLIENT[0], 41001), SERVICE), ((CLIENT[0], 41001), MIDDLE)),
        )
    )
    assert ends(rows) == {frozenset((CLIENT, SERVER)), frozenset(((CLIENT[0], 41001), MIDDLE))}
    assert copies == len(rows)


def replace_ports(segments, port):
    client = (CLIENT[0], port)
    return [
        replace(one, src=client if one.src == CLIENT else one.src, dst=client if one.dst == CLIENT else one.dst)
        for one in segments
    ]


def seen_as(segments, *legs):
    """As `seen`, for another client's port."""
    client = legs[0][0]
    back = [
        replace(one, src=CLIENT if one.src == client else one.src, dst=CLIENT if one.dst == client else one.dst)
        for one in segments
    ]
    return seen(back, *legs)


STAYS = {
    "a proxy has numbers of its own": in_time(
        talk(), talk(MIDDLE, SERVER, numbers=(3_100_000_000, 2_500_000_000), ts_ns=Talk.ts_ns + 20_000)
    ),
    "a client's number by chance": in_time(
        talk(), talk(("10.244.1.6", 41000), SERVICE, numbers=(3_000_000_000, 900_000_000), ts_ns=Talk.ts_ns + LATER)
    ),
    "both numbers, far apart in time": in_time(talk(), talk(GATEWAY, SERVER, ts_ns=Talk.ts_ns + 60_000_000_000)),
    "numbers that a program made up, side by side": in_time(
        talk(numbers=(1000, 9000)), talk(("10.244.1.6", 41000), SERVICE, numbers=(1000, 9000), ts_ns=Talk.ts_ns + LATER)
    ),
    "both numbers, side by side": in_time(talk(), talk(("10.244.1.6", 41000), SERVICE, ts_ns=Talk.ts_ns + LATER)),
    "two clients midway, side by side": in_time(
        talk()[3:], talk(("10.244.1.6", 41000), SERVICE, ts_ns=Talk.ts_ns + LATER)[3:]
    ),
    "one packet is no proof": seen(talk(texts=1)[3:4], (CLIENT, SERVICE), (CLIENT, SERVER)),
    "a packet and its acknowledgement, side by side": in_time(
        acknowledged(talk()), replace_ports(acknowledged(talk(server=SERVICE)), 41001)
    ),
    "acknowledgements of another window": [
        one if one.payload or SERVICE not in (one.src, one.dst) else replace(one, window=100)
        for one in seen(acknowledged(talk()), (CLIENT, SERVICE), (CLIENT, SERVER))
    ],
    "one direction is no proof": seen(
        [one for one in talk() if one.src == CLIENT], (CLIENT, SERVICE), (CLIENT, SERVER)
    ),
    "other content": [
        replace(one, payload=bytes(len(one.payload))) if SERVER in (one.src, one.dst) else one
        for one in seen(talk()[3:], (CLIENT, SERVICE), (CLIENT, SERVER))
    ],
    "one stream on two interfaces": in_time(talk(), [replace(one, ts_ns=one.ts_ns + LATER) for one in talk()]),
    "two clients that a dead server does not answer": in_time(
        repeated_syn(), repeated_syn(("10.244.1.6", 41000), 3_000_000_001)
    ),
    "two clients of one number, not together": in_time(
        repeated_syn(), [replace(one, ts_ns=one.ts_ns + 6_000_000) for one in repeated_syn(("10.244.1.6", 41000))]
    ),
    "a port scan of two dead servers": in_time(
        repeated_syn(window=1024)[:1], repeated_syn(window=1024, server=MIDDLE)[:1]
    ),
    "SYNs of a program that begins with small numbers": in_time(
        repeated_syn(number=1000), repeated_syn(("10.244.1.6", 41000), 1000)
    ),
    "SYNs of one number with other windows": in_time(repeated_syn(), repeated_syn(server=MIDDLE, window=65535)),
    "a SYN that is not answered": [one for one in talk()[:1] for _ in range(3)],
}


@pytest.mark.parametrize("name", STAYS)
def test_what_only_looks_like_a_translation_stays(kept, name):
    assert kept(STAYS[name]) == (expected(STAYS[name]), 0)


def test_connections_whose_handshakes_were_lost_are_found_one_by_one(kept):
    """Copies of SYN-ACKs are missing: the packets of each connection decide about it, from its own SYN on."""
    parts = []
    for n in range(5):
        client = (CLIENT[0], 41001 + n)
        later_ns = Talk.ts_ns + n * 500_000_000
        every = replace_ports(talk(numbers=(100_000_000 + n, 200_000_000 + n), ts_ns=later_ns), client[1])
        both = seen_as(every, (client, SERVICE), (client, SERVER))
        parts.append([one for one in both if not (one.flags == SYN | ACK and one.src == SERVICE)])
    rows, copies = kept(in_time(*parts))
    assert all(SERVER in pair for pair in ends(rows))
    assert copies == 5 * (len(talk()) - 1)


def test_ports_that_are_used_again_are_another_connection(kept):
    first = seen(talk(), (CLIENT, SERVICE), (CLIENT, SERVER))
    second = talk(numbers=(77_000_000, 88_000_000), ts_ns=Talk.ts_ns + 1_000_000_000)
    rows, copies = kept([*first, *second])
    assert copies == len(first) / 2
    assert rows[-len(second) :] == expected(second)


def test_midway_connections_end_where_their_ports_are_used_again(kept):
    first = seen(talk()[3:], (CLIENT, SERVICE), (CLIENT, SERVER))
    second = talk(numbers=(77_000_000, 88_000_000), ts_ns=Talk.ts_ns + 1_000_000_000)
    rows, copies = kept([*first, *second])
    assert copies == len(first) / 2
    assert rows[-len(second) :] == expected(second)


def rows_of(segments, tmp_path):
    path = tmp_path / "capture.pcap"
    path.write_bytes(pcap(packets(segments), nanoseconds=True))
    tables = [table.combine_chunks() for table in untouched([path])]
    return [batch for table in tables for batch in table.to_batches()]


def untouched(paths):
    from wirecheck.capture.agent.offline_agent import _Capture

    capture = _Capture(paths, frames.Stamp("c", "a"), 1 << 24, ())
    return [pa.Table.from_batches([rows]) for rows in capture.rows(None)]


def frames_in(batches):
    found = pa.Table.from_batches(batches)
    return as_segments([row for row in found.to_pylist() if row["kind"] == frames.FRAME])


@pytest.mark.parametrize("legs", [[(CLIENT, SERVICE), (CLIENT, SERVER)], [(CLIENT, SERVICE), (GATEWAY, SERVER)]])
def test_a_handshake_is_decided_however_rows_are_cut_into_batches(legs, tmp_path):
    started, whole, ended = rows_of(seen(talk(), *legs), tmp_path)
    expected_rows = None
    for cut in range(1, whole.num_rows):
        translation = Translation()
        parts = [started, whole.slice(0, cut), whole.slice(cut), ended]
        out = [rows for part in parts for rows in translation.add(part)]
        assert out[-1].column("kind").to_pylist() == [frames.ENDED]
        found = frames_in(out)
        expected_rows = found if expected_rows is None else expected_rows
        assert found == expected_rows
        assert translation.copies == len(found)


@pytest.mark.parametrize("legs", [[(CLIENT, SERVICE), (CLIENT, SERVER)], [(CLIENT, SERVICE), (GATEWAY, SERVER)]])
@pytest.mark.parametrize("every", [talk()[3:], acknowledged(talk(texts=3))], ids=["answers", "acknowledgements"])
def test_a_connection_without_its_handshake_is_decided_however_rows_are_cut_into_batches(legs, every, tmp_path):
    _, whole, ended = rows_of(seen(every, *legs), tmp_path)
    for cut in range(2, whole.num_rows):  # between the first packet and its copy, that one stays
        translation = Translation()
        parts = [whole.slice(0, cut), whole.slice(cut), ended]
        found = frames_in([rows for part in parts for rows in translation.add(part)])
        assert (ends(found), len(found)) == ({frozenset((CLIENT, SERVER))}, len(every))
        assert translation.copies == len(every)


def test_a_route_that_shows_one_direction_waits_once(tmp_path):
    every = seen([one for one in talk(step_ns=1_000_000)[3:] if one.src == CLIENT], (CLIENT, SERVICE), (CLIENT, SERVER))
    _, whole, _ = rows_of(every, tmp_path)
    translation = Translation()
    assert [*translation.add(whole.slice(0, 4))] == []
    assert translation.oldest_ns == every[0].ts_ns
    assert [*translation.advance(every[3].ts_ns + 100_000_000)] == []
    assert len(frames_in([*translation.advance(every[3].ts_ns + WAIT_NS + 1)])) == 4
    assert len(frames_in([*translation.add(whole.slice(4))])) == whole.num_rows - 4
    assert (translation.oldest_ns, translation.copies) == (None, 0)


def test_a_syn_without_an_answer_waits_while_nothing_else_comes(tmp_path):
    """As in a live agent at a quiet time: the clock goes on and no row does."""
    _, whole, _ = rows_of(seen(repeated_syn()[:1], (CLIENT, SERVICE), (CLIENT, SERVER)), tmp_path)
    translation = Translation()
    assert [*translation.add(whole)] == []
    assert [*translation.advance(Talk.ts_ns + WAIT_NS // 2)] == []
    found = frames_in([*translation.advance(Talk.ts_ns + WAIT_NS + LATER)])
    assert (ends(found), len(found), translation.copies) == ({frozenset((CLIENT, SERVER))}, 1, 1)


def test_rows_wait_for_no_longer_than_their_time(tmp_path):
    _, whole, _ = rows_of(seen(talk(), (CLIENT, SERVICE), (CLIENT, SERVER)), tmp_path)
    translation = Translation()
    assert [*translation.add(whole.slice(0, 2))] == []
    assert translation.oldest_ns == Talk.ts_ns
    assert [*translation.advance(Talk.ts_ns)] == []
    assert len(frames_in([*translation.advance(Talk.ts_ns + LATER)])) == 2
    assert translation.oldest_ns is None


def test_interfaces_that_are_read_in_turn(tmp_path):
    _, whole, _ = rows_of(seen(talk(), (CLIENT, SERVICE), (GATEWAY, SERVER)), tmp_path)
    of_front = pa.compute.or_(
        pa.compute.equal(whole["src_ip"], SERVICE[0]), pa.compute.equal(whole["dst_ip"], SERVICE[0])
    )
    translation, at_ns = Translation(in_turn=True), Talk.ts_ns + 10_000_000_000
    parts = [whole.filter(of_front), whole.filter(pa.compute.invert(of_front))]
    out = [rows for part in parts for rows in translation.add(part)]
    assert out == [] == [*translation.advance(Talk.ts_ns - 1)]
    found = frames_in([*translation.advance(at_ns)])
    assert ends(found) == {frozenset((CLIENT, SERVER))}
    assert len(found) == translation.copies == whole.num_rows / 2


def test_many_syns_of_one_number_decide_nothing_and_are_not_held_for_ever(tmp_path):
    syn = talk()[0]
    flood = [replace(syn, src=(f"10.9.{n // 200}.{n % 200 + 1}", 1024 + n), ts_ns=syn.ts_ns + n) for n in range(4000)]
    _, whole, _ = rows_of(flood, tmp_path)
    translation = Translation()
    held = most = 0
    for _ in range(20):
        held -= sum(rows.num_rows for rows in translation.add(whole)) - whole.num_rows
        most = max(most, held)
    assert most * whole.nbytes / whole.num_rows < MOST_HELD_BYTES + whole.nbytes
    assert sum(rows.num_rows for rows in translation.drain()) == held


def test_a_connection_that_is_shown_by_a_file_for_each_interface(tmp_path):
    both = seen(talk(), (CLIENT, SERVICE), (CLIENT, SERVER))
    for name, server in (("a", SERVICE), ("b", SERVER)):
        mine = [one for one in both if server in (one.src, one.dst)]
        (tmp_path / f"{name}.pcap").write_bytes(pcap(packets(mine), nanoseconds=True))
    found = pa.concat_tables(read_frames([tmp_path / "a.pcap", tmp_path / "b.pcap"])).to_pylist()
    rows = as_segments([row for row in found if row["kind"] == frames.FRAME])
    assert ends(rows) == {frozenset((CLIENT, SERVER))}
    assert len(rows) == len(both) / 2
