"""What is given back was agreed to, holds the messages asked for, and keeps bytes and connections' beginnings."""

import pyarrow as pa
import pytest

from tests import traffic
from wirecheck.capture.agent.offline_agent import write_frames
from wirecheck.capture.evidence import pcapng_export
from wirecheck.capture.evidence.minimal_messages import choice_of, fewest
from wirecheck.decode.peer import Peer

SERVER = ("10.0.0.9", 9092)
EXCHANGES = 40


def message(number, api=18):
    """An ApiVersions request of version 0, or the same header with another API."""
    body = api.to_bytes(2, "big") + bytes(2) + number.to_bytes(4, "big") + b"\x00\x01c"
    return len(body).to_bytes(4, "big") + body


def answer(number):
    body = number.to_bytes(4, "big") + bytes(2) + bytes(4)
    return len(body).to_bytes(4, "big") + body


def talk(port):
    found = traffic.Talk(client=("10.0.0.1", port), server=SERVER).open()
    for number in range(EXCHANGES):
        found = found.request(message(number)).response(answer(number))
    return found.close()


TALKS = (talk(40000), talk(40001))


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("talks")
    path = folder / "talks.pcap"
    path.write_bytes(traffic.pcap(traffic.packets(s for t in TALKS for s in t.segments)))
    files = write_frames([path], folder / "frames", "L", keep_records=True).files
    pairs = {pcapng_export.Pair.of(Peer(*t.client), Peer(*t.server)) for t in TALKS}
    return pcapng_export.selected(files, "L", pairs)


def place(table, payload, port=40000):
    """Of the frame that carries it."""
    row = next(r for r in table.to_pylist() if r["payload"] == payload and port in (r["src_port"], r["dst_port"]))
    return row["source"], row["frame_no"]


def payloads(table, port=40000):
    return [r["payload"] for r in table.to_pylist() if r["payload"] and port in (r["src_port"], r["dst_port"])]


def test_a_message_that_is_enough_comes_with_its_other_half_and_how_connections_begin(table):
    found = fewest(table, {place(table, message(7))}, lambda _: True)
    assert payloads(found) == [message(7), answer(7)]
    assert payloads(found, 40001) == []
    assert sum(bool(flags & 2) for flags in found["tcp_flags"].to_pylist()) == 4  # SYN and SYN-ACK of both
    assert found["tcp_seq"].to_pylist() == [
        row["tcp_seq"] for row in table.to_pylist() if (row["source"], row["frame_no"]) in numbers(found)
    ]


def numbers(table):
    return {(row["source"], row["frame_no"]) for row in table.select(["source", "frame_no"]).to_pylist()}


@pytest.mark.parametrize("port", [40000, 40001])
def test_another_message_that_is_needed_is_found_alone(table, port):
    needed = place(table, message(23), port)
    tried = []

    def proves(frames):
        tried.append(numbers(frames))
        return needed in numbers(frames)

    found = fewest(table, {place(table, message(7))}, proves)
    assert numbers(found) in tried
    assert sorted(payloads(found) + payloads(found, 40001)) == sorted([message(7), answer(7), message(23), answer(23)])


def test_what_is_needed_besides_messages_is_kept(table):
    """An acknowledgement, say: a message of no API."""
    bare = [row for row in table.to_pylist() if not row["payload"] and not row["tcp_flags"] & 7]
    needed = {(row["source"], row["frame_no"]) for row in bare}
    found = fewest(table, {place(table, message(7))}, lambda frames: needed <= numbers(frames))
    assert needed <= numbers(found)
    assert found.num_rows < table.num_rows


@pytest.mark.parametrize("asked", [set(), {("elsewhere", 1)}], ids=["nothing", "unknown"])
def test_without_a_message_to_begin_with_the_rest_is_tried(table, asked):
    assert fewest(table, asked, lambda frames: frames.num_rows >= 20).num_rows >= 20


def test_nothing_is_claimed_when_nothing_proves_it(table):
    assert fewest(table, {place(table, message(7))}, lambda _: False) is None


def test_connections_inside_tls_stay_whole(table):
    """Of a decrypted connection no record may be missing."""
    column = pa.array([int(40001 in (r["src_port"], r["dst_port"])) for r in table.to_pylist()], pa.int64())
    inside = table.set_column(table.schema.get_field_index("decrypted"), "decrypted", column)
    found = fewest(inside, {place(table, message(7))}, lambda _: True)
    assert payloads(found, 40001) == payloads(table, 40001)
    assert payloads(found) == [message(7), answer(7)]


def test_the_openings_of_a_connection_come_before_its_other_messages(table):
    required, rings = choice_of(table, {place(table, message(7))})[1:]
    assert [unit.api for unit in required] == [18]
    assert {unit.api for unit in rings[0]} == {18}
    assert len(rings[0]) == EXCHANGES - 1
