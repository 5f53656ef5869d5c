"""Names of files: any bytes that a file system allows, in any output."""

import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from wirecheck.cli import main

CAPTURE = Path(__file__).parents[2] / "examples" / "zk39-inconsistent-id" / "capture.pcap.gz"
COMMANDS = (
    ["replay"], ["replay", "--format", "json"], ["replay", "--format", "markdown"], ["replay", "--format", "junit"],
    ["replay", "--format", "sarif"], ["replay", "--report", "page.html"], ["replay", "--out", "results"],
    ["decode"], ["changes", "--format", "csv"], ["clients", "--format", "json"], ["errors"],
    ["evidence", "TID002", "-o", "some.pcapng"], ["anonymize", "-o", "other.pcapng"],
    ["capture", "--out", "frames", "-r"],
)  # fmt: skip
RAW = ("\x1b", "\x9b", "\n|", "<img")
"""What a name may not do: control a terminal, begin a line, be markup."""


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_name_of_any_bytes_is_read_and_written_out(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = os.fsdecode(b"a\x9b\xff\x1b[31m\n|<img src=x>.pcap.gz")
    shutil.copy(CAPTURE, name)
    found = CliRunner().invoke(main, [*command, name])
    assert found.exit_code in {0, 1}, found.stderr
    written = found.stderr + (Path("page.html").read_text() if "--report" in command else "")
    assert not any(raw in written for raw in RAW if raw != "<img" or "--report" in command)
    if "--out" in command and "results" in command:
        assert CliRunner().invoke(main, ["findings", "results"]).exit_code in {0, 1}
