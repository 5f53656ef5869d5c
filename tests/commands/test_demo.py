"""`wirecheck demo`: a capture, its result and its page, out of an installation alone."""

import pytest
from click.testing import CliRunner

from wirecheck import cli
from wirecheck.commands import demo


def test_the_example_is_checked_and_its_page_written(tmp_path):
    out = tmp_path / "new" / "folder"
    result = CliRunner().invoke(cli.main, ["demo", "--out", str(out), "-q"])
    assert result.exit_code == 0, "a demonstration succeeds, though the example has a fault"
    assert "TID002" in result.stdout
    assert f"Next: wirecheck decode {out / 'capture.pcap.gz'} --error" in result.stdout
    page = (out / "report.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "shipments" in page
    again = CliRunner().invoke(cli.main, ["replay", str(out / "capture.pcap.gz"), "-q"])
    assert again.exit_code == 1


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_place_that_cannot_be_written_is_one_line(tmp_path, place):
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(cli.main, ["demo", "--out", str(tmp_path / place)])
    assert result.exit_code == 2
    assert result.stderr.startswith("wirecheck: ")
    assert "choose another --out" in result.stderr


def test_an_installation_without_the_example_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "EXAMPLE", tmp_path / "missing")
    result = CliRunner().invoke(cli.main, ["demo", "--out", str(tmp_path / "out")])
    assert (result.exit_code, "install wirecheck again" in result.stderr) == (2, True)
