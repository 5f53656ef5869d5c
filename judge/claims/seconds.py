"""Names of what is known to the second: by the slot and the second in it, so that it ages with its slot."""

from wirecheck.judge.claims.claim import AT
from wirecheck.judge.claims.outcomes import SLOT_NS

SECOND_NS = 1_000_000_000
SLOT_S = SLOT_NS // SECOND_NS


def second_of(at_s: int) -> str:
    """`at:slot:second` of a second since the epoch."""
    return f"{AT}{at_s // SLOT_S}:{at_s % SLOT_S}"


def at_second(name: str) -> int:
    """The second since the epoch that has this name."""
    slot, _, second = name.removeprefix(AT).partition(":")
    return int(slot) * SLOT_S + int(second)
