"""Options that several commands share: values that shells complete, and variables in place of them."""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from tests.awaited import read_until
from tests.commands.conftest import EXAMPLE, ROOT
from wirecheck.cli import COMMANDS, main
from wirecheck.commands import completion


def completed(line):
    """What bash is offered for the last word of a line."""
    return [item.partition(",")[2] for item in asked(line)]


def asked(line):
    """The same with its types."""
    words = line.split(" ")
    variables = {"_WIRECHECK_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    return CliRunner(env=variables).invoke(main, prog_name="wirecheck").stdout.splitlines()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("wirecheck explain TID00", "TID002"),
        ("wirecheck explain topic-rec", "topic-recreated"),
        ("wirecheck replay --code CTL", "CTL001"),
        ("wirecheck decode --api leader", "LeaderAndIsr"),
        ("wirecheck replay --fail-on an", "anomaly"),
        ("wirecheck replay --fail-on = an", "anomaly"),
        ("wirecheck evidence tid00", "TID002"),
        ("wirecheck find", "findings"),
        ("wirecheck capture -i l", "lo"),
    ],
)
def test_values_are_completed(line, offered):
    found = completed(line)
    begun = line.rpartition(" ")[2].lower()
    assert offered in found
    assert all(item.lower().startswith(begun) for item in found)


@pytest.mark.parametrize(
    "line",
    [
        "wirecheck replay exam",
        "wirecheck decode -V exam",
        "wirecheck topics exam",
        "wirecheck clients exam",
        "wirecheck evidence TID002 exam",
        "wirecheck findings exam",
        "wirecheck capture -r exam",
        "wirecheck capture -r a.pcap exam",
        "wirecheck monitor --frames exam",
        "wirecheck monitor --out exam",
        "wirecheck replay --keylog exam",
        "wirecheck replay --report exam",
    ],
)
def test_files_are_left_to_the_shell(line):
    assert asked(line) == ["file,exam"]


def served(folder, shell):
    """Variables with which a shell finds the command of this tree; our lines for it lie in `ours`."""
    (folder / "wirecheck").write_text(f'#!/bin/sh\nexec {sys.executable} -m wirecheck "$@"\n')
    (folder / "wirecheck").chmod(0o755)
    ours = subprocess.run([folder / "wirecheck", "completion", shell], cwd=ROOT, capture_output=True, check=True)
    (folder / "ours").write_bytes(ours.stdout)
    ours_first = f"{folder}:{os.environ['PATH']}"
    return {**os.environ, "PATH": ours_first, "HOME": str(folder), "TERM": "dumb", "COLUMNS": "200", "EDITOR": "emacs"}


SHELLS = {"bash": ("--norc", "--noprofile", "-i"), "zsh": ("-f", "-i")}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("line", "rest"),
    [
        ("wirecheck replay --fail-on=an", "omaly"),
        ("wirecheck replay --fail-on an", "omaly"),
        ("wirecheck replay examples/zk39-incons", "istent-id"),
    ],
)
def test_a_tab_makes_the_line_whole(tmp_path, shell, line, rest):
    """Typed into the shell, on a terminal of its own, as a person does."""
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    if shell == "zsh" and "=" in line:
        pytest.skip("click's lines for zsh complete a value as a word of its own")
    ours, its = pty.openpty()
    variables = served(tmp_path, shell)
    begun = subprocess.Popen(
        [shell, *SHELLS[shell]], cwd=ROOT, env=variables, stdin=its, stdout=its, stderr=its, start_new_session=True
    )
    os.close(its)
    try:
        os.write(ours, f". {tmp_path}/ours; echo rea''dy\n".encode())
        shown = read_until(ours, "ready")
        os.write(ours, f"{line}\t".encode())
        shown += read_until(ours, rest)
        os.write(ours, b"\x01echo \n")
        shown += read_until(ours, f"\n{line}{rest}")
    finally:
        begun.kill()
        begun.wait()
        os.close(ours)
    assert "not found" not in shown


def test_names_that_a_shell_would_run_are_not_offered(monkeypatch, tmp_path):
    topics = [SimpleNamespace(name=name) for name in ("orders", "$(reboot)", "a b", "; ls", None)]
    monkeypatch.setattr(completion, "_named", lambda _ctx: [SimpleNamespace(topics=topics)])
    assert [item.value for item in completion.topic(None, None, "")] == ["orders"]


def test_topics_are_completed_from_the_tables_that_the_line_names(verdict):
    assert completed(f"wirecheck topics {verdict} --topic pa") == ["pallets", "parcels"]
    assert completed(f"wirecheck findings {verdict} --topic ship") == ["shipments"]
    assert completed(f"wirecheck findings {verdict} yuq") == ["yuqnnqvukzik2vec"]
    assert not any(completed("wirecheck topics nowhere/ --topic pa"))


def test_variables_stand_for_options_and_options_go_first(run, monkeypatch):
    monkeypatch.setenv("WIRECHECK_FORMAT", "json")
    monkeypatch.setenv("WIRECHECK_ENGINE", "local")
    monkeypatch.setenv("WIRECHECK_FAIL_ON", "never")
    result = run("replay", EXAMPLE)
    assert (result.exit_code, json.loads(result.stdout)["engine"]) == (0, "local")
    assert run("replay", EXAMPLE, "--format", "text", "--fail-on", "violation").exit_code == 1
    monkeypatch.setenv("WIRECHECK_FORMAT", "yaml")
    assert run("replay", EXAMPLE).exit_code == 2


def test_quiet_is_an_option_of_what_takes_long(run):
    assert run("topics", EXAMPLE, "-q").stderr == ""
    assert run("decode", EXAMPLE, "-q", "--limit", 1).exit_code == 0


def test_a_quiet_agent_says_only_what_is_wrong(run, tmp_path):
    stderrs = [run("capture", "-r", EXAMPLE, "--out", tmp_path / "a", *more).stderr for more in ((), ("-q",), ("-q",))]
    assert [("9,045 frames in 1 file" in words, "count twice" in words) for words in stderrs] == [
        (True, False),
        (False, True),
        (False, True),
    ]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_80_columns_and_names_every_option_once_in_a_section(run, command):
    lines = run(command, "--help").stdout.splitlines()
    assert [line for line in lines if len(line) > 80 or "\\b" in line] == []
    parameters = main.get_command(None, command).params
    heads = [number for number, line in enumerate(lines) if line.endswith(":") and not line.startswith(" ")]
    listed = [line.split()[0].rstrip(",") for line in lines[heads[0] :] if re.match("  -(?!h,|-help)", line)]
    options = [parameter for parameter in parameters if parameter.param_type_name == "option"]
    assert sorted(listed) == sorted(one.opts[0] for one in options if not one.hidden)
    pages = "".join((ROOT / "docs" / page).read_text() for page in ("monitor-reference.md", "how-it-works.md"))
    assert [one.opts[0] for one in options if one.hidden and not re.search(rf"`{one.opts[0]}[ `]", pages)] == []
    sections = {lines[number] for number in heads}
    assert sections == {"Options:"} or sections >= {"Input:", "Output:"}
