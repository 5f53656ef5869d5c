"""The interpreter as it was under numba: for decode/connection/without_records.py alone, until that is ported.

Knows the instruction set, the encodings of Kafka's primitives, what makes bytes malformed. Refuses to know any layout.
One row is `op, field, a, b, c, d`; what a to d mean stands at each op below. A token is one value met, in wire order:
  field   number of its slot (decode/layouts/form.py)
  row     running number, in its level, of the array element or message it stands in
  value   integer; or place in the data, of text, bytes, uuid, fixed-width array: `-1 - place` if not all was kept; or
          count of an array of structs; or 1 of a struct; or, of an element, the row of what encloses it
  length  bytes of text and bytes, count of a fixed-width array; -1 null; elements that begin here, rows from `row` on
A run of fixed-width fields, which nothing but their bytes' absence can spoil, is one token for all of them: `field` is
the number of slots and the number of the run, `value` its place, `length` how many rows have it, an element apart. The
same of elements that also have arrays of fixed width: a run of rows, one behind the other, which says where each ends.
Rules: a count or length is checked against what remains before anything is looped over or skipped; a message that fails
yields no tokens; left-out bytes may be skipped as content but never read as structure. Plain arrays and integers only:
the same code runs under numba and, with NUMBA_DISABLE_JIT=1, as Python. An unsigned index saves numba's test for one
counted from the end, and lets several bytes become one load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from wirecheck.decode.compiled import cached_njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from wirecheck.decode.interpret.instruction import Instruction

# -- statuses of a message ------------------------------------------------------------------------------------------
OK = 0
UNKNOWN_API, UNKNOWN_VERSION, LEFT_OUT, NO_REQUEST = 1, 2, 3, 4
TRUNCATED, BAD_LENGTH, BAD_VARINT, BAD_TEXT, UNEXPECTED_NULL, BAD_TAG, LEFTOVER_BYTES = 5, 6, 7, 8, 9, 10, 11
FULL, TOLERATED = 12, 13  # never seen outside: the token buffer is full; well but for the trailing bytes allowed

# -- instructions ---------------------------------------------------------------------------------------------------
INT8, INT16, UINT16, INT32, INT64, BOOL, UUID = 0, 1, 2, 3, 4, 5, 6  # a: bytes of it; float64 is INT64
TEXT, COMPACT_TEXT = 8, 9  # a: 1 nullable
BYTES, COMPACT_BYTES = 10, 11  # a: 1 nullable
FIXED, COMPACT_FIXED = 12, 13  # array of fixed width. a: 1 nullable, b: bytes of an element
ARRAY, COMPACT_ARRAY = 14, 15  # a: 1 nullable, b: least bytes of an element, d: row of its NEXT
NEXT = 16  # one element more, or the end of the array. c: level, d: row of the element's first field
STRUCT = 17  # begins a struct; nothing on the wire
NULLABLE_STRUCT = 18  # a presence byte. d: row behind the struct
TAGS = 19  # a tag section. d: row behind it; NEXT_TAG follows
NEXT_TAG = 20  # one tag more, or the end of the section. a: row of the first TAG or 0, c: level of unknown tags
TAG = 21  # a: number, -1 for any. b: size it must have, -1 for any. d: row of the next TAG or 0
TAG_END = 22  # end of a known tag's content
END = 23  # end of the message
MESSAGE = 24  # begin of the message. c: its level, d: how many levels it has
RUN = (
    25  # fixed-width fields in a row, taken as one token. a: bytes of them all, d: row behind them; they follow singly
)
BLOCK = 26  # NEXT of an array whose elements are one run, as many elements at once as have no tags.
#             a: number of the run's tokens, b: bytes of an element, c and d as of NEXT; op + 1 where elements have tags
TAGGED_BLOCK = 27
ROWS = 28  # NEXT of an array whose elements are fixed-width fields and arrays of such, as many at once as are plain.
#            a: number of the run's token, b: how many rows of SKIP follow, c and d as of NEXT
SKIP = (
    29  # nothing by itself. a: bytes to skip, then an array or the end. b: bytes of the array's count, c: of an element
)
#            of it; at the end b is 0, and c is 1 if a tag section follows, which has to be empty

OP, FIELD, A, B, C, D = 0, 1, 2, 3, 4, 5
DEEPEST = 24  # frames: arrays and known tags around one field; program.py refuses a layout that needs more
MOST_LEVELS = 64  # of one message; likewise
LARGEST = 0x7FFFFFFF  # Kafka's lengths are Java ints

# -- where `run` begins, and ended ----------------------------------------------------------------------------------
NEXT_MESSAGE, TOKENS = 0, 1


@cached_njit
def run(  # type: ignore[no-untyped-def]  # noqa: ANN201, PLR0917
    data, at, span_at, span_offset, span_length,  # the messages  # noqa: ANN001
    program, entry, second, spare,  # row each message begins at, another to try, trailing bytes allowed  # noqa: ANN001
    wanted, counters,  # fields to keep, rows used of each level  # noqa: ANN001
    field, row, value, length, token_at,  # tokens, and where each message's begin  # noqa: ANN001
    status, error_at, error_field, chosen, tolerated,  # per message  # noqa: ANN001
    done,  # NEXT_MESSAGE, TOKENS  # noqa: ANN001
):  # fmt: skip
    """Walks messages from done[NEXT_MESSAGE] on until all are done or the token buffer is full."""
    frames = np.zeros((DEEPEST, 5), np.int64)
    saved = np.zeros(MOST_LEVELS, np.int64)
    used = done[TOKENS]
    for message in range(done[NEXT_MESSAGE], len(entry)):
        token_at[message] = used
        for attempt in range(2):
            begin = entry[message] if attempt == 0 else second[message]
            if begin < 0:
                continue
            levels = program[begin, C], program[begin, C] + program[begin, D]
            for level in range(levels[0], levels[1]):
                saved[level - levels[0]] = counters[level]
            problem, used, where, culprit = walk(
                data, at[message], at[message + 1], span_offset, span_length, span_at[message], span_at[message + 1],
                program, begin, message, spare[message], wanted, counters, frames,
                field, row, value, length, token_at[message],
            )  # fmt: skip
            if problem in (OK, TOLERATED):
                status[message] = OK
                tolerated[message] = problem == TOLERATED
                chosen[message] = begin
                break
            used = token_at[message]
            for level in range(levels[0], levels[1]):
                counters[level] = saved[level - levels[0]]
            if problem == FULL:
                done[NEXT_MESSAGE] = message
                done[TOKENS] = used
                return
            if attempt == 0:  # what is wrong with the second reading is of no interest
                status[message] = problem
                error_at[message] = where
                error_field[message] = culprit
    token_at[len(entry)] = used
    done[NEXT_MESSAGE] = len(entry)
    done[TOKENS] = used


@cached_njit
def uvarint(data, at, limit):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Value and the place behind it; -1 if cut off, -2 if its fifth byte asks for a sixth (Kafka's ByteUtils)."""
    number = np.int64(0)
    shift = 0
    while at < limit:
        byte = np.int64(data[np.uint64(at)])
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7
        if shift == 35:
            return np.int64(-2), at
    return np.int64(-1), at


@cached_njit
def int16(data, at):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    return ((np.int64(data[np.uint64(at)]) << 8 | np.int64(data[np.uint64(at + 1)])) ^ 0x8000) - 0x8000


@cached_njit
def int32(data, at):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    return (
        (
            np.int64(data[np.uint64(at)]) << 24
            | np.int64(data[np.uint64(at + 1)]) << 16
            | np.int64(data[np.uint64(at + 2)]) << 8
            | np.int64(data[np.uint64(at + 3)])
        )
        ^ 0x80000000
    ) - 0x80000000


@cached_njit
def int64(data, at):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    return (
        np.int64(data[np.uint64(at)]) << 56
        | np.int64(data[np.uint64(at + 1)]) << 48
        | np.int64(data[np.uint64(at + 2)]) << 40
        | np.int64(data[np.uint64(at + 3)]) << 32
        | np.int64(data[np.uint64(at + 4)]) << 24
        | np.int64(data[np.uint64(at + 5)]) << 16
        | np.int64(data[np.uint64(at + 6)]) << 8
        | np.int64(data[np.uint64(at + 7)])
    )


@cached_njit
def is_text(data, at, end):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Whether the bytes are UTF-8 (RFC 3629: shortest form, no surrogates, up to U+10FFFF)."""
    while at < end:
        first = np.int64(data[at])
        at += 1
        if first < 0x80:
            continue
        if first < 0xC2 or first > 0xF4:
            return False
        more = 1 if first < 0xE0 else 2 if first < 0xF0 else 3
        if end - at < more:
            return False
        lowest = 0xA0 if first == 0xE0 else 0x90 if first == 0xF0 else 0x80
        highest = 0x9F if first == 0xED else 0x8F if first == 0xF4 else 0xBF
        for i in range(more):
            byte = np.int64(data[at + i])
            if byte < lowest or byte > highest:
                return False
            lowest, highest = 0x80, 0xBF
        at += more
    return True


@cached_njit
def plain_row(data, at, limit, program, row):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Behind the element that begins here; -1 if it is not all here, has tags, a null, or a count of several bytes."""
    here = np.uint64(row)
    while True:
        at += program[here, A]
        head = program[here, B]
        width = program[here, C]
        if limit - at < (head or width):
            return np.int64(-1)
        if head == 0:
            return np.int64(-1) if width and data[np.uint64(at)] != 0 else np.int64(at + width)
        count = np.int64(data[np.uint64(at)]) - 1 if head == 1 else int32(data, at)
        if count < 0 or (head == 1 and count > 126):
            return np.int64(-1)
        at += head + count * width
        here += np.uint64(1)


@cached_njit
def walk(  # type: ignore[no-untyped-def]  # noqa: ANN201, PLR0917
    data, start, end, span_offset, span_length, span, span_end,  # one message  # noqa: ANN001
    program, pc, message, spare, wanted, counters, frames,  # noqa: ANN001
    field, row, value, length, used,  # noqa: ANN001
):  # fmt: skip
    """Status, tokens used, and, if it failed, where on the wire and in which field."""
    while span < span_end and span_length[span] == 0:
        span += 1
    hidden = np.int64(0)  # left-out bytes still ahead
    for i in range(span, span_end):
        hidden += span_length[i]
    wire = end - start + hidden
    passed = np.int64(0)  # left-out bytes behind
    hole = np.int64(0)  # what remains of the span at `limit`
    limit = end  # kept bytes are contiguous up to here
    if span < span_end:
        limit = min(end, start + span_offset[span])
        hole = span_length[span]
    at = start
    depth = 0
    here = np.int64(0)  # row of the element or message being read
    problem = OK

    while True:
        now = np.uint64(pc)
        op = program[now, OP]
        number = np.int64(0)
        extent = np.int64(0)
        what = program[now, FIELD]

        if op <= UUID:
            width = program[now, A]
            if limit - at < width:
                problem = TRUNCATED if end - at + hidden < width else LEFT_OUT
                break
            if op == INT32:
                number = int32(data, at)
            elif op == INT64:
                number = int64(data, at)
            elif op == INT16:
                number = int16(data, at)
            elif op == UUID:
                number = at
            elif op == INT8:
                number = np.int64(data[at])
                number -= (number & 0x80) << 1
            elif op == BOOL:
                number = np.int64(1 if data[at] else 0)
            else:  # UINT16
                number = int16(data, at) & 0xFFFF
            at += width
            pc += 1

        elif op <= COMPACT_ARRAY:
            behind = at
            if op & 1:
                if at < limit and data[np.uint64(at)] < 128:  # nearly all of them
                    count, behind = np.int64(data[np.uint64(at)]), at + 1
                else:
                    count, behind = uvarint(data, at, limit)
                if count < 0:
                    problem = BAD_VARINT if count == -2 else TRUNCATED if hidden == 0 else LEFT_OUT
                    break
                if count > LARGEST:
                    problem = BAD_LENGTH
                    break
                count -= 1
            else:
                width = 2 if op == TEXT else 4
                if limit - at < width:
                    problem = TRUNCATED if end - at + hidden < width else LEFT_OUT
                    break
                count = int16(data, at) if op == TEXT else int32(data, at)
                behind += width
            if count < 0:
                if count < -1 or program[now, A] == 0:
                    problem = BAD_LENGTH if count < -1 else UNEXPECTED_NULL
                    break
                at = behind
                number = np.int64(-1)
                extent = np.int64(-1)
                pc = program[now, D] + 1 if op >= ARRAY else pc + 1
            else:
                least = 1 if op < FIXED else program[now, B]
                if count * least > end - behind + hidden:
                    problem = TRUNCATED
                    break
                at = behind
                extent = count
                if op >= ARRAY:
                    number = count
                    frames[depth, 0] = count
                    frames[depth, 1] = here
                    depth += 1
                    pc = program[now, D]
                else:
                    rest = count * least
                    number = at
                    if rest <= limit - at:
                        if op <= COMPACT_TEXT and not is_text(data, at, at + rest):
                            problem = BAD_TEXT
                            break
                        at += rest
                    else:  # content that was left out, wholly or in part
                        number = -1 - at
                        at, limit, span, hole, hidden, passed = skip(
                            rest, at, limit, start, end, span, span_end, span_offset, span_length, hole, hidden, passed
                        )
                    pc += 1

        elif op == NEXT:
            top = np.uint64(depth - 1)
            if frames[top, 0] == 0:
                depth -= 1
                here = frames[depth, 1]
                pc += 1
                continue
            frames[top, 0] -= 1
            number = frames[top, 1]
            extent = np.int64(1)
            here = counters[program[now, C]]
            counters[program[now, C]] += 1
            pc = program[now, D]

        elif op == RUN:
            if limit - at < program[now, A]:
                pc += 1  # field by field, to say which one fails
                continue
            number = np.int64(at)
            extent = np.int64(1)
            at += program[now, A]
            pc = program[now, D]

        elif op == SKIP:  # behind an array that is null
            pc += 1
            continue

        elif op >= BLOCK:
            top = np.uint64(depth - 1)
            left = frames[top, 0]
            if left == 0:
                depth -= 1
                here = frames[depth, 1]
                pc += 1 + (program[now, B] if op == ROWS else 0)
                continue
            begin = at
            if op == ROWS:
                whole = np.int64(0)
                behind = plain_row(data, at, limit, program, pc + 1)
                while behind >= 0:
                    at = behind
                    whole += 1
                    behind = plain_row(data, at, limit, program, pc + 1) if whole < left else -1
            else:
                stride = program[now, B]
                whole = np.int64(min(left, (limit - at) // stride))
                if op == TAGGED_BLOCK:
                    most = whole
                    whole = np.int64(0)
                    while whole < most and data[np.uint64(at + (whole + 1) * stride - 1)] == 0:
                        whole += 1
                at += whole * stride
            extent = max(np.int64(1), whole)
            number = frames[top, 1]
            here = counters[program[now, C]]
            counters[program[now, C]] += extent
            frames[top, 0] -= extent
            if whole == 0:  # one with tags, or cut off
                pc = program[now, D]
            else:
                if wanted[np.uint64(what)]:
                    if used == len(field):
                        problem = FULL
                        break
                    used = put(field, row, value, length, used, what, here, number, extent)
                what = program[now, A]
                number = np.int64(begin)

        elif op == TAGS:
            if at < limit and data[np.uint64(at)] == 0:  # nearly all of them
                at += 1
                pc = program[now, D]
                continue
            count, behind = uvarint(data, at, limit)
            if count < 0:
                problem = BAD_VARINT if count == -2 else TRUNCATED if hidden == 0 else LEFT_OUT
                break
            if count * 2 > end - behind + hidden:
                problem = TRUNCATED
                break
            at = behind
            pc += 1
            frames[depth, 0] = count
            frames[depth, 1] = -1  # the tag before
            frames[depth, 2] = pc
            frames[depth, 4] = 0
            depth += 1
            continue

        elif op == NEXT_TAG:
            top = np.uint64(depth - 1)
            if frames[top, 0] == 0:
                depth -= 1
                pc = program[now, D]
                continue
            frames[top, 0] -= 1
            tag, behind = uvarint(data, at, limit)
            if tag < 0:
                problem = BAD_VARINT if tag == -2 else TRUNCATED if hidden == 0 else LEFT_OUT
                break
            if tag <= frames[top, 1]:
                problem = BAD_TAG
                break
            extent, behind = uvarint(data, behind, limit)
            if extent < 0:
                problem = BAD_VARINT if extent == -2 else TRUNCATED if hidden == 0 else LEFT_OUT
                break
            if tag > LARGEST or extent > LARGEST:
                problem = BAD_LENGTH
                break
            if extent > end - behind + hidden:
                problem = TRUNCATED
                break
            at = behind
            frames[top, 1] = tag
            frames[top, 3] = end - at + hidden - extent  # bytes that must remain behind the tag
            known = program[now, A]
            while known > 0:
                if program[known, A] == tag:
                    break
                if program[known, A] < 0 and program[known, B] == extent and frames[top, 4] != known:
                    frames[top, 4] = known
                    break
                known = program[known, D]
            if known > 0:
                pc = known + 1
                continue
            if wanted[np.uint64(what)]:
                if used + 3 > len(field):
                    problem = FULL
                    break
                level = program[now, C]
                used = put(field, row, value, length, used, what, counters[level], here, 1)
                used = put(field, row, value, length, used, what + 1, counters[level], tag, 0)
                complete = extent <= limit - at
                used = put(
                    field, row, value, length, used, what + 2, counters[level], at if complete else -1 - at, extent
                )
                counters[level] += 1
            if extent <= limit - at:
                at += extent
            else:
                at, limit, span, hole, hidden, passed = skip(
                    extent, at, limit, start, end, span, span_end, span_offset, span_length, hole, hidden, passed
                )
            continue

        elif op == TAG_END:
            top = np.uint64(depth - 1)
            if end - at + hidden != frames[top, 3]:
                problem = BAD_TAG
                break
            pc = frames[top, 2]
            continue

        elif op == STRUCT:
            number = np.int64(1)
            pc += 1

        elif op == NULLABLE_STRUCT:
            if limit - at < 1:
                problem = TRUNCATED if hidden == 0 else LEFT_OUT
                break
            if data[at] < 0x80:  # any non-negative byte is "present" to Kafka's readers
                number = np.int64(1)
                pc += 1
            else:
                extent = np.int64(-1)
                pc = program[now, D]
            at += 1

        elif op == END:
            left = end - at + hidden
            if left == spare and spare > 0:
                problem = TOLERATED
            elif left > 0:
                problem = LEFTOVER_BYTES
            break

        else:  # MESSAGE
            here = counters[program[now, C]]
            counters[program[now, C]] += 1
            number = np.int64(message)
            extent = np.int64(1)
            pc += 1

        if wanted[np.uint64(what)]:
            if used == len(field):
                problem = FULL
                break
            used = put(field, row, value, length, used, what, here, number, extent)

    return problem, used, wire - (end - at + hidden), program[pc, FIELD]


@cached_njit
def put(field, row, value, length, used, what, here, number, extent):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201, PLR0917
    at = np.uint64(used)
    field[at] = what
    row[at] = here
    value[at] = number
    length[at] = extent
    return used + 1


@cached_njit
def skip(  # type: ignore[no-untyped-def]  # noqa: ANN201, PLR0917
    rest, at, limit, start, end, span, span_end, span_offset, span_length, hole, hidden, passed  # noqa: ANN001
):  # fmt: skip
    """Steps over `rest` bytes of content of which some were left out; there are that many."""
    while True:
        step = min(rest, limit - at)
        at += step
        rest -= step
        if rest == 0:
            return at, limit, span, hole, hidden, passed
        step = min(rest, hole)
        hole -= step
        hidden -= step
        passed += step
        rest -= step
        if hole == 0:
            span += 1
            while span < span_end and span_length[span] == 0:
                span += 1
            limit = end
            if span < span_end:
                limit = min(end, start + span_offset[span] - passed)
                hole = span_length[span]


def table(instructions: list[Instruction]) -> NDArray[np.int32]:
    """Programs as the rows that `walk` takes."""
    at = {now: row for row, now in enumerate(instructions)}
    rows = np.zeros((len(instructions), 6), np.int32)
    for row, now in enumerate(instructions):
        rows[row] = now.op, now.field, now.size, 0, now.level, at[now.target]
        if TEXT <= now.op <= COMPACT_ARRAY:
            rows[row, A], rows[row, B] = now.nullable, now.least
        elif now.op == NEXT_TAG:
            rows[row, A] = at[now.first_tag] if now.first_tag is not None else 0
        elif now.op == TAG:
            rows[row, A], rows[row, B] = now.tag, now.size
            rows[row, D] = at[now.next_tag] if now.next_tag is not None else 0
        elif now.op == MESSAGE:
            rows[row, D] = now.levels
        elif now.op in {BLOCK, TAGGED_BLOCK}:
            rows[row, A], rows[row, B] = now.run, now.size
        elif now.op == ROWS:
            rows[row, A], rows[row, B] = now.run, at[now.after] - row - 1
        elif now.op == SKIP:
            rows[row, A], rows[row, B], rows[row, C] = now.size, now.head, now.width
    return rows
