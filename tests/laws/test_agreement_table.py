"""The verdict's mark of IDs and versions and the table of agreement never differ, whatever was captured."""

from pathlib import Path

import pytest

from tests.depth import some
from tests.judge.lab import Lab
from tests.judge.test_checks import CASES
from wirecheck.session.agreement import agreement
from wirecheck.session.session import InputError, Session
from wirecheck.story.agreement import WORST, mark_of

CAPTURES = sorted((Path(__file__).parents[1] / "scenarios/captures").glob("*/capture.pcap*"), reverse=True)


@pytest.mark.parametrize(("code", "case"), some(sorted(CASES), each=12), ids=lambda part: part)
def test_the_mark_is_the_worst_of_the_table(code, case, tmp_path):
    """Of a capture of each case; where nothing was read, there is no table."""
    lab = Lab()
    CASES[code, case](lab)
    lab.talks = [talk for talk in lab.talks if talk.messages]
    try:
        (tmp_path / "case.pcap").write_bytes(lab.pcap())
        found = agreement(Session(), (str(tmp_path / "case.pcap"),), "lab")
    except (ValueError, IndexError, InputError):
        pytest.skip("no capture: its hosts are no addresses, or nothing of Kafka is in it")
    agrees(*found)


@pytest.mark.parametrize("capture", some(CAPTURES, each=6), ids=lambda path: path.parent.name)
def test_so_it_is_of_real_captures(capture):
    dialects = ("kip516-draft",) if "draft" in capture.parent.name else ()
    table, coverage = agreement(Session(dialects=dialects), (str(capture),), "lab")
    agrees(table, coverage)
    assert table.topics


def agrees(table, coverage):
    """What is not known to disagree, where most was not decoded, is not known to agree."""
    rows = [row.mark for _, row in (*table.topics, *table.apis)]
    worst = min([*rows, *map(mark_of, table.others)], key=WORST.index, default="clear")
    is_seen = coverage.decoded_messages * 2 >= coverage.messages
    assert table.mark.mark == ("visibility" if worst == "clear" and not is_seen else worst)
    for _, row in (*table.topics, *table.apis):
        assert bool(row.codes) == (row.mark != "clear")
