"""Makes the class archive that Spark starts faster with: by one replay of an empty capture.

Knows: that Java writes down, as it ends, which classes it needed. Where the archive lies is
`streaming/spark/class_archive.py`'s affair.
Rule: it is never needed. `python -m wirecheck.streaming.run.make_class_archive` makes it (some 30 s, 180 MB in the
user's cache folder), unless it is there.
"""

import sys
import tempfile
from pathlib import Path

from wirecheck.streaming.run.replay import judge
from wirecheck.streaming.spark.class_archive import archive_of
from wirecheck.streaming.spark.java import JavaMissing, find_java
from wirecheck.streaming.spark.pipeline import Job
from wirecheck.streaming.spark.session import RUNNING, Session, open_session
from wirecheck.streaming.steps.settings import Settings

PATIENCE_S = 180


def make(archive: Path, work: Path) -> bool:
    """Run the whole query once and have Java write down, as it ends, the classes it needed."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    beside = archive.with_name(f".{archive.name}.tmp")
    spark = open_session(Session(work / "spark", jvm=f"-XX:ArchiveClassesAtExit={beside}"))
    empty_capture(work / "frames")
    judge(spark, Job(str(work / "frames"), work / "out", work / "checkpoint"), Settings())
    spark.stop()
    if RUNNING.java is not None and RUNNING.java.stdin is not None:
        RUNNING.java.stdin.close()  # tells Java to end, and that is when it writes
        RUNNING.java.wait(PATIENCE_S)
    return beside.exists() and bool(beside.replace(archive))


def empty_capture(folder: Path) -> None:
    """An agent that saw nothing: its marks are enough to make every step run."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from wirecheck.capture import frames

    marks = [frames.Mark(kind, 1) for kind in (frames.STARTED, frames.ENDED, frames.PROGRESS)]
    rows = frames.with_file_seq(pa.Table.from_batches([frames.mark_rows(marks, frames.Stamp("empty", "empty"))]), 1)
    folder.mkdir()
    pq.write_table(rows, folder / "empty-0000000001.parquet")


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="wirecheck-") as work:
        try:
            archive = archive_of(find_java(Path(work)))
        except JavaMissing as missing:
            print(missing, file=sys.stderr)  # noqa: T201
            return 1
        if archive.exists() or make(archive, Path(work)):
            return 0
    print("Java made no archive; Spark starts without", file=sys.stderr)  # noqa: T201
    return 1


if __name__ == "__main__":
    sys.exit(main())
