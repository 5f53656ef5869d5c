"""TLS is undone: what OpenSSL wrapped up is read again, at its place; nothing is, where the keys are others'."""

import random
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests import traffic as t
from tests.build import plain
from tests.capture.canaries import PARTS, SECRET, exchange
from tests.capture.tls.sealed import sealed
from tests.depth import some
from wirecheck.capture import frames, frames_file
from wirecheck.capture.agent.offline_agent import read_frames, write_frames
from wirecheck.capture.evidence import original_frames, pcapng_export
from wirecheck.capture.tls import cipher_suites, joining, key_log, tls_connection
from wirecheck.capture.tls.record_keys import Tls13Key
from wirecheck.decode.connection.follower import Follower
from wirecheck.decode.connection.segments import segments
from wirecheck.decode.peer import Peer
from wirecheck.decode.show import message_filter, message_lines

KINDS = {
    "1.3 AES-256-GCM": ("1.3", None),
    "1.2 AES-128-GCM": ("1.2", "ECDHE-ECDSA-AES128-GCM-SHA256"),
    "1.2 AES-256-GCM": ("1.2", "ECDHE-ECDSA-AES256-GCM-SHA384"),
    "1.2 ChaCha20": ("1.2", "ECDHE-ECDSA-CHACHA20-POLY1305"),
    "1.2 CCM": ("1.2", "ECDHE-ECDSA-AES128-CCM"),
    "1.2 CBC SHA1, encrypt-then-MAC": ("1.2", "ECDHE-ECDSA-AES128-SHA"),
    "1.2 CBC SHA384, encrypt-then-MAC": ("1.2", "ECDHE-ECDSA-AES256-SHA384"),
}


def conversation(talk, names=("fetch", "produce", "sign-in"), count=12):
    """The same requests and answers, said into any talk."""
    opened = talk.open()
    asked = plain("ApiVersions", "request", 3, {}, {"clientId": "client-1", "correlationId": 1})
    opened.request(asked)
    opened.response(plain("ApiVersions", "response", 3, {}, {"correlationId": 1}))
    for number in range(count):
        asked, answered = exchange(names[number % len(names)], number + 5)
        opened.request(asked)
        opened.response(answered)
    return opened.close()


def capture(path, segments):
    path.write_bytes(t.pcap([t.Packet(s.ts_ns, t.ethernet(t.ip(s))) for s in segments]))
    return path


def lines(tables):
    shown = message_lines.of(
        tables, message_filter.Filter(), message_lines.Reading(contents=True), message_lines.Noticed()
    )
    return [{k: line[k] for k in line if k not in {"time", "frame", "source"}} for line in shown]


def of_files(files):
    return lines(frames_file.read(file) for file in files)


def undone(path, keys):
    return lines(read_frames([path], key_logs=[keys]))


@pytest.mark.parametrize("kind", KINDS)
def test_every_message_inside_tls_is_read_as_if_it_had_been_plain(tls, tmp_path, kind):
    wrapped = conversation(tls(*KINDS[kind]))
    bare = conversation(t.Talk())
    assert undone(capture(tmp_path / "tls.pcap", wrapped.segments), wrapped.key_log) == lines(
        read_frames([capture(tmp_path / "plain.pcap", bare.segments)])
    )


def test_a_resumed_session_is_opened_with_the_keys_of_the_first_one(tls, tmp_path):
    """TLS 1.2: by ticket, its own master secret not in the key log."""
    first = conversation(tls("1.2", "ECDHE-ECDSA-AES128-GCM-SHA256"))
    log = first.key_log.read_bytes()
    again = t.Talk(client=("10.0.0.1", 40001), ts_ns=first.talk.ts_ns)
    second = conversation(tls("1.2", "ECDHE-ECDSA-AES128-GCM-SHA256", talk=again, resumes=first))
    assert second.client.tls.session_reused
    first.key_log.write_bytes(log)
    found = undone(capture(tmp_path / "tls.pcap", [*first.segments, *second.segments]), first.key_log)
    assert len(found) == 2 * len(lines(read_frames([capture(tmp_path / "p.pcap", conversation(t.Talk()).segments)])))


def test_numbers_on_disk_count_the_plaintext_alone_and_frames_stay_what_they_were(tls, tmp_path):
    """In each direction a byte follows the one before it, and acknowledgements are of such numbers."""
    wrapped = conversation(tls())
    path = capture(tmp_path / "tls.pcap", wrapped.segments)
    (file,) = write_frames([path], tmp_path / "out", "L", key_logs=[wrapped.key_log]).files
    rows = [row for row in frames_file.read(file).to_pylist() if row["kind"] == frames.FRAME]
    assert [(r["frame_no"], r["ts_ns"], r["tcp_flags"]) for r in rows] == [
        (i, s.ts_ns, s.flags) for i, s in enumerate(wrapped.segments, 1)
    ]
    assert all(row["decrypted"] for row in rows)
    following = {}
    for row in rows:
        mine, other = row["src_port"], row["dst_port"]
        assert following.setdefault(mine, row["tcp_seq"]) == row["tcp_seq"]
        assert row["tcp_ack"] in {0, following.get(other)}
        following[mine] += row["payload_len"] + bool(row["tcp_flags"] & 3)
    assert of_files([file]) != []


def test_over_a_record_that_was_lost_numbers_jump(tls, tmp_path):
    wrapped = conversation(tls())
    lost = [i for i, s in enumerate(wrapped.segments) if s.payload[:1] == b"\x17"][12]
    whole = capture(tmp_path / "whole.pcap", wrapped.segments)
    torn = capture(tmp_path / "torn.pcap", wrapped.segments[:lost] + wrapped.segments[lost + 1 :])
    ends = []
    for path in (whole, torn):
        rows = pa.concat_tables(read_frames([path], key_logs=[wrapped.key_log])).to_pylist()
        ends.append({row["src_port"]: row["tcp_seq"] for row in rows if row["kind"] == frames.FRAME})
    port = wrapped.segments[lost].src[1]
    others = {p: seq for p, seq in ends[0].items() if p != port}
    assert ends[1] == {port: ends[0][port] + len(wrapped.segments[lost].payload) - plain_bytes(wrapped, lost), **others}


def plain_bytes(wrapped, number):
    """Of a segment that is a record of TLS 1.3."""
    return len(wrapped.segments[number].payload) - 5 - 1 - 16


@pytest.mark.parametrize("kind", KINDS)
def test_decrypted_bytes_are_trimmed_as_plain_ones(tls, tmp_path, kind):
    """No record, no secret and no key reaches the disk."""
    wrapped = conversation(tls(*KINDS[kind]), names=("fetch", "produce", "sign-in", "scram", "raft"), count=20)
    path = capture(tmp_path / "tls.pcap", wrapped.segments)
    out = write_frames([path], tmp_path / "out", "L", key_logs=[wrapped.key_log])
    kept = b"".join(row["payload"] for file in out.files for row in frames_file.read(file).to_pylist())
    assert not [part for part in PARTS if part in kept]
    secrets = [bytes.fromhex(line.split()[2]) for line in wrapped.key_log.read_text().splitlines() if line[0] != "#"]
    on_disk = b"".join(file.read_bytes() for file in out.files)
    assert secrets
    assert not [secret for secret in secrets if secret[:8] in kept or secret.hex()[:16].encode() in on_disk]
    open_ = write_frames([path], tmp_path / "all", "L", key_logs=[wrapped.key_log], keep_records=True)
    assert SECRET in b"".join(row["payload"] for file in open_.files for row in frames_file.read(file).to_pylist())
    assert of_files(out.files) != []


@pytest.mark.parametrize("kind", KINDS)
def test_the_keys_of_another_connection_open_nothing_and_say_so(tls, tmp_path, kind):
    wrapped = conversation(tls(*KINDS[kind]))
    path = capture(tmp_path / "tls.pcap", wrapped.segments)
    words = [line.split() for line in wrapped.key_log.read_text().splitlines() if line[0] != "#"]
    wrong = tmp_path / "wrong.keys"
    wrong.write_text("".join(f"{label} {random_} {secret[::-1]}\n" for label, random_, secret in words))
    assert undone(path, wrong) == []
    assert marks(path, wrong) == [(frames.UNDECRYPTED, 1, tls_connection.WRONG_KEY)]
    other = tmp_path / "other.keys"
    other.write_text("".join(f"{label} {random_[::-1]} {secret}\n" for label, random_, secret in words))
    assert marks(path, other) == [(frames.UNDECRYPTED, 1, tls_connection.NO_KEY)]
    before = pa.concat_tables(read_frames([path])).to_pylist()
    found = pa.concat_tables(read_frames([path], key_logs=[wrong])).to_pylist()
    assert [row for row in found if row["kind"] == frames.FRAME] == [
        row for row in before if row["kind"] == frames.FRAME
    ]


def marks(path, keys):
    rows = pa.concat_tables(read_frames([path], key_logs=[keys])).to_pylist()
    said = {frames.UNDECRYPTED, frames.JOINED, frames.INPUT_ERROR}
    return [(r["kind"], r["count"], r["reason"]) for r in rows if r["kind"] in said]


def late(wrapped, cut=0):
    """From the first encrypted request on, less some bytes of the first segment."""
    begun = next(i for i, s in enumerate(wrapped.segments) if s.payload[:1] == b"\x17" and i > 12)
    first, *rest = wrapped.segments[begun:]
    return [replace(first, seq=first.seq + cut, payload=first.payload[cut:]), *rest]


def test_a_handshake_that_was_not_seen_is_said(tls, tmp_path):
    """TLS 1.2: its keys depend on what the server said."""
    wrapped = conversation(tls("1.2"))
    path = capture(tmp_path / "tls.pcap", late(wrapped))
    assert marks(path, wrapped.key_log) == [(frames.UNDECRYPTED, 1, tls_connection.NO_HELLO)]


@pytest.mark.parametrize("from_client", [True, False])
def test_one_hello_of_tls_1_3_is_enough(tls, tmp_path, from_client):
    """The other was lost: everything behind the handshake is read."""
    others = [conversation(tls(), count=1) for _ in range(3)]
    wrapped = conversation(tls(), count=10)
    assert others
    client = wrapped.segments[0].src
    lost = next(i for i, s in enumerate(wrapped.segments) if s.payload and (s.src == client) == from_client)
    whole = undone(capture(tmp_path / "whole.pcap", wrapped.segments), wrapped.key_log)
    path = capture(tmp_path / "lost.pcap", wrapped.segments[:lost] + wrapped.segments[lost + 1 :])
    assert marks(path, wrapped.key_log) == []
    assert [line for line in undone(path, wrapped.key_log) if "body" in line] == whole


@pytest.mark.parametrize("from_client", [True, False])
def test_of_tls_1_2_both_hellos_are_needed_and_that_is_said(tls, tmp_path, from_client):
    wrapped = conversation(tls("1.2"))
    client = wrapped.segments[0].src
    lost = next(i for i, s in enumerate(wrapped.segments) if s.payload and (s.src == client) == from_client)
    path = capture(tmp_path / "lost.pcap", wrapped.segments[:lost] + wrapped.segments[lost + 1 :])
    assert marks(path, wrapped.key_log) == [(frames.UNDECRYPTED, 1, tls_connection.NO_HELLO)]


@pytest.mark.parametrize("cut", [0, 20])
def test_a_connection_that_is_older_than_the_capture_is_joined(tls, tmp_path, cut):
    """TLS 1.3: secret and record numbers are found, at a record's beginning and within one."""
    wrapped = conversation(tls(), count=60)
    others = [conversation(tls(), count=1) for _ in range(5)]
    assert others
    whole = undone(capture(tmp_path / "whole.pcap", wrapped.segments), wrapped.key_log)
    path = capture(tmp_path / "late.pcap", late(wrapped, cut))
    assert marks(path, wrapped.key_log) == []
    found = undone(path, wrapped.key_log)
    said = {repr(line) for line in whole}
    assert not [line for line in found if "body" in line and repr(line) not in said]
    assert len(found) > 0.9 * len(whole)


@pytest.mark.parametrize(("updates", "said"), [(0, None), (1, "behind 1 KeyUpdate"), (5, "behind 5 KeyUpdates")])
def test_a_connection_that_is_joined_behind_key_updates_is_read_and_says_behind_how_many(tmp_path, updates, said):
    """Its segments are records under keys that were updated so often, as Java's are after 2^37 bytes each."""
    late = [segment for segment in conversation(t.Talk(), count=30).segments if segment.payload][2:]
    secrets = {label: bytes([place]) * 32 for place, label in enumerate(key_log.TRAFFIC, 1)}
    log = tmp_path / "tls.keys"
    log.write_text("".join(f"{label} {'6d' * 32} {secret.hex()}\n" for label, secret in secrets.items()))
    first = [Tls13Key(cipher_suites.TLS_1_3[0x1301], secret) for secret in secrets.values()]
    used = [joining.generations(key)[updates] for key in first]
    path = capture(tmp_path / "late.pcap", sealed(late, dict(zip((late[0].src, late[0].dst), used, strict=True))))
    expected = lines(read_frames([capture(tmp_path / "plain.pcap", late)]))
    assert expected
    assert undone(path, log) == expected
    assert marks(path, log) == ([(frames.JOINED, 1, said)] if said else [])


def test_a_connection_that_no_key_opens_is_let_go_with_the_reason(tls, tmp_path, monkeypatch):
    monkeypatch.setattr(joining, "MOST_TRIES", 500)
    wrapped, other = conversation(tls()), conversation(tls(key_log=tmp_path / "other.keys"))
    path = capture(tmp_path / "late.pcap", late(wrapped))
    assert marks(path, other.key_log) == [(frames.UNDECRYPTED, 1, tls_connection.NO_NUMBER)]


def test_what_is_no_tls_and_older_than_the_capture_waits_for_no_key(tls, tmp_path):
    bare, wrapped = conversation(t.Talk()), conversation(tls())
    path = capture(tmp_path / "late.pcap", bare.segments[9:])
    assert marks(path, wrapped.key_log) == []
    assert undone(path, wrapped.key_log) == lines(read_frames([path])) != []


def test_what_is_no_tls_stays_as_it_is_beside_it(tls, tmp_path):
    wrapped = conversation(tls())
    bare = conversation(t.Talk(client=("10.0.0.2", 41000)))
    both = sorted([*wrapped.segments, *bare.segments], key=lambda s: s.ts_ns)
    found = undone(capture(tmp_path / "both.pcap", both), wrapped.key_log)
    alone = lines(read_frames([capture(tmp_path / "plain.pcap", bare.segments)]))
    assert [line for line in found if "10.0.0.2:41000" in {line["src"], line["dst"]}] == alone
    assert len(found) == 2 * len(alone)


@pytest.mark.parametrize("seed", some(range(12)))
def test_under_damage_whatever_is_read_is_right(tls, tmp_path, seed):
    """Loss, disorder and duplicates: messages found are among those that were said, to the byte, and most are found."""
    rng = random.Random(seed)
    kind = list(KINDS)[seed % len(KINDS)]
    wrapped = conversation(tls(*KINDS[kind]), count=80)
    whole = undone(capture(tmp_path / "whole.pcap", wrapped.segments), wrapped.key_log)
    damaged = [s for i, s in enumerate(wrapped.segments) if i < 12 or rng.random() > 0.03]
    for i in range(14, len(damaged) - 4):
        if rng.random() < 0.05:
            k = i + rng.randint(1, 3)
            damaged[i], damaged[k] = damaged[k], damaged[i]
    damaged = [s for i, s in enumerate(damaged) for _ in range(2 if i > 12 and rng.random() < 0.05 else 1)]
    path = capture(tmp_path / "damaged.pcap", damaged)
    said = {repr(line) for line in whole}
    found = undone(path, wrapped.key_log)
    readable = [line for line in found if "body" in line]
    assert not [line for line in readable if repr(line) not in said]
    assert len(readable) > 0.75 * len(whole)
    trimmed = of_files(write_frames([path], tmp_path / "out", "L", key_logs=[wrapped.key_log]).files)
    assert len([line for line in trimmed if "body" in line]) > 0.75 * len(whole)


def test_keys_inside_a_pcapng_are_used_without_being_asked(tls, tmp_path):
    wrapped = conversation(tls())
    path = tmp_path / "keys-inside.pcapng"
    rows = pa.concat_tables(read_frames([capture(tmp_path / "tls.pcap", wrapped.segments)]))
    table = rows.filter(pc.equal(rows["kind"], pa.scalar(frames.FRAME, pa.int8())))
    pcapng_export.write(path, table, "t", {}, wrapped.key_log.read_bytes())
    assert len(lines(read_frames([path]))) == 26
    pcapng_export.write(path, table, "t", {})
    assert lines(read_frames([path])) == []


def test_evidence_has_the_original_frames_and_the_keys_of_its_connections_alone(tls, tmp_path):
    wrapped = conversation(tls())
    path = capture(tmp_path / "tls.pcap", wrapped.segments)
    other = f"CLIENT_TRAFFIC_SECRET_0 {'ab' * 32} {'cd' * 48}\n"
    wrapped.key_log.write_text(other + wrapped.key_log.read_text())
    (file,) = write_frames([path], tmp_path / "out", "L", key_logs=[wrapped.key_log]).files
    ends = [(s.src, s.dst) for s in wrapped.segments[:1]]
    pair = pcapng_export.Pair.of(*(Peer(*end) for end in ends[0]))
    table = pcapng_export.selected([file], "L", {pair})
    found = original_frames.encrypted(table, [path])
    assert found["payload"].to_pylist() == [s.payload for s in wrapped.segments]
    keys = original_frames.key_lines(found, [wrapped.key_log], [])
    assert keys.decode() == "".join(
        line for line in wrapped.key_log.read_text().splitlines(keepends=True) if line[0] != "#" and line != other
    )
    assert original_frames.encrypted(table, [tmp_path / "tls.keys"][:0]) is None


def test_frames_of_an_agent_become_a_plain_capture_that_says_the_same(tls, tmp_path):
    wrapped = conversation(tls())
    path = capture(tmp_path / "tls.pcap", wrapped.segments)
    (file,) = write_frames([path], tmp_path / "out", "L", key_logs=[wrapped.key_log], keep_records=True).files
    pair = pcapng_export.Pair.of(Peer("10.0.0.1", 40000), Peer("10.0.0.9", 9092))
    plain_capture = tmp_path / "plain.pcapng"
    pcapng_export.write(plain_capture, pcapng_export.selected([file], "L", {pair}), "t", {})
    assert lines(read_frames([plain_capture])) == of_files([file]) != []


@pytest.mark.parametrize("downtime", [0, 2, 10])
def test_an_agent_started_again_within_a_connection_reads_on_and_splices_nothing(tls, tmp_path, downtime):
    """Two runs, two sets of files, one connection: what is between them is a gap, and counts as no bytes."""
    wrapped = conversation(tls(), count=40)
    client = wrapped.segments[0].src
    asked = [i for i, s in enumerate(wrapped.segments) if s.payload[:1] == b"\x17" and s.src == client]
    parts = {
        "all": wrapped.segments,
        "1": wrapped.segments[: asked[20]],
        "2": wrapped.segments[asked[20 + downtime] :],
    }
    files = {
        name: write_frames(
            [capture(tmp_path / f"{name}.pcap", part)], tmp_path / name, "L", key_logs=[wrapped.key_log]
        ).files
        for name, part in parts.items()
    }
    whole = of_files(files["all"])
    tables = [frames_file.read(file) for name in ("1", "2") for file in files[name]]
    assert len({run for table in tables for run in table["decrypted"].to_pylist()} - {0}) == 2
    found = lines(tables)
    assert all(line in whole for line in found)
    assert len(found) >= len(whole) - 2 * downtime - 4
    follower = Follower()
    calls = [*(follower.receive(segments(table)) for table in tables), follower.drain()]
    (connection,) = {one.name: one for call in calls for one in call.connections}.values()
    assert (connection.protocol, connection.decrypted) == ("kafka", True)
    assert (connection.unseen_request_bytes, connection.unseen_response_bytes) == (1, 1)
