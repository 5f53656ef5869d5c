"""Frames files that cannot be read: set aside and named in the tables.

Such a file keeps its number, so that the agent's later files are followed at once. The name decides which agent and
number a file has; rows that belong to another one are not read.
"""

from collections.abc import Iterator

import pyarrow as pa
from pyarrow import fs

from wirecheck.capture import frames, frames_file
from wirecheck.capture.frames import NotFramesError
from wirecheck.capture.frames_file import FileMetadata
from wirecheck.capture.frames_file_name import base_name, whose
from wirecheck.streaming.store.storage import at

UNKNOWN_LABEL = "unknown"
"""The label of a file if neither it nor any other file of the folder states one."""


def check_name(path: str, table: pa.Table) -> None:
    """Whether the file's name has the agent and number of its rows. Raises NotFramesError.

    A file of another name would take that agent's place: its frames, or its number.
    """
    agent, number = str(table["agent"][0].as_py()), int(table["file_seq"][0].as_py())
    if whose(path) != (agent, number):
        raise NotFramesError(f"its name does not match its rows, which are file {number} of agent {agent!r}")


def marks(path: str, reason: str) -> tuple[frames.Mark, ...]:
    """The marks in place of the rows of a file that is set aside."""
    source = base_name(path)
    reasons = (
        frames.Mark(frames.INPUT_ERROR, 0, source, 1, reason),
        frames.Mark(frames.QUARANTINED, 0, source, 1, reason),
    )
    return reasons if whose(path) else (*reasons, frames.Mark(frames.ENDED, 0))


def label_of(path: str) -> str:
    """The label a file of frames carries; of one that cannot be read, the nearest readable one's: of the same
    agent, else of any beside it.
    """
    near = (label for neighbour in neighbours(path) if (label := label_in(neighbour)))
    return label_in(path) or next(near, UNKNOWN_LABEL)


def label_in(path: str) -> str | None:
    try:
        return metadata_of(path).cluster
    except (OSError, ValueError):
        return None


def metadata_of(path: str) -> FileMetadata:
    """The metadata of a frames file on any file system. Raises NotFramesError, OSError and ValueError."""
    return metadata_at(*at(path))


def metadata_at(system: fs.FileSystem, inside: str) -> FileMetadata:
    """The same of a path in a file system."""
    if not system.get_file_info(inside).is_file:  # opening a FIFO waits for its writer
        raise NotFramesError("not a regular file")
    with system.open_input_file(inside) as file:
        return frames_file.of_itself(file)


def path_of(info: fs.FileInfo) -> str:
    """Empty where it is not UTF-8: Arrow cannot say it."""
    try:
        return str(info.path)
    except UnicodeDecodeError:
        return ""


def neighbours(path: str) -> Iterator[str]:
    """Other files of the folder: the same agent's first, the nearest number first; at most a few."""
    system, inside = at(path)
    prefix = path[: len(path) - len(inside)] if path.endswith(inside) else ""
    folder = fs.FileSelector(inside.rpartition("/")[0], allow_not_found=True)
    others = [path_of(info) for info in system.get_file_info(folder) if info.is_file]
    agent, seq = whose(path) or ("", 0)

    def distance(other: str) -> tuple[bool, int, str]:
        theirs, number = whose(other) or ("", 0)
        return theirs != agent, abs(number - seq), other

    frames_files = (other for other in others if other != inside and whose(other))
    yield from (prefix + other for other in sorted(frames_files, key=distance)[:20])
