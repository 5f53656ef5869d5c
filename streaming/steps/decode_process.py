"""The decode step in a second process, so that a long replay uses a second core. Rows come back in order.

The step is stateless, so where a row is decoded changes nothing. If the process ends early, this one decodes the rest.
"""

import gc
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from wirecheck.child_python import python_path
from wirecheck.streaming.steps.decode_step import decode_row
from wirecheck.streaming.steps.settings import Settings
from wirecheck.streaming.steps.tagged import Tagged

Begun = tuple[Tagged, Future[Tagged]]


class DecodeProcess:
    """One such process, until `close`."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._process = subprocess.Popen(  # noqa: S603 - this Python; -P: nothing out of the user's folder is imported
            [sys.executable, "-P", "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": python_path()},
        )
        assert self._process.stdout is not None
        self._answers = self._process.stdout
        self._thread = ThreadPoolExecutor(1)  # it waits for the process, while this thread follows the next frames
        self._thread.submit(self._sent, settings)

    def begin(self, rows: Iterable[Tagged]) -> list[Begun]:
        return [(row, self._thread.submit(self._decoded, row)) for row in rows]

    def end(self, begun: list[Begun]) -> list[Tagged]:
        """The rows decoded, in their order. What the process has not begun is decoded here, the last row first."""
        backwards = [decode_row(row, self.settings) if it.cancel() else it.result() for row, it in reversed(begun)]
        return backwards[::-1]

    def close(self) -> None:
        """Rows that are not decoded yet are cancelled."""
        self._process.kill()
        self._thread.shutdown(cancel_futures=True)
        self._process.communicate()

    def _decoded(self, row: Tagged) -> Tagged:
        try:
            self._sent(row)
            answer: Tagged = pickle.load(self._answers)  # noqa: S301 - what that process wrote
        except (OSError, EOFError, pickle.UnpicklingError):  # ended from outside, for want of memory perhaps
            return decode_row(row, self.settings)
        return answer

    def _sent(self, value: Settings | Tagged) -> None:
        assert self._process.stdin is not None
        pickle.dump(value, self._process.stdin, pickle.HIGHEST_PROTOCOL)
        self._process.stdin.flush()


def main() -> None:
    """Settings in, then rows, each answered by its decoded row."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, and the end of its pipe is the end
    given, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr
    settings: Settings = pickle.load(given)  # noqa: S301 - what the parent wrote
    gc.freeze()
    while True:
        try:
            row: Tagged = pickle.load(given)  # noqa: S301
        except EOFError:
            return
        pickle.dump(decode_row(row, settings), answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()


if __name__ == "__main__":
    main()
