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
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from queue import Empty, Queue, SimpleQueue
from subprocess import PIPE, Popen, TimeoutExpired
from threading import Thread
from typing import IO, TYPE_CHECKING, Any, Self

from wirecheck.child_python import python_path
from wirecheck.processors import is_busy
from wirecheck.streaming.steps.settings import Settings

if TYPE_CHECKING:
    from wirecheck.streaming.store.run_result import Result

Progress = Callable[[int, int], None]
Row = dict[str, Any]
PARTITIONS = 1
"""Of the stateful steps: following, decoding and Java are three processes on two cores already, and each further
partition would take the memory of two Pythons.
"""
ARCHIVED_S = 300
"""Java takes a few seconds to write the archive. On a busy machine it takes more, and all is judged before."""


LOWEST_PRIORITY = 19
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
        self._messages: SimpleQueue[Row | None] = SimpleQueue()
        self.archiving = False
        """Whether Java writes an archive of its classes once it has judged, also after patience was over."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with suppress(BrokenPipeError):
                stream.close()
        self._process.wait()

    def judge(self, files: list[Path], out: Path, on_progress: Progress, *, patience_s: float = math.inf) -> "Result":
        """All of these, to their end. Raises QueryError; on a busy machine also where no batch is done by then."""
        from wirecheck.streaming.store.run_result import Result

        self._tell((files, out))
        Thread(target=self._listen, daemon=True).start()
        for message in self._until_the_end(patience_s):
            match message:
                case {"archiving": archiving}:
                    self.archiving = archiving
                case {"judged": [done, total]}:
                    on_progress(done, total)
                case {"run": run}:
                    return Result.read_whole(out, run)
                case {"wrong": text}:
                    raise QueryError(text)
        code = self._process.wait()
        by = f"by {signal.Signals(-code).name}; is there enough memory?" if code < 0 else f"with code {code}"
        raise QueryError(f"the query failed: its process ended {by}")

    def _listen(self) -> None:
        """What the process says, line by line; None at its end."""
        assert self._process.stdout is not None
        with suppress(ValueError):  # it was closed meanwhile
            for line in self._process.stdout:
                self._messages.put(json.loads(line))
        self._messages.put(None)

    def _until_the_end(self, patience_s: float) -> Iterator[Row]:
        """Until the process ends. Raises QueryError where patience is over without a batch, and the machine is busy."""
        wait_s: float | None = None if patience_s == math.inf else patience_s
        until_s = time.monotonic() + patience_s
        while True:
            try:
                message = self._messages.get(timeout=wait_s)
            except Empty:
                if not is_busy():
                    wait_s = LOOK_S
                    continue
                self._give_up()
                raise QueryError("this machine was too busy for Spark to check anything in time") from None
            if message is None:
                return
            if message.get("judged", (0,))[0]:
                wait_s = None
            elif wait_s is not None:
                wait_s = max(until_s - time.monotonic(), LOOK_S)
            yield message

    def _give_up(self) -> None:
        """A Java that writes its archive goes on behind all others: the next one starts faster then."""
        if not self.archiving:
            self.end()
            return
        with suppress(ProcessLookupError):
            os.setpriority(os.PRIO_PGRP, self._process.pid, LOWEST_PRIORITY)

    def end(self) -> None:
        """Kill it, and all that it started."""
        self.archiving = False
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def finish(self) -> None:
        """Wait until the archive is written, and until all is judged before."""
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
    session = Session(work / "spark", partitions=PARTITIONS, verbose=settings.verbose, archiving=True)
    try:
        spark = open_session(session, lambda archive: say(archiving=archive is not None))
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
    say(run=found.run)
    if RUNNING.archive:
        RUNNING.archive.write()
        os.killpg(0, signal.SIGKILL)  # `listen` still reads


if __name__ == "__main__":
    main()
