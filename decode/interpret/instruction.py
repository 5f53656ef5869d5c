"""`Instruction`s, of which programs consist; each points to those that may come next.

A field that an operation does not use is 0 or points at the instruction itself.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

# -- values of fixed width: size. float64 is INT64 ------------------------------------------------------------------
INT8: Final = 0
INT16: Final = 1
UINT16: Final = 2
INT32: Final = 3
INT64: Final = 4
BOOL: Final = 5
UUID: Final = 6
# -- lengths and counts, an odd one compact: nullable, least --------------------------------------------------------
TEXT: Final = 8
COMPACT_TEXT: Final = 9
BYTES: Final = 10
FIXED: Final = 12  # array of fixed width
COMPACT_FIXED: Final = 13
ARRAY: Final = 14  # target: the NEXT, BLOCK or ROWS that reads its elements; after: what follows it
COMPACT_ARRAY: Final = 15
# -- the rest -------------------------------------------------------------------------------------------------------
NEXT: Final = 16  # one element more (target), or the end of the array (after). level: of the elements
STRUCT: Final = 17  # begins a struct; nothing on the wire
NULLABLE_STRUCT: Final = 18  # a presence byte. target: behind the struct
TAGS: Final = 19  # a tag section. target: behind it; NEXT_TAG follows
NEXT_TAG: Final = 20  # one tag more, or the end of the section (target). first_tag; level: of unknown tags
TAG: Final = 21  # tag: its number, -1 for any, then of this size; next_tag
TAG_END: Final = 22  # end of a known tag's content
END: Final = 23  # end of the message
MESSAGE: Final = 24  # begin of the message. level: its first one, levels: how many it has
RUN: Final = 25  # fixed-width fields in a row, taken as one token. size: of them all, target: behind them; singly next
BLOCK: Final = 26  # NEXT of an array whose elements are one run, as many elements at once as have no tags.
#                    run: field of the run's tokens; size: of an element; level, target and after as of NEXT
TAGGED_BLOCK: Final = 27  # the same where elements have tags
ROWS: Final = 28  # NEXT of an array whose elements are fixed-width fields and arrays of such, as many at once as are
#                   plain. run, level, target and after as of BLOCK; its SKIPs are next
SKIP: Final = 29  # nothing by itself: size bytes, then an array with a count of `head` bytes and elements of `width`.
#                   The last one has head 0, and width 1 if a tag section follows, which has to be empty


@final
class Instruction:
    """One step through a message."""

    def __init__(self, op: i64) -> None:
        self.op: i64 = op
        self.field: i64 = 0
        """Number of the slot its tokens are of, or of the run."""
        self.level: i64 = 0
        """Whose rows it counts."""
        self.levels: i64 = 0
        self.size: i64 = 0
        """Bytes of the value, of an element, to be skipped; of a tag of any number, those it must have."""
        self.least: i64 = 1
        """Bytes of the smallest element."""
        self.nullable: bool = False
        self.run: i64 = 0
        self.head: i64 = 0
        self.width: i64 = 0
        self.tag: i64 = 0
        self.next: Instruction = self
        self.target: Instruction = self
        self.after: Instruction = self
        self.first_tag: Instruction | None = None
        self.next_tag: Instruction | None = None

    def copy(self) -> Instruction:
        """Another one that points where this one does."""
        made = Instruction(self.op)
        made.field, made.level, made.levels, made.size, made.least = (
            self.field, self.level, self.levels, self.size, self.least
        )  # fmt: skip
        made.nullable, made.run, made.head, made.width, made.tag = (
            self.nullable, self.run, self.head, self.width, self.tag
        )  # fmt: skip
        made.next, made.target, made.after = self.next, self.target, self.after
        made.first_tag, made.next_tag = self.first_tag, self.next_tag
        return made
