"""The one interpreter: walks any message by its program.

    interpreter = Interpreter(kept_fields, levels)     # by field 1 if its tokens are kept; how many levels there are
    status = interpreter.walk(begin, one_message(data, offsets, lengths), 0, 0)
    interpreter.tokens.used, interpreter.problem_at    # what it met; or where it failed, as on the wire

A token is one value, in wire order:
    field   number of its slot (decode/layouts/form.py)
    row     running number, in its level, of the array element or message it stands in
    value   integer; or place in the data, of text, bytes, uuid, fixed-width array: `-1 - place` if not all was kept; or
            count of an array of structs; or 1 of a struct; or, of an element, the row of what encloses it
    length  bytes of text and bytes, count of a fixed-width array; -1 null; elements that begin here, rows from `row` on

A run of fixed-width fields is one token: `field` is the number of slots plus the number of the run, `value` its place,
`length` how many rows have it. A run may also have arrays of fixed width; then it says where each row ends. Counts and
lengths are checked against what remains before they are used. A message that fails leaves no tokens.
"""

from __future__ import annotations

from typing import Any, Final, final

from librt.strings import read_i16_be, read_i32_be, read_i64_be, read_i64_le
from librt.vecs import extend, vec
from mypy_extensions import i32, i64, u8

from wirecheck.decode.interpret import instruction as ops
from wirecheck.decode.interpret.instruction import Instruction
from wirecheck.decode.interpret.kept_bytes import Kept, Position

NO_ASCII: Final = 0x80808080808080  # the highest bit of each of seven bytes; of eight it would be a boxed integer


def uvarint(data: bytes, at: i64, limit: i64) -> tuple[i64, i64]:
    """Value and the place behind it; -1 if cut off, -2 if its fifth byte asks for a sixth (Kafka's ByteUtils)."""
    number: i64 = 0
    shift: i64 = 0
    while at < limit:
        byte: i64 = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7
        if shift == 35:
            return -2, at
    return -1, at


def is_text(data: bytes, at: i64, end: i64) -> bool:
    """Whether the bytes are UTF-8 (RFC 3629: shortest form, no surrogates, up to U+10FFFF)."""
    last = i64(len(data)) - 8  # from where on eight bytes cannot be read at once
    while at < end:
        if at <= last:
            word = read_i64_le(data, at)
            rest = end - at
            if rest < 7:
                word <<= 56 - 8 * rest  # what is behind the text falls off
            if word & NO_ASCII == 0:
                at += 7
                continue
        first: i64 = data[at]
        at += 1
        if first < 0x80:
            continue
        if first < 0xC2 or first > 0xF4:
            return False
        more: i64 = 1 if first < 0xE0 else 2 if first < 0xF0 else 3
        if end - at < more:
            return False
        lowest: i64 = 0xA0 if first == 0xE0 else 0x90 if first == 0xF0 else 0x80
        highest: i64 = 0x9F if first == 0xED else 0x8F if first == 0xF4 else 0xBF
        for i in range(more):
            byte: i64 = data[at + i]
            if byte < lowest or byte > highest:
                return False
            lowest, highest = 0x80, 0xBF
        at += more
    return True


def plain_row(data: bytes, at: i64, limit: i64, skip: Instruction) -> i64:
    """Behind the element that begins here; -1 if it is not all here, has tags, a null, or a count of several bytes."""
    while True:
        at += skip.size
        head = skip.head
        width = skip.width
        if head == 0:
            if limit - at < width or (width and data[at]):
                return -1
            return at + width
        if limit - at < head:
            return -1
        count: i64 = data[at]
        count -= 1
        if head != 1:
            count = i64(read_i32_be(data, at))
        elif count > 126:
            return -1
        if count < 0:
            return -1
        at += head + count * width
        skip = skip.next


# -- statuses of a message ------------------------------------------------------------------------------------------
OK: Final = 0
UNKNOWN_API: Final = 1
UNKNOWN_VERSION: Final = 2
LEFT_OUT: Final = 3
NO_REQUEST: Final = 4
TRUNCATED: Final = 6
BAD_LENGTH: Final = 7
BAD_VARINT: Final = 8
BAD_TEXT: Final = 9
UNEXPECTED_NULL: Final = 10
BAD_TAG: Final = 11
LEFTOVER_BYTES: Final = 12
TOLERATED: Final = 13  # never seen outside: well but for the trailing bytes allowed

DEEPEST: Final = 24  # frames: arrays and known tags around one field; a test holds that no program needs more
LARGEST: Final = 0x7FFFFFFF  # Kafka's lengths are Java ints
FIRST_TOKENS: Final = 4096  # initial capacity
MOST_AT_ONCE: Final = 3  # tokens of one step


@final
class Tokens:
    """What was met; of each column the first `used`."""

    def __init__(self) -> None:
        self.used: i64 = 0
        self.field: vec[i32] = vec[i32]()
        self.row: vec[i32] = vec[i32]()
        self.value: vec[i64] = vec[i64]()
        self.length: vec[i32] = vec[i32]()
        self.reserve(FIRST_TOKENS)

    def reserve(self, count: i64) -> None:
        """For so many, of which there are none yet."""
        self.used = 0
        self.field, self.row = vec[i32]([0] * count), vec[i32]([0] * count)
        self.value, self.length = vec[i64]([0] * count), vec[i32]([0] * count)

    def put(self, field: i64, row: i64, value: i64, length: i64) -> None:
        """Append a token. The capacity is sufficient."""
        at = self.used
        self.field[at], self.row[at], self.value[at], self.length[at] = i32(field), i32(row), value, i32(length)
        self.used = at + 1

    def grow(self) -> None:
        self.field, self.row = extend(self.field, self.field), extend(self.row, self.row)
        self.value, self.length = extend(self.value, self.value), extend(self.length, self.length)


@final
class Frame:
    """An array or tag section being read."""

    def __init__(self, outer: Frame | None, nothing: Instruction) -> None:
        self.left: i64 = 0
        """Elements or tags that follow."""
        self.seen: i64 = 0
        """Of a tag section, by bits, the known tags before."""
        self.row: i64 = 0
        """Of what encloses the array; of a tag section, the tag before."""
        self.rest: i64 = 0
        """Bytes that must remain behind the tag."""
        self.resume: Instruction = nothing
        self.known: Instruction = nothing
        self.outer: Frame = self if outer is None else outer
        self.inner: Frame = self


@final
class Interpreter:
    """Walks messages, one after the other; what it met in them gathers in its tokens."""

    def __init__(self, kept_fields: Any, levels: i64) -> None:
        self.kept_fields: vec[u8] = kept_fields
        """By field whether its tokens are kept."""
        self.rows: vec[i64] = vec[i64]([0] * levels)
        """By level how many there were."""
        self.rows_before: vec[i64] = vec[i64]([0] * levels)
        """Of the levels of the message being walked."""
        self.tokens = Tokens()
        self.met: i64 = 0
        """Tokens of the message walked last, were it read to its end or not."""
        self.problem_at: i64 = 0
        """How far the message walked last was read, as on the wire."""
        self.problem_field: i64 = 0
        self.as_brokers: i64 = 0
        """1: read what Kafka's readers read and its writers never write. That is text that is not UTF-8, tags in any
        order, unknown tags twice, any size of a known tag, any negative length for null, and bytes behind the end.
        """
        self.position = Position()
        nothing = Instruction(ops.END)
        self.outermost = Frame(None, nothing)
        frame = self.outermost
        for _ in range(DEEPEST):
            frame.inner = Frame(frame, nothing)
            frame = frame.inner

    def forget(self) -> None:
        """As if nothing had been read."""
        self.tokens.used = 0
        for level in range(i64(len(self.rows))):
            self.rows[level] = 0

    def walk_alone(self, begin: Instruction, kept: Kept) -> i64:
        """The status of the only message there is: nothing has been read before it but others of its kind alone."""
        self.tokens.used = 0
        for level in range(begin.levels):
            self.rows[begin.level + level] = 0
        return self.walk(begin, kept, 0, 0)

    def walk(self, begin: Instruction, kept: Kept, message: i64, spare: i64) -> i64:
        """The message's status. `spare`: trailing bytes that are allowed, TOLERATED then."""
        rows, before, used = self.rows, self.rows_before, self.tokens.used
        first, levels = begin.level, begin.levels
        for level in range(levels):
            before[level] = rows[first + level]
        problem = self.follow(begin, kept, message, spare)
        self.met = self.tokens.used - used
        if problem not in (OK, TOLERATED):
            self.tokens.used = used
            for level in range(levels):
                rows[first + level] = before[level]
        return problem

    def follow(self, now: Instruction, kept: Kept, message: i64, spare: i64) -> i64:
        """One instruction after the other: most of the time spent on bytes is spent in here."""
        position = self.position
        position.enter(kept, message)
        tokens = self.tokens
        data, kept_fields, rows = kept.data, self.kept_fields, self.rows
        fields, token_rows, values, lengths = tokens.field, tokens.row, tokens.value, tokens.length
        used, capacity = tokens.used, i64(len(fields))
        end, limit, hidden = position.end, position.limit, position.hidden
        wire = end - position.start + hidden
        at = position.at
        frame = self.outermost  # inner of it is what is entered next
        here: i64 = 0  # row of the element or message being read
        problem: i64 = OK
        while True:
            while used + MOST_AT_ONCE > capacity:
                tokens.grow()
                fields, token_rows, values, lengths = tokens.field, tokens.row, tokens.value, tokens.length
                capacity = i64(len(fields))
            op = now.op
            number: i64 = 0
            extent: i64 = 0
            what = now.field

            if op <= ops.UUID:
                width = now.size
                if limit - at < width:
                    problem = TRUNCATED if end - at + hidden < width else LEFT_OUT
                    break
                if op == ops.INT32:
                    number = i64(read_i32_be(data, at))
                elif op == ops.INT64:
                    number = read_i64_be(data, at)
                elif op == ops.INT16:
                    number = i64(read_i16_be(data, at))
                elif op == ops.UUID:
                    number = at
                elif op == ops.INT8:
                    number = data[at]
                    number -= (number & 0x80) << 1
                elif op == ops.BOOL:
                    number = 1 if data[at] else 0
                else:  # UINT16
                    number = i64(read_i16_be(data, at)) & 0xFFFF
                at += width
                now = now.next

            elif op <= ops.COMPACT_ARRAY:
                count: i64 = 0
                behind = at
                if op & 1:
                    if at < limit:
                        count = data[at]
                        behind = at + 1
                        if count >= 128:
                            count, behind = uvarint(data, at, limit)
                    else:
                        count = -1
                    if count < 0:
                        problem = BAD_VARINT if count == -2 else TRUNCATED if hidden == 0 else LEFT_OUT
                        break
                    if count > LARGEST:
                        if self.as_brokers == 0 or count == LARGEST + 1:  # of which Java's int less 1 is the largest
                            problem = BAD_LENGTH
                            break
                        count = -1  # a negative number in Java
                    count -= 1
                else:
                    width = 2 if op == ops.TEXT else 4
                    if limit - at < width:
                        problem = TRUNCATED if end - at + hidden < width else LEFT_OUT
                        break
                    count = i64(read_i16_be(data, at)) if op == ops.TEXT else i64(read_i32_be(data, at))
                    behind = at + width
                if count < 0:
                    if (count < -1 and self.as_brokers == 0) or not now.nullable:
                        problem = BAD_LENGTH if count < -1 else UNEXPECTED_NULL
                        break
                    at = behind
                    number = -1
                    extent = -1
                    now = now.after if op >= ops.ARRAY else now.next
                else:
                    rest = count * now.least
                    if rest > end - behind + hidden:
                        problem = TRUNCATED
                        break
                    at = behind
                    extent = count
                    if op >= ops.ARRAY:
                        number = count
                        frame = frame.inner
                        frame.left = count
                        frame.row = here
                        now = now.target
                    else:
                        number = at
                        if rest <= limit - at:
                            if op <= ops.COMPACT_TEXT and self.as_brokers == 0 and not is_text(data, at, at + rest):
                                problem = BAD_TEXT
                                break
                            at += rest
                        else:  # content that was left out, wholly or in part
                            number = -1 - at
                            position.skip(at, rest)
                            at, limit, hidden = position.at, position.limit, position.hidden
                        now = now.next

            elif op == ops.NEXT:
                if frame.left == 0:
                    here = frame.row
                    frame = frame.outer
                    now = now.after
                    continue
                frame.left -= 1
                number = frame.row
                extent = 1
                here = rows[now.level]
                rows[now.level] = here + 1
                now = now.target

            elif op == ops.RUN:
                if limit - at < now.size:
                    now = now.next  # field by field, to say which one fails
                    continue
                number = at
                extent = 1
                at += now.size
                now = now.target

            elif op >= ops.BLOCK:
                left = frame.left
                if left == 0:
                    here = frame.row
                    frame = frame.outer
                    now = now.after
                    continue
                begin = at
                whole: i64 = 0
                if op == ops.ROWS:
                    skips = now.next
                    behind = plain_row(data, at, limit, skips)
                    while behind >= 0:
                        at = behind
                        whole += 1
                        if whole == left:
                            break
                        behind = plain_row(data, at, limit, skips)
                else:
                    stride = now.size
                    whole = left if left * stride <= limit - at else (limit - at) // stride
                    if op == ops.TAGGED_BLOCK:
                        most = whole
                        whole = 0
                        tags = at + stride - 1
                        while whole < most and data[tags] == 0:
                            whole += 1
                            tags += stride
                    at += whole * stride
                extent = whole if whole > 0 else 1
                number = frame.row
                here = rows[now.level]
                rows[now.level] = here + extent
                frame.left = left - extent
                if whole == 0:  # one with tags, or cut off
                    now = now.target
                else:
                    if kept_fields[what]:
                        fields[used] = i32(what)
                        token_rows[used] = i32(here)
                        values[used] = number
                        lengths[used] = i32(extent)
                        used += 1
                    what = now.run
                    number = begin

            elif op == ops.TAGS:
                if at < limit and data[at] == 0:  # nearly all of them
                    at += 1
                    now = now.target
                    continue
                count, behind = uvarint(data, at, limit)
                if count < 0:
                    problem = BAD_VARINT if count == -2 else TRUNCATED if hidden == 0 else LEFT_OUT
                    break
                if count * 2 > end - behind + hidden:
                    problem = TRUNCATED
                    break
                at = behind
                now = now.next
                frame = frame.inner
                frame.left = count
                frame.seen = 0
                frame.row = -1
                frame.resume = now
                frame.known = now
                continue

            elif op == ops.NEXT_TAG:
                if frame.left == 0:
                    frame = frame.outer
                    now = now.target
                    continue
                frame.left -= 1
                tag, behind = uvarint(data, at, limit)
                if tag < 0:
                    problem = BAD_VARINT if tag == -2 else TRUNCATED if hidden == 0 else LEFT_OUT
                    break
                if tag <= frame.row and self.as_brokers == 0:
                    problem = BAD_TAG
                    break
                extent, behind = uvarint(data, behind, limit)
                if extent < 0:
                    problem = BAD_VARINT if extent == -2 else TRUNCATED if hidden == 0 else LEFT_OUT
                    break
                if tag > LARGEST or extent > LARGEST:
                    problem = BAD_LENGTH
                    break
                if extent > end - behind + hidden and self.as_brokers == 0:
                    problem = TRUNCATED
                    break
                at = behind
                frame.row = tag
                frame.rest = end - at + hidden - extent
                known = now.first_tag
                while known is not None:
                    if known.tag == tag:
                        break
                    if known.tag < 0 and known.size == extent and frame.known is not known:
                        frame.known = known
                        break
                    known = known.next_tag
                if known is not None:
                    bit = i64(1) << (tag & 31)
                    if self.as_brokers != 0 and frame.seen & bit != 0:
                        problem = BAD_TAG  # Kafka's readers take the later one, which no column can hold
                        break
                    frame.seen |= bit
                    now = known.next
                    continue
                if extent > end - at + hidden:
                    problem = TRUNCATED
                    break
                if kept_fields[what]:
                    row = rows[now.level]
                    rows[now.level] = row + 1
                    tokens.used = used
                    tokens.put(what, row, here, 1)
                    if kept_fields[what + 1]:
                        tokens.put(what + 1, row, tag, 0)
                    if kept_fields[what + 2]:
                        tokens.put(what + 2, row, at if extent <= limit - at else -1 - at, extent)
                    used = tokens.used
                if extent <= limit - at:
                    at += extent
                else:
                    position.skip(at, extent)
                    at, limit, hidden = position.at, position.limit, position.hidden
                continue

            elif op == ops.TAG_END:
                if end - at + hidden != frame.rest and self.as_brokers == 0:
                    problem = BAD_TAG
                    break
                now = frame.resume
                continue

            elif op == ops.STRUCT:
                number = 1
                now = now.next

            elif op == ops.NULLABLE_STRUCT:
                if limit - at < 1:
                    problem = TRUNCATED if hidden == 0 else LEFT_OUT
                    break
                if data[at] < 0x80:  # any non-negative byte is "present" to Kafka's readers
                    number = 1
                    now = now.next
                else:
                    extent = -1
                    now = now.target
                at += 1

            elif op == ops.END:
                left = end - at + hidden
                if left == spare and spare > 0:
                    problem = TOLERATED
                elif left > 0 and self.as_brokers == 0:
                    problem = LEFTOVER_BYTES
                break

            else:  # MESSAGE
                here = rows[now.level]
                rows[now.level] = here + 1
                number = message
                extent = 1
                now = now.next

            if kept_fields[what]:
                fields[used] = i32(what)
                token_rows[used] = i32(here)
                values[used] = number
                lengths[used] = i32(extent)
                used += 1

        tokens.used = used
        self.problem_at = wire - (end - at + hidden)
        self.problem_field = now.field
        return problem


@final
class Attempts:
    """How each message of a batch is to be read."""

    def __init__(self, entry: Any, second: Any, spare: Any, as_brokers: Any) -> None:
        self.entry: vec[i32] = entry
        """Place of the program, -1 if there is none."""
        self.second: vec[i32] = second
        """Of another one to try, -1 if there is none."""
        self.spare: vec[i64] = spare
        """Trailing bytes that are allowed."""
        self.as_brokers: vec[u8] = as_brokers
        """1: as Kafka's readers read it (Interpreter.as_brokers)."""


@final
class Outcomes:
    """What became of each message of a batch; `status` stays as it was where there is no program."""

    def __init__(self, status: Any) -> None:
        self.status: vec[u8] = status
        count = i64(len(self.status))
        self.token_at: vec[i64] = vec[i64]([0] * (count + 1))
        self.error_at: vec[i64] = vec[i64]([-1] * count)
        """Where it failed; of one that was read as Kafka's readers read, where it ends for them."""
        self.error_field: vec[i32] = vec[i32]([-1] * count)
        self.chosen: vec[i32] = vec[i32]([-1] * count)
        self.tolerated: vec[u8] = vec[u8]([0] * count)


def walk_all(
    interpreter: Interpreter, instructions: list[Instruction], kept: Kept, attempts: Attempts, outcomes: Outcomes
) -> None:
    """All messages of a batch by their programs."""
    count = i64(len(attempts.entry))
    for message in range(count):
        outcomes.token_at[message] = interpreter.tokens.used
        interpreter.as_brokers = i64(attempts.as_brokers[message])
        for attempt in range(i64(2)):
            entry = attempts.entry[message] if attempt == 0 else attempts.second[message]
            if entry < 0:
                continue
            problem = interpreter.walk(instructions[i64(entry)], kept, message, attempts.spare[message])
            if problem in (OK, TOLERATED):
                outcomes.status[message] = OK
                outcomes.tolerated[message] = 1 if problem == TOLERATED else 0
                outcomes.chosen[message] = entry
                if interpreter.as_brokers:
                    outcomes.error_at[message] = interpreter.problem_at
                break
            if attempt == 0:
                outcomes.status[message] = u8(problem)
                outcomes.error_at[message] = interpreter.problem_at
                outcomes.error_field[message] = i32(interpreter.problem_field)
    outcomes.token_at[count] = interpreter.tokens.used
