"""Which findings are listed: those of some kinds, checks, topics, or of a time.

Rule: a choice hides and changes nothing: what is hidden is counted, and links are made before anything is hidden.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Choice:
    """All of what is given must fit; what is empty fits everything. Times as the JSON writes them."""

    kinds: frozenset[str] = frozenset()
    codes: frozenset[str] = frozenset()
    topics: frozenset[str] = frozenset()
    """Names, or ids in Kafka's base64."""
    since: str = ""
    until: str = ""

    def __bool__(self) -> bool:
        return self != Choice()

    def fits(self, finding: Row) -> bool:
        """`finding` as the JSON has it; one that began before and lasted into the time asked for is of that time."""
        return (
            (not self.kinds or finding["kind"] in self.kinds)
            and (not self.codes or finding["code"] in self.codes)
            and (not self.topics or not self.topics.isdisjoint({finding["topic"], *finding["topic_ids"]}))
            and (not self.since or finding["last_seen"] >= self.since)
            and (not self.until or finding["first_seen"] <= self.until)
        )


EVERYTHING = Choice()
