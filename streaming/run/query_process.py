"""A replay's query in a process of its own, with Spark, started while captures are read.

It can be killed at any moment with Java and all that Java started: it has its own process group, and ends itself when
its parent has gone. Its output is in `WORK/spark.log`. Only a Java that writes its class archive (`class_archive.py`)
ends by itself.
"""

import json
import math
import os
import pickle
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from queue import Queue
from subprocess import PIPE, Popen, TimeoutExpired
from threading import Event, Thread
from typing import IO, TYPE_CHECKING, Any, Self

from wirecheck.child_python import python_path
from wirecheck.processors import is_busy
from wirecheck.streaming.steps.settings import Settings

if TYPE_CHECKING:
    from wirecheck.streaming.store.run_result import Result

Progress = Callable[[int, int], None]
PARTITIONS = 1
"""Of the stateful steps: following, decoding and Java are three processes on two cores already, and each further
partition would take the memory of two Pythons.
"""
ARCHIVED_S = 120
"""Java takes a few seconds to write the archive, on a busy machine more; then it is given up."""


LOOK_S = 5.0
"""How often it is looked at whether the machine is still too busy, once patience is over."""


class QueryError(Exception):
    """Why there is no result, in one line for a person."""


class QueryProcess:
    """One such process, for as long as the block lasts."""

    def __init__(self, work: Path, settings: Settings) -> None:
        work.mkdir(parents=True, exist_ok=True)  # PySpark's own temporary folders lie there, too, and go with it
        with (work / "spark.log").open("ab") as log:
            self._process = Popen(  # noqa: S603 - this Python; -P: nothing out of the user's folder is imported
                [sys.executable, "-P", "-m", __name__],
                stdin=PIPE, stdout=PIPE, stderr=None if settings.verbose else log,
                env={**os.environ, "PYTHONPATH": python_path(), "TMPDIR": str(work)}, process_group=0,
            )  # fmt: skip
        self._tell((work, settings))
        self._first = Event()
        """Set with the first batch, or where none comes."""
        self._given_up = False
        self.archiving = False
        """Whether Java writes an archive of its classes, now that there is a result."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with suppress(BrokenPipeError):
                stream.close()
        self._process.wait()

    def judge(self, files: list[Path], out: Path, on_progress: Progress, *, patience_s: float = math.inf) -> "Result":
        """All of these, to their end. Raises QueryError; on a busy machine also where no batch is done by then."""
        self._tell((files, out))
        Thread(target=self._end_if_busy, args=(patience_s,), daemon=True).start()
        try:
            return self._listen(out, on_progress)
        finally:
            self._first.set()

    def _end_if_busy(self, patience_s: float) -> None:
        if patience_s == math.inf or self._first.wait(patience_s):
            return
        while not is_busy():
            if self._first.wait(LOOK_S):
                return
        self._given_up = True
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _listen(self, out: Path, on_progress: Progress) -> "Result":
        from wirecheck.streaming.store.run_result import IN_RESULT, Result

        assert self._process.stdout is not None
        for line in self._process.stdout:
            match json.loads(line):
                case {"judged": [done, total]}:
                    if done:
                        self._first.set()
                    on_progress(done, total)
                case {"run": run, "archiving": archiving}:
                    self.archiving = archiving
                    return Result.read(out, run, IN_RESULT)
                case {"wrong": text}:
                    raise QueryError(text)
        code = self._process.wait()
        if self._given_up:
            raise QueryError("this machine was too busy for Spark to check anything in time")
        by = f"by {signal.Signals(-code).name}; is there enough memory?" if code < 0 else f"with code {code}"
        raise QueryError(f"the query failed: its process ended {by}")

    def finish(self) -> None:
        """Wait until the archive is written."""
        with suppress(TimeoutExpired):
            self._process.wait(ARCHIVED_S)

    def _tell(self, what: Any) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended, and `judge` reports how
            pickle.dump(what, self._process.stdin)
            self._process.stdin.flush()


def own_stdout() -> IO[str]:
    """The stream for this process's messages. All else that writes to stdout, Java included, goes to stderr."""
    own = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return own


def listen(asked: Queue[Any]) -> None:
    """Pass on what is to be judged, and kill the process group when the parent has ended: nothing else would."""
    with suppress(EOFError):
        asked.put(pickle.load(sys.stdin.buffer))  # noqa: S301 - from `QueryProcess`
        sys.stdin.buffer.read()
    os.killpg(0, signal.SIGKILL)


def main() -> None:
    out_stream = own_stdout()

    def say(**message: Any) -> None:
        out_stream.write(json.dumps(message) + "\n")
        out_stream.flush()

    work, settings = pickle.load(sys.stdin.buffer)  # noqa: S301 - from `QueryProcess`
    asked: Queue[Any] = Queue()
    Thread(target=listen, args=(asked,), daemon=True).start()
    from wirecheck.streaming.spark.java import JavaMissing
    from wirecheck.streaming.spark.session import RUNNING, SparkDidNotStart, open_session
    from wirecheck.streaming.spark.tuning import Session

    Thread(target=import_module, args=("wirecheck.streaming.run.replay",)).start()  # half a second, while Java starts
    try:
        spark = open_session(Session(work / "spark", partitions=PARTITIONS, verbose=settings.verbose, archiving=True))
    except (JavaMissing, SparkDidNotStart) as failure:
        say(wrong=str(failure))
        return
    from wirecheck.streaming.run import replay

    files, out = asked.get()
    try:
        found = replay.judge(
            spark, files, settings, work=work, out=out, on_progress=lambda done, total: say(judged=[done, total])
        )
    except replay.ReplayError as wrong:
        say(wrong=str(wrong))
        return
    say(run=found.run, archiving=RUNNING.archive is not None)
    if RUNNING.archive:
        RUNNING.archive.write()
        os.killpg(0, signal.SIGKILL)  # `listen` still reads


if __name__ == "__main__":
    main()
