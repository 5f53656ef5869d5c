"""Which findings are listed: those of some kinds, checks, topics, or of a time.

Rule: a choice hides and changes nothing: what is hidden is counted, and links are made before anything is hidden.
"""

from dataclasses import dataclass

from wirecheck.story.verdict import Finding


@dataclass(frozen=True)
class Choice:
    """All of what is given must fit; what is empty fits everything."""

    kinds: frozenset[str] = frozenset()
    codes: frozenset[str] = frozenset()
    topics: frozenset[str] = frozenset()
    """Names, or ids in Kafka's base64."""
    since_ns: int | None = None
    until_ns: int | None = None

    def __bool__(self) -> bool:
        return self != Choice()

    def fits(self, finding: Finding) -> bool:
        """One that began before and lasted into the time asked for is of that time."""
        return (
            (not self.kinds or finding.kind in self.kinds)
            and (not self.codes or finding.code in self.codes)
            and (not self.topics or not self.topics.isdisjoint({finding.topic, *finding.topic_ids}))
            and (self.since_ns is None or finding.last_ns >= self.since_ns)
            and (self.until_ns is None or finding.first_ns <= self.until_ns)
        )


EVERYTHING = Choice()
