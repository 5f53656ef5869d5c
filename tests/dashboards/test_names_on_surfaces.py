"""Who is hurt is named on every surface, and the commands of a card run as printed: of a capture with two stubborn
clients. What the cards of all captures print is run in tests/scenarios/test_captures.py.
"""

from pathlib import Path

from tools import names_on_surfaces

ROOT = Path(__file__).resolve().parents[2]


def test_every_surface_names_who_is_hurt(tmp_path, capsys):
    (tmp_path / "zk39-stubborn-client").symlink_to(ROOT / "tests/scenarios/captures/zk39-stubborn-client")
    assert names_on_surfaces.main([tmp_path]) == 0
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[0].removeprefix("| ") for row in rows] == ["zk39-stubborn-client"]
    assert [row[1] for row in rows] == ["stubborn-session and stubborn-sessionless"]


def test_a_surface_that_lacks_a_name_is_an_error(tmp_path, monkeypatch):
    (tmp_path / "zk39-stubborn-client").symlink_to(ROOT / "tests/scenarios/captures/zk39-stubborn-client")
    monkeypatch.setattr(names_on_surfaces, "works", lambda *_: True)
    monkeypatch.setattr(names_on_surfaces, "info_clients", lambda _: ["stubborn-session"])
    assert names_on_surfaces.main([tmp_path]) == 1
