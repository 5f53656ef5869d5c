"""The agent's third thread: complete files out of the spool, in order, until they are where the monitor reads them.

Knows: which file goes next, how long to wait after a failure, when to say that files wait. Refuses to know: what is in
them, and how they get there (destination.py).
Rule: one file after the other, by number, and each until it is there; then it leaves the spool. While the destination
cannot be reached the wait doubles up to MOST_WAIT_S, and is drawn at random below that, so that a fleet does not come
back in step (AWS Architecture Blog, "Exponential Backoff and Jitter": full jitter). Nothing here makes the agent wait.
"""

from __future__ import annotations

import random
import threading
import time
from typing import TYPE_CHECKING

from wirecheck.capture.agent.destination import ConflictError
from wirecheck.capture.agent.emptied_file import is_emptied

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from wirecheck.capture.agent.counts import Counts
    from wirecheck.capture.agent.destination import Destination
    from wirecheck.capture.agent.spool_folder import Folder

FIRST_WAIT_S, MOST_WAIT_S = 0.5, 60.0
LAST_CHANCE_S = 10.0
"""How long the end waits for files that are still here; the next start sends what is left."""
_LOOK_S = 1.0


class Shipper(threading.Thread):
    """Sends the files of one folder."""

    def __init__(self, folder: Folder, destination: Destination, counts: Counts, say: Callable[[str], None]) -> None:
        super().__init__(name="shipper", daemon=True)
        self._folder, self._destination, self._counts, self._say = folder, destination, counts, say
        self._news = threading.Event()
        self._ending = threading.Event()
        self._failures = 0  # in a row
        self._jitter = random.Random()  # noqa: S311 - no secret; its own: whoever seeds the module's stays undisturbed
        counts.backlog = folder.backlog

    def wake(self) -> None:
        """A file appeared."""
        self._news.set()

    def run(self) -> None:
        while True:
            self._news.clear()
            file = self._folder.claim()
            if file is not None:
                self._send(file)
            elif self._ending.is_set():
                return
            else:
                self._news.wait(_LOOK_S)

    def finish(self, wait_s: float = LAST_CHANCE_S) -> None:
        """No file comes any more; what cannot be sent by then stays for the next start, and is said."""
        self._ending.set()
        self._news.set()
        self.join(wait_s)
        if waiting := self._folder.backlog().files:
            files = f"{waiting:,} file{'' if waiting == 1 else 's'}"
            self._say(
                f"{files} not shipped yet; the next start with the same --out ships {'it' if waiting == 1 else 'them'}"
            )

    def _send(self, file: Path) -> None:
        try:
            sent_bytes = self._destination.put(file)
        except ConflictError as error:
            if not is_emptied(file):  # else it got there before it was emptied here, and nobody heard
                self._folder.release()
                self._failed(error)
                return
            sent_bytes = 0
        except OSError as error:
            self._folder.release()
            self._failed(error)
            return
        self._folder.shipped(file)
        self._counts.shipped_files += 1
        self._counts.shipped_bytes += sent_bytes
        if self._failures:
            self._say(f"shipping to {self._destination.name} again; {self._folder.backlog().files:,} files wait")
            self._failures = 0

    def _failed(self, error: OSError) -> None:
        self._counts.ship_failures += 1
        if not self._failures:
            words = str(error.strerror or error).splitlines()[0]
            self._say(f"cannot ship to {self._destination.name}: {words}; files wait in the spool")
        self._failures += 1
        until_s = time.monotonic() + self._jitter.uniform(0, longest_wait_s(self._failures))
        while (left_s := until_s - time.monotonic()) > 0 and not self._ending.is_set():
            self._ending.wait(left_s)
        if self._ending.is_set():
            time.sleep(FIRST_WAIT_S)


def longest_wait_s(failures: int) -> float:
    """After so many failures in a row."""
    return min(MOST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(failures - 1, 16))
