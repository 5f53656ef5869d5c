"""Where a command writes pages and tables: whole or not at all, and readable by its user only.

Problems with a place are reported before the work. A name that is a link is replaced, and never followed.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from wirecheck.commands.ending import Stop
from wirecheck.wording import reason_of

OURS_ALONE = 0o077
"""What nobody else may do with what is written: files are 0600, folders 0700."""
STAGE = ".replay-"
"""How the folder begins in which tables are written before they take the place of earlier ones."""


@contextmanager
def for_its_user_alone() -> Iterator[None]:
    """Whatever is written meanwhile, by this process and by Java and its Pythons, which inherit it."""
    before = os.umask(OURS_ALONE)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def report_at(place: Path | None, inputs: Iterable[str], option: str = "--report") -> Iterator[Callable[[str], None]]:
    """Give what writes the page; Stop before the work where it cannot be written, or would be over what is read."""
    if place is None:
        yield lambda _text: None
        return
    if any(place.resolve() == Path(path).resolve() for path in inputs):
        raise Stop(f"{place}: is read by this command; choose another {option}")
    if place.exists() and not place.is_file():
        raise Stop(f"{place}: is not a file; choose another {option}")
    try:
        handle, name = tempfile.mkstemp(prefix=f".{place.name}.", suffix=".tmp", dir=place.parent)  # 0600
    except OSError as error:
        raise Stop(f"{place}: {error.strerror}; choose another {option}") from error
    os.close(handle)
    hidden = Path(name)

    def write(text: str) -> None:
        try:
            hidden.write_text(text, "utf-8", "backslashreplace")  # a path has bytes that are not UTF-8
            hidden.replace(place)
        except OSError as error:
            raise Stop(f"{place}: {error.strerror}; choose another {option}") from error

    try:
        yield write
    finally:
        hidden.unlink(missing_ok=True)


def need_place(place: Path, inputs: Iterable[str], option: str) -> None:
    """Stop before the work where a file cannot be written, or would be over what is read. A pipe or a device may be
    written to.
    """
    if not place.exists() or place.is_file() or place.is_dir():
        with report_at(place, inputs, option):
            pass


@contextmanager
def tables_at(out: Path | None, otherwise: Path) -> Iterator[Path]:
    """Give the folder to write tables to; at the end they are in `out`, instead of those of an earlier replay.

    Stop where `out` cannot be written, or holds anything else. Without one they are written `otherwise`.
    """
    if out is None:
        yield otherwise
        return
    from wirecheck.streaming.store.result_tables import TABLES

    made = [path for path in (out, *out.absolute().parents) if not path.exists()]
    try:
        try:
            out.mkdir(parents=True, exist_ok=True)
            others = sorted(e.name for e in out.iterdir() if e.name not in TABLES and not e.name.startswith(STAGE))
            if others:
                raise Stop(f"{out}: holds {others[0]}, which is not of an earlier replay; choose another --out")
            for left in out.glob(f"{STAGE}*"):  # by one that was killed
                shutil.rmtree(left)
            stage = Path(tempfile.mkdtemp(prefix=STAGE, dir=out))
        except OSError as error:
            raise Stop(f"{error.filename or out}: {error.strerror}; choose another --out") from error
        try:
            yield stage
            exchange(stage, out)
        finally:
            shutil.rmtree(stage, ignore_errors=True)
    finally:
        with suppress(OSError):  # what holds tables stays
            for path in made:
                path.rmdir()


@contextmanager
def writable(out: Path) -> Iterator[None]:
    """Stop where tables cannot be written below it."""
    try:
        yield
    except OSError as error:
        raise Stop(f"{out}: {reason_of(error)}; choose another --out") from error


def exchange(stage: Path, out: Path) -> None:
    """New tables for old ones. Those go with the stage."""
    new = list(stage.iterdir())
    old = stage / "earlier"
    old.mkdir()
    for entry in [entry for entry in out.iterdir() if entry.name != stage.name]:
        entry.rename(old / entry.name)
    for entry in new:
        entry.rename(out / entry.name)
