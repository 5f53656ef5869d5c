"""PROXY headers before Kafka's bytes, at the agent: connections are read and redacted as any other, inside TLS too."""

from dataclasses import dataclass

import pytest

from tests import proxy_headers
from tests import traffic as t
from tests.capture import canaries
from tests.capture.tls.conftest import pem, tls  # noqa: F401 -- fixtures
from tests.capture.tls.test_decryption import capture, conversation, lines, of_files
from tests.decode.connection.conversations import METADATA, request, response
from tests.depth import some
from wirecheck.capture import frames, frames_file
from wirecheck.capture.agent.offline_agent import read_frames, write_frames
from wirecheck.decode.connection.follower import Follower
from wirecheck.decode.connection.segments import segments
from wirecheck.decode.peer import Peer

HEADERS = {
    "v1": proxy_headers.v1(),
    "v1 IPv6": proxy_headers.v1(6),
    "v1 UNKNOWN": b"PROXY UNKNOWN\r\n",
    "v2": proxy_headers.v2(),
    "v2 IPv6 with TLVs": proxy_headers.v2(6, more=canaries.SECRET),
    "v2 LOCAL": proxy_headers.NAMELESS["v2 LOCAL"],
    "v2 UNIX": proxy_headers.v2_of(0x21, 0x31, canaries.SECRET * 4),
}


@dataclass
class Proxied(t.Talk):
    """A talk whose client's bytes begin with this header, in a segment of its own or with the first ones."""

    header: bytes = b""
    alone: bool = True

    def open(self):
        super().open()
        if self.alone:
            super().request(self.header)
            self.header = b""
        return self

    def request(self, data):
        data, self.header = self.header + data, b""
        return super().request(data)


def facts(files):
    follower = Follower()
    found = [follower.receive(segments(frames_file.read(file))) for file in files]
    return {c.started_ns: c for e in [*found, follower.drain()] for c in e.connections}.values()


@pytest.mark.parametrize("name", HEADERS)
@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize(("mss", "batch_bytes"), [(1448, 1 << 22), (60, 1 << 11)])
def test_it_is_read_and_trimmed_as_without_a_header(tmp_path, name, alone, mss, batch_bytes):
    talk = conversation(Proxied(header=HEADERS[name], alone=alone, mss=mss), names=sorted(canaries.EXCHANGES), count=9)
    path = capture(tmp_path / "proxied.pcap", talk.segments)
    bare = conversation(t.Talk(mss=mss), names=sorted(canaries.EXCHANGES), count=9)
    out = write_frames([path], tmp_path / "out", "L", batch_bytes=batch_bytes)
    assert of_files(out.files) == of_files(
        write_frames([capture(tmp_path / "bare.pcap", bare.segments)], tmp_path / "bare", "L").files
    )
    assert canaries.leaks(out.files) == []
    assert {c.protocol for c in facts(out.files)} == {"kafka"}


@pytest.mark.parametrize("name", ["v1", "v2", "v2 IPv6 with TLVs"])
def test_the_addresses_it_names_are_kept_and_nothing_else_of_it(tmp_path, name):
    header = HEADERS[name]
    talk = conversation(Proxied(header=header))
    out = write_frames([capture(tmp_path / "a.pcap", talk.segments)], tmp_path / "out", "L")
    rows = [row for file in out.files for row in frames_file.read(file).to_pylist() if row["kind"] == frames.FRAME]
    assert rows[3]["payload"] == header.partition(canaries.SECRET)[0]
    assert rows[3]["payload_len"] == len(header)
    (connection,) = facts(out.files)
    assert connection.proxied_for == Peer(proxy_headers.NAMED[6 if "IPv6" in name else 4], 51234)


@pytest.mark.parametrize("name", HEADERS)
@pytest.mark.parametrize("version", some(["1.3", "1.2"]))
def test_it_may_stand_before_tls(tls, tmp_path, name, version):  # noqa: F811
    wrapped = conversation(tls(version, talk=Proxied(header=HEADERS[name], alone=version == "1.3")))
    path = capture(tmp_path / "tls.pcap", wrapped.segments)
    bare = capture(tmp_path / "plain.pcap", conversation(t.Talk()).segments)
    assert lines(read_frames([path], key_logs=[wrapped.key_log])) == lines(read_frames([bare]))
    out = write_frames([path], tmp_path / "out", "L", key_logs=[wrapped.key_log])
    assert of_files(out.files) == of_files(write_frames([bare], tmp_path / "bare", "L").files)
    assert canaries.leaks(out.files) == []


@pytest.mark.parametrize("name", HEADERS)
@pytest.mark.parametrize("alone", [True, False])
def test_without_keys_tls_behind_it_is_tls(tls, tmp_path, name, alone):  # noqa: F811
    wrapped = conversation(tls(talk=Proxied(header=HEADERS[name], alone=alone)))
    out = write_frames([capture(tmp_path / "tls.pcap", wrapped.segments)], tmp_path / "out", "L")
    (connection,) = facts(out.files)
    assert connection.protocol == "tls"


def test_of_another_protocol_behind_it_nothing_is_kept_but_the_header(tmp_path):
    talk = Proxied(header=HEADERS["v2 IPv6 with TLVs"], alone=False).open()
    talk.request(b"GET /" + canaries.SECRET * 9 + b"\r\n\r\n").response(canaries.SECRET * 9)
    out = write_frames([capture(tmp_path / "a.pcap", talk.close().segments)], tmp_path / "out", "L")
    kept = b"".join(row["payload"] for file in out.files for row in frames_file.read(file).to_pylist())
    assert kept == HEADERS["v2 IPv6 with TLVs"][:52]


@pytest.mark.parametrize("name", proxy_headers.INVALID)
def test_of_a_header_that_no_receiver_takes_nothing_is_kept(tmp_path, name):
    talk = t.Talk().open().request(proxy_headers.INVALID[name] + request(METADATA, 9, 1, bytes(9)))
    talk.response(response(1, bytes(20)))
    out = write_frames([capture(tmp_path / "a.pcap", talk.close().segments)], tmp_path / "out", "L")
    assert b"".join(row["payload"] for file in out.files for row in frames_file.read(file).to_pylist()) == b""
