"""A second process for large captures: it reads the same files, follows a share of the connections, and hands over what
they claim. The first one follows the others, and judges.

Both read all packets, because fragments, tunnels and a clock that steps back concern all of them; that is a tenth of
the work. Of what a connection says nothing depends on another one before the judge, which takes rows in any cut.
Python's own messages of the process are nowhere: what is wrong with a capture, the first one says.
"""

import os
import pickle
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from queue import SimpleQueue
from subprocess import DEVNULL, PIPE, Popen
from threading import Thread
from typing import IO, TYPE_CHECKING, NamedTuple, Self

from wirecheck.child_python import python_path
from wirecheck.processors import processors

if TYPE_CHECKING:
    from wirecheck.streaming.run.local_replay import Label, Share
    from wirecheck.streaming.steps.settings import Settings
    from wirecheck.streaming.steps.tagged import Tagged

LEAST_BYTES = 64 << 20
"""Of captures. Below, a process starts for longer than it helps, ..."""
LEAST_MESSAGES = 500_000
"""... and also with fewer messages, however large: records are only passed over."""
OWN_PARTS = 27
"""Of 64: the first process judges, too."""


class SecondProcessEnded(Exception):  # noqa: N818 - reads as what happened
    """It ended before the capture did: the memory was too small, or it was ended from outside."""


class Work(NamedTuple):
    """What the second process is to do."""

    captures: Sequence[Path]
    cluster: str
    batch_bytes: int
    settings: "Settings"
    share: "Share"


class Step(NamedTuple):
    """What came of rows that were read together; and one more of each label, in the end."""

    label: str
    rows: "list[Tagged]"
    messages: int
    """That were followed, by now."""


def is_worth_it(captures: Sequence[Path], cluster: str, batch_bytes: int, settings: "Settings") -> bool:
    """Whether there are two processors, and enough to do, as the first rows show. A pipe can be read only once."""
    if processors() < 2 or not all(path.is_file() for path in captures):
        return False
    if sum(path.stat().st_size for path in captures) < LEAST_BYTES:
        return False
    return expected_messages(captures, cluster, batch_bytes, settings) >= LEAST_MESSAGES


def expected_messages(captures: Sequence[Path], cluster: str, batch_bytes: int, settings: "Settings") -> int:
    from wirecheck.capture.agent import offline_agent
    from wirecheck.streaming.run.local_replay import ALONE, Following

    following, read = Following(settings, ALONE), [0, 0]

    def on_read(*done_and_all: int) -> None:
        read[:] = done_and_all

    for table in offline_agent.read_frames(captures, cluster, batch_bytes=batch_bytes, on_progress=on_read):
        following.add(table)
        if read[0]:
            break
    return following.messages * read[1] // max(read[0], 1)


class SecondProcess:
    """For as long as the block lasts."""

    def __init__(self, work: Work) -> None:
        """Raises SecondProcessEnded where it cannot even begin."""
        try:
            self._process = Popen(  # noqa: S603 - this Python; -P: nothing out of the user's folder is imported
                [sys.executable, "-P", "-c", f"from {__name__} import main; main()"],
                stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env={**os.environ, "PYTHONPATH": python_path()},
            )  # fmt: skip
        except OSError as error:
            raise SecondProcessEnded from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError), self._process.stdin as stdin:  # `steps` says that it has ended
            pickle.dump(work, stdin)
        self._steps: SimpleQueue[Step | bool] = SimpleQueue()
        """Behind the last one, whether it was the last one of all."""
        Thread(target=self._read, args=(self._process.stdout,), daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def steps(self) -> Iterator[Step]:
        """As many as there are tables of rows, and the last ones. Raises SecondProcessEnded."""
        while not isinstance(step := self._steps.get(), bool):
            yield step
        if not step:
            raise SecondProcessEnded

    def _read(self, stdout: IO[bytes]) -> None:
        """As it comes: the process never waits for this one."""
        try:
            with stdout, suppress(EOFError, pickle.UnpicklingError):
                while True:
                    self._steps.put(pickle.load(stdout))  # noqa: S301 - from `main`
        finally:
            self._steps.put(False)


def steps_of(work: Work) -> Iterator[Step]:
    from wirecheck.capture.agent import offline_agent
    from wirecheck.streaming.run.local_replay import Following

    following = Following(work.settings, work.share)
    for table in offline_agent.read_frames(work.captures, work.cluster, offline_agent.OFFLINE, work.batch_bytes):
        yield step_of(following.add(table), following.messages)
    for label in following.labels.values():
        label.claim()
        yield step_of(label, following.messages)


def step_of(label: "Label", messages: int) -> Step:
    from wirecheck.streaming.steps.judge_step import closed

    return Step(label.label, [closed(label.label, row) for row in label.taken()], messages)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends this one
    work: Work = pickle.load(sys.stdin.buffer)  # noqa: S301 - from `SecondProcess`
    written: SimpleQueue[bytes] = SimpleQueue()
    writer = Thread(target=write, args=(written,))
    writer.start()
    for step in chain(steps_of(work), [True]):
        if not writer.is_alive():  # the first process has ended, however
            return
        written.put(pickle.dumps(step))
    written.put(b"")
    writer.join()


def write(steps: "SimpleQueue[bytes]") -> None:
    """As they are taken: compiled code of the first process lets its thread read when it wants something itself."""
    with suppress(BrokenPipeError):
        while step := steps.get():
            sys.stdout.buffer.write(step)
            sys.stdout.buffer.flush()
