"""Hands out large messages without their records, for callers that do not need them.

The structure is walked over a few windows of bytes, so that records are never copied. Only messages that decode and
that cannot carry the metadata log are shortened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

from wirecheck.decode.interpret.interpreter import LEFT_OUT, OK, Interpreter
from wirecheck.decode.interpret.kept_bytes import one_message

if TYPE_CHECKING:
    from wirecheck.decode.connection.stream.chunks import Chunk
    from wirecheck.decode.connection.waiting import Message
    from wirecheck.decode.interpret.instruction import Instruction

LARGE: Final = 4096  # smaller messages are cheaper to copy than to walk
FIRST_BYTES: Final = 320  # of the windows
LAST_BYTES: Final = 64
MORE_BYTES: Final = 256
MOST_WINDOWS: Final = 64
MOST_FIELDS: Final = 1024  # of records in a message


@final
class WithoutRecords:
    def __init__(
        self, interpreter: Interpreter, programs: dict[tuple[int, int, int], Instruction], log_names: list[bytes]
    ) -> None:
        """`interpreter`: keeps records fields only; `programs`: by side, key and version, how a message that can hold
        records is read; `log_names`: byte strings that occur only in messages with the metadata log.
        """
        self.interpreter: Interpreter = interpreter
        self.programs: dict[tuple[int, int, int], Instruction] = programs
        self.log_names: list[bytes] = log_names
        self.kept: bytes = b""
        """Of the message that was found last: its bytes, and the spans (offset, length) that are left out."""
        self.spans: list[tuple[int, int]] = []

    def find(self, message: Message) -> bool:
        """Find the message, all of whose bytes we have, without its records; False: it is handed out whole."""
        size = message.size
        if size <= LARGE:
            return False
        program = self.programs.get((message.side, message.key, message.version))
        if program is None:
            return False
        windows: list[tuple[int, int]] = [(0, FIRST_BYTES), (size - LAST_BYTES, size)]
        while len(windows) <= MOST_WINDOWS:
            self.kept = b"".join(_windows(message.chunks, windows))
            self.spans = [(windows[k][1], windows[k + 1][0] - windows[k][1]) for k in range(len(windows) - 1)]
            status = self._walk(program)
            if self.interpreter.met > MOST_FIELDS:
                return False
            if status == OK:
                return self._all_in_records() and not self._is_log()
            if status != LEFT_OUT:
                return False
            _open(windows, self.interpreter.problem_at, size)
        return False

    def _walk(self, program: Instruction) -> i64:
        offsets: vec[i64] = vec[i64]()
        lengths: vec[i64] = vec[i64]()
        for offset, length in self.spans:
            offsets, lengths = append(offsets, offset), append(lengths, length)
        return self.interpreter.walk_alone(program, one_message(self.kept, offsets, lengths))

    def _all_in_records(self) -> bool:
        tokens = self.interpreter.tokens
        within: i64 = 0
        for i in range(tokens.used):
            if tokens.value[i] < 0 < tokens.length[i]:
                within += 1
        return within >= i64(len(self.spans))

    def _is_log(self) -> bool:
        for name in self.log_names:  # noqa: SIM110 - any() would be a generator
            if name in self.kept:
                return True
        return False


def _open(windows: list[tuple[int, int]], where: i64, size: i64) -> None:
    """One window more, from this place on; windows that touch become one."""
    k = 0
    while k < len(windows) and windows[k][1] < where:
        k += 1
    end = min(where + MORE_BYTES, size)
    if windows[k][0] <= where:  # within a window, or at its end: that one grows
        windows[k] = (windows[k][0], max(windows[k][1], end))
    else:
        windows.insert(k, (where, end))
    if k + 1 < len(windows) and windows[k + 1][0] <= windows[k][1]:
        # it is the last one: a walk stands behind all that was opened for it before
        windows[k : k + 2] = [(windows[k][0], max(windows[k][1], windows[k + 1][1]))]


def _windows(chunk: Chunk | None, windows: list[tuple[int, int]]) -> list[bytes]:
    """The bytes of these windows of a message, whose chunks all hold bytes."""
    parts: list[bytes] = []
    k = 0
    begin: i64 = 0 if chunk is None else chunk.begin
    while chunk is not None and k < len(windows):
        at, end = chunk.begin - begin, chunk.end - begin
        while k < len(windows) and windows[k][0] < end:
            first, last = max(windows[k][0], at), min(windows[k][1], end)
            parts.append(chunk.data[chunk.start + first - at : chunk.start + last - at])
            if windows[k][1] > end:
                break
            k += 1
        chunk = chunk.next
    return parts
