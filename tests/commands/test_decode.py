"""`wirecheck decode` as people use it: bytes as tools write them, options that go together, and clear words if not."""

import json
import os
import shutil
import struct

import pytest
from click.testing import CliRunner

from tests import traffic
from tests.build import plain
from tests.commands.conftest import EXAMPLE
from wirecheck import cli
from wirecheck.capture.agent.offline_agent import write_frames

ASKED = plain("Metadata", "request", 12, {"topics": [{"name": "orders"}]}, {"correlationId": 7, "clientId": "app"})
HEX = ASKED[4:].hex()
AS_TOOLS_WRITE = {
    "wireshark": HEX,
    "tshark": ":".join(HEX[i : i + 2] for i in range(0, len(HEX), 2)),
    "xxd": " ".join(HEX[i : i + 4] for i in range(0, len(HEX), 4)),
    "lines": "\n".join(HEX[i : i + 32] for i in range(0, len(HEX), 32)).upper(),
    "c": ", ".join(f"0x{byte:02x}" for byte in ASKED[4:]),
    "python": "".join(f"\\x{byte:02x}" for byte in ASKED[4:]),
    "with its size": ASKED.hex(),
}


def parsed_lines(result):
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize("tool", AS_TOOLS_WRITE)
def test_bytes_are_taken_as_tools_write_them(run, tool):
    (line,) = parsed_lines(run("decode", "--hex", AS_TOOLS_WRITE[tool], "--format", "json"))
    assert (line["api"], line["version"], line["body"]["topics"][0]["name"]) == ("Metadata", 12, "orders")


def test_bytes_longer_than_a_command_line_come_by_stdin():
    result = CliRunner().invoke(cli.main, ["decode", "--hex", "-", "--format", "json"], input=HEX + "\n")
    assert parsed_lines(result)[0]["api"] == "Metadata"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give FILEs or --hex, and not both"),
        ((EXAMPLE, "--hex", HEX), "give FILEs or --hex, and not both"),
        (("--hex", ""), "--hex has no digits"),
        (("--hex", HEX[:-1]), "an odd number: one is missing, or was cut off at the end"),
        (("--hex", "0003zz"), "'z' after 4 digits is not a hex digit"),
        (("--hex", HEX, "--api", "Fetsch"), "did you mean Fetch"),
        (("--hex", HEX, "--api", "Fetch", "--api", "Metadata"), "one message: give one --api"),
        (("--hex", HEX, "--api", "Fetch", "--version", 4), "a request of Metadata v12, not of Fetch v4"),
        (("--hex", HEX, "--side", "response"), "a response does not say its API and version"),
        (("--hex", HEX, "--version", -1), "-1 is not in the range"),
        (("--hex", HEX, "--version", 70000), "70000 is not in the range"),
        (("--hex", HEX, "--version", "v12"), "'v12' is not a valid integer"),
        (("--hex", HEX, "--side", "broker"), "'broker' is not one of"),
        (("--hex", HEX, "--dialect", "klingon"), "'klingon' is not one of"),
        (("--hex", HEX, "--topic", "orders"), "--topic goes with FILEs"),
        (("--hex", HEX, "--connection", "10.0.0.1"), "--connection goes with FILEs"),
        (("--hex", HEX, "--limit", 1), "--limit goes with FILEs"),
        (("--hex", HEX, "--port", 9092), "--port goes with FILEs"),
        (("--hex", HEX, "--strict"), "--strict goes with FILEs"),
        (("--hex", HEX, "--frame", 1), "--frame goes with FILEs"),
        ((EXAMPLE, "--frame", 0), "0 is not in the range"),
        ((EXAMPLE, "--connection", "broker-1:9092"), "broker-1:9092: not an address"),
        ((EXAMPLE, "--limit", 0), "0 is not in the range"),
        ((EXAMPLE, "--last", 5, "--limit", 5), "--last does not go with --limit"),
        ((EXAMPLE, "--last", 5, "--follow"), "--last does not go with --follow"),
        (("--hex", HEX, "--last", 1), "--last goes with FILEs"),
    ],
)
def test_what_does_not_fit_is_said_in_words(run, arguments, said):
    result = run("decode", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("data", "said", "code"),
    [
        (ASKED[4:-3], "malformed: Truncated at byte ", 1),
        (ASKED[4:] + b"\0\0", "malformed: LeftoverBytes at byte ", 1),
        (b"\0\x63\0\0\0\0\0\1\0\0", "undecoded: unknown-api", 0),
        (b"\0\3\0\x63\0\0\0\1\0\0", "undecoded: unknown-version", 0),
    ],
)
def test_bytes_that_are_no_message_say_why(run, data, said, code):
    result = run("decode", "--hex", data.hex())
    assert result.exit_code == code
    assert said in result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--topic", "nowhere"), " matches --topic"),
        (("--api", "Heartbeat", "--version", 0), " matches --api, --version"),
        (("--connection", "192.0.2.1"), " matches --connection"),
        (("--port", 9), " matches --port"),
    ],
)
def test_where_no_message_passes_that_is_said(run, arguments, said):
    result = run("decode", EXAMPLE, *arguments)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"wirecheck: no Kafka message in {EXAMPLE}{said}\n"


HELLO, RECORD = b"\x16\x03\x01\x02\x00" + bytes(512), b"\x17\x03\x03\x00\x40" + bytes(64)


@pytest.mark.parametrize(
    ("asked", "answer", "hidden"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n", ""),
        (HELLO, RECORD, "; encrypted connections: 1"),
    ],
    ids=["http", "tls"],
)
def test_a_capture_without_kafka_is_said_to_have_none_and_why(run, tmp_path, asked, answer, hidden):
    pcap = tmp_path / "other.pcap"
    talk = traffic.Talk().open().request(asked).response(answer).close()
    pcap.write_bytes(traffic.pcap(traffic.packets(talk.segments)))
    for options, code in (((), 2), (("--side", "request"), 0)):
        result = run("decode", pcap, *options)
        passes = " matches --side" if options else ""
        assert (result.exit_code, result.stdout) == (code, "")
        assert result.stderr == f"wirecheck: no Kafka message in {pcap}{passes}{hidden}\n"


def test_what_is_readable_of_a_file_that_was_cut_off_is_shown_first(run, tmp_path):
    talk = traffic.Talk().open().request(ASKED).response(struct.pack(">ii", 4, 7)).close()
    whole = traffic.pcap(traffic.packets(talk.segments))
    (tmp_path / "cut.pcap").write_bytes(whole[:-5])
    result = run("decode", tmp_path / "cut.pcap", "--side", "request", "-V")
    assert "Metadata v12 request  #7" in result.stdout
    assert result.exit_code == 0
    assert f"wirecheck: {tmp_path / 'cut.pcap'}: truncated packet at byte offset " in result.stderr
    strict = run("decode", tmp_path / "cut.pcap", "--side", "request", "-V", "--strict")
    assert (strict.exit_code, strict.stdout) == (2, result.stdout)
    assert strict.stderr == result.stderr + "wirecheck: part of the input could not be read (--strict)\n"


def test_files_are_narrowed_by_port(run):
    asked = ("--api", "LeaderAndIsr", "--format", "json")
    every, narrowed = (
        parsed_lines(run("decode", EXAMPLE, *asked)),
        parsed_lines(run("decode", EXAMPLE, *asked, "--port", 19093)),
    )
    assert 0 < len(narrowed) < len(every)
    assert narrowed == [line for line in every if any(line[end].endswith(":19093") for end in ("src", "dst"))]


def test_files_are_narrowed_by_side_and_version(run):
    lines = parsed_lines(run("decode", EXAMPLE, "--side", "response", "--api", 3, "--format", "json"))
    assert {(line["side"], line["api"]) for line in lines} == {("response", "Metadata")}
    (version, *_) = {line["version"] for line in lines}
    assert {
        line["version"] for line in parsed_lines(run("decode", EXAMPLE, "--version", version, "--format", "json"))
    } == {version}


def test_a_folder_of_frames_says_what_its_capture_says(run, frames_folder):
    asked = ("--api", "LeaderAndIsr", "--format", "json")
    whole, trimmed = parsed_lines(run("decode", EXAMPLE, *asked)), parsed_lines(run("decode", frames_folder, *asked))
    assert len(whole) == 78
    assert trimmed == whole


def test_files_of_several_agents_are_read_side_by_side(run, tmp_path):
    """Each agent has two files; what both saw is said once, in order of time."""
    talk = traffic.Talk().open()
    for turn in range(40):
        talk.ts_ns += 1_000_000_000
        talk.request(ASKED[:8] + struct.pack(">i", turn) + ASKED[12:])
    packets = traffic.packets(talk.close().segments)
    for agent in ("one", "two"):
        pcap = tmp_path / f"{agent}.pcap"
        pcap.write_bytes(traffic.pcap(packets))
        for part in (slice(0, 20), slice(20, None)):
            pcap.write_bytes(traffic.pcap(packets[part]))
            write_frames([pcap], tmp_path / f"frames-{agent}", "default", agent)
    lines = parsed_lines(run("decode", tmp_path / "frames-two", tmp_path / "frames-one", "--format", "json"))
    assert [line["correlation_id"] for line in lines] == list(range(40))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("notes.txt", b"", "holds no capture and no frames (AGENT-NNNNNNNNNN.parquet)"),
        ("notes.parquet", b"", "notes.parquet is not a file of frames"),
        ("agent-0000000001.parquet", b"no Parquet", "agent-0000000001.parquet: "),
    ],
)
def test_a_folder_that_holds_no_frames_is_said_to(run, tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    result = run("decode", tmp_path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_file_that_lies_is_named_and_left_out(run, frames_folder, lying_folder):
    asked = ("--api", "LeaderAndIsr", "--format", "json")
    result = run("decode", lying_folder, *asked)
    assert parsed_lines(result) == parsed_lines(run("decode", frames_folder, *asked))
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"wirecheck: {lying_folder}/liar-0000000001.parquet: payload of row 1: 0 bytes kept")
    assert line.endswith("; it is skipped")
    strict = run("decode", lying_folder, *asked, "--strict")
    assert (strict.exit_code, strict.stdout) == (2, result.stdout)
    assert strict.stderr == result.stderr + "wirecheck: part of the input could not be read (--strict)\n"
    assert run("decode", frames_folder, *asked, "--strict").exit_code == 0


def test_a_renamed_file_and_a_fifo_are_named_and_the_rest_is_read(run, frames_folder, tmp_path):
    whole = [*frames_folder.glob("*.parquet")]
    for file in whole:
        shutil.copy(file, tmp_path / file.name)
    shutil.copy(whole[0], tmp_path / "evil-0000000001.parquet")
    os.mkfifo(tmp_path / "zz-0000000001.parquet")
    asked = ("--api", "LeaderAndIsr", "--format", "json")
    result = run("decode", tmp_path, *asked)
    assert parsed_lines(result) == parsed_lines(run("decode", frames_folder, *asked))
    lines = result.stderr.splitlines()
    assert any("evil-0000000001.parquet: its name does not match its rows" in line for line in lines)
    assert any("zz-0000000001.parquet: not a regular file; it is skipped" in line for line in lines)


def test_a_folder_of_nothing_but_lies_ends_with_2(run, lying_folder, tmp_path):
    for number in (1, 2):
        (tmp_path / f"liar-{number:010d}.parquet").symlink_to(lying_folder / "liar-0000000001.parquet")
    result = run("decode", tmp_path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sorted(line.split(": ")[1] for line in result.stderr.splitlines()) == [
        f"{tmp_path}/liar-000000000{number}.parquet" for number in (1, 2)
    ]


def test_from_a_packet_in_wireshark_to_its_message(run):
    (line,) = parsed_lines(run("decode", EXAMPLE, "--frame", 1924, "--format", "json"))
    assert (line["api"], line["side"], line["frame"]["first"]) == ("LeaderAndIsr", "request", 1924)
    empty = run("decode", EXAMPLE, "--frame", 1925)
    assert (empty.exit_code, empty.stdout) == (0, "")
    assert f"matches --frame; frame 1925 of {EXAMPLE}: 127.0.1.3:19093 > 127.0.0.1:39666, 0 bytes" in empty.stderr


def test_what_follows_is_not_read_once_enough_is_said(run, tmp_path):
    """--limit ends at once: a file that breaks behind is not read so far."""
    talk = traffic.Talk(mss=60_000).open()
    for turn in range(3):
        talk.ts_ns += 20_000_000_000
        talk.request(ASKED[:8] + struct.pack(">i", turn) + ASKED[12:]).response(struct.pack(">ii", 4, turn))
    other = traffic.Talk(client=("10.0.0.2", 40000), ts_ns=talk.ts_ns, mss=60_000).open().response(bytes(40 << 20))
    (tmp_path / "cut.pcap").write_bytes(traffic.pcap(traffic.packets([*talk.segments, *other.segments]))[:-5])
    result = run("decode", tmp_path / "cut.pcap", "--side", "request", "--limit", 1)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.count("Metadata v12") == 1


def test_the_last_messages_are_those_at_the_end(run):
    every, last = (
        run("decode", EXAMPLE, "--api", "Produce", *words).stdout.splitlines() for words in ((), ("--last", 3))
    )
    assert last == every[-3:]
    assert len(every) > 3
