"""The benches' traffic is what it says: whole connections, paired messages, the same bytes for the same arguments."""

import struct
from collections import defaultdict

import pytest

from bench.traffic import write_capture
from tests.capture.reading import frames_of


@pytest.fixture(scope="module", params=["records", "small"])
def capture(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("bench") / f"{request.param}.pcap"
    return path, write_capture(path, 1_500_000, request.param, count=24)


def messages(data):
    at, found = 0, []
    while at < len(data):
        (size,) = struct.unpack_from(">i", data, at)
        found.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    assert at == len(data)
    return found


def test_every_request_is_answered_and_no_byte_is_missing(capture):
    path, made = capture
    said, following = defaultdict(bytes), {}
    found = frames_of(path)
    for row in found:
        way = (row["src_ip"], row["src_port"], row["dst_ip"], row["dst_port"])
        assert following.get(way, row["tcp_seq"]) == row["tcp_seq"]
        following[way] = (row["tcp_seq"] + row["payload_len"] + (row["tcp_flags"] & 3 > 0)) % 2**32
        said[way] += row["payload"]
    requests = {way: messages(data) for way, data in said.items() if way[3] == 9092}
    for (client, port, server, server_port), asked in requests.items():
        answered = messages(said[server, server_port, client, port])
        ids = [struct.unpack_from(">i", message, 4)[0] for message in asked]
        assert ids == [struct.unpack_from(">i", message)[0] for message in answered]
        assert ids == list(range(1, len(ids) + 1))
    assert len(found) == made.frames
    assert sum(map(len, requests.values())) == made.exchanges
    assert path.stat().st_size == made.bytes


def test_the_same_arguments_give_the_same_bytes(tmp_path):
    paths = [tmp_path / name for name in ("a", "b")]
    for path in paths:
        write_capture(path, 300_000, "records", count=10, seed=7)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_nine_tenths_of_the_bytes_are_records(tmp_path):
    path = tmp_path / "big.pcap"
    write_capture(path, 20_000_000)
    said = defaultdict(bytes)
    for row in frames_of(path):
        said[row["src_ip"], row["src_port"], row["dst_ip"], row["dst_port"]] += row["payload"]
    large = [len(message) - 200 for data in said.values() for message in messages(data) if len(message) > 5000]
    assert 0.88 < sum(large) / path.stat().st_size < 0.92
