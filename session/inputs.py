"""The inputs of a command or a call: captures, folders of frames, or result tables.

What does not exist is an InputError before anything is read or imported. What is in an input is not looked at here.
"""

import os
import pwd
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from wirecheck.session.session import ArgumentError, InputError

if TYPE_CHECKING:
    from wirecheck.story.expectations import Expectation


URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def place(name: str) -> Path:
    """An input by its name; - is what is piped in, and of an object store it is a copy. Raises InputError where nothing
    is, and for a URL.
    """
    if scheme := URL.match(name):
        from wirecheck.session.fetched import SCHEMES, fetched

        if scheme[1].lower() in SCHEMES:
            return fetched(name)
        raise InputError(f"{name}: a URL: download it and name the file")
    if name != "-":
        return Path(name)
    if sys.stdin.isatty():
        raise InputError("-: nothing is piped in; name a file, or pipe a capture: tcpdump -w - ... | wirecheck ...")
    return Path("/dev/stdin")


def places(names: Iterable[str]) -> list[Path]:
    """Inputs by their names: for a tar archive, or a folder of captures, each capture in it. Raises InputError if one
    of them does not exist, before anything is read or imported.

    Other errors are reported when an input is read.
    """
    named = [place(name) for name in names]
    missing = [path for path in named if not there(path)]
    if missing:
        raise InputError("\n".join(f"{path}: no such file" for path in missing))
    if closed := [path for path in named if path.is_dir() and not os.access(path, os.R_OK | os.X_OK)]:
        raise InputError("\n".join(map(denied, closed)))
    return [one for path in named for one in captures_in(path)]


def captures_in(path: Path) -> list[Path]:
    """The captures in a tar archive, or in a folder without files of frames or results; else the path alone. Raises
    InputError for an archive without any.
    """
    if path.is_dir() and (holds_tables(path) or next(path.glob("*.parquet"), None) is not None):
        return [path]
    if not path.is_dir() and not may_be_archive(path):
        return [path]
    from wirecheck.capture.source.captures_in import captures_of, is_archive

    found = captures_of(path)
    if not found and is_archive(path):
        raise InputError(f"{path}: the archive holds no capture")
    return found or [path]


def there(path: Path) -> bool:
    """Raises PermissionError where a folder above may not be looked into."""
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    except NotADirectoryError:
        return any(may_be_archive(parent) and parent.is_file() for parent in path.parents)
    return True


def may_be_archive(path: Path) -> bool:
    """By its name: .tar, .tgz and so on."""
    return ".t" in path.name.lower()


def denied(path: object) -> str:
    return f"{path}: permission denied to user {user_name()}"


def user_name() -> str:
    """Of who runs this; a container may have none but a number."""
    with suppress(KeyError):
        return pwd.getpwuid(os.geteuid()).pw_name
    return str(os.geteuid())


@contextmanager
def readable() -> Iterator[None]:
    """Raises InputError if an input is no capture, or a key log cannot be used."""
    from wirecheck.capture.source import pcap
    from wirecheck.capture.tls.key_log import KeyLogError

    try:
        yield
    except (pcap.InputError, KeyLogError) as error:
        raise InputError(str(error)) from error


def expectations(path: str | os.PathLike[str] | None) -> "tuple[Expectation, ...]":
    """The lines of a file of what is expected; none of no file."""
    if path is None:
        return ()
    from wirecheck.story import expectations

    try:
        return expectations.read(Path(path))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {error}") from None


# --- folders of frames


def files_in(folders: list[Path]) -> list[Path]:
    """Files of frames. Raises InputError where there are none."""
    from wirecheck.streaming.steps.frames_folder import FramesError, frames_files

    try:
        return frames_files(folders)
    except FramesError as error:
        if results := [folder for folder in folders if holds_tables(folder)]:
            raise InputError(f"{results[0]}: {NOT_RESULTS}") from error
        raise InputError(str(error)) from error


NOT_RESULTS = "has results of a replay or a monitor; this command reads pcaps and folders of frames"


def arriving(folders: list[Path], say: Callable[[str], None]) -> Iterator[list[Path]]:
    """Files of frames that are there, then those that come; an empty list where nothing is new. `say` is called with
    why there is none at the beginning.
    """
    from wirecheck.streaming.steps.frames_folder import FramesError, frames_files

    seen: set[Path] | None = None
    while True:
        try:
            there = frames_files(folders)
        except FramesError as error:
            there = []
            if seen is None:
                say(str(error))
        seen = seen or set()
        fresh = [file for file in there if file not in seen]
        seen = set(there) or seen
        yield fresh


# --- folders of results


def holds_tables(path: Path) -> bool:
    return path.is_dir() and any(next(path.glob(f"*/{sign}"), None) is not None for sign in ("run=*", "_delta_log"))


def result_folder(inputs: tuple[str, ...]) -> Path | None:
    """The folder of a replay's or a monitor's results among the inputs. Raises ArgumentError if it is not the only
    one.
    """
    found = [path for path in map(Path, inputs) if holds_tables(path)]
    if found and len(inputs) > 1:
        raise ArgumentError(NOT_BOTH)
    return found[0] if found else None


NOT_BOTH = "give one folder of a replay or a monitor, or pcaps and folders of frames, not both"
