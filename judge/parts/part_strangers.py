"""Who is a stranger, as the directory tells it and as a shard takes its word.

Knows: what of the directory's answer a shard needs, and which of its own subjects rest on it. Does not know why a host
is a stranger (`topology/strangers.py`).
Rule: a shard remembers which subjects it judged with, or without, a host's word, and judges them again when what the
directory says of the host has changed.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from wirecheck.judge.claims.claim import Claim, Subject
from wirecheck.judge.parts.part_ledger import PartLedger
from wirecheck.judge.parts.part_message import StrangersTold
from wirecheck.judge.topology.endpoint_history import host_of
from wirecheck.judge.topology.strangers import ANYWHERE, Strangers, Ungranted


class PartStrangers(Strangers):
    ledger: PartLedger

    def __init__(self, ledger: PartLedger, stored: Any = None) -> None:
        super().__init__(ledger, stored)
        self.everything = False
        self.to_judge: set[Subject] | None = set()
        """What to judge again, by the directory's last word; None for everything."""

    def told(self) -> StrangersTold:
        hosts = {host: one.stranger for host, one in self.hosts.items()}
        known, everything, self.everything = self.known, self.everything, False
        return StrangersTold(hosts, set(self.servers), set(known.kafka), set(known.raft), known.by_name, everything)

    def hear(self, told: StrangersTold) -> None:
        """The directory's word, on a shard."""
        found: set[Subject] = set()
        everything = self.servers != told.servers or told.everything
        for host in sorted(self.hosts.keys() | told.hosts.keys()):
            before, now = self.hosts.get(host), told.hosts.get(host)
            if before is not None and before.stranger != now:
                found |= before.subjects
            if now is None:
                del self.hosts[host]
            else:
                subjects = before.subjects if before else set()
                self.hosts[host] = Ungranted(now, set(), subjects)
        self.servers = told.servers
        self.known.kafka, self.known.raft, self.known.by_name = told.kafka, told.raft, told.by_name
        if everything or ANYWHERE in found or self.to_judge is None:
            self.to_judge = None
        else:
            self.to_judge |= found

    def news(self) -> set[Subject] | None:
        """What to judge again since the last call."""
        self.links.clear()
        found, self.to_judge = self.to_judge, set()
        return found

    def look(self, touched: Iterable[Subject]) -> set[Subject] | None:
        found = super().look(touched)
        self.everything |= found is None
        return found

    # -- what the directory reads for a host is asked of shards -------------------------------------------------------

    def again(self, host: str) -> set[Subject]:
        self.ledger.reader = ("host", host)
        found = super().again(host)
        self.ledger.reader = ()
        return found

    def contradictions(self, endpoint: str) -> Iterator[Claim]:
        self.ledger.reader = ("host", host_of(endpoint))
        yield from super().contradictions(endpoint)
        self.ledger.reader = ()
