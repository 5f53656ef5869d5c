"""The judge of one label in parts: a directory and so many shards, in one process.

Knows: which part a claim goes to, and that parts are heard until none has anything to tell. Does not know what they
tell each other (`part.py`).
Rule: parts share nothing; they see of each other what a message says, which could as well have come from another
machine. The rows that stand after each batch are those of one judge of the label, as far as nothing is beyond a bound
by number (each part has the room of its own subjects) and no id has two names (each tells its row).
"""

from collections.abc import Iterable

from wirecheck.judge import agent_marks
from wirecheck.judge.claims.claim import Claim
from wirecheck.judge.claims.log_snapshots import CHUNK
from wirecheck.judge.failures import ASSEMBLY, FILING, failure
from wirecheck.judge.judge import EmittedRow
from wirecheck.judge.parts.homes import DIRECTORY, parts_of
from wirecheck.judge.parts.part import Part
from wirecheck.judge.parts.part_message import unpacked
from wirecheck.judge.thresholds import Settings

MOST_ROUNDS = 16
"""What is not said by then is said with the next batch."""


class JudgeInParts:
    def __init__(self, label: str, shards: int, settings: Settings | None = None) -> None:
        self.parts = [Part(label, number, shards, settings=settings) for number in range(shards + 1)]
        self.directory = self.parts[DIRECTORY]
        self.shards = shards
        self.rounds = 0
        """How often the parts were heard in the last batch."""

    def absorb(self, claims: Iterable[Claim]) -> None:
        oldest_ns = self.directory.oldest_ns
        for claim in claims:
            for number in parts_of(claim, self.shards):
                part = self.parts[number]
                try:
                    part.take(claim, oldest_ns)
                except Exception as error:  # noqa: BLE001 - whatever foreign bytes can bring about
                    step = ASSEMBLY if claim.kind == CHUNK else FILING
                    part.failures.add(failure(step, (step, str(claim.kind)), error, seen=[claim.last]))

    def hear(self, said: agent_marks.Marks) -> None:
        self.directory.hear(said)

    def progress(self, agent: str, last_ts_ns: int, ended: bool) -> None:
        for part in self.parts:
            part.progress(agent, last_ts_ns, ended)

    def rows(self) -> list[EmittedRow]:
        """The revisions of rows that are new or have changed; the directory speaks first, shards hear it at once."""
        told: list[EmittedRow] = []
        self.rounds, spoken = 0, True
        while spoken and self.rounds < MOST_ROUNDS:
            self.rounds += 1
            told += self.directory.rows()
            spoken = self.deliver([self.directory])
            for shard in self.parts[1:]:
                told += shard.rows()
            spoken |= self.deliver(self.parts[1:])
        return told

    def deliver(self, senders: Iterable[Part]) -> bool:
        """Whether anything was told."""
        found = [(number, message.packed()) for sender in senders for number, message in sender.messages().items()]
        for number, message in found:
            self.parts[number].receive(unpacked(message))
        return bool(found)
