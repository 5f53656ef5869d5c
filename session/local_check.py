"""Captures and folders of frames to what the local engine finds in them; and captures to folders of frames."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from wirecheck.session.inputs import files_in, places, readable
from wirecheck.session.session import InputError, Session
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
OTHER_TMPDIR = "set TMPDIR to another folder"


class Checked(NamedTuple):
    """What inputs say."""

    run: "LocalReplay"
    captured: tuple[int, int] | None
    """Capture time of the first and the last frame, in nanoseconds since 1970; None without frames."""
    ports: list[tuple[int, int]]
    """(port, frames) of the busiest ports where there was no Kafka."""


def checked(session: Session, inputs: Iterable[str], cluster: str, settings: "Settings") -> Checked:
    """What pcaps and folders of frames say, without Spark; nothing of them is written, unless both are given."""
    names = list(inputs)
    given = places(names)
    if not any(path.is_dir() for path in given):
        return checked_captures(session, given, cluster, settings)
    with TemporaryDirectory(prefix="wirecheck-") as scratch:
        folders = frames_of(session, names, Path(scratch) / "frames", cluster, keep_records=False)
        return checked_files(session, files_in(folders), settings)


def checked_captures(session: Session, pcaps: list[Path], cluster: str, settings: "Settings") -> Checked:
    """Captures from the packets to the judge. Raises InputError if none can be read."""
    with session.progress("reading") as advance, readable():
        from wirecheck.capture.agent import offline_agent

        check = Check(settings)
        for table in offline_agent.read_frames(
            pcaps, cluster, offline_agent.OFFLINE, BATCH_BYTES, key_logs=session.key_logs, on_progress=advance
        ):
            check.add(table)
    return check.checked(session)


def checked_with_frames(
    session: Session, inputs: Iterable[str], folder: Path, cluster: str, settings: "Settings", *, keep_records: bool
) -> tuple[Checked, list[Path]]:
    """The same with the files of frames, which are written to a folder where the inputs are captures."""
    names = list(inputs)
    pcaps = places(names)
    if any(path.is_dir() for path in pcaps):
        files = files_in(frames_of(session, names, folder, cluster, keep_records=keep_records))
        return checked_files(session, files, settings), files
    import pyarrow as pa

    check = Check(settings)
    write_frames(
        session,
        pcaps,
        folder,
        cluster,
        keep_records=keep_records,
        advice=OTHER_TMPDIR,
        on_rows=lambda rows: check.add(pa.Table.from_batches([rows])),
    )
    return check.checked(session), files_in([folder])


class Check:
    """Rows of captures, checked as they are read."""

    def __init__(self, settings: "Settings") -> None:
        from wirecheck.capture.traffic import Seen
        from wirecheck.streaming.run.local_replay import LocalReplay

        self.run, self.seen = LocalReplay(settings), Seen()

    def add(self, table: "pa.Table") -> None:
        self.seen.add(table, with_ports=not self.run.messages)
        self.run.add(table)

    def checked(self, session: Session) -> Checked:
        """Nothing more comes."""
        with session.progress("judging"):
            self.run.finish()
        return Checked(self.run, self.seen.ends, [] if self.run.messages else self.seen.ports.busiest())


def checked_files(session: Session, files: list[Path], settings: "Settings") -> Checked:
    """Files of frames that are all there."""
    from wirecheck.capture.traffic import busiest, ends

    run = judged_files(session, files, settings)
    return Checked(run, ends(files), [] if run.messages else busiest(files))


def judged_files(session: Session, files: list[Path], settings: "Settings") -> "LocalReplay":
    """Files of frames that are all there."""
    with session.progress("reading") as advance:
        from wirecheck.streaming.run.local_replay import batches_of, of_files

        def advancing() -> Iterator[list[Path]]:
            done = 0
            for batch in batches_of(files):
                yield batch
                done += len(batch)
                advance(done, len(files))

        run = of_files(files, settings)
        run.judge_all(advancing())
    with session.progress("judging"):
        run.finish()
    return run


def judged_frames(session: Session, files: list[Path]) -> "Result":
    from wirecheck.streaming.steps.settings import Settings

    return judged_files(session, files, Settings(dialects=session.dialects)).result()


# --- captures to folders of frames


def frames_of(session: Session, inputs: Iterable[str], folder: Path, cluster: str, *, keep_records: bool) -> list[Path]:
    """Folders with the frames of all inputs: those given, and one that is made here of the pcaps given."""
    given = places(inputs)
    folders, pcaps = [path for path in given if path.is_dir()], [path for path in given if not path.is_dir()]
    if pcaps:
        write_frames(session, pcaps, folder, cluster, keep_records=keep_records, advice=OTHER_TMPDIR)
    return [*folders, *([folder] if pcaps else [])]


def write_frames(
    session: Session,
    files: list[Path],
    out: Path,
    cluster: str,
    *,
    keep_records: bool,
    batch_headers: bool = False,
    advice: str = "choose another --out",
    on_rows: "Callable[[pa.RecordBatch], None]" = lambda _: None,
) -> Any:
    """Captures into a folder of frames. `advice`: what to do if that folder takes no more; `on_rows` gets what is
    read before it is redacted.
    """
    with session.progress("reading") as advance:
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
                    batch_headers=batch_headers,
                    key_logs=session.key_logs,
                )
        except OSError as error:
            raise InputError(f"{error.filename or out}: {reason_of(error)}; {advice}") from error
