"""The law of late starts: a capture that begins anywhere shows the same clients as the whole one, and no server as one.

What it shows of a connection is what the whole capture shows of it from there on, but for its first few messages.
Which side has the lower port says nothing: a broker may listen beyond the clients' ports.
"""

import random
import struct
from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.decode.connection.conversations import FETCH, METADATA, exchange_rows, request, response, segments
from tests.depth import DEEP, examples
from tests.scenarios.engines import Scenario, frames
from tests.traffic import Talk
from wirecheck.capture import frames_file
from wirecheck.capture.frames import FRAME as FRAME_KIND
from wirecheck.capture.trim.trimmer import Trim
from wirecheck.decode.connection.follower import Follower
from wirecheck.decode.connection.segments import segments as of_frames

FEW = 4
"""Messages that are lost where a connection is joined: the ones that were on their way, and what resembles them."""
DECIDES = 2
"""Requests that show who is the client, whatever came before."""
FRAME = 10
"""Of a message of `exchange_rows`, the number of its first packet."""
FIRST_ID = METADATA << 16 | 9
"""Responses with such IDs begin as Metadata requests do."""
SYN, ACK = 2, 16
CAPTURES = ["zk28-healthy", "zk28-recreate", "kraft-clients-zoo", "kraft4-snapshot"]


def asked(rows):
    """Requests of exchanges by client and server."""
    return {(row[2][7], row[2][5]) for row in rows if row[2]}


def followed(rows):
    follower = Follower()
    return exchange_rows([follower.receive(rows), follower.drain()])


def talk(number, port, kinds, pipelined):
    """A connection; kind 2 has a response like a request of the client "!s"."""
    said = Talk(client=("10.0.0.7", port + number), server=("10.0.0.5", 24_102), mss=1448)
    said.open()
    for place, kind in enumerate(kinds):
        at = FIRST_ID + place
        said.request(request((FETCH, METADATA, METADATA)[kind], 9, at, bytes(20), f"app-{number}"))
        body = struct.pack(">ih", at, 2) + b"!s\0" + bytes(40) if kind == 2 else bytes(30)
        if pipelined and place % 2 == 0 and place + 1 < len(kinds):
            waiting = body
            continue
        if pipelined and place % 2:
            said.response(response(at - 1, waiting))
        said.response(response(at, body))
    return said.close()


@examples(60, deep=400)
@given(
    st.lists(st.lists(st.sampled_from([0, 1, 2, 2]), min_size=6, max_size=14), min_size=1, max_size=3),
    st.sampled_from([20_000, 40_000]),
    st.booleans(),
    st.floats(0, 0.99),
)
def test_whichever_port_is_lower_no_server_is_a_client_where_a_capture_begins_late(kinds, port, pipelined, share):
    talks = [talk(number, port, each, pipelined) for number, each in enumerate(kinds)]
    every = sorted((one for each in talks for one in each.segments), key=lambda one: one.ts_ns)
    begin = int(share * len(every))
    late, whole = asked(followed(segments(every[begin:]))), asked(followed(segments(every)))
    for number, each in enumerate(talks):
        client = each.segments[0].src
        sent = sum(one.src == client and bool(one.payload) for one in every[begin:])
        mine = {one for one in late if f"10.0.0.7:{port + number}" in one[0]}
        if sent >= DECIDES:
            assert mine <= whole
            assert len(mine) >= sent - FEW


def turned(rows):
    """The same with listeners above the clients' ports."""
    to = {rows.endpoints[one] for one in rows.dst[(rows.flags & SYN > 0) & (rows.flags & ACK == 0)].tolist()}
    ends = tuple((host, 60_000 + port % 5000 if (host, port) in to else 20_000 + port % 30_000)
                 for host, port in rows.endpoints)  # fmt: skip
    return replace(rows, endpoints=ends)


@pytest.fixture(scope="module", params=CAPTURES)
def capture(request, tmp_path_factory):
    scenario = Scenario(request.param)
    files = frames([scenario.pcap], tmp_path_factory.mktemp(request.param))
    return of_frames(frames_file.read(files[0]))


@pytest.mark.parametrize("ports", ["as they are", "turned"])
def test_a_capture_that_begins_late_shows_the_same_clients(capture, ports):
    rows = turned(capture) if ports == "turned" else capture
    whole = followed(rows)
    dice = random.Random(ports)
    for _ in range(12 if DEEP else 2):
        begin = dice.randrange(len(rows) // 50, len(rows))
        late = asked(followed(rows.take(np.arange(begin, len(rows)))))
        rest = Counter(row[2][7] for row in whole if row[2] and row[2][FRAME] >= rows.frame_no[begin])
        read = Counter(name for name, _ in late)
        assert all(read[name] >= count - FEW for name, count in rest.items())
        several = {name for name, count in Counter(name for name, _ in late).items() if count >= DECIDES}
        assert several <= {name for name, _ in asked(whole)}


STEP_NS = 100_000_000
"""So often a live agent says how far it has come."""


def trimmed(table):
    """What an agent writes of these frames, of which each comes in its time."""
    trim, ts_ns, agent, written = Trim(), table["ts_ns"].to_numpy(), table["agent"][0].as_py(), []
    for now_ns in range(int(ts_ns[0]), int(ts_ns[-1]) + STEP_NS, STEP_NS):
        come = np.flatnonzero((ts_ns > now_ns - STEP_NS) & (ts_ns <= now_ns))
        if len(come):
            written += trim.add(table.slice(come[0], len(come)).combine_chunks().to_batches()[0])
        written += trim.advance(agent, now_ns)
    return pa.Table.from_batches([*written, *trim.drain()])


@pytest.mark.parametrize("name", CAPTURES[:2])
def test_an_agent_that_begins_late_keeps_what_is_read_there(name, tmp_path):
    """Connections are joined in their middle: where a message begins is known seconds later."""
    (file,) = frames([Scenario(name).pcap], tmp_path)
    table = frames_file.read(file)
    table = table.filter(pc.equal(table["kind"], FRAME_KIND)).sort_by("ts_ns")
    dice = random.Random(name)
    for _ in range(8 if DEEP else 2):
        late = table.slice(dice.randrange(len(table) // 50, len(table)))
        read, kept = Counter(asked_of(late)), Counter(asked_of(trimmed(late)))
        assert read - kept == Counter()


def asked_of(table):
    """Requests by connection and correlation ID, each as often as it was read."""
    return [(row[2][7], row[2][3]) for row in followed(of_frames(table)) if row[2]]
