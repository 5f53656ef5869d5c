"""Who is hurt is named on every surface, and the commands of a card run as printed: of both examples and a capture
with two stubborn clients.
"""

from pathlib import Path

from tools import names_on_surfaces

ROOT = Path(__file__).resolve().parents[2]


def test_every_surface_names_who_is_hurt(tmp_path, capsys):
    for path in (ROOT / "examples/kraft4-stale-broker", ROOT / "tests/scenarios/captures/zk39-stubborn-client"):
        (tmp_path / path.name).symlink_to(path)
    assert names_on_surfaces.main([tmp_path]) == 0
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[0].removeprefix("| ") for row in rows] == ["kraft4-stale-broker", "zk39-stubborn-client"]
    assert [row[1] for row in rows] == ["p-lost and c-lost", "stubborn-session and stubborn-sessionless"]


def test_a_surface_that_lacks_a_name_is_an_error(tmp_path, monkeypatch):
    (tmp_path / "kraft4-stale-broker").symlink_to(ROOT / "examples/kraft4-stale-broker")
    monkeypatch.setattr(names_on_surfaces, "works", lambda *_: True)
    monkeypatch.setattr(names_on_surfaces, "info_clients", lambda _: ["p-lost"])
    assert names_on_surfaces.main([tmp_path]) == 1
