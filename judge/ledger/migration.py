"""State of earlier versions, made into what this one keeps: a checkpoint goes on, with everything that is known.

Knows: where each earlier version filed what is filed elsewhere now. Does not know how a shard is written, nor when.
Rule: a version that is read stands in READ (`ledger.py`) with what brings it up here, and a small state of it is kept
in tests/judge/states. What is not moved is read as it lies, and written anew when it is next touched.

6 to 7 (November 2026): what is said of a connection is filed under the connection, no longer under its endpoint or the
wire, and its rows with it; the topic ids that an endpoint spoke of are a set in one claim; what waits for a time has
shards of its own; sizes are counted by space.

7 to 8 (November 2026): an emitted finding has the number of its news beside it; one without is told once more when it
grows.

8 to 9 (November 2026): what a broker says as a follower is filed under the broker, and the versions of its fetches, by
slots of time, are one claim a broker and no longer one a broker and leader.
"""

from collections import Counter
from typing import Any

from wirecheck.judge.claims.claim import LEAST, Claim, Subject
from wirecheck.judge.claims.kinds import KINDS, SPACES, UNANSWERED
from wirecheck.judge.ledger.agenda import Agenda
from wirecheck.judge.ledger.emitted_rows import EmittedRows, key_of
from wirecheck.judge.ledger.ledger import Ledger, space_of

CONNECTIONS_APART, FOLLOWERS_APART = 7, 9
"""Since these versions."""
CONNECTION, FOLLOWER, VERSIONS = "connection", "follower", "fetch_versions"
SERVERS: Subject = ("server",)
WITH_CONNECTIONS = ("link", "wire")
"""Spaces under which version 6 filed what was said of a connection."""
COVERAGE = "coverage|"


def bring_up(version: int, ledger: Ledger, emitted: EmittedRows, sizes: dict[str, int]) -> None:
    """What a version of before filed elsewhere goes where this one looks for it."""
    if version < CONNECTIONS_APART:
        by_space(sizes)
        connections_apart(ledger, emitted)
        ids_in_sets(ledger)
    if version < FOLLOWERS_APART:
        followers_apart(ledger)


def connections_apart(ledger: Ledger, emitted: EmittedRows) -> None:
    """What is said of a connection, and its rows, go to the connection."""
    for space in WITH_CONNECTIONS:
        for subject in list(ledger.subjects(space)):
            claims = [claim for claim in ledger.claims_of(*subject).values() if of_connection(claim)]
            ledger.remove(subject, claims)
            for claim in claims:
                ledger.absorb(claim)
            ledger.touched.add(subject)
    for number in range(SPACES["link"]):
        rows_apart(f"link-{number:02d}", ledger, emitted)


def ids_in_sets(ledger: Ledger) -> None:
    """One claim per endpoint and topic id becomes a member of one claim per endpoint."""
    carries = {"carries", f"{UNANSWERED}carries"}
    found = [claim for claim in ledger.claims_of(*SERVERS).values() if claim.kind in carries]
    if found:
        ledger.remove(SERVERS, found)
    for claim in sorted(found, key=lambda claim: str(claim.key[1])):
        endpoint, topic_id, *host = claim.key
        peak = {f"{LEAST}{topic_id}": -claim.first.ts_ns}
        ledger.absorb(Claim(claim.kind, (endpoint, *host), claim.first, claim.last, count=claim.count, peak=peak))


def followers_apart(ledger: Ledger) -> None:
    """Fetch sessions go to the brokers that keep them, and their versions to what each broker sends."""
    found = [claim for claim in ledger.claims_of(*SERVERS).values() if claim.kind == FOLLOWER]
    if found:
        ledger.remove(SERVERS, found)
    for claim in found:
        broker, endpoint, _, host = claim.key
        ledger.absorb(Claim(FOLLOWER, claim.key, claim.first, claim.last, count=claim.count, peak=claim.peak))
        sent = broker, host, int(endpoint.rpartition(":")[2])
        ledger.absorb(Claim(VERSIONS, sent, claim.first, claim.last, count=claim.count, tally=claim.tally))


def of_connection(claim: Claim) -> bool:
    return any(space == CONNECTION for space, *_ in KINDS[claim.kind].subjects)


def rows_apart(shard: str, ledger: Ledger, emitted: EmittedRows) -> None:
    """The rows of coverage of one shard of endpoints; those of connections that had left stand as they were told."""
    by_name = {name_of(subject): subject for subject in ledger.subjects(CONNECTION)}
    cells: dict[str, dict[str, Any]] = emitted.stored_shard(f"told-{shard}", changing=True)["cells"]
    for key in list(cells):
        for name in [name for name in cells[key] if name.startswith(COVERAGE)]:
            row, subject = cells[key].pop(name), by_name.get(name.split("|")[1])
            if subject is not None:
                emitted.shard(subject, changing=True)["cells"].setdefault(key_of(subject), {})[name] = row
        if not cells[key]:
            del cells[key]


def name_of(connection: Subject) -> str:
    """As its rows of coverage are called."""
    _, endpoint, client, started_ns = connection
    return f"{client}>{endpoint}@{started_ns}"


def agenda_of(due: list[tuple[list[str], int]], agenda: Agenda) -> None:
    """What waited in the main state."""
    agenda.update((tuple(subject), due_ns) for subject, due_ns in due)


def by_space(sizes: dict[str, int]) -> None:
    """Sizes of shards, added up."""
    total: Counter[str] = Counter()
    for shard, size in sizes.items():
        total[space_of(shard)] += size
    sizes.clear()
    sizes.update(total)
