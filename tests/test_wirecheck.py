"""The command line: exit codes, the one line an error gets, and silence where nothing is to be said."""

import gzip
import json
import struct
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from click.testing import CliRunner

from tests import traffic
from tests.depth import some
from wirecheck.cli import COMMANDS, GROUPS, main
from wirecheck.streaming.store.run_result import Result

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples/zk39-inconsistent-id/capture.pcap.gz"


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def run_command(*arguments):
    """A process of its own, as a user starts it: what Spark writes past Python is seen too."""
    command = [sys.executable, "-m", "wirecheck", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("empty.pcap", b"", "empty.pcap: empty file"),
        ("notes.txt", b"topic orders looks odd\n" * 9, "notes.txt: not a pcap or pcapng file"),
        ("missing.pcap", None, "missing.pcap: no such file"),
    ],
)
@pytest.mark.parametrize("command", [["replay"], ["decode"], ["capture", "--out", "frames", "-r"]], ids=lambda c: c[0])
def test_a_file_that_cannot_be_read_is_one_line_and_exit_code_2(command, name, content, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path(name).write_bytes(content)
    result = run(*command, name)
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"wirecheck: {line}\n")


def test_an_out_folder_with_other_things_in_it_is_refused(tmp_path):
    (tmp_path / "precious").touch()
    result = run("replay", EXAMPLE, "--out", tmp_path)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "holds precious" in result.stderr


def test_an_out_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").touch()
    result = run("replay", EXAMPLE, "--out", tmp_path / "file/out")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)


def test_explaining_a_check_that_does_not_exist_names_where_to_look():
    result = run("explain", "XYZ001")
    assert (result.exit_code, result.stderr) == (
        2,
        "wirecheck: XYZ001: no such check or error; wirecheck explain, without a code, lists them all\n",
    )


@pytest.mark.parametrize("code", ["TID002", "tid002"])
def test_a_check_is_explained_with_its_four_headings(code):
    result = run("explain", code)
    assert result.exit_code == 0
    assert all(heading in result.stdout for heading in ("Detects", "Why it matters", "False positives", "Source"))


def test_one_message_in_hex_is_decoded():
    result = run(
        "decode", "--hex", "001200000000000100 03 666f6f", "--api", "apiversions", "--version", 0, "--format", "json"
    )
    assert json.loads(result.stdout)["body"] == {}


@pytest.mark.parametrize(
    "arguments",
    [
        ["--hex", "00"],
        ["--hex", "zz", "--api", "Fetch", "--version", "4"],
        ["--hex", "00", "--api", "Fetsch", "--version", "4"],
        [],
        [EXAMPLE, "--api", "Fetsch"],
    ],
)
def test_decode_says_what_is_wrong_with_its_arguments(arguments):
    result = run("decode", *arguments)
    assert result.exit_code == 2
    assert (result.stderr.count("\n"), "decode --help" in result.stderr) == (1, True)


def test_decode_stops_at_its_limit():
    result = run("decode", EXAMPLE, "--api", "LeaderAndIsr", "--limit", 3, "--format", "json")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["api"] for line in lines] == ["LeaderAndIsr"] * 3
    assert [line["time"] for line in lines] == sorted(line["time"] for line in lines)


DRAFTED = (
    "0004000300000000ffff00 000000010000000300000000000000070202740200000000000000030000000100000005030000000100000002"
    "00000009030000000100000002010001001024cc4332f7de45a3b24e33d61aa0d16c0200000001036231000023840001000102"
)


@pytest.mark.parametrize(("dialect", "said"), [("kip516-draft", "kip516-draft"), ("kip4-draft", None), ("kafka", None)])
def test_a_draft_is_read_as_what_it_is_or_as_it_is_said_to_be(dialect, said):
    one = ["--hex", DRAFTED, "--api", "LeaderAndIsr", "--version", 3, "--dialect", dialect, "--format", "json"]
    line = json.loads(run("decode", *one).stdout)
    advised = "possibly-a-draft; it decodes with --dialect kip516-draft"
    assert (line.get("dialect"), line.get("undecoded")) == (said, None if said else advised)
    assert "malformed" not in line


def test_a_replay_names_the_draft_that_would_read_what_it_could_not():
    folder = ROOT / "tests/scenarios/captures/kip516-draft/capture.pcap.gz"
    replay = ["replay", folder, "--engine", "local", "--format", "json"]
    suggested, named = run(*replay), run(*replay, "--dialect", "kip516-draft")
    details = json.loads(suggested.stdout)["coverage"]["details"]
    count = details["draft_messages"]["kip516-draft"]
    assert f"wirecheck: {count:,} messages decode as kip516-draft: use `--dialect kip516-draft`" in suggested.stderr
    assert details["undecoded_messages"] == {"possibly_a_draft": count}
    codes = [
        {finding["code"] for finding in json.loads(completed.stdout)["findings"]} for completed in (suggested, named)
    ]
    assert [found & {"DRF001", "WIR003"} for found in codes] == [set(), {"DRF001"}]
    assert "use `--dialect" not in named.stderr


@pytest.mark.parametrize("command", [["replay", EXAMPLE], ["decode", EXAMPLE]], ids=lambda c: c[0])
def test_a_dialect_that_does_not_exist_is_a_usage_error(command):
    result = run(*command, "--dialect", "klingon")
    assert (result.exit_code, "kip516-draft" in result.stderr) == (2, True)


def test_capture_writes_frames_and_says_how_many(tmp_path):
    result = run("capture", "-r", EXAMPLE, "--out", tmp_path / "frames")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "9,045 frames in 1 file under " in result.stderr


@pytest.mark.spark
def test_both_engines_find_the_fault_in_what_is_readable_and_nothing_of_spark_reaches_the_terminal(tmp_path):
    """Of two inputs that are broken the rest is told; the engines say which they were, and say the same."""
    (tmp_path / "cut.pcap").write_bytes(gzip.decompress(EXAMPLE.read_bytes())[:-7])
    (tmp_path / "notes.txt").write_text("no pcap")
    verdicts = {engine: judged(engine, tmp_path) for engine in ("spark", "local")}
    assert {engine: one.pop("engine") for engine, one in verdicts.items()} == {"spark": "spark", "local": "local"}
    assert verdicts["spark"] == verdicts["local"]
    assert [finding["code"] for finding in verdicts["spark"]["findings"] if finding["kind"] == "violation"] == [
        "TID002"
    ]
    errors = verdicts["spark"]["coverage"]["input_errors"]
    assert len(errors) == 2
    assert any("cut.pcap: truncated packet at byte offset" in line for line in errors)
    assert any("notes.txt: not a pcap or pcapng file" in line for line in errors)
    by_spark, locally = (Result.latest(tmp_path / engine).rows for engine in ("spark", "local"))
    assert by_id(by_spark) == by_id(locally)
    again = run_command("replay", EXAMPLE, "--engine", "local", "--out", tmp_path / "spark", "--fail-on", "never")
    assert (again.returncode, again.stderr) == (0, "")


@pytest.mark.parametrize("form", ["text", "json", "markdown", "junit", "sarif"])
def test_what_could_not_be_read_is_one_line_on_stderr_in_every_form(tmp_path, form):
    cut = tmp_path / "cut.pcap.gz"
    cut.write_bytes((data := EXAMPLE.read_bytes())[: len(data) // 2])
    result = run("replay", cut, "--format", form)
    assert result.stderr.startswith(f"wirecheck: {cut}: truncated gzip stream at byte offset ")
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)


def judged(engine, folder):
    inputs = folder / "cut.pcap", folder / "notes.txt"
    result = run_command("replay", *inputs, "--engine", engine, "--format", "json", "--out", folder / engine)
    found = json.loads(result.stdout)
    assert result.returncode == 1
    assert result.stderr.splitlines() == [f"wirecheck: {line}" for line in found["coverage"]["input_errors"]]
    return found


def by_id(tables):
    """Revisions count batches; all else of a row does not depend on them. Only the query follows files."""
    return {
        table: {row["id"]: {**row, "revision": None} for row in rows if row.get("measure") != "followed_files"}
        for table, rows in tables.items()
    }


def test_a_replay_judges_locally_and_the_page_says_so(tmp_path):
    result = run("replay", EXAMPLE, "-v", "--report", tmp_path / "page.html")
    assert (result.exit_code, result.stderr) == (1, "")
    assert " \u00b7 local engine \u00b7 " in result.stdout
    assert "judged locally, without Spark." in (tmp_path / "page.html").read_text()


def test_a_replay_says_the_same_with_a_page_and_without(tmp_path):
    """With one, frames are written beside; the verdict rests on what was captured all the same."""
    alone, paged = (
        run("replay", EXAMPLE, "--engine", "local", "--format", "json", *words)
        for words in ((), ("--report", tmp_path / "page.html"))
    )
    assert alone.exit_code == paged.exit_code == 1
    assert json.loads(alone.stdout) == json.loads(paged.stdout)


def test_a_capture_without_packets_is_said_to_be_one(tmp_path):
    (tmp_path / "empty.pcap").write_bytes(traffic.pcap([]))
    result = run_command("replay", tmp_path / "empty.pcap", "--engine", "local")
    assert result.returncode == 2
    assert result.stderr == "wirecheck: no Kafka traffic in 0 frames of 0 connections; the input has no packets\n"


def test_a_capture_without_kafka_is_said_to_be_one(tmp_path):
    talk = (
        traffic.Talk().open().request(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").response(b"HTTP/1.1 200 OK\r\n\r\n").close()
    )
    (tmp_path / "web.pcap").write_bytes(traffic.pcap(traffic.packets(talk.segments)))
    result = run_command("replay", tmp_path / "web.pcap", "--port", 19092, "--engine", "local")
    assert result.returncode == 2
    assert result.stderr.startswith("wirecheck: no Kafka traffic in ")
    assert result.stderr.endswith(" connections; only port 19092 was checked; busy ports: 9092 (8 frames)\n")
    assert result.stderr.count("\n") == 1
    assert result.stdout.startswith(" ? No result: no Kafka traffic in 0 frames of 0 connections.\n")
    assert "Findings" not in result.stdout


def test_a_capture_of_another_protocol_gets_no_advice_about_capturing(tmp_path):
    """Joined midway, with bytes missing: still only that there is no Kafka traffic."""
    talk = traffic.Talk()
    for _ in range(20):
        talk.request(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").response(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 900)
    kept = [segment for at, segment in enumerate(talk.segments) if at % 7]
    (tmp_path / "web.pcap").write_bytes(traffic.pcap(traffic.packets(kept)))
    result = run("replay", tmp_path / "web.pcap")
    assert result.exit_code == 2
    assert "no Kafka traffic in " in result.stderr
    assert "VIS001" not in result.stdout
    assert "Capture whole packets" not in result.stdout


@pytest.mark.parametrize("command", [["replay"], ["topics"], ["clients"]], ids=lambda command: command[0])
def test_a_capture_without_tcp_is_said_to_be_one(command, tmp_path):
    ethernet = bytes(12) + b"\x08\x00"
    datagram = bytes.fromhex("4500001e00000000401100000a0000010a00000214e90035000a0000") + b"dn"
    packets = [traffic.Packet(at, ethernet + datagram) for at in range(100)]
    (tmp_path / "udp.pcap").write_bytes(traffic.pcap(packets))
    result = run(*command, tmp_path / "udp.pcap")
    assert (result.exit_code, result.stderr) == (2, "wirecheck: 100 packets, none of them TCP\n")


@pytest.mark.parametrize("command", some(["replay", "topics", "decode"], each=2))
def test_a_folder_and_an_archive_of_captures_are_read_as_these(command, tmp_path):
    folder, archive = tmp_path / "folder", tmp_path / "all.tar.gz"
    folder.mkdir()
    (folder / "a.pcap.gz").write_bytes((ROOT / "wirecheck/example.pcap.gz").read_bytes())
    (folder / "notes.txt").write_text("nothing")
    with tarfile.open(archive, "w:gz") as made:
        made.add(folder, "captures")
    alone, *others = (run(command, path, "--format", "json") for path in (folder / "a.pcap.gz", folder, archive))
    assert alone.exit_code == others[0].exit_code == others[1].exit_code
    sizes = [len(result.stdout.replace(str(path), "")) for result, path in zip(others, (folder, archive), strict=True)]
    assert min(sizes) > 1000
    if command == "decode":
        assert [result.stdout.count("\n") for result in others] == [alone.stdout.count("\n")] * 2


def tls_record(kind, body):
    return bytes([kind, 3, 3]) + len(body).to_bytes(2, "big") + body


CLIENT_HELLO, SERVER_HELLO = (tls_record(22, bytes([kind, 0, 1, 0]) + bytes(256)) for kind in (1, 2))
CHANGE_CIPHER, ALERT, ENCRYPTED_ALERT = (tls_record(*one) for one in ((20, b"\1"), (21, b"\2\x30"), (23, bytes(19))))
FINISHED, RECORDS = tls_record(23, bytes(53)), tls_record(23, bytes(60))


@pytest.mark.parametrize(
    ("answer", "then", "encrypted"),
    [
        (SERVER_HELLO * 9, ALERT, 0),
        (SERVER_HELLO * 9, CHANGE_CIPHER + ENCRYPTED_ALERT, 0),
        (SERVER_HELLO * 9, b"", 0),
        (ALERT, b"", 0),
        (SERVER_HELLO * 9, CHANGE_CIPHER + FINISHED, 1),
        (SERVER_HELLO * 9, CHANGE_CIPHER + FINISHED + RECORDS, 1),
    ],
)
def test_a_tls_handshake_that_was_given_up_hides_nothing(answer, then, encrypted, tmp_path):
    talks = []
    for port in range(41000, 41004):
        talk = traffic.Talk(client=("10.0.0.7", port)).open().request(CLIENT_HELLO).response(answer).request(then)
        talks += talk.close().segments
    (tmp_path / "tls.pcap").write_bytes(traffic.pcap(traffic.packets(talks)))
    result = run("replay", tmp_path / "tls.pcap", "--format", "json")
    coverage = json.loads(result.stdout)["coverage"]
    assert coverage["encrypted_connections"] == 4 * encrypted
    assert {found["code"] for found in json.loads(result.stdout)["findings"]} == ({"VIS003"} if encrypted else set())


def test_a_capture_of_tunnels_that_are_not_read_names_them(tmp_path):
    inner = traffic.packets(traffic.Talk().open().request(b"kafka").segments)
    packets = [mirrored(packet, 37008, b"\1\0\0\1\1") for packet in inner]
    (tmp_path / "tzsp.pcap").write_bytes(traffic.pcap(packets))
    result = run("replay", tmp_path / "tzsp.pcap")
    assert (result.exit_code, result.stderr.count("4 packets in TZSP tunnels (UDP port 37008)")) == (2, 1)


def mirrored(packet, port, header):
    body = struct.pack(">HHHH", 40000, port, 8 + len(header) + len(packet.data), 0) + header + packet.data
    return replace(packet, data=traffic.ethernet(traffic.ipv4("10.9.0.1", "10.9.0.2", body, protocol=17)))


def test_a_capture_of_tunnels_that_are_too_deep_names_them(tmp_path):
    packet = traffic.ip(traffic.Talk().open().request(b"kafka").segments[-1])
    for _ in range(4):
        packet = traffic.ipv4("192.0.2.1", "192.0.2.2", b"\0\0\x08\0" + packet, protocol=47)
    packets = [traffic.Packet(at, traffic.ethernet(packet)) for at in range(30)]
    (tmp_path / "deep.pcap").write_bytes(traffic.pcap(packets))
    result = run("replay", tmp_path / "deep.pcap")
    assert result.exit_code == 2
    assert result.stderr.endswith("; 30 packets in tunnels nested more than three deep\n")


def test_of_an_option_that_does_not_exist_the_closest_is_named():
    result = run("replay", EXAMPLE, "--fromat", "json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "wirecheck: No such option '--fromat'; did you mean --format?; see main replay --help\n"


def test_the_package_lists_what_it_gives():
    import wirecheck

    assert {"messages", "replay", "__version__"} <= set(dir(wirecheck))


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "zstd"])
def test_what_is_piped_in_is_read_as_a_file(packed):
    plain = gzip.decompress(EXAMPLE.read_bytes())
    command = [sys.executable, "-m", "wirecheck", "decode", "-", "--api", "LeaderAndIsr", "--limit", "2"]
    result = subprocess.run(command, cwd=ROOT, input=zstd(plain) if packed else plain, capture_output=True, check=False)
    expected = run("decode", EXAMPLE, "--api", "LeaderAndIsr", "--limit", 2).stdout
    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout.decode() == expected.replace(str(EXAMPLE), "/dev/stdin")


def zstd(data):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize(
    "command", [["replay", "-"], ["decode", "-"], ["capture", "--out", "frames", "-r", "-"], ["topics", "-"]]
)
def test_a_terminal_is_nothing_piped_in(command, monkeypatch):
    monkeypatch.setattr("wirecheck.session.inputs.sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True)))
    result = run(*command)
    assert (result.exit_code, result.stderr.startswith("wirecheck: -: nothing is piped in; ")) == (2, True)


def test_what_comes_close_to_a_check_is_named():
    assert run("explain", "TID02").stderr.startswith("wirecheck: TID02: no such check or error; close to it: TID0")
    assert run("explain", "topic-recreate").stderr.endswith("close to it: topic-recreated\n")


def test_a_check_is_found_by_its_name_and_listed_without_one():
    assert run("explain", "topic-recreated").stdout == run("explain", "TID001").stdout
    assert "TID002  violation    leader-and-isr-inconsistent-topic-id" in run("explain").stdout.splitlines()


def test_the_list_of_commands_has_no_sentence_cut_off():
    help_text = run("--help").stdout.partition("Check captures:")[2]
    lines = [line for line in help_text.splitlines() if line.strip() and not line.endswith(":")]
    assert [line.split()[0] for line in lines] == list(COMMANDS)
    assert [group for group in GROUPS if f"{group}:\n" not in run("--help").stdout] == []
    assert [line for line in lines if not line.endswith(".") or line.endswith("...")] == []


def test_a_folder_that_has_frames_of_an_earlier_capture_is_said_to_have_them(tmp_path):
    first, second = (run("capture", "-r", EXAMPLE, "--out", tmp_path / "frames") for _ in range(2))
    assert "earlier" not in first.stderr
    assert (
        f"wirecheck: {tmp_path}/frames already holds frames of an earlier `capture -r`; messages in both count twice"
        in second.stderr
    )


HEAVY = {"numpy", "pyarrow", "pandas", "rich", "pyspark"}


def imported_by(*arguments):
    """What a process imports on the way, by Python's own word."""
    command = [sys.executable, "-X", "importtime", "-m", "wirecheck", *map(str, arguments)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    lines = [line for line in result.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}, result


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--help"], 0),
        (["decode", "--help"], 0),
        (["replay", "missing.pcap"], 2),
        (["replay", "missing.pcap", "gone.pcap", "--out", "out", "--engine", "spark"], 2),
        (["decode", "missing.pcap"], 2),
        (["topics", "missing.pcap"], 2),
        (["clients", "missing/"], 2),
        (["capture", "-r", "missing.pcap", "--out", "frames"], 2),
    ],
)
def test_help_and_a_wrong_path_cost_no_import(arguments, code):
    names, completed = imported_by(*arguments)
    assert (completed.returncode, names & HEAVY) == (code, set())
    assert "click" in names  # the list of imports is one


def test_a_command_that_needs_no_pandas_does_not_load_it():
    names, completed = imported_by("decode", EXAMPLE, "--limit", 1)
    assert (completed.returncode, names & {"pyarrow.lib", "pandas.core"}) == (0, {"pyarrow.lib"})


def test_of_several_inputs_that_are_not_there_each_is_named(tmp_path):
    result = run("replay", tmp_path / "a.pcap", tmp_path / "b.pcap")
    assert result.stderr == f"wirecheck: {tmp_path}/a.pcap: no such file\n{tmp_path}/b.pcap: no such file\n"


@pytest.mark.parametrize(
    "command",
    [
        ["replay", "--engine", "local"],
        ["decode"],
        ["topics"],
        ["clients"],
        ["evidence", "TID002", "-o", "out.pcapng"],
        ["capture", "--out", "frames", "-r"],
    ],
    ids=lambda command: command[0],
)
def test_a_missing_file_beside_others_is_an_error_before_anything_is_read(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ["-r"] if command[0] == "capture" else []
    result = run(*command, EXAMPLE, *options, "typo.pcap")
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", "wirecheck: typo.pcap: no such file\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("wanted", "close"), [("shipment", "close to it: shipments"), ("zzz", "4 topics were seen")], ids=str
)
def test_a_topic_that_was_not_seen_is_an_error(wanted, close):
    result = run("replay", EXAMPLE, "--engine", "local", "--topic", "shipments", "--topic", wanted)
    line = f"wirecheck: no topic {wanted} was seen; {close}\n"
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", line)


def test_a_topic_is_known_by_its_id():
    topics = json.loads(run("replay", EXAMPLE, "--engine", "local", "--format", "json").stdout)["topics"]
    for topic in topics:
        result = run("replay", EXAMPLE, "--engine", "local", "--fail-on", "never", "--topic", topic["topic_id"])
        assert (result.exit_code, result.stderr) == (0, "")


@pytest.mark.parametrize(
    ("asked", "listed", "exit_code"),
    [
        (["--only", "visibility", "--only", "anomaly"], 0, 0),
        (
            [
                "--code",
                "tid002",
                "--topic",
                "shipments",
                "--since",
                "2026-11-21T00:20:05Z",
                "--until",
                "2026-11-21T01:20:05+01:00",
            ],
            1,
            1,
        ),
    ],
    ids=str,
)
def test_a_replay_lists_what_is_asked_for_and_says_how_much_is_not_listed(asked, listed, exit_code):
    completed = run("replay", EXAMPLE, "--engine", "local", "--format", "json", *asked)
    result = json.loads(completed.stdout)
    found = [finding["code"] for finding in result["findings"]]
    assert (completed.exit_code, found) == (exit_code, ["TID002"] * listed)
    assert result["not_listed"] == 1 - listed
    assert ("nothing" in result["verdict"].lower()) == (not listed)


def test_a_check_that_does_not_exist_is_told_with_those_that_come_close():
    result = run("replay", EXAMPLE, "--code", "TID0002")
    assert result.exit_code == 2
    assert "there is no check TID0002; there are" in result.stderr
