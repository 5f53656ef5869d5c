"""Trimming: what is left out, what stays, in which order and for how long rows wait."""

import struct
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests import traffic as t
from tests.build import plain as plain_message
from tests.capture import canaries
from tests.decode.connection.conversations import FETCH, METADATA, request, response, sized
from tests.depth import some
from tests.scenarios.engines import NAMES, Scenario, plain
from wirecheck.capture import frames, frames_file
from wirecheck.capture.agent.offline_agent import read_frames, write_frames
from wirecheck.capture.trim.trimmer import Trim
from wirecheck.decode.connection.follower import Follower
from wirecheck.decode.connection.segments import segments as segments_of

SECOND = 1_000_000_000


def rows_of(path, out, **options):
    summary = write_frames([path], out, "c", **options)
    table = pa.concat_tables(frames_file.read(file) for file in summary.files)
    return [row for row in table.to_pylist() if row["kind"] == frames.FRAME], summary


def kept(rows, port=9092):
    return b"".join(row["payload"] for row in rows if port in {row["src_port"], row["dst_port"]})


@pytest.mark.parametrize("name", some(NAMES, each=8))
def test_a_capture_says_the_same_without_records_and_secrets(name, tmp_path):
    pcap = [Scenario(name).pcap]
    whole = write_frames(pcap, tmp_path / "whole", "default", keep_records=True)
    trimmed = write_frames(pcap, tmp_path / "trimmed", "default")
    assert plain([trimmed.files]) == plain([whole.files])


@pytest.mark.parametrize("name", sorted(canaries.EXCHANGES))
def test_a_secret_is_left_out_and_nothing_else(name, written, tmp_path):
    talk = canaries.kafka([name], 40000, 100)
    path = written(t.pcap(t.packets(talk.segments)))
    assert canaries.leaks(write_frames([path], tmp_path / "whole", "c", keep_records=True).files)
    rows, summary = rows_of(path, tmp_path / "trimmed")
    assert canaries.leaks(summary.files) == []
    assert all(row["payload_len"] == len(row["payload"]) + sum(s["length"] for s in row["left_out"]) for row in rows)
    assert sum(summary.left_out.values()) == summary.left_out["records"] + summary.left_out["secrets"] > 0


def test_what_is_not_kafka_keeps_its_length_and_the_name_of_its_protocol(written, tmp_path):
    path = written(t.pcap(t.packets(canaries.foreign(40000, 100).segments)))
    rows, summary = rows_of(path, tmp_path / "out")
    assert kept(rows, 8080) == b"HTTP"
    assert summary.left_out["no message"] == summary.payload_bytes - 4 > 0


def test_of_sasl_tokens_the_sizes_stay(written, tmp_path):
    path = written(t.pcap(t.packets(canaries.sign_in_raw(40000, 1448).segments)))
    rows, _ = rows_of(path, tmp_path / "out")
    assert (len(canaries.SECRET) + 6).to_bytes(4, "big") in [row["payload"] for row in rows]


CLIENT_FIRST = b"n,,n=alice,r=" + canaries.SECRET
CLIENT_FINAL = b"c=biws,r=" + canaries.SECRET + b",p=" + canaries.SECRET


@pytest.mark.parametrize(
    ("mechanism", "tokens", "name"),
    [
        ("PLAIN", [b"\0alice\0" + canaries.SECRET], b"\0alice"),
        ("PLAIN", [b"alice\0alice\0" + canaries.SECRET], b"alice\0alice"),
        ("SCRAM-SHA-256", [CLIENT_FIRST, CLIENT_FINAL], b"n,,n=alice"),
        ("SCRAM-SHA-512", [CLIENT_FIRST, CLIENT_FINAL], b"n,,n=alice"),
        # none of these has a name that may be kept
        ("SCRAM-SHA-512", [b"n,,n=" + canaries.SECRET + b",r=nonce,tokenauth=true"], b""),
        ("OAUTHBEARER", [b"n,,\1auth=Bearer " + canaries.SECRET + b"\1\1"], b""),
        ("PLAIN", [b"n,,\1auth=Bearer " + canaries.SECRET + b"\1\1"], b""),
        ("GSSAPI", [b"\0" + canaries.SECRET + b"\0alice"], b""),
        ("AWS_MSK_IAM", [b"\0" + canaries.SECRET + b"\0alice"], b""),
        ("PLAIN", [canaries.SECRET, b"\0" + canaries.SECRET + b"\0alice"], b""),
    ],
)
@pytest.mark.parametrize("mss", [7, 1448])
def test_of_a_login_the_user_name_stays_and_nothing_else(mechanism, tokens, name, mss, written, tmp_path):
    path = written(t.pcap(t.packets(canaries.login(mechanism, tokens, 40000, mss).segments)))
    assert canaries.leaks(write_frames([path], tmp_path / "whole", "c", keep_records=True).files)
    rows, summary = rows_of(path, tmp_path / "trimmed")
    assert canaries.leaks(summary.files) == []
    assert b"alice" not in kept(rows).replace(name, b"", 1)
    assert name in kept(rows)


def test_without_principals_a_login_keeps_no_user_name(written):
    path = written(t.pcap(t.packets(canaries.login("PLAIN", [b"\0alice\0" + canaries.SECRET], 40000).segments)))
    for principals in (True, False):
        trim = Trim(principals=principals)
        batches = [
            *(part for rows in read_frames([path]) for one in rows.to_batches() for part in trim.add(one)),
            *trim.drain(),
        ]
        payloads = b"".join(row["payload"] for batch in batches for row in batch.to_pylist())
        assert (b"alice" in payloads) is principals


def test_tls_stays_recognisable(written, tmp_path):
    hello = b"\x16\x03\x01\x00\xc8" + b"secret--" * 25
    path = written(t.pcap(t.packets(t.Talk().open().request(hello).response(hello).segments)))
    rows, _ = rows_of(path, tmp_path / "out")
    assert kept(rows) == hello[:16] * 2


def test_rows_keep_their_order_though_one_connection_waits(written, tmp_path):
    slow = (
        t.Talk(client=("10.0.0.1", 1), step_ns=SECOND // 10, mss=20).open().request(request(METADATA, 1, 1, bytes(9)))
    )
    quick = t.Talk(client=("10.0.0.2", 2), mss=50).open()
    for i in range(1, 50):
        quick.request(request(FETCH, 11, i)).response(response(i))
    segments = sorted(slow.segments + quick.segments, key=lambda s: s.ts_ns)
    rows, summary = rows_of(written(t.pcap(t.packets(segments))), tmp_path / "out", batch_bytes=1 << 11)
    assert [row["frame_no"] for row in rows] == list(range(1, len(segments) + 1))
    assert summary.frames == len(segments)


def test_a_message_that_waits_too_long_keeps_size_and_ids(written, tmp_path):
    talk = t.Talk(step_ns=SECOND, mss=20).open().request(request(METADATA, 1, 1, bytes(4)))
    talk.response(response(1, bytes(8))).request(request(METADATA, 1, 2, canaries.SECRET * 20))
    other = t.Talk(client=("10.0.0.2", 2), step_ns=SECOND // 10, ts_ns=talk.ts_ns, mss=20).open()
    for i in range(1, 900):
        other.request(request(METADATA, 1, i, bytes(4))).response(response(i, bytes(8)))
    segments = sorted(talk.segments + other.segments, key=lambda s: s.ts_ns)
    rows, summary = rows_of(written(t.pcap(t.packets(segments))), tmp_path / "out", batch_bytes=1 << 11)
    assert [row["frame_no"] for row in rows] == list(range(1, len(segments) + 1))
    assert summary.left_out["waited too long"] > 0


def test_the_first_answer_of_a_connection_is_waited_for_however_large_it_is(written, tmp_path):
    """A follower that catches up asks nothing before its first fetch, and is answered a megabyte."""
    talk = t.Talk(mss=32000).open().request(request(FETCH, 11, 1)).response(response(1, bytes(1 << 20)))
    talk.request(request(FETCH, 11, 2)).response(response(2))
    _, summary = rows_of(written(t.pcap(t.packets(talk.segments))), tmp_path / "out", batch_bytes=1 << 16)
    assert summary.left_out.get("waited too long", 0) == 0


def test_an_answer_whose_request_comes_late_is_kept(written, tmp_path):
    talk = t.Talk(mss=2000).open().request(request(METADATA, 1, 1, bytes(4))).response(response(1, bytes(12)))
    talk.request(request(METADATA, 1, 2, bytes(4))).response(response(2, bytes(12)))
    segments = list(talk.segments)
    segments[5], segments[6] = segments[6], segments[5]
    path = written(t.pcap(t.packets(segments)))
    rows, _ = rows_of(path, tmp_path / "out", batch_bytes=1 << 9)
    assert kept(rows) == b"".join(s.payload for s in segments)


def test_what_waits_goes_when_time_does_though_no_row_comes(written):
    talk = t.Talk(mss=2000).open().request(request(METADATA, 1, 1, bytes(400))[:100])
    every = pa.Table.from_batches(
        batch.to_batches()[0] for batch in read_frames([written(t.pcap(t.packets(talk.segments)))])
    )
    (rows,) = every.filter(pc.equal(every["kind"], frames.FRAME)).combine_chunks().to_batches()
    newest_ns = max(rows["ts_ns"].to_pylist())
    trim = Trim()
    left = sum(part.num_rows for part in trim.add(rows))
    assert left < rows.num_rows
    assert trim.oldest_ns == rows["ts_ns"][left].as_py()
    assert not list(trim.advance("decode", newest_ns + 4 * SECOND))
    (rest,) = trim.advance("decode", newest_ns + 4 * SECOND + 1)
    assert left + rest.num_rows == rows.num_rows
    assert trim.oldest_ns is None
    assert b"".join(rest["payload"].to_pylist()) == b""


@pytest.mark.parametrize("batch_bytes", [1 << 9, 1 << 20])
def test_bytes_that_came_again_with_other_values_are_not_kept(batch_bytes, written, tmp_path):
    asked = request(METADATA, 1, 1, b"\0\0\0\1" + (90).to_bytes(2, "big") + b"t" * 90)
    talk = t.Talk(mss=60).open().request(asked).response(response(1, bytes(12)))
    segments = list(talk.segments)
    first = next(i for i, s in enumerate(segments) if s.payload)
    secret = (canaries.SECRET * 4)[: len(segments[first].payload)]
    segments.insert(first + 1, replace(segments[first], payload=secret))
    path = written(t.pcap(t.packets(segments)))
    rows, summary = rows_of(path, tmp_path / "out", batch_bytes=batch_bytes)
    assert canaries.leaks(summary.files) == []
    assert kept(rows) == asked + response(1, bytes(12))
    whole = write_frames([path], tmp_path / "whole", "c", keep_records=True)
    assert plain([summary.files]) == plain([whole.files])


def test_the_answer_to_an_envelope_that_nobody_saw_is_left_out(written, tmp_path):
    """What it carries could be anything: an inner answer is read by its request only."""
    asked, answered = canaries.enveloped("describe", 2)
    talk = t.Talk().open().request(request(METADATA, 1, 1, bytes(4))).response(response(1, bytes(12)))
    before = len(talk.segments)
    talk.request(asked).response(answered)
    unseen = [s for i, s in enumerate(talk.segments) if i < before or s.payload != asked]
    for number, segments in enumerate((unseen, talk.segments)):
        _, summary = rows_of(written(t.pcap(t.packets(segments))), tmp_path / str(number))
        assert canaries.leaks(summary.files) == []


def test_tls_that_was_joined_in_the_middle_is_counted_as_encrypted(written, tmp_path):
    record = b"\x17\x03\x03\x01\x00" + bytes(range(256))
    talk = t.Talk()
    for _ in range(6):
        talk.request(record).response(record)
    path = written(t.pcap(t.packets([s for s in talk.segments if s.payload])))
    rows, summary = rows_of(path, tmp_path / "out")
    assert kept(rows) == record[:5] * 12
    follower = Follower()
    follower.receive(segments_of(pa.concat_tables(frames_file.read(file) for file in summary.files)))
    assert [c.protocol for c in follower.drain().connections] == ["tls"]
    whole = write_frames([path], tmp_path / "whole", "c", keep_records=True)
    assert plain([summary.files]) == plain([whole.files])


def malformed_produce(number):
    """Produce v3: a count of topics nobody can have; then a length of records that the message has not."""
    head = struct.pack(">hhi", 0, 3, number) + struct.pack(">h", 8) + b"client-1" + struct.pack(">hhi", -1, -1, 1000)
    one = struct.pack(">ih", 1, 1) + b"t" + struct.pack(">ii", 1, 0)
    content = {
        1: struct.pack(">i", 1 << 30) + canaries.SECRET * 3,
        2: one + struct.pack(">i", 1 << 20) + canaries.SECRET * 3,
        3: one + struct.pack(">i", 54) + canaries.SECRET + canaries.SECRET,
    }[number]
    return sized(head + content)


def trimmed_and_whole(number, written, tmp_path):
    talk = t.Talk(mss=50).open().request(request(METADATA, 1, 9, bytes(4))).response(response(9, bytes(12)))
    talk.request(malformed_produce(number)).response(response(number, bytes(12)))
    path = written(t.pcap(t.packets(talk.segments)))
    _, summary = rows_of(path, tmp_path / "out")
    whole = write_frames([path], tmp_path / "whole", "c", keep_records=True)
    assert canaries.leaks(whole.files)
    assert canaries.leaks(summary.files) == []
    return summary.files, whole.files


def codes(files):
    return [finding["code"] for finding in plain([files])["findings"]]


def test_a_message_with_records_whose_first_count_is_wrong_is_found_malformed_again(written, tmp_path):
    trimmed, whole = trimmed_and_whole(1, written, tmp_path)
    assert "WIR003" in codes(whole)
    assert plain([trimmed]) == plain([whole])


@pytest.mark.parametrize("number", [2, 3])
def test_of_a_malformed_message_with_records_nothing_behind_the_first_array_is_kept(number, written, tmp_path):
    """Behind a length that lies anything may stand where a harmless field is expected."""
    trimmed, whole = trimmed_and_whole(number, written, tmp_path)
    data = b"".join(row["payload"] for file in trimmed for row in frames_file.read(file).to_pylist())
    begin = data.index(malformed_produce(number)[:24])
    front = 4 + 8 + 10 + 8  # size, ids, client id, what stands before the topics
    assert data[begin : begin + front] == malformed_produce(number)[:front]
    assert data[begin + front :].startswith(response(number, bytes(12))[:8])
    assert codes(trimmed).count("WIR003") == codes(whole).count("WIR003") - 1


def test_of_a_malformed_message_without_records_nothing_behind_the_error_is_kept(written, tmp_path):
    """ListOffsets v7 has neither records nor secrets, but what is read as its answer may be another message.

    The answer of one partition whose second tag does not follow upon its first one, and a record behind that.
    """
    head = (2).to_bytes(4, "big") + b"\0" + bytes(4) + b"\x02\x02t\x02"
    answered = sized(head + bytes(4 + 2 + 8 + 8 + 4) + b"\x02\x05\0\x03\0" + canaries.SECRET)
    asked = plain_message("ListOffsets", "request", 7, {}, {"correlationId": 2})
    talk = t.Talk(mss=50).open().request(request(METADATA, 1, 1, bytes(4))).response(response(1, bytes(12)))
    path = written(t.pcap(t.packets(talk.request(asked).response(answered).segments)))
    whole = write_frames([path], tmp_path / "whole", "c", keep_records=True)
    assert "WIR003" in codes(whole.files)
    rows, summary = rows_of(path, tmp_path / "out")
    assert canaries.leaks(summary.files) == []
    assert plain([summary.files]) == plain([whole.files])
    behind_error = 4  # of the canary: the six bytes at the error are a tag's number, its size, and these
    assert kept(rows).endswith(answered[: behind_error - len(canaries.SECRET)].replace(b"\x02t", b"\x02"))


def test_what_was_given_up_and_comes_again_otherwise_is_not_kept(written, tmp_path):
    talk = t.Talk(step_ns=SECOND // 100, mss=60).open().request(request(METADATA, 1, 1, bytes(4)))
    talk.response(response(1, bytes(8))).request(request(METADATA, 1, 2, b"\0\0\0\1\0\xc8" + b"t" * 200))
    carried = [i for i, s in enumerate(talk.segments) if s.payload]
    late = talk.segments[carried[2] + 2 :]
    talk.segments = talk.segments[: carried[2] + 2]
    again = replace(talk.segments[-1], payload=(canaries.SECRET * 4)[: len(talk.segments[-1].payload)])
    slow = [again, *late]
    slow = [replace(s, ts_ns=s.ts_ns + 15 * SECOND) for s in slow]
    other = t.Talk(client=("10.0.0.2", 2), step_ns=SECOND // 10, ts_ns=talk.segments[0].ts_ns, mss=20).open()
    for i in range(1, 60):
        other.request(request(METADATA, 1, i, bytes(4))).response(response(i, bytes(8)))
    segments = sorted([*talk.segments, *slow, *other.segments], key=lambda s: s.ts_ns)
    path = written(t.pcap(t.packets(segments)))
    _, summary = rows_of(path, tmp_path / "out", batch_bytes=1 << 10)
    assert summary.left_out["waited too long"] > 0
    assert canaries.leaks(summary.files) == []
