"""Keys that come later than the handshake, as of every key log that is still written: rows wait for them, so long."""

import struct

import pyarrow as pa
import pytest

from tests.capture.tls.test_decryption import capture, conversation, lines
from tests.traffic import Talk, block, packets, padded, pcapng, section
from wirecheck.capture import frames
from wirecheck.capture.agent.offline_agent import read_frames, read_growing
from wirecheck.capture.source.pcapng import TLS_KEY_LOG
from wirecheck.capture.tls import decryption
from wirecheck.capture.tls.decryption import Decryption
from wirecheck.capture.tls.key_log import NO_KEY, Secrets

SECOND = decryption.SECOND


class Undoing:
    """An agent's rows, with a key log that grows."""

    def __init__(self):
        self.secrets = Secrets(in_use=True, growing=True)
        self.undo = Decryption(self.secrets)
        self.found = []

    def take(self, rows):
        self.found += self.undo.add(rows)

    def advance(self, ns):
        self.found += self.undo.advance("agent", ns)

    @property
    def frames(self):
        return sum(int((rows.column("kind").to_numpy() == frames.FRAME).sum()) for rows in self.found)

    def lines(self):
        return lines(pa.Table.from_batches([rows]) for rows in self.found)


@pytest.fixture(params=["1.3", "1.2"])
def said(request, tls, tmp_path):
    """(rows, key log's lines, frames of the handshake and what is decided before it, time of the last row)"""
    wrapped = conversation(tls(request.param))
    path = capture(tmp_path / "tls.pcap", wrapped.segments)
    tables = [table.filter(pa.compute.equal(table["kind"], 0)) for table in read_frames([path])]
    (rows,) = pa.concat_tables(tables).combine_chunks().to_batches()
    return rows, wrapped.key_log.read_bytes().splitlines(keepends=True), rows.column("ts_ns")[-1].as_py()


@pytest.fixture
def count(tmp_path):
    return len(lines(read_frames([capture(tmp_path / "plain.pcap", conversation(Talk()).segments)])))


def test_rows_wait_for_keys_that_come_later(said, count):
    rows, key_lines, last_ns = said
    undoing = Undoing()
    undoing.take(rows)
    undoing.advance(last_ns + SECOND)
    assert undoing.frames < 4  # those before the first byte
    for each in key_lines:  # one by one: some are not enough
        undoing.secrets.read(each)
        undoing.advance(last_ns + 2 * SECOND)
    assert (undoing.frames, len(undoing.lines())) == (len(rows), count)
    assert (undoing.undo.decrypted, undoing.undo.failures) == (1, {})


def test_rows_wait_no_longer_than_is_said(said):
    rows, key_lines, last_ns = said
    undoing = Undoing()
    undoing.take(rows)
    undoing.advance(last_ns + decryption.KEY_NS - SECOND)
    assert undoing.frames < 4
    undoing.advance(last_ns + decryption.KEY_NS + SECOND)
    assert undoing.frames == len(rows)
    assert undoing.undo.failures == {NO_KEY: 1}
    undoing.secrets.read(b"".join(key_lines))
    undoing.advance(last_ns + 2 * decryption.KEY_NS)
    assert (undoing.undo.decrypted, undoing.lines()) == (0, [])


def test_no_more_waits_than_is_said(said, monkeypatch):
    rows, _, _ = said
    monkeypatch.setattr(decryption, "MOST_BYTES", 2000)
    undoing = Undoing()
    undoing.take(rows)
    assert undoing.frames == len(rows)


def test_other_connections_wait_behind_them_and_are_whole(said, tmp_path, count):
    rows, key_lines, last_ns = said
    talk = conversation(Talk(client=("10.0.0.2", 41000), ts_ns=rows.column("ts_ns")[0].as_py() + 1))
    tables = list(read_frames([capture(tmp_path / "other.pcap", talk.segments)]))
    undoing = Undoing()
    undoing.take(rows)
    for table in tables:
        for batch in table.filter(pa.compute.equal(table["kind"], 0)).to_batches():
            undoing.take(batch)
    undoing.advance(last_ns + SECOND)
    assert undoing.frames < 4
    undoing.secrets.read(b"".join(key_lines))
    undoing.advance(last_ns + SECOND)
    assert (undoing.frames, len(undoing.lines())) == (len(rows) + len(talk.segments), 2 * count)


def test_where_only_some_secrets_come_they_are_used_in_the_end(tls, tmp_path, count):
    """A writer that leaves out the handshake's: its own records are read all the same."""
    wrapped = conversation(tls("1.3"))
    tables = read_frames([capture(tmp_path / "tls.pcap", wrapped.segments)])
    (rows,) = pa.concat_tables(t.filter(pa.compute.equal(t["kind"], 0)) for t in tables).combine_chunks().to_batches()
    undoing = Undoing()
    undoing.take(rows)
    undoing.secrets.read(
        b"\n".join(line for line in wrapped.key_log.read_bytes().splitlines() if b"_TRAFFIC_SECRET_0" in line)
    )
    undoing.advance(rows.column("ts_ns")[-1].as_py() + decryption.KEY_NS + SECOND)
    assert undoing.frames == len(rows)
    assert len([line for line in undoing.lines() if "body" in line]) >= count - 2


class NothingNewError(Exception):
    """Raised where a capture that grows would be waited for."""


def test_keys_in_a_growing_capture_are_used(tls, tmp_path, count):
    wrapped = conversation(tls("1.3"))
    whole, log = pcapng(packets(wrapped.segments)), wrapped.key_log.read_bytes()
    secrets = block(10, struct.pack("<II", TLS_KEY_LOG, len(log)) + padded(log))
    path, at = tmp_path / "growing.pcapng", len(section("<"))
    path.write_bytes(whole[:at] + secrets + whole[at:])

    def wait():
        raise NothingNewError

    found = []
    with pytest.raises(NothingNewError):
        found.extend(read_growing(path, wait))
    assert len(lines(found)) == count > 0
