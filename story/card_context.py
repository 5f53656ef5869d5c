"""What all cards of one result share: its findings, what changed, and where their commands read."""

import shlex
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from wirecheck.decode.peer import ends_of
from wirecheck.story.just_before import WITHIN_NS, Creation, creations_in, time_of
from wirecheck.story.reading_options import dialects_read, reading_options
from wirecheck.story.seen import Activity, Cluster, Recreation
from wirecheck.story.verdict import Finding

Asks = tuple[str | None, str | None, str]
"""Client ID, address and API."""
FILE = "FILE"
"""In place of a capture's path where that is not known."""


@dataclass(frozen=True)
class CardContext:
    """What all cards of one result share."""

    findings: Mapping[str, Finding]
    """By ID."""
    end_ns: int
    """When something was seen last."""
    dated: bool = False
    """Whether times need their day."""
    inputs: Sequence[str] = ()
    keylogs: Sequence[str] = field(default_factory=tuple)
    hosts: bool = True
    """Whether clients' addresses are named."""
    tables: str = ""
    """The folder of the result tables, where commands can read findings from them."""
    changes: Sequence[Mapping[str, Any]] = ()
    """Rows of the table of changes."""
    recreations: Sequence[Recreation] = ()
    """What clients did with topics that were created again."""
    clusters: Sequence[Cluster] = ()
    activities: Sequence[Activity] = ()
    """What came of the requests of each client and API."""

    @cached_property
    def servers(self) -> Mapping[str, str]:
        """Of each server with a known cluster that cluster, by ID or label."""
        return {end: one.cluster_id or one.label for one in self.clusters for end in one.endpoints}

    @cached_property
    def changes_by_time(self) -> Sequence[Mapping[str, Any]]:
        return sorted(self.changes, key=time_of)

    @cached_property
    def creations(self) -> Mapping[str, Sequence[Creation]]:
        """By topic the attempts to create it."""
        found: dict[str, list[Creation]] = defaultdict(list)
        for one in creations_in(self.changes):
            found[one.topic].append(one)
        return found

    def changes_before(self, time_ns: int, cluster: str | None) -> list[Mapping[str, Any]]:
        """Those of the last WITHIN_NS before a time."""
        first, last = time_ns - WITHIN_NS, time_ns
        every = self.changes_by_time
        near = every[bisect_left(every, first, key=time_of) : bisect_right(every, last, key=time_of)]
        return [one for one in near if self.may_be_to(cluster, one["connection"])]

    def creations_of(self, topics: Iterable[str], cluster: str | None) -> list[Creation]:
        every = (one for topic in topics for one in self.creations.get(topic, ()))
        return [one for one in every if self.may_be_to(cluster, one.connection)]

    def may_be_to(self, cluster: str | None, connection: str) -> bool:
        """Whether a connection leads to this cluster, or to a server whose cluster is not known."""
        return cluster is None or self.servers.get(ends_of(connection)[1], cluster) == cluster

    @cached_property
    def requests(self) -> Mapping[Asks, tuple[int, int]]:
        """How many came to nothing, and how many there were, also those of which a part is granted."""
        found: dict[Asks, tuple[int, int]] = {}
        for one in self.activities:
            asks = one.client_id, one.address, one.api
            in_vain, every = found.get(asks, (0, 0))
            found[asks] = in_vain + one.rejected + one.given_up + one.closed, every + one.requests
        return found

    @cached_property
    def codes(self) -> Mapping[str, int]:
        """How many findings each check has."""
        return Counter(one.code for one in self.findings.values())

    @cached_property
    def options(self) -> str:
        """How the inputs were read."""
        return reading_options(self.keylogs, dialects_read(self.findings.values()))

    @property
    def files(self) -> str:
        return shlex.join(self.inputs) if self.inputs else FILE

    @property
    def found_in(self) -> str:
        """Where `evidence` finds the finding and its frames."""
        return f"{self.files} --from {shlex.quote(self.tables)}" if self.tables else self.files
