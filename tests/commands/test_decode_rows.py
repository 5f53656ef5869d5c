"""`wirecheck decode` as rows: what one says, which are asked for, and rows that come while a file grows."""

import gzip
import json
import os
import pty
import re
import signal
import subprocess
import sys

import pytest

from tests import traffic
from tests.build import plain
from tests.commands.conftest import EXAMPLE, ROOT
from tests.depth import some
from tests.tls_traffic import TlsTalk, certificate
from wirecheck.capture.agent.offline_agent import write_frames
from wirecheck.commands import decode

IDS = {"correlationId": 7, "clientId": "billing-1"}


def captured(tmp_path, talk, name="a.pcap"):
    path = tmp_path / name
    path.write_bytes(traffic.pcap(traffic.packets(talk.close().segments)))
    return path


def asked(api, version, body, correlation_id=7, client="billing-1"):
    return plain(api, "request", version, body, {"correlationId": correlation_id, "clientId": client})


def answered(api, version, body, correlation_id=7):
    return plain(api, "response", version, body, {"correlationId": correlation_id})


@pytest.fixture
def talk():
    """One exchange that goes well, and one with an error 203 ms later."""
    made = traffic.Talk().open()
    made.request(asked("Metadata", 12, {"topics": [{"name": "orders"}]}))
    body = {"topics": [{"name": "orders", "topicId": "JMxDMvfeRaOyTjPWGqDRbA", "partitions": []}]}
    made.response(answered("Metadata", 12, body))
    made.ts_ns += 200_000_000
    fetched = {"topics": [{"topicId": "JMxDMvfeRaOyTjPWGqDRbA", "partitions": [{"partition": 0}]}]}
    made.request(asked("Fetch", 13, fetched, 8))
    made.ts_ns += 203_000_000
    wrong = {"topicId": "JMxDMvfeRaOyTjPWGqDRbA", "partitions": [{"partitionIndex": 0, "errorCode": 103}]}
    return made.response(answered("Fetch", 13, {"responses": [wrong]}, 8))


def cells(row):
    return [cell.strip() for cell in row.split("  ") if cell.strip()]


def test_a_row_says_who_what_about_what_went_wrong_and_how_long_it_took(run, tmp_path, talk):
    rows = [cells(row) for row in run("decode", captured(tmp_path, talk)).stdout.splitlines()]
    there, back = "billing-1 \u2192 10.0.0.9:9092", "10.0.0.9:9092 \u2192 billing-1"
    assert [row[1:-1] for row in rows[:3]] == [
        [there, "Metadata v12", "orders"],
        [back, "Metadata v12", "orders", "1.0 ms"],
        [there, "Fetch v13", "orders"],  # by the id that Metadata told
    ]
    assert rows[3][1:5] == [back, "Fetch v13", "orders-0", "INCONSISTENT_TOPIC_ID"]
    assert rows[3][5] == "204 ms"
    assert [len(row[0]) for row in rows] == [12] * 4
    frames = [
        json.loads(line)["frame"]["first"]
        for line in run("decode", tmp_path / "a.pcap", "--format", "json").stdout.splitlines()
    ]
    assert [row[-1] for row in rows] == [f"#{number}" for number in frames]


def test_what_is_many_is_counted(run, tmp_path):
    topics = [{"name": f"topic-{i}"} for i in range(7)]
    talk = traffic.Talk().open().request(asked("Metadata", 12, {"topics": topics}))
    assert "  topic-0, topic-1 +5  " in run("decode", captured(tmp_path, talk)).stdout


def test_what_is_about_no_topic_names_its_group(run, tmp_path):
    talk = traffic.Talk().open().request(asked("Heartbeat", 4, {"groupId": "billing", "memberId": "m"}))
    talk.response(answered("Heartbeat", 4, {"errorCode": 27}))
    first, second = run("decode", captured(tmp_path, talk)).stdout.splitlines()
    assert "  group billing  " in first
    assert "  REBALANCE_IN_PROGRESS  " in second


def test_every_error_of_an_answer_is_named_once(run, tmp_path):
    partitions = [{"index": i, "errorCode": code} for i, code in enumerate((0, 6, 6, -1, 12345))]
    talk = traffic.Talk().open().request(asked("Produce", 9, {"acks": 1, "timeoutMs": 1, "topicData": []}))
    talk.response(answered("Produce", 9, {"responses": [{"name": "a", "partitionResponses": partitions}]}))
    row = run("decode", captured(tmp_path, talk), "--side", "response").stdout
    assert "  a-1, a-2  NOT_LEADER_OR_FOLLOWER  a-3  UNKNOWN_SERVER_ERROR  a-4  error 12345  " in row


def test_a_topic_without_an_error_does_not_stand_beside_that_of_another(run, tmp_path):
    topics = [{"name": name, "topicId": "A" * 22, "errorCode": code} for name, code in (("calm", 0), ("tickets", 3))]
    talk = traffic.Talk().open().request(asked("Metadata", 12, {"topics": [{"name": "calm"}, {"name": "tickets"}]}))
    talk.response(answered("Metadata", 12, {"topics": topics}))
    row = run("decode", captured(tmp_path, talk), "--side", "response").stdout
    assert "  calm  tickets  UNKNOWN_TOPIC_OR_PARTITION  " in row


def test_a_name_from_the_wire_begins_no_row_and_obeys_nothing(run, tmp_path):
    evil = asked("Heartbeat", 4, {"groupId": "a\n00:00\x1b[2J", "memberId": "m"})
    row = run("decode", captured(tmp_path, traffic.Talk().open().request(evil))).stdout
    assert row.count("\n") == 1
    assert "group a\\n00:00\\x1b[2J" in row


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        (["--error"], 1),
        (["--client", "billing-1"], 4),
        (["--client", "bill*"], 4),
        (["--client", "*"], 4),
        (["--client", "billing"], 0),
        (["--client", "billing-1", "--side", "response"], 2),
        (["--error", "--side", "request"], 0),
    ],
)
def test_rows_are_picked_by_error_and_client(run, tmp_path, talk, arguments, count):
    capture = captured(tmp_path, talk)
    for form in ([], ["-V"], ["--format", "json"]):
        lines = run("decode", capture, *arguments, *form).stdout.splitlines()
        assert len([line for line in lines if line[:1] not in {" ", ""}]) == count
    assert all("summary" not in json.loads(line) for line in lines)


def test_times_are_taken_as_rows_print_them(run, tmp_path, talk):
    capture = captured(tmp_path, talk)
    rows = run("decode", capture).stdout.splitlines()
    clock = [row.split(" ")[0] for row in rows]
    assert run("decode", capture, "--since", clock[1], "--until", clock[2]).stdout.count("\n") == 2
    day = json.loads(run("decode", capture, "--limit", 1, "--format", "json").stdout)["time"][:10]
    assert run("decode", capture, "--since", f"{day}T{clock[2]}").stdout.count("\n") == 2
    assert run("decode", capture, "--until", clock[0][:5]).stdout.count("\n") == 4  # the whole minute
    assert run("decode", capture, "--since", f"{day}T23:59:59.999999999Z").stderr.endswith(" matches --since\n")
    for wrong in ("noon", "25:00", "2026-13-01"):
        result = run("decode", capture, "--since", wrong)
        assert (result.exit_code, "is not a time; write it like 00:20:03.5" in result.stderr) == (2, True)


def test_another_day_is_said(run, tmp_path, talk):
    talk.ts_ns += 86_400 * 1_000_000_000
    talk.request(asked("Metadata", 12, {"topics": []}, 9))
    last = run("decode", captured(tmp_path, talk)).stdout.splitlines()[-1]
    assert last.split(" ")[0] == "11-15"


def test_of_several_captures_the_frames_source_is_named(run, tmp_path, talk):
    one = captured(tmp_path, talk)
    two = captured(tmp_path, traffic.Talk(client=("10.0.0.2", 1)).open().request(asked("Metadata", 12, {})), "b.pcap")
    rows = run("decode", one, two).stdout.splitlines()
    assert {row.rpartition(" of ")[2] for row in rows} == {str(one), str(two)}


def test_rows_and_json_tell_of_the_same_messages_of_a_real_capture(run):
    rows = run("decode", EXAMPLE).stdout.splitlines()
    lines = [json.loads(line) for line in run("decode", EXAMPLE, "--format", "json").stdout.splitlines()]
    assert len(rows) == len(lines) == 5090
    assert all(re.search(r"(broker|node) \d \u2192 | \u2192 (broker|node) \d", row) for row in rows)
    refused = [row for row in rows if "INCONSISTENT_TOPIC_ID" in row]
    json_refused = [line for line in lines if 103 in codes(line["body"])]
    assert len(refused) == len(json_refused) == 2
    assert all("LeaderAndIsr v7" in row for row in refused)
    wrong = run("decode", EXAMPLE, "--error").stdout.splitlines()
    assert len(wrong) == sum(any(codes(line["body"])) for line in lines) > 2


def codes(body):
    """Every error code in a body, by its JSON."""
    if isinstance(body, list):
        return [code for inner in body for code in codes(inner)]
    if not isinstance(body, dict):
        return []
    own = [value for name, value in body.items() if name.lower().endswith("errorcode")]
    return own + [code for value in body.values() for code in codes(value)]


@pytest.mark.parametrize("columns", some([80, 300]))
def test_the_same_words_with_colour_and_without(columns):
    """On a terminal of its own; one that is too narrow for a row has the rest of it below."""
    parent, child = pty.openpty()
    command = [sys.executable, "-m", "wirecheck", "decode", str(EXAMPLE), "--error", "--limit", "3"]
    environment = {**os.environ, "TERM": "xterm", "NO_COLOR": "", "COLUMNS": str(columns)}
    process = subprocess.Popen(command, cwd=ROOT, stdout=child, stderr=subprocess.DEVNULL, env=environment)
    os.close(child)
    shown = b""
    try:
        while piece := os.read(parent, 1 << 16):
            shown += piece
    except OSError:  # the terminal is gone
        pass
    assert process.wait(60) == 0
    piped = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    assert b"\x1b[38;5;160m" in shown
    assert b"\x1b" not in piped.stdout
    plain = re.sub(rb"\x1b\[[0-9;]*m", b"", shown).replace(b"\r\n", b"\n")
    assert plain.split() == piped.stdout.split()
    assert max(map(len, plain.splitlines())) <= columns
    assert (plain == piped.stdout) == (columns == 300)


def following(path, *options):
    command = [sys.executable, "-m", "wirecheck", "decode", str(path), "--follow", *options]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


INTERRUPTED = {130, -signal.SIGINT}
"""A shell shows 130 for both. `python -m` ends by the signal itself, whatever status it was given, where the interrupt
came inside exec() of a string, as of a dataclass in a module that is imported then (CPython 3.11).
"""


def ended(process):
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode in INTERRUPTED
    return said


@pytest.mark.parametrize("container", ["pcap", "pcapng"])
def test_a_capture_is_read_on_as_it_grows(tmp_path, container):
    talk = traffic.Talk().open()
    for turn in range(3):
        talk.ts_ns += 20_000_000
        talk.request(asked("Metadata", 12, {"topics": []}, turn)).response(
            answered("Metadata", 12, {"topics": []}, turn)
        )
    packets = traffic.packets(talk.segments)
    write = traffic.pcap if container == "pcap" else traffic.pcapng
    whole, cut = write(packets), len(write(packets[:5])) + 20  # behind the first answer, in the middle of a packet
    growing = tmp_path / f"a.{container}"
    growing.write_bytes(whole[:cut])
    process = following(growing)
    try:
        first = process.stdout.readline()
        assert "Metadata v12" in first
        with growing.open("ab") as more:
            more.write(whole[cut:])
        rest = [process.stdout.readline() for _ in range(5)]
        assert sum("\u2192 billing-1" in row for row in rest) == 3
        assert ended(process) == "wirecheck: interrupted\n"
    finally:
        process.kill()


def test_a_folder_is_read_on_as_it_grows(tmp_path, talk):
    capture, frames = captured(tmp_path, talk), tmp_path / "frames"
    frames.mkdir()
    process = following(frames)
    try:
        assert "holds no capture and no frames" in process.stderr.readline()
        write_frames([capture], frames, "default")
        assert "Metadata v12" in process.stdout.readline()
        ended(process)
    finally:
        process.kill()


def test_what_is_piped_in_is_shown_as_it_comes_and_ends_with_the_pipe(tmp_path, talk):
    whole = traffic.pcap(traffic.packets(talk.segments))
    command = [sys.executable, "-m", "wirecheck", "decode", "-", "--follow"]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        process.stdin.write(whole[:-1])
        process.stdin.flush()
        assert b"Metadata v12" in process.stdout.readline()
        process.stdin.write(whole[-1:])
        process.stdin.close()
        rest = process.stdout.read()  # not communicate(): it passes over what readline() has read ahead
        process.stdout.close()
        assert (process.wait(60), rest.count(b"\n")) == (0, 3)
    finally:
        process.kill()


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("packed.pcap.gz", [], "a compressed capture cannot be followed"),
        ("a.pcap", ["a.pcap"], "--follow reads one capture, or folders of frames"),
    ],
)
def test_what_cannot_be_followed_is_said(run, tmp_path, talk, monkeypatch, name, arguments, said):
    monkeypatch.chdir(tmp_path)
    plain_bytes = captured(tmp_path, talk).read_bytes()
    (tmp_path / "packed.pcap.gz").write_bytes(gzip.compress(plain_bytes))
    result = run("decode", name, *arguments, "--follow")
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


def test_lines_go_out_together_in_order_and_none_is_lost_where_the_rest_fails(capsys):
    shown = []

    def put_and_fail():
        with decode.printed(at_once=False) as put:
            for number in range(decode.LINES_AT_ONCE + 2):
                put(str(number))
                shown.append(len(capsys.readouterr().out.split()))
            raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        put_and_fail()
    assert shown == [*[0] * (decode.LINES_AT_ONCE - 1), decode.LINES_AT_ONCE, 0, 0]
    assert capsys.readouterr().out.split() == [str(decode.LINES_AT_ONCE), str(decode.LINES_AT_ONCE + 1)]


def test_a_line_that_somebody_waits_for_goes_out_at_once(capsys):
    with decode.printed(at_once=True) as put:
        put("one")
        assert capsys.readouterr().out == "one\n"


def test_a_growing_capture_of_tls_is_read_with_keys_that_come_later(tmp_path, talk):
    """Captured in two parts, the key log written between them."""
    wrapped = TlsTalk(certificate(tmp_path), tmp_path / "early.keys").open()
    for segment in talk.segments:
        if segment.payload:
            (wrapped.request if segment.src == talk.client else wrapped.response)(segment.payload)
    whole = traffic.pcap(traffic.packets(wrapped.close().segments))
    capture, keys = tmp_path / "tls.pcap", tmp_path / "keys.log"
    capture.write_bytes(whole[: len(whole) // 2])
    process = following(capture, "--keylog", str(keys))
    try:
        assert "keys.log: no such file" in process.stderr.readline()
        keys.write_bytes((tmp_path / "early.keys").read_bytes())
        assert "keys.log: is readable again" in process.stderr.readline()
        with capture.open("ab") as more:
            more.write(whole[len(whole) // 2 :])
        assert "Metadata v12" in process.stdout.readline()
        ended(process)
    finally:
        process.kill()
