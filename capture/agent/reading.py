"""Captures read in a process of their own, which writes frames files that this process receives as they appear.

The process ends with the block that started it, or with its parent.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from wirecheck.child_python import python_path
from wirecheck.wording import reason_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_SAY_S = 0.1
"""Seconds between two reports of progress."""


class ReadingError(Exception):
    """Why not all files came, in one line per input for a person."""


class Reading:
    """One such process, for as long as the block lasts."""

    def __init__(
        self,
        inputs: Sequence[Path],
        out: Path,
        cluster: str,
        *,
        roll_bytes: int,
        batch_bytes: int,
        keep_records: bool,
        key_logs: Sequence[Path] = (),
    ) -> None:
        options = [str(out), cluster, str(roll_bytes), str(batch_bytes), str(int(keep_records))]
        options.append(json.dumps([str(path) for path in key_logs]))
        self.out = out
        self._process = subprocess.Popen(  # noqa: S603 - this Python; -P: nothing out of the user's folder is imported
            [sys.executable, "-P", "-m", __name__, *options, *map(str, inputs)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": python_path()},
            close_fds=False,  # /dev/fd/63 is what a shell calls <(...): handles that may be inherited are
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process.wait()

    def waiting(self, most: int, on_progress: Callable[[int, int], None] | None = None) -> Iterator[list[Path]]:
        """Each file once it is whole, until all are there; those that are whole by now come together, at most so many.
        on_progress gets (bytes of the inputs read, in all).

        Raises ReadingError.
        """
        whole: list[Path] = []
        for line in self._lines():
            match json.loads(line or b"null"):
                case {"file": name}:
                    whole.append(Path(name))
                case {"read": [done, total]} if on_progress is not None:
                    on_progress(done, total)
                case {"wrong": text}:
                    raise ReadingError(text)
                case {"all": _}:
                    yield from [whole] if whole else ()
                    return
            if whole and (line is None or len(whole) == most):
                yield whole
                whole = []
        raise ReadingError(f"{self.out}: {_ended(self._process.wait())}")

    def _lines(self) -> Iterator[bytes | None]:
        """Lines as the process writes them; None before each wait for more."""
        assert self._process.stdout is not None
        handle, begun = self._process.stdout.fileno(), b""
        while True:
            if not select.select([handle], [], [], 0)[0]:
                yield None
            data = os.read(handle, 1 << 16)
            if not data:
                return
            *lines, begun = (begun + data).split(b"\n")
            yield from lines


def _ended(code: int) -> str:
    """Of a process that did not come to say why."""
    if code < 0:
        return f"the process that reads the captures was ended by {signal.Signals(-code).name}; is there enough memory?"
    return f"the process that reads the captures ended with code {code}"


def _say(**message: Any) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


class _Pace:
    """Reports the progress of reading every _SAY_S seconds."""

    def __init__(self) -> None:
        self._reported_s = 0.0

    def read(self, done: int, total: int) -> None:
        now_s = time.monotonic()
        if now_s - self._reported_s >= _SAY_S or done >= total:
            self._reported_s = now_s
            _say(read=[done, total])


def main(*arguments: str) -> None:
    """Read them all, and say so; or say what is wrong."""
    out, cluster, roll_bytes, batch_bytes, keep_records, key_logs, *inputs = arguments
    from wirecheck.capture.arrow_alone import process_is_ours

    process_is_ours()
    from wirecheck.capture.agent import offline_agent
    from wirecheck.capture.source.pcap import InputError
    from wirecheck.capture.tls.key_log import KeyLogError

    try:
        offline_agent.write_frames(
            [Path(name) for name in inputs],
            Path(out),
            cluster,
            roll_bytes=int(roll_bytes),
            batch_bytes=int(batch_bytes),
            on_progress=_Pace().read,
            on_file=lambda path: _say(file=str(path)),
            keep_records=keep_records == "1",
            key_logs=[Path(name) for name in json.loads(key_logs)],
        )
        _say(all=True)
    except BrokenPipeError:
        raise
    except (InputError, KeyLogError) as error:
        _say(wrong=str(error))
    except OSError as error:
        _say(wrong=f"{error.filename or out}: {reason_of(error)}; set TMPDIR to another folder")


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets the signal too, and ends this process
    with suppress(BrokenPipeError):
        main(*sys.argv[1:])
