"""The catalogue of checks: what exists, what each reads, and its function. All that is known of each besides:
`listed_checks.py`.

Rule: a check reads what it declares and nothing else; every case of the lab is held against it. Of its own space it
reads its own subject only; of topics, also the names and IDs that claims have with it in common. Besides, every check
rests on which endpoints are one cluster and which hosts are suspect. Codes and names are final and never reused.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType

from wirecheck.judge.check_context import CheckContext
from wirecheck.judge.checks import (
    administration,
    agreement,
    blocked_upgrades,
    clusters,
    controllers,
    fetching,
    groups,
    idle_members,
    last_answers,
    left_members,
    listings,
    log_ends,
    lone_readers,
    metadata_log,
    new_partitions,
    outages,
    progress,
    reassignments,
    recreations,
    rereads,
    stopped_commits,
    storms,
    topic_id_uses,
    topic_ids,
    transactions,
    unfed_readers,
    unreached_brokers,
    unserved,
    vanished_members,
    version_matrix,
    versions,
    wire_checks,
)
from wirecheck.judge.checks.listed_checks import LISTED
from wirecheck.judge.claims.claim import Subject
from wirecheck.judge.claims.kinds import KINDS as CLAIMS
from wirecheck.judge.claims.kinds import SPACES
from wirecheck.judge.results.finding import Evidence, Rule
from wirecheck.judge.topology.clusters import Group

Function = Callable[[Subject, Group, CheckContext], Iterator[Evidence]]
FAMILIES: Mapping[str, tuple[ModuleType, ...]] = {
    "TID": (topic_ids, topic_id_uses, agreement, listings, controllers, outages),
    "VER": (versions, version_matrix, blocked_upgrades),
    "FET": (fetching, transactions),
    "CTL": (controllers, outages, log_ends, reassignments),
    "LOG": (metadata_log,),
    "GRP": (
        groups,
        left_members,
        progress,
        recreations,
        rereads,
        new_partitions,
        outages,
        vanished_members,
    ),
    "ADM": (administration, reassignments),
    "CLU": (clusters, outages),
    "CLI": (
        unserved,
        unreached_brokers,
        idle_members,
        lone_readers,
        last_answers,
        stopped_commits,
        transactions,
        storms,
        unfed_readers,
    ),
    "DRF": (wire_checks,),
    "WIR": (wire_checks, outages),
    "VIS": (wire_checks,),
}
Reads = frozenset[str]
TOPIC, SEVERAL, WHATEVER, NEEDED = "topic", "several", "*", "!"
OF_TOPIC = ("name:absence", "name:binding", "name:creation", "name:deletion", "id:deletion", "id:partition")
"""What the history of a name is built from: its own claims, and those of its topic IDs (`topic_history.py`)."""


def declared(words: str) -> Reads:
    """From `space:kind`, `space:*` for whatever is filed there, `topic` for a name's history. A word may be
    marked as needed (`needed`); `several` is only ever marked, and read in a name's history.
    """
    found: set[str] = set()
    for word in words.replace(NEEDED, "").split():
        found.update(OF_TOPIC if word == TOPIC else () if word == SEVERAL else (word,))
    for word in found:
        space, _, kind = word.partition(":")
        filed = kind in CLAIMS and any(there == space for there, *_ in CLAIMS[kind].subjects)
        if space not in SPACES or not (kind == WHATEVER or filed):
            message = f"{word}: nothing of that kind is filed there"
            raise ValueError(message)
    return frozenset(found)


def needed(words: str) -> Reads:
    """The marked words: the check finds nothing about a subject of their space without a claim of one of these kinds.
    About a name or an ID it finds nothing if neither that nor what it is joined with has one (`filed.py`), or if, of
    `several`, all that is stated of them is one ID for one name.
    """
    return frozenset(word.removesuffix(NEEDED) for word in words.split() if word.endswith(NEEDED))


@dataclass(frozen=True)
class Check(Rule):
    question: str
    """agreement, work, or work in doubt."""
    status: str
    """preview or stable."""
    spaces: tuple[str, ...]
    """The spaces of the ledger whose subjects it looks at."""
    reads: Reads
    """What it reads of the ledger, there and elsewhere (`declared`)."""
    needs: Reads
    """Of what it reads about its subject, that without which it finds nothing."""
    one_per: str
    """What makes it one finding."""
    function: Function


def read() -> dict[str, Check]:
    checks = {}
    for code, listed in LISTED.items():
        function = function_of(code, listed.name) if listed.spaces else made_of_results
        checks[code] = Check(
            code,
            listed.name,
            listed.kind,
            listed.summary,
            listed.question,
            listed.status,
            listed.spaces,
            declared(listed.reads),
            needed(listed.reads),
            listed.one_per,
            function,
        )
    return checks


def made_of_results(_subject: Subject, _group: Group, _context: CheckContext) -> Iterator[Evidence]:
    """Of a check that the judge cannot make of one subject: `story/unexplained.py` makes it of open rows."""
    return iter(())


def function_of(code: str, name: str) -> Function:
    function_name = name.replace("-", "_")
    found: list[Function] = [
        vars(module)[function_name] for module in FAMILIES[code[:3]] if function_name in vars(module)
    ]
    (function,) = found
    return function


CHECKS = read()
