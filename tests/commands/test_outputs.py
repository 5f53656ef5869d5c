"""Tables of a replay take the place of those of an earlier one."""

import tempfile
from pathlib import Path

from wirecheck.commands.outputs import tables_at

MKDTEMP = tempfile.mkdtemp


def absolute(**options):
    """As of Python 3.12 on: the path is absolute, also where the folder was given relative to the current one."""
    return str(Path(MKDTEMP(**options)).absolute())


def test_a_relative_folder_gets_the_new_tables_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "mkdtemp", absolute)
    for text in ("earlier", "new"):
        with tables_at(Path("verdict"), tmp_path) as folder:
            (folder / "topics").mkdir()
            (folder / "topics" / "rows").write_text(text)
    assert [path.name for path in Path("verdict").iterdir()] == ["topics"]
    assert Path("verdict/topics/rows").read_text() == "new"
