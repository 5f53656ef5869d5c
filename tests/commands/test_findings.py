"""`wirecheck findings`: the open findings of a folder of results, listed, one in full, and as they come."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from types import MappingProxyType

import pytest

from tests.commands.conftest import EXAMPLE, ROOT
from tests.depth import some
from wirecheck.commands import findings as findings_command
from wirecheck.session.results import latest
from wirecheck.session.session import Session
from wirecheck.story.seen import Coverage
from wirecheck.story.verdict import Verdict

ID = "yuqnnqvukzik2vec"


def test_a_card_is_a_row(run, verdict):
    result = run("findings", verdict)
    assert (result.exit_code, result.stderr) == (0, "")
    head, *lines = result.stdout.splitlines()
    assert head.split("  ")[0] == "age"
    shown = " ".join(" ".join(lines).split())
    assert shown.startswith("24 s ")
    assert f"TID002 {ID}" in shown


def test_json_is_the_finding_of_a_replay(run, verdict):
    whole = json.loads(run("replay", EXAMPLE, "--engine", "local", "--format", "json").stdout)
    (finding,), (entry,) = whole["findings"], whole["entries"]
    listed = json.loads(run("findings", verdict, "--format", "json").stdout)
    assert listed == json.loads(run("findings", verdict, ID[:6], "--format", "json").stdout)
    card, card_of = listed.pop("card"), listed.pop("card_of")
    assert (card["headline"], card["cause"], card_of) == (entry["card"]["headline"], entry["card"]["cause"], ID)
    assert {name: finding[name] for name in listed} == {
        **listed,
        "sides": [{**side, "frame": finding["sides"][i]["frame"]} for i, side in enumerate(listed["sides"])],
    }


def test_one_is_shown_in_full_with_what_to_do(run, verdict):
    listing = run("findings", verdict, ID[:6]).stdout
    assert "\n    00:20:03.950Z  127.0.1.3:19093 answers INCONSISTENT_TOPIC_ID" in listing
    assert "\n  Next  On that broker, compare topic_id" in listing
    assert listing.lstrip().startswith("✗ ")
    assert "\n   fix      " in listing


def test_a_capture_is_told_from_results(run, tmp_path):
    capture = tmp_path / "a b.pcap"
    capture.write_bytes(b"")
    ended = run("findings", capture)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert ended.stderr.endswith(f"a file, not results; first: wirecheck replay '{capture}' --out verdict/\n")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--only", "anomaly"], 0, "no open finding matches"),
        (["--topic", "pallets"], 0, "no open finding matches"),
        (["--topic", "pallet"], 2, "no topic pallet was seen; close to it: pallets"),
        (["zzz"], 2, f"no finding zzz; known findings: {ID}"),
        (["yuq", "--follow"], 2, "give an ID or --follow, and not both"),
    ],
)
def test_what_is_not_there_is_said(run, verdict, arguments, code, said):
    result = run("findings", verdict, *arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert said in result.stderr


@pytest.mark.parametrize(
    "command",
    some(
        [["findings"], ["findings", "--format", "json"], ["topics"], ["topics", "--format", "json"], ["clients"]],
        each=2,
    ),
    ids=" ".join,
)
def test_delta_tables_are_read_as_parquet_is(run, verdict, delta_verdict, command):
    of_parquet, of_delta = (run(command[0], out, *command[1:]) for out in (verdict, delta_verdict))
    assert (of_delta.exit_code, of_delta.stderr) == (0, "")
    assert of_delta.stdout == of_parquet.stdout


def test_delta_tables_without_what_reads_them_are_one_line(run, delta_verdict, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "deltalake"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "deltalake", None)
    monkeypatch.delitem(sys.modules, "wirecheck.streaming.store.delta_tables", raising=False)
    monkeypatch.delattr("wirecheck.streaming.store.delta_tables", raising=False)
    result = run("findings", delta_verdict)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "wirecheck: deltalake is not installed: install wirecheck's wheel with [delta]\n"


def test_a_folder_without_tables_is_refused_before_anything_is_read(run, tmp_path):
    assert "no such folder" in run("findings", tmp_path / "missing").stderr
    assert "holds no tables of a replay or a monitor" in run("findings", tmp_path).stderr


def test_a_replay_of_results_says_what_lists_them(run, verdict):
    result = run("replay", verdict)
    assert result.exit_code == 2
    assert result.stderr == (
        f"wirecheck: {verdict}: holds result tables, not captures; "
        f"`wirecheck findings {verdict}` lists their findings\n"
    )


def test_what_is_new_comes_as_it_is_written(verdict, tmp_path):
    """A run without findings is followed; then those of another are put beside it, as a monitor would."""
    out = tmp_path / "out"
    shutil.copytree(verdict, out)
    (batch,) = (out / "findings").glob("run=*/batch_id=*")
    kept = tmp_path / batch.name
    batch.rename(kept)
    process = subprocess.Popen(
        [sys.executable, "-m", "wirecheck", "findings", str(out), "--follow"],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(3)
        kept.rename(batch)
        assert ID in process.stdout.readline()
    finally:
        process.kill()
        process.communicate()


def test_following_waits_for_the_first_batch(verdict, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "wirecheck", "findings", str(out), "--follow"],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(3)
        shutil.copytree(verdict, out, dirs_exist_ok=True)
        assert ID in process.stdout.readline()
    finally:
        process.kill()
        process.communicate()


def test_a_code_with_one_finding_is_as_good_as_its_id(run, verdict):
    by_code, by_id = run("findings", verdict, "tid002"), run("findings", verdict, ID)
    assert (by_code.exit_code, by_code.stdout) == (0, by_id.stdout)
    assert run("findings", verdict, "TID003").exit_code == 2


def test_growing_tables_are_told_once_a_finding_and_again_where_one_changed(verdict, tmp_path, monkeypatch, run):
    """Three looks at tables that grow: nothing open, then one finding, then that one seen more often."""
    monkeypatch.setattr(findings_command, "POLL_S", 0)
    first = latest(Session(), verdict).findings()[0]
    again = replace(first, count=first.count + 1)
    looks = iter([[], [], [first], [first], [again], [again]])

    class Grown:
        def __init__(self):
            try:
                self.findings = next(looks)
            except StopIteration:
                raise KeyboardInterrupt from None

        rows = MappingProxyType({"findings": ()})

        def verdict(self, *_, **_options):
            return Verdict(coverage=Coverage(), findings=tuple(self.findings))

    monkeypatch.setattr(findings_command, "latest", lambda _session, _out: Grown())
    result = run("findings", verdict, "--follow", "--format", "json")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["count"] for row in rows] == [first.count, again.count]


def test_a_list_takes_no_second_of_the_processor(verdict):
    """Of its own time, whatever else the machine does: 0.3 s on a quiet core, and nothing judged again."""
    with subprocess.Popen(
        [sys.executable, "-m", "wirecheck", "findings", str(verdict)], cwd=ROOT, stdout=subprocess.DEVNULL
    ) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    assert used.ru_utime + used.ru_stime < 2


def test_addresses_have_names(run, verdict, tmp_path):
    (tmp_path / "hosts").write_text("127.0.1.3 broker-three\n")
    assert "broker-three (127.0.1.3)" in run("findings", verdict, ID[:6], "--names", tmp_path / "hosts").stdout
    listed = run("findings", verdict, "--names", tmp_path / "hosts", "--format", "json").stdout
    assert listed == run("findings", verdict, "--format", "json").stdout


def test_a_card_names_the_captures_of_a_replay_where_they_are_still_there(run, tmp_path):
    """Its commands then run as printed."""
    out = tmp_path / "out"
    run("replay", EXAMPLE, "--out", out)
    shown = run("findings", out, "TID002").stdout
    assert f"wirecheck evidence TID002 {EXAMPLE} --from {out} -o shipments.pcapng" in " ".join(shown.split())
    assert " FILE " not in shown
