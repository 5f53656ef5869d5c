"""Ageing: what leaves the ledger, and when.

Knows which claims are about a moment and which about a state that lasts. Does not know what checks make of them. The
rules, by capture time; the horizon is a setting (24 h):
- A claim about a moment (a use, an answer, an error, a request, a fetch session) leaves once its last sighting is older
  than the horizon.
- A connection settles long before (`connections.py`); the sums of settled ones are about moments.
- Bindings, creations, deletions, partition states, addresses, cluster IDs and the order of the metadata log last. Of
  many bindings of one ID by one source the first and the last are kept; of a partition's states the lowest and the
  highest epoch, and the introduction as new.
- Counters per slot of time leave like moments, also from claims that are kept: once per horizon and everywhere at once,
  so that slots that are compared with each other leave together. Counters without a slot are kept.
- Successes are counted per slot for FOLDED_NS, and then, if no other answer to the same client is near, per block of
  BLOCK slots. Those of activities are counted by blocks whatever the pauses between them. After two hours, which is
  longer than any window of a check, those of activities and of uses of a topic are counted by hours; the longest pause
  is kept. Otherwise a client without errors would have a day of slots in its state, which is written with every batch.
- Of the slots in which a topic name was given its ID, after two hours the first and the last of an hour stay: where the
  name has no other ID, and no server denied it.
- Ends of logs, and positions of readers and groups, are kept per slot for FOLDED_NS, too. Of older ones that never
  moved back, those stay that show where a server became the leader or a reader began, and the last.
- A topic ID that has ended (deleted, or followed by another) leaves completely once it was not mentioned within the
  horizon.
Rule: findings and rows that rest on removed claims remain as they were emitted last. Ageing withdraws nothing and
forgets them. A topic ID or a client that returns after more than the horizon is treated as new.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from wirecheck.judge.claims.claim import AT, LOWEST, Claim, Subject, slot_of, without_slots
from wirecheck.judge.claims.kinds import KINDS, PAUSE, SPACES
from wirecheck.judge.claims.outcomes import HARMLESS, MOST_SLOTS, SLOT_NS, SUCCESS, Outcomes
from wirecheck.judge.ledger.connection_sums import ADDED, connection_of, since
from wirecheck.judge.ledger.ledger import Ledger, shard_of

LASTING = {
    "changed",
    "creation",
    "deletion",
    "server",
    "cluster_id",
    "address",
    "registered",
    "carries",
    "advertised",
    "log_order",
    "log_epoch",
    "log_diverged",
    "mark",
}
FOLDED_NS, BLOCK, HOUR = 600_000_000_000, 60, 360
ACTIVITY = "activity"
SLOW = {ACTIVITY, "entry", "use", "named_answer", "refused"}
"""Kinds that clients which say little repeat all day."""
BEGIN, SILENT, MOST_ENDS, MOST_POSITIONS = 4, 6, 60, 24
"""Of a log's ends stay the first slots after a silence, as many as a fall must last, and the last; at most so many. A
reader that asks every few minutes is silent in between each time: of its positions fewer stay.
"""
RISING = {"serves", "position", "committed", "committed_in_transaction", "restored"}
"""Kinds with offsets by slot, which rise; the lowest of a slot are stored as negative numbers."""
ANSWERED = ("id", "client", "link", "name", "server")
"""Spaces with answers over time."""
AGEING_SPACES = [space for space in SPACES if space != "connection"]
Attempt = Callable[..., Any]
"""From a subject, a function and its arguments what it makes; None where it raises: the subject stays as it is."""


def age(ledger: Ledger, oldest_ns: int, attempt: Attempt) -> set[Subject]:
    """Take out what has left by the rules; the subjects that lost something."""
    dead = {subject for subject in ledger.subjects("id") if attempt(subject, ended, subject, ledger, oldest_ns)}
    dead_ids = {subject[1] for subject in dead}
    changed: set[Subject] = set()
    for space in AGEING_SPACES:
        for subject in list(ledger.subjects(space)):
            claims = list(ledger.claims_of(*subject).values())
            gone = claims if subject in dead else attempt(subject, leaving, claims, oldest_ns, dead_ids)
            if gone:
                ledger.remove(subject, gone)
                changed.add(subject)
    return changed


def leaving(claims: list[Claim], oldest_ns: int, dead_ids: set[str]) -> list[Claim]:
    return [*departed(claims, oldest_ns), *of_ids(claims, dead_ids)]


def shorten(ledger: Ledger, oldest_ns: int, attempt: Attempt) -> set[Subject]:
    """Take slots older than this out of every claim; the subjects that lost some."""
    slot = oldest_ns // SLOT_NS
    changed: set[Subject] = set()
    for space in AGEING_SPACES:
        for subject in ledger.subjects(space):
            if attempt(subject, shortened, ledger.claims_of(*subject).values(), oldest_ns, slot):
                changed.add(subject)
    ledger.changed.update(map(shard_of, changed))
    return changed


def shortened(claims: Iterable[Claim], oldest_ns: int, slot: int) -> bool:
    """Whether any of one subject's claims lost slots."""
    found = False
    for claim in claims:
        if claim.tally and claim.first.ts_ns < oldest_ns:
            kept = without_slots(claim.tally, slot)
            if len(kept) < len(claim.tally):
                claim.tally, found = kept, True
        if claim.outcomes.drop_before(slot):
            found = True
    return found


def fold(ledger: Ledger, since_ns: int, oldest_ns: int, attempt: Attempt) -> None:
    """Count successes before this by blocks: what is found in them stays the same. What is older than `since_ns` was
    looked through before; the block there had a neighbour that was not over.
    """
    span = SlotRange(since_ns // SLOT_NS - 2 * BLOCK, oldest_ns // SLOT_NS)
    for space in ANSWERED:
        for subject in list(ledger.subjects(space)):
            if attempt(subject, folded_subject, subject, ledger, span):
                ledger.rewrite(subject)


def folded_subject(subject: Subject, ledger: Ledger, span: "SlotRange") -> bool:
    """Whether less is kept of any claim about a subject."""
    claims = ledger.claims_of(*subject).values()
    answers, bindings = foldable(claims), [claim for claim in claims if claim.kind == "binding"]
    failed = failures(claims) if answers else {}
    steady = has_one_id(bindings, ledger) and not any(claim.kind == "deletion" for claim in claims)
    hours = SlotRange(span.since - MOST_SLOTS - HOUR, span.before - MOST_SLOTS, HOUR)
    if subject[0] == "id":
        add_failures_elsewhere(answers, failed, ledger)
    fewer = [folded_claim(one, failed, span, hours if steady and one.kind in SLOW else None) for one in answers]
    fewer += [folded_ends(one, span.before) for one in claims if one.kind in RISING]
    if steady:
        fewer += [folded_tally(one, hours.before) for one in bindings]
    return any(fewer)


def has_one_id(bindings: list[Claim], ledger: Ledger) -> bool:
    """Whether the names of these bindings have one topic ID each, and no server denied them."""
    for name in {claim["name"] for claim in bindings}:
        claims = ledger.claims_of("name", name).values()
        if any(claim.kind == "absence" for claim in claims):
            return False
        if len({claim["topic_id"] for claim in claims if claim.kind == "binding"}) > 1:
            return False
    return True


def folded_tally(claim: Claim, before: int) -> bool:
    """Whether fewer slots before this one stay: the first of each hour, and the last with the counts of all between."""
    hours: dict[int, list[str]] = {}
    for name in claim.tally:
        if name.isdigit() and int(name) < before:
            hours.setdefault(int(name) // HOUR, []).append(name)
    many = [sorted(names, key=int) for names in hours.values() if len(names) > 2]
    for _, *between, last in many:
        claim.tally[last] += sum(claim.tally.pop(name) for name in between)
    return bool(many)


Failed = dict[tuple[Any, ...], set[int]]


def who(claim: Claim) -> tuple[Any, ...]:
    """The client whose answers are looked at together, at whatever server; of a claim about none, itself."""
    fields = KINDS[claim.kind].at
    return (claim["client_id"], claim["host"]) if {"client_id", "host"} <= fields.keys() else (claim.kind, *claim.key)


def failures(claims: Iterable[Claim]) -> Failed:
    """The slots in which each client was rejected, at any server."""
    found: Failed = {}
    for claim in claims:
        if slots := {slot for error in claim.outcomes.codes() - HARMLESS for slot in claim.outcomes.of(error)}:
            found.setdefault(who(claim), set()).update(slots)
    return found


def add_failures_elsewhere(answers: list[Claim], failed: Failed, ledger: Ledger) -> None:
    """Add when the clients that use a topic ID were rejected in anything else."""
    for client in {who(claim) for claim in answers if claim.kind in SLOW}:
        claims = ledger.claims_of("client", client[0] or "", client[1]).values()
        failed.setdefault(client, set()).update(failures(claims).get(client, ()))


def folded_claim(claim: Claim, failures: Failed, span: "SlotRange", hours: "SlotRange | None") -> bool:
    """Whether successes of one claim became fewer. Where only the longest pause between them is asked for, as of
    activities, blocks have pauses in them; what is older than any window of a check is counted by hours.
    """
    failed, pauses = failures.get(who(claim), set()), claim.peak
    fewer = folded(claim.outcomes, failed, span, pauses if claim.kind == ACTIVITY else None)
    return (hours is not None and folded(claim.outcomes, failed, hours, pauses)) or fewer


def folded_ends(claim: Claim, before: int) -> bool:
    """Whether fewer ends of a log, or positions, stay of the slots before this one. Where one moved back, all stay."""
    series: dict[str, list[tuple[int, str]]] = {}
    for name in claim.peak:
        if name.startswith(AT) and (slot := slot_of(name)) is not None and slot < before:
            series.setdefault(name.removeprefix(AT).partition(":")[2], []).append((slot, name))
    most, gone = MOST_ENDS if claim.kind == "serves" else MOST_POSITIONS, list[str]()
    for found in series.values():
        found.sort()
        offsets = [-claim.peak[name] if name.endswith(LOWEST) else claim.peak[name] for _, name in found]
        if all(one <= other for one, other in pairwise(offsets)):
            kept = {*[name for part in without_silence(found) for name in few(part)][-most:]}
            gone += [name for _, name in found if name not in kept]
    for name in gone:
        del claim.peak[name]
    return bool(gone)


def without_silence(ends: list[tuple[int, str]]) -> list[list[str]]:
    """The ends of a log, by slot, in parts between which the server stated none for SILENT slots."""
    parts: list[list[str]] = []
    last = -SILENT
    for slot, name in ends:
        if slot - last >= SILENT:
            parts.append([])
        parts[-1].append(name)
        last = slot
    return parts


def few(names: list[str]) -> list[str]:
    return names if len(names) <= BEGIN else [*names[:BEGIN], names[-1]]


def foldable(claims: Iterable[Claim]) -> list[Claim]:
    """Those with successes; not what an endpoint of several ClusterIds stated, which shows when it changed."""
    found, ids = [claim for claim in claims if claim.succeeded], dict[str, set[str]]()
    for claim in found:
        if claim.kind == "cluster_id":
            ids.setdefault(claim["endpoint"], set()).add(claim["cluster_id"])
    return [claim for claim in found if claim.kind != "cluster_id" or len(ids[claim["endpoint"]]) == 1]


class SlotRange(NamedTuple):
    """Slots that are looked through, by whole blocks: from one to before another."""

    since: int
    before: int
    block: int = BLOCK


def folded(outcomes: Outcomes, failed: Collection[int], span: SlotRange, pauses: dict[str, Any] | None = None) -> bool:
    """Whether successes of the blocks of a span became fewer. A streak of errors ends, or begins, at a success, so
    blocks with other answers, or with rejections by other servers (`failed`), and their neighbours, stay as they are.
    So do pauses of more than a slot, unless the longest of them is kept in `pauses`.
    """
    block, good = span.block, outcomes.of(SUCCESS)
    since, before = span.since // block * block, span.before // block * block
    slots = sorted([slot for slot in good if since <= slot < before])
    if len(slots) < 2:
        return False
    other = {slot for error in outcomes.errors() for slot in outcomes.of(error)}
    near = {(slot + beside) // block for slot in (*failed, *other) for beside in (-1, 0, 1)}
    begin, until_ns, found = -1, 0, False
    for slot in slots:
        runs = good[slot].values()
        first_ns, last_ns = min(run.first_ns for run in runs), max(run.last_ns for run in runs)
        pause_ns, until, until_ns = first_ns - until_ns, until_ns // SLOT_NS, last_ns
        goes_on = begin >= 0 and begin // block == slot // block and (pauses is not None or pause_ns <= SLOT_NS)
        if not goes_on or slot // block in near:
            begin = slot
            continue
        found = True
        if pauses is not None:
            pauses[PAUSE] = max(pauses.get(PAUSE, 0), (slot - until) * SLOT_NS)
        outcomes.move(SUCCESS, slot, begin)
    return found


def departed(claims: list[Claim], oldest_ns: int) -> Iterator[Claim]:
    kept = {id(claim) for claim in ends_of(claims)}
    for claim in claims:
        if claim.kind == "busy":
            claim.peak.update({name: since(spans, oldest_ns) for name, spans in claim.peak.items()})
        if claim.kind in LASTING or claim.last.ts_ns >= oldest_ns or id(claim) in kept:
            continue
        if claim.kind not in ADDED or connection_of(claim) is None:  # what open connections add goes with them
            yield claim


def ends_of(claims: Iterable[Claim]) -> Iterator[Claim]:
    """Bindings and states of partitions that stay however old they are."""
    bindings: dict[object, list[Claim]] = {}
    states: dict[object, list[Claim]] = {}
    for claim in claims:
        if claim.kind == "binding":
            bindings.setdefault((claim["name"], claim["topic_id"], claim["source"]), []).append(claim)
        elif claim.kind == "partition":
            states.setdefault((claim["topic_id"], claim["partition"], claim["source"]), []).append(claim)
    for found in bindings.values():
        yield min(found, key=lambda claim: (claim.first, repr(claim.key)))
        yield max(found, key=lambda claim: (claim.last, repr(claim.key)))
    for found in states.values():
        yield min(found, key=lambda claim: (claim["leader_epoch"], claim.first))
        yield max(found, key=lambda claim: (claim["leader_epoch"], claim.first))
        yield max(found, key=lambda claim: (claim["leader_epoch"], claim.last))
        yield from (claim for claim in found if "is_new" in claim.tally)


def ended(subject: Subject, ledger: Ledger, oldest_ns: int) -> bool:
    """Whether a topic ID has ended, and was not mentioned since the horizon."""
    claims = list(ledger.claims_of(*subject).values())
    if any(claim.last.ts_ns >= oldest_ns for claim in claims):
        return False
    if any(claim.kind == "deletion" for claim in claims):
        return True
    first = {claim["name"]: claim.first for claim in sorted(claims, key=lambda c: c.first) if claim.kind == "binding"}
    return bool(first) and all(
        any(
            other.kind == "binding" and other["topic_id"] not in {None, subject[1]} and other.first > since
            for other in ledger.claims_of("name", name).values()
        )
        for name, since in first.items()
    )


def of_ids(claims: list[Claim], ids: set[str]) -> Iterator[Claim]:
    """The claims about names that mention IDs that leave."""
    for claim in claims:
        if ids and claim.kind in {"binding", "changed", "creation", "deletion", "ordered"} and claim["topic_id"] in ids:
            yield claim
