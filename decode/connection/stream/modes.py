"""The modes of a stream, of its framing and of a connection, and the one table of what changes them.

No mode changes but by this table; an event that a mode does not list cannot happen in it, and raises.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from mypy_extensions import i64

Mode: TypeAlias = i64
Event: TypeAlias = i64

# --- a direction's stream: is it known where it begins?
UNSEEN: Final = 0  # nothing of it was seen
HELD: Final = 1  # first bytes were seen, and their predecessors may follow
RUNNING: Final = 2  # it is known which byte comes next
# --- a direction's framing: is it known where a message begins?
OPENING: Final = 3  # at the stream's first message, which decides what the connection is
IN_SYNC: Final = 4  # at a message's beginning, or within a message
SEARCHING: Final = 5  # nowhere: resync.py looks for a beginning
OFF: Final = 6  # not Kafka, or not readable: bytes are counted and not kept
TAPPED: Final = 7  # bytes in order are somebody else's, who takes them out: nothing is framed
# --- a connection
OPEN: Final = 8
LINGERING: Final = 9  # over; remembered, to absorb late packets
RELEASED: Final = 10  # forgotten after this call

START_SEEN: Final = 0  # a SYN, or what acknowledges one
BYTES_FIRST: Final = 1  # bytes, before any SYN
FIN_FIRST: Final = 2  # FIN, and nothing before it
START_UNSEEN: Final = 3  # the first bytes seen are waited for no more: there it begins
BOUNDARY_LOST: Final = 4
BOUNDARY_FOUND: Final = 5
IS_KAFKA: Final = 6
NOT_KAFKA: Final = 7
TAKEN: Final = 8  # somebody else takes what is in order
OVER: Final = 9  # nothing more is expected
FORGOTTEN: Final = 10

TRANSITIONS: Final = {
    (UNSEEN, START_SEEN): RUNNING,
    (UNSEEN, BYTES_FIRST): HELD,
    (UNSEEN, FIN_FIRST): RUNNING,
    (HELD, START_SEEN): RUNNING,
    (HELD, START_UNSEEN): RUNNING,
    (OPENING, START_SEEN): OPENING,
    (OPENING, BYTES_FIRST): SEARCHING,
    (OPENING, FIN_FIRST): SEARCHING,
    (OPENING, IS_KAFKA): IN_SYNC,
    (OPENING, BOUNDARY_LOST): SEARCHING,
    (OPENING, NOT_KAFKA): OFF,
    (IN_SYNC, IS_KAFKA): IN_SYNC,
    (IN_SYNC, BOUNDARY_LOST): SEARCHING,
    (IN_SYNC, NOT_KAFKA): OFF,
    (SEARCHING, BOUNDARY_FOUND): IN_SYNC,
    (SEARCHING, START_SEEN): OPENING,  # SYN came late, behind the bytes that follow it
    (SEARCHING, BYTES_FIRST): SEARCHING,
    (SEARCHING, FIN_FIRST): SEARCHING,
    (SEARCHING, NOT_KAFKA): OFF,
    (OFF, START_SEEN): OPENING,
    (OFF, BYTES_FIRST): OFF,
    (OFF, FIN_FIRST): SEARCHING,
    (OFF, NOT_KAFKA): OFF,
    (OPENING, TAKEN): TAPPED,
    (TAPPED, START_SEEN): TAPPED,
    (TAPPED, BYTES_FIRST): TAPPED,
    (TAPPED, FIN_FIRST): TAPPED,
    (TAPPED, NOT_KAFKA): OFF,
    (OPEN, OVER): LINGERING,
    (LINGERING, FORGOTTEN): RELEASED,
}


def after(mode: Mode, event: Event) -> Mode:
    """The mode that this event changes a mode to."""
    return TRANSITIONS[mode, event]
