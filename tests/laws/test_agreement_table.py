"""The verdict's mark of IDs and versions and the table of agreement never differ, whatever was captured."""

import pytest

from tests.depth import some
from tests.judge.lab import Lab
from tests.judge.test_checks import CASES
from wirecheck.session.agreement import agreement
from wirecheck.session.session import InputError, Session


@pytest.mark.parametrize(("code", "case"), some(sorted(CASES), each=12), ids=lambda part: part)
def test_the_mark_is_the_worst_of_the_table(code, case, tmp_path):
    """Of a capture of each case; where nothing was read, there is no table."""
    lab = Lab()
    CASES[code, case](lab)
    lab.talks = [talk for talk in lab.talks if talk.messages]
    try:
        (tmp_path / "case.pcap").write_bytes(lab.pcap())
        table, _ = agreement(Session(), [str(tmp_path / "case.pcap")], "lab")
    except (ValueError, IndexError, InputError):
        pytest.skip("no capture: its hosts are no addresses, or nothing of Kafka is in it")
    assert table.worst == table.mark.mark
    for _, row in (*table.topics, *table.apis):
        assert bool(row.codes) == (row.mark != "clear")
