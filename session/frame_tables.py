"""Captures and folders of frames as tables.

What cannot be read is said in one line, once; the rest is read.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from wirecheck.session.inputs import arriving, files_in, places, readable
from wirecheck.session.results import NOT_WHOLE
from wirecheck.session.session import ArgumentError, InputError, Session

if TYPE_CHECKING:
    import pyarrow as pa


@contextmanager
def capture_frames(session: Session, names: Iterable[str], *, strict: bool) -> "Iterator[Iterator[pa.Table]]":
    """Frames of inputs by their names, while something reads them. Raises InputError at the end if a part of the input
    could not be read and `strict` is set.
    """
    broken: list[str] = []
    paths = places(names)

    def read() -> "Iterator[pa.Table]":
        with session.progress("reading"):
            yield from whole(session, tables(session, paths, broken), broken)

    yield read()
    if strict and broken:
        raise InputError(NOT_WHOLE)


def tables(session: Session, inputs: list[Path], broken: list[str]) -> "Iterator[pa.Table]":
    """Frames of all inputs: of captures as one, then of folders."""
    from wirecheck.capture.agent import offline_agent

    captures = [path for path in inputs if not path.is_dir()]
    if captures:
        with readable():
            yield from offline_agent.read_frames(captures, key_logs=session.key_logs)
    if folders := [path for path in inputs if path.is_dir()]:
        yield from written(session, files_in(folders), broken)


def growing(
    session: Session, inputs: list[Path], broken: list[str], wait: Callable[[], None], key_logs: list[Path]
) -> "Iterator[pa.Table]":
    """Frames of one capture, or of folders, as they are written; `wait` is called where nothing new is there. The key
    logs of a capture may come later than the capture.

    Ends where a capture does that is piped in. Raises ArgumentError where these cannot be followed.
    """
    folders = [path for path in inputs if path.is_dir()]
    if len(folders) < len(inputs) and len(inputs) > 1:
        raise ArgumentError("--follow reads one capture, or folders of frames")
    if folders:
        for files in arriving(folders, lambda why: session.say(f"{why}; waiting for some")):
            yield from written(session, files, broken, some=False)
            if not files:
                wait()
    from wirecheck.capture.agent import offline_agent

    with readable():
        yield from offline_agent.read_growing(inputs[0], wait, key_logs=key_logs, say=session.say)


def written(session: Session, files: list[Path], broken: list[str], *, some: bool = True) -> "Iterator[pa.Table]":
    """Frames as agents wrote them, of several agents side by side: what they all saw is one.

    A file that is none of frames is named, skipped, and added to the broken ones. Raises InputError where no other is
    there, and `some` must be.
    """
    wrong: list[str] = []
    begins = {path: beginning(path, wrong) for path in files}
    read = False
    for path in sorted((path for path in files if begins[path] is not None), key=lambda path: (begins[path], path)):
        if (table := opened(path, wrong)) is not None:
            left_out(session, wrong, broken)
            read = True
            yield table
    if not read and some:
        last = wrong.pop()
        left_out(session, wrong, broken)
        raise InputError(last)
    left_out(session, wrong, broken)


def opened(path: Path, wrong: list[str], columns: list[str] | None = None) -> "pa.Table | None":
    """A file of frames, or columns of it (agent and file_seq among them); None where it is not one, or not the one
    that its name says, and then `wrong` has the reason. Raises InputError where the disk fails.
    """
    from wirecheck.capture import frames, frames_file
    from wirecheck.streaming.steps.quarantine import check_name

    try:
        table = frames_file.read(path, columns)
        check_name(path.name, table)
    except frames.NotFramesError as error:
        wrong.append(f"{path}: {error}")
        return None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    return table


def beginning(path: Path, wrong: list[str]) -> int | None:
    """When a file of frames begins; marks at its edges count as frames do. None where it is none."""
    import pyarrow.compute as pc

    table = opened(path, wrong, ["ts_ns", "agent", "file_seq"])
    return None if table is None else int(pc.min(table["ts_ns"]).as_py() or 0)


def left_out(session: Session, wrong: list[str], broken: list[str]) -> None:
    """A line for each file that is not read, once."""
    broken += wrong
    for line in wrong:
        session.say(f"{line}; it is skipped")
    wrong.clear()


def whole(session: Session, tables: "Iterator[pa.Table]", broken: list[str]) -> "Iterator[pa.Table]":
    """The same tables; of a file that could not be read to its end, that is said, and added to the broken ones."""
    import pyarrow.compute as pc

    from wirecheck.capture import frames

    for table in tables:
        errors = table.select(["source", "reason"]).filter(pc.equal(table["kind"], frames.INPUT_ERROR))
        for source, reason in (row.values() for row in errors.to_pylist()):
            broken.append(source)
            session.say(f"{source}: {reason}")
        yield table
