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
    command, of_tshark = commands(sides)
    assert of_tshark.endswith("  # needs tshark 4.6")
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


@pytest.mark.parametrize(("version", "end"), [(4, "'"), (5, "  # needs tshark 4.6"), (7, "  # needs tshark 4.6")])
def test_tshark_is_offered_with_the_release_that_reads_the_version(version, end):
    (command,) = (one for one in commands([changed(SIDE, {"version": version})]) if one.startswith("tshark "))
    assert command == f"tshark -r capture.pcap -d tcp.port==19093,kafka -Y 'frame.number in {{8123}}{end}".replace(
        "}  #", "}'  #"
    )
    assert shlex.split(command, comments=True)[-1] == "frame.number in {8123}"


@pytest.mark.parametrize("version", [99, None])
def test_tshark_is_offered_only_for_versions_that_one_reads(version):
    assert not any(one.startswith("tshark ") for one in commands([changed(SIDE, {"version": version})]))


def test_every_api_of_the_table_is_one_of_kafkas():
    assert [*last_versions()] == ["4.0", "4.6"]
    assert last_versions()["4.0"].keys() <= set(names().values())
    assert [one["Fetch"] for one in last_versions().values()] == [11, 17]


def test_a_topic_id_is_a_guid_in_the_filter_of_tshark():
    finding = changed(FINDING, {"topic_ids": ["da2uCyqPT-6vP4yDIMcDSw"], "sides": [changed(SIDE, {"version": 4})]})
    command = next(one for one in every_command(finding, ["a.pcap"]) if "topic_id" in one)
    shown = shlex.split(command, comments=True)
    assert shown[-1] == "kafka.topic_id in {75adae0b-2a8f-4fee-af3f-8c8320c7034b}"
    assert command.endswith("  # needs tshark 4.6")


def test_frames_of_an_interface_are_no_numbers_for_tshark():
    assert list(dissections([OF_AGENT])) == []


def test_frames_of_several_files_and_ports_are_a_command_each():
    other = changed(
        SIDE, {"connection": "10.0.0.1:4>[::1]:9092", "frame": {"source": "b c.pcap.zst", "first": 7, "last": 9}}
    )
    assert list(dissections([changed(SIDE, {"version": 4}), changed(other, {"version": 4})])) == [
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
