"""Each how-to of docs/extend.md, made as it is printed in a copy of the checkout, does what it promises."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.judge.lab import ID_1, Lab
from tests.laws.test_new_checks import capture

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/extend.md"
BLOCK = re.compile(r"^(`{3,})diff\n--- (\S+)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
LEFT_BEHIND = shutil.ignore_patterns(".*", "build", "tests", "bench", "*.so", "__pycache__")


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the checkout with the changes of all of them. What a block takes away or keeps is in its file once."""
    copy = tmp_path_factory.mktemp("how-tos") / "checkout"
    shutil.copytree(ROOT, copy, symlinks=True, ignore=LEFT_BEHIND)
    for _, name, lines in BLOCK.findall(PAGE.read_text()):
        signed = [(line[:1] or " ", line[1:] + "\n") for line in lines.splitlines()]
        before, after = ("".join(line for sign, line in signed if sign != left) for left in "+-")
        text = (copy / name).read_text()
        assert text.count(before) == 1, (name, before)
        (copy / name).write_text(text.replace(before, after))
    return copy


def run(copy, *words):
    # The copy has no extension modules; `.ci/run` insists on them, and that is for the checkout.
    known = {**os.environ, "PYTHONPATH": str(copy), "WIRECHECK_COMPILED": ""}
    line = [sys.executable, "-m", "wirecheck", *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True, check=False, env=known, cwd=copy)


def test_every_how_to_is_tried():
    assert [part.split("\n")[0] for part in PAGE.read_text().split("\n## ")[1:]] == [
        "A column of a result table", "A check", "A version of an API by hand", "An output format of a verdict"
    ]  # fmt: skip


def test_a_column_and_an_output_format(copy, tmp_path):
    example = "examples/zk39-inconsistent-id/capture.pcap.gz"
    done = run(copy, "replay", example, "--out", tmp_path / "out", "--format", "codes")
    assert (done.stdout.split(" ")[0], done.stderr, done.returncode) == ("TID002", "", 1)
    (part,) = (tmp_path / "out/clients").rglob("*.parquet")
    rows = pq.ParquetFile(part).read().to_pylist()
    assert [row["api_count"] for row in rows] == [len(row["apis"]) for row in rows]
    assert min(row["api_count"] for row in rows) > 0


def test_a_check(copy, tmp_path):
    done = run(copy, "replay", "--format", "json", capture(tmp_path))
    assert [one["code"] for one in json.loads(done.stdout)["findings"]] == ["FET999"]
    assert "Reset the offset of its group." in run(copy, "explain", "FET999").stdout


def rebalancing(folder):
    """A member that is not assigned anything for two minutes, beside a reader that goes on."""
    lab = Lab()
    for at in range(0, 120, 10):
        lab.metadata(at, [("orders", ID_1)])
    lab.fetches(range(1, 120, 2), ID_1, talk=lab.talk(client_id="other", host="10.0.0.98"))
    talk, who = lab.talk(client_id="member"), {"groupId": "g", "memberId": "m-1"}
    for number, at in enumerate(range(2, 116, 4), 1):
        talk.ask(at, "JoinGroup", 7, who, {"errorCode": 0, "generationId": number, "memberId": "m-1", "leader": "m-2"})
        talk.ask(at + 1, "SyncGroup", 5, who | {"generationId": number}, {"errorCode": 27})
    path = folder / "rebalancing.pcap"
    path.write_bytes(lab.pcap())
    return path


def test_a_check_that_says_what_its_clients_do_not_get_done(copy, tmp_path):
    done = run(copy, "replay", rebalancing(tmp_path))
    agreement, work, _, head, cause, impact, fix, *_ = (line.split() for line in done.stdout.splitlines())
    assert (agreement[3], work[1:4], done.returncode) == ("\u2713", ["\u2717", "1", "stalled"], 1)
    assert " ".join(head[:6]) == "\u2717 member (10.0.0.99) gets no partitions,"
    assert (cause[0], " ".join(impact)) == ("cause", "impact nothing was assigned \u00b7 1 of 3 clients")
    assert " ".join(fix) == "fix Find the member that joins again and again, and stop it."


@pytest.mark.parametrize("version", [5, 6])
def test_a_version_by_hand(copy, version):
    asked = bytes.fromhex(f"0010 000{version} 00000001 0001 61 00 01 01 {'03 6d65' if version == 6 else ''} 00")
    done = run(copy, "decode", "--hex", asked.hex(), "--format", "json")
    assert (done.stderr, done.returncode) == ("", 0)
    assert ('"owner": "me"' in done.stdout) is (version == 6)
