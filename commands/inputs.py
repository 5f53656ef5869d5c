"""The inputs that a user named: captures, folders of frames, or result tables.

What cannot be read ends in one line. What is in an input is not looked at here.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from wirecheck.commands import options
from wirecheck.commands.ending import Stop, denied
from wirecheck.commands.screen import progress, tell
from wirecheck.wording import reason_of

if TYPE_CHECKING:
    import pyarrow as pa

    from wirecheck.streaming.run.local_replay import LocalReplay
    from wirecheck.streaming.steps.settings import Settings
    from wirecheck.streaming.store.run_result import Result

ROLL_BYTES = 4 << 20
"""Of rows as they are judged: 50 MB of capture, a MB of Parquet. A worker holds a few files at a time."""
BATCH_BYTES = 12 << 20
"""Of payload read at a time. Twice as much is a tenth faster and holds 60 MB more."""


def place(name: str) -> Path:
    """An input by its name; - is what is piped in. Stop where nothing is."""
    if name != "-":
        return Path(name)
    if sys.stdin.isatty():
        raise Stop("-: nothing is piped in; name a file, or pipe a capture: tcpdump -w - ... | wirecheck ...")
    return Path("/dev/stdin")


def places(names: Iterable[str]) -> list[Path]:
    """Inputs by their names: for a tar archive, or a folder of captures, each capture in it. Stop if one of them does
    not exist, before anything is read or imported.

    Other errors are reported when an input is read.
    """
    named = [place(name) for name in names]
    missing = [path for path in named if not there(path)]
    if missing:
        raise Stop("\n".join(f"{path}: no such file" for path in missing))
    if closed := [path for path in named if path.is_dir() and not os.access(path, os.R_OK | os.X_OK)]:
        raise Stop("\n".join(map(denied, closed)))
    return [one for path in named for one in captures_in(path)]


def captures_in(path: Path) -> list[Path]:
    """The captures in a tar archive, or in a folder without files of frames or results; else the path alone."""
    if path.is_dir() and (holds_tables(path) or next(path.glob("*.parquet"), None) is not None):
        return [path]
    if not path.is_dir() and not may_be_archive(path):
        return [path]
    from wirecheck.capture.source.captures_in import captures_of

    return captures_of(path) or [path]


def there(path: Path) -> bool:
    """Raises PermissionError where nobody may say."""
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


def frames_of(inputs: Iterable[str], folder: Path, cluster: str, keep_records: bool) -> list[Path]:
    """Folders with the frames of all inputs: those given, and one that is made here of the pcaps given."""
    given = places(inputs)
    folders, pcaps = [path for path in given if path.is_dir()], [path for path in given if not path.is_dir()]
    if pcaps:
        write_frames(pcaps, folder, cluster, keep_records=keep_records, advice=OTHER_TMPDIR)
    return [*folders, *([folder] if pcaps else [])]


def write_frames(
    files: list[Path],
    out: Path,
    cluster: str,
    *,
    keep_records: bool,
    advice: str = "choose another --out",
    on_rows: "Callable[[pa.RecordBatch], None]" = lambda _: None,
) -> Any:
    """Captures into a folder of frames. `advice`: what to do if that folder takes no more; `on_rows` gets what is
    read before it is redacted.
    """
    with progress("reading") as advance:
        from wirecheck.capture.agent import offline_agent

        try:
            with readable():
                return offline_agent.write_frames(
                    files,
                    out,
                    cluster,
                    roll_bytes=ROLL_BYTES,
                    batch_bytes=BATCH_BYTES,
                    on_progress=advance,
                    on_rows=on_rows,
                    keep_records=keep_records,
                    key_logs=options.key_logs(),
                )
        except OSError as error:
            raise Stop(f"{error.filename or out}: {reason_of(error)}; {advice}") from error


OTHER_TMPDIR = "set TMPDIR to another folder"


@contextmanager
def readable() -> Iterator[None]:
    """Stop if an input is no capture, or a key log cannot be used."""
    from wirecheck.capture.source import pcap
    from wirecheck.capture.tls.key_log import KeyLogError

    try:
        yield
    except (pcap.InputError, KeyLogError) as error:
        raise Stop(str(error)) from error


def answers(inputs: tuple[str, ...], out: Path | None, cluster: str) -> "Result":
    """What a replay or a monitor has found out, from its tables; of pcaps and frames, found out here."""
    if out is not None and inputs:
        raise click.UsageError(NOT_BOTH)
    if (folder := out or result_folder(inputs)) is not None:
        return results_in(folder)
    if not inputs:
        raise click.UsageError("give pcaps, folders of frames, or the --out folder of a replay or a monitor")
    places(inputs)
    from wirecheck.streaming.steps.settings import Settings

    run, _, ports = checked(inputs, cluster, Settings(dialects=options.dialects()))
    found = run.result()
    tell_unread(found, busy(found, lambda: ports))
    return found


def latest(out: Path, tables: tuple[str, ...] = ()) -> "Result":
    """The result tables, or these, of the run that wrote last. Raises LookupError where there are none."""
    with progress("reading"):
        from wirecheck.streaming.store.run_result import IN_RESULT, Result

        return Result.latest(out, tables or IN_RESULT)


def tell_unread(found: "Result", busy_ports: str = "") -> None:
    """On stderr what an answer does not rest on. Stop where it rests on nothing."""
    from wirecheck.dashboards.verdict import not_read

    coverage = found.json()["coverage"]
    for line in coverage["input_errors"]:
        tell(f"wirecheck: {line}")
    if missing := not_read(coverage):
        tell(f"wirecheck: not included: {', '.join(missing)}")
    need_kafka(coverage, busy_ports)


def need_kafka(coverage: dict[str, Any], busy_ports: str = "") -> None:
    """Stop where there was none: then nothing is well, and nothing was looked at."""
    if not found_kafka(coverage):
        from wirecheck.dashboards.verdict import nothing_of_kafka

        raise Stop("; ".join(filter(None, (nothing_of_kafka(coverage), busy_ports))))


def found_kafka(coverage: dict[str, Any]) -> bool:
    return bool(coverage["messages"] or coverage["encrypted_connections"])


UNREAD = ("input_errors", "quarantined_files", "missing_files")
"""Measures of what was there and could not be read."""


def need_whole(coverage: dict[str, Any], *, strict: bool) -> None:
    """Stop where that was asked for and some of the input could not be read; the lines that say what went before."""
    if strict and any(coverage.get(measure) for measure in UNREAD):
        raise Stop(NOT_WHOLE)


NOT_WHOLE = "part of the input could not be read (--strict)"


def busy(found: "Result", busiest: Callable[[], list[tuple[int, int]]], ports: tuple[int, ...] = ()) -> str:
    """Where there is no Kafka traffic: on which ports there was any, and whether only some were looked at."""
    coverage = found.json()["coverage"]
    if found_kafka(coverage):
        return ""
    busy_ports = ", ".join(f"{port} ({count:,} frames)" for port, count in busiest())
    looked = f"only port {', '.join(map(str, ports))} was checked" if ports else ""
    if not busy_ports:
        packets = coverage["frames"] or coverage["details"].get("skipped_frames")
        return looked if packets else "the input has no packets"
    return "; ".join(filter(None, (looked, f"busy ports: {busy_ports}")))


def result_folder(inputs: tuple[str, ...]) -> Path | None:
    """The folder of a replay's or a monitor's results among the inputs. Stop if it is not the only one."""
    found = [path for path in map(Path, inputs) if holds_tables(path)]
    if found and len(inputs) > 1:
        raise click.UsageError(NOT_BOTH)
    return found[0] if found else None


NOT_BOTH = "give one folder of a replay or a monitor, or pcaps and folders of frames, not both"


def results_in(folder: Path, ports: Iterable[int] = (), tables: tuple[str, ...] = ()) -> "Result":
    """The result tables, or these, of the run that wrote last. Stop where there are none. Results are not kept by
    port, so a choice of ports is refused.
    """
    if ports:
        raise click.UsageError("--port takes pcaps and folders of frames")
    try:
        found = latest(folder, tables)
    except LookupError as error:
        raise Stop(str(error)) from error
    tell_unread(found)
    return found


def holds_tables(path: Path) -> bool:
    return path.is_dir() and any(next(path.glob(f"*/{sign}"), None) is not None for sign in ("run=*", "_delta_log"))


class Checked(NamedTuple):
    """What inputs say."""

    run: "LocalReplay"
    captured: tuple[int, int] | None
    """Capture time of the first and the last frame, in nanoseconds since 1970; None without frames."""
    ports: list[tuple[int, int]]
    """(port, frames) of the busiest ports where there was no Kafka."""


def checked(inputs: Iterable[str], cluster: str, settings: "Settings") -> Checked:
    """What pcaps and folders of frames say, without Spark; nothing of them is written, unless both are given."""
    names = list(inputs)
    given = places(names)
    if not any(path.is_dir() for path in given):
        return checked_captures(given, cluster, settings)
    with TemporaryDirectory(prefix="wirecheck-") as scratch:
        folders = frames_of(names, Path(scratch) / "frames", cluster, keep_records=False)
        return checked_files(files_in(folders), settings)


def checked_captures(pcaps: list[Path], cluster: str, settings: "Settings") -> Checked:
    """Captures from the packets to the judge. Stop if none can be read."""
    with progress("checking") as advance, readable():
        from wirecheck.capture.agent import offline_agent

        check = Check(settings)
        for table in offline_agent.read_frames(
            pcaps, cluster, offline_agent.OFFLINE, BATCH_BYTES, key_logs=options.key_logs(), on_progress=advance
        ):
            check.add(table)
        return check.checked()


def checked_with_frames(
    inputs: Iterable[str], folder: Path, cluster: str, settings: "Settings", *, keep_records: bool
) -> tuple[Checked, list[Path]]:
    """The same with the files of frames, which are written to a folder where the inputs are captures."""
    names = list(inputs)
    pcaps = places(names)
    if any(path.is_dir() for path in pcaps):
        files = files_in(frames_of(names, folder, cluster, keep_records))
        return checked_files(files, settings), files
    import pyarrow as pa

    check = Check(settings)
    write_frames(
        pcaps,
        folder,
        cluster,
        keep_records=keep_records,
        advice=OTHER_TMPDIR,
        on_rows=lambda rows: check.add(pa.Table.from_batches([rows])),
    )
    return check.checked(), files_in([folder])


class Check:
    """Rows of captures, checked as they are read."""

    def __init__(self, settings: "Settings") -> None:
        from wirecheck.capture.traffic import Seen
        from wirecheck.streaming.run.local_replay import LocalReplay

        self.run, self.seen = LocalReplay(settings), Seen()

    def add(self, table: "pa.Table") -> None:
        self.seen.add(table, with_ports=not self.run.has_messages)
        self.run.add(table)

    def checked(self) -> Checked:
        """Nothing more comes."""
        self.run.finish()
        return Checked(self.run, self.seen.ends, [] if self.run.has_messages else self.seen.ports.busiest())


def checked_files(files: list[Path], settings: "Settings") -> Checked:
    """Files of frames that are all there."""
    from wirecheck.capture.traffic import busiest, ends

    run = judged_files(files, settings)
    return Checked(run, ends(files), [] if run.has_messages else busiest(files))


def files_in(folders: list[Path]) -> list[Path]:
    """Files of frames. Stop where there are none."""
    from wirecheck.streaming.steps.frames_folder import FramesError, frames_files

    try:
        return frames_files(folders)
    except FramesError as error:
        if results := [folder for folder in folders if holds_tables(folder)]:
            raise Stop(f"{results[0]}: {NOT_RESULTS}") from error
        raise Stop(str(error)) from error


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


def judged_files(files: list[Path], settings: "Settings") -> "LocalReplay":
    """Files of frames that are all there."""
    with progress("checking") as advance:
        from wirecheck.streaming.run.local_replay import batches_of, of_files

        def advancing() -> Iterator[list[Path]]:
            done = 0
            for batch in batches_of(files):
                yield batch
                done += len(batch)
                advance(done, len(files))

        run = of_files(files, settings)
        run.judge_all(advancing())
    return run


def judged_frames(files: list[Path]) -> "Result":
    from wirecheck.streaming.steps.settings import Settings

    return judged_files(files, Settings(dialects=options.dialects())).result()
