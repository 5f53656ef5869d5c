"""The modes of a stream, of its framing and of a connection.

`Direction` and `Connection` change their own; what a mode allows is documented where it is tested.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from mypy_extensions import i64

Mode: TypeAlias = i64

# --- a direction's stream: is it known where it begins?
UNSEEN: Final = 0  # nothing of it was seen
HELD: Final = 1  # first bytes were seen, and their predecessors may follow
RUNNING: Final = 2  # it is known which byte comes next
# --- a direction's framing: is it known where a message begins?
OPENING: Final = 3  # at the stream's first message, which decides what the connection is
IN_SYNC: Final = 4  # at a message's beginning, or within a message
SEARCHING: Final = 5  # nowhere: resync.py looks for a beginning
OFF: Final = 6  # not Kafka, or not readable: bytes are counted and not kept
TAPPED: Final = 7  # the caller takes the bytes in order: nothing is framed
# --- a connection
OPEN: Final = 8
LINGERING: Final = 9  # over; remembered, to absorb late packets
RELEASED: Final = 10  # forgotten after this call
