"""Where subjects are at home: with the directory of their label, or on one of its shards.

Knows: from a subject alone, which part judges it; a connection goes with its endpoint, whose sums it adds to. Does not
know what is said about it.
Rule: a subject never moves. What a claim is about decides where it goes, and nothing that is learned later does: a name
and its ids are at home wherever their own keys say, and tell each other what they read (`part.py`).
"""

import zlib
from collections.abc import Iterator

from wirecheck.judge.checks.declared_reads import HOMES
from wirecheck.judge.claims.claim import Claim, Subject
from wirecheck.judge.claims.log_snapshots import CHUNK

DIRECTORY = 0
"""The number of the directory; shards are numbered from 1 on."""


def part_of(subject: Subject, shards: int) -> int:
    match HOMES[subject[0]]:
        case "directory":
            return DIRECTORY
        case "endpoint":
            key: Subject = ("endpoint", subject[1])
        case _:
            key = subject
    return 1 + zlib.crc32("\0".join(key).encode(errors="surrogatepass")) % shards


def parts_of(claim: Claim, shards: int) -> Iterator[int]:
    """The parts that a claim goes to; chunks of snapshots are put together in one place."""
    if claim.kind == CHUNK:
        yield DIRECTORY
        return
    yield from {part_of(subject, shards) for subject in claim.subjects()}
