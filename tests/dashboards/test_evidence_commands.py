"""Commands under a finding: they work as they are printed, and tshark's stands only where it reads the version."""

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.dashboards.results import FINDING, SIDE, changed, replayed
from wirecheck import cli
from wirecheck.capture.agent.offline_agent import write_frames
from wirecheck.dashboards.evidence_commands import commands, dissections, every_command, last_versions
from wirecheck.decode.api_names import names
from wirecheck.story.reading_options import reading_options

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/zk39-inconsistent-id/capture.pcap.gz"
OF_AGENT = changed(SIDE, {"frame": {"source": "eth0.100", "first": 1, "last": 2}})


def run(command):
    result = CliRunner().invoke(cli.main, shlex.split(command)[1:])
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout.splitlines()


def test_of_a_capture_the_command_shows_the_messages_of_the_finding():
    sides = replayed(EXAMPLE).findings[0].sides
    (command,) = commands(sides)
    rows = run(command)
    assert [row.rpartition(" ")[2] for row in rows] == [f"#{side.frame.first}" for side in sides]
    assert ["INCONSISTENT_TOPIC_ID" in row for row in rows] == [False, True, False, True]


def test_of_an_agents_frames_it_goes_by_connection_and_time(tmp_path):
    write_frames([EXAMPLE], tmp_path / "my frames", "default")
    sides = replayed(tmp_path / "my frames").findings[0].sides
    away = [changed(side, {"frame": {"source": "eth0", "first": 1, "last": 1}}) for side in sides]
    assert list(commands(away)) == []  # where the frames lie is not known
    found = list(commands(away, [str(tmp_path / "my frames")]))
    rows = [row for command in found for row in run(command)]
    assert len(found) == 2
    assert sum("INCONSISTENT_TOPIC_ID" in row for row in rows) == 2


@pytest.mark.parametrize(("version", "there"), [(4, True), (5, False), (None, False)])
def test_tshark_is_offered_only_for_versions_that_it_reads(version, there):
    command_lines = list(commands([changed(SIDE, {"version": version})]))
    assert any(command.startswith("tshark ") for command in command_lines) is there


def test_every_api_of_the_table_is_one_of_kafkas():
    assert last_versions().keys() <= set(names().values())
    assert last_versions()["Fetch"] == 11


def test_frames_of_an_interface_are_no_numbers_for_tshark():
    assert list(dissections([OF_AGENT])) == []


def test_frames_of_several_files_and_ports_are_a_command_each():
    other = changed(
        SIDE, {"connection": "10.0.0.1:4>[::1]:9092", "frame": {"source": "b c.pcap.zst", "first": 7, "last": 9}}
    )
    assert list(dissections([SIDE, other])) == [
        "tshark -r capture.pcap -d tcp.port==19093,kafka -Y 'frame.number in {8123}'",
        "tshark -r 'b c.pcap.zst' -d tcp.port==9092,kafka -Y 'frame.number in {7,9}'",
    ]


def test_commands_name_keys_and_drafts_and_then_tshark_is_not_offered():
    finding = changed(FINDING, {"id": "TID002-1", "sides": [changed(SIDE, {"version": 4})]})
    options = reading_options(["one.keys", "the other.keys"], ["kip4-draft"])
    assert options == " --keylog one.keys --keylog 'the other.keys' --dialect kip4-draft"
    command_lines = list(every_command(finding, ["a.pcap"], options))
    assert all(command.endswith(options) for command in command_lines[:2])
    assert command_lines[2:] == ["wirecheck explain TID002"]
