"""Findings of real captures: for each some connections are found that give the same finding id, judged alone."""

import pytest

from tests.scenarios.roads import NAMES, Scenario, frames
from wirecheck.capture import minimal_subset
from wirecheck.commands.evidence import Search
from wirecheck.commands.inputs import judged_frames


@pytest.mark.parametrize("name", NAMES)
def test_the_evidence_of_every_kind_of_finding_gives_it_again(name, tmp_path, monkeypatch):
    """One finding per check; `make evidence` does all of them, and makes each as small as it can be."""
    monkeypatch.setattr(minimal_subset, "TRIES", 0)
    files = frames([Scenario(name).pcap], tmp_path / "frames")
    found = {row["code"]: row for row in judged_frames(files).rows["findings"]}
    for code, finding in found.items():
        written = tmp_path / f"{code}.pcapng"
        assert Search(finding, files, tmp_path / "try", keep_records=False).proven(written) > (0, 0)
        assert written.is_file()
