"""What a replay means, in one sentence, and which findings need attention.

Nothing is called healthy that was not seen; the sentence states how much of the traffic was read.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from wirecheck.judge.checks.listed_checks import LINES
from wirecheck.story.cards import MOST_CARDS, below, cannot, clients_seen, listed, state
from wirecheck.story.entries import BLAMED, KINDS
from wirecheck.story.expectations import remarks
from wirecheck.story.marks import AWAY, CLOCKS_UNKNOWN, failing_clients, marks_of
from wirecheck.story.seen import Cluster, Coverage, NotKept
from wirecheck.story.severity import names
from wirecheck.story.verdict import Card, CardEntry, Finding, Verdict
from wirecheck.wording import NS_PER_S, duration, plural

PLURALS = {"violation": "violations", "anomaly": "anomalies", "information": "notes", "visibility": "blind spots"}
SINGULARS = {**{kind: kind for kind in KINDS}, "information": "note", "visibility": "blind spot"}
WHY_UNDECODED = {
    "unknown_api": "of an API that no release has",
    "unknown_version": "of a version newer than is known",
    "left_out": "with bytes that were not kept",
    "no_request": "without their request",
    "possibly_a_draft": "not in a released layout, possibly in a draft's",
    "bad_length": "with an impossible length",
    "bad_varint": "with an impossible varint",
    "bad_text": "with text that is none",
    "unexpected_null": "with a null that must not be",
    "bad_tag": "with tagged fields out of order",
    "leftover_bytes": "with bytes left over",
}
"""What stands behind a count; a reason that reads well itself is not here."""
NOT_OPENED = {
    "tunnels-too-deep": "in tunnels nested more than three deep",
    "tzsp-tunnel": "in TZSP tunnels (UDP port 37008), which are not read",
    "gtp-u-tunnel": "in GTP-U tunnels (UDP port 2152), which are not read",
    "l2tp-tunnel": "in L2TP tunnels (UDP port 1701), which are not read",
    "ipv4-fragment": "that are IP fragments",
    "ipv6-fragment": "that are IP fragments",
}
"""Why packets were not looked into, and how a sentence says so."""
NOT_TCP = frozenset({"non-tcp", "not-ip"})
"""Reasons why a packet was skipped that can be no Kafka client's."""
TRANSLATED = "translated"
"""Why a packet was skipped that is in the capture under other addresses, too."""
UNKNOWN_CLUSTER = "unknown cluster"
NO_CLIENT = "-"
"""Where no client is known to be hurt."""


def sentence(result: Verdict) -> str:
    """The first card's headline; where nothing is wrong, that, and what it rests on."""
    found = blamed(result)
    if found:
        return found[0].card.headline
    if result.not_listed:
        return f"Nothing of what was asked for needs a look; {plural(result.not_listed, 'finding')} not listed."
    if not result.coverage.messages:
        return f"No result: {nothing_of_kafka(result.coverage)}."
    limit = " in what could be read" if blind(result) else ""
    if any(entry.expected for entry in result.entries):
        return f"Only what is expected was found{limit}; {basis(result)}."
    work = marks_of(result).work
    doubt = f"; {work.sentence}" if work.mark != "clear" and result.clients else ""
    return f"No contradiction about topic IDs or versions was found{limit}{doubt}; {basis(result)}."


def blamed(result: Verdict) -> list[CardEntry]:
    """Entries that need a look; none without messages."""
    return [entry for entry in result.entries if result.coverage.messages if needs_a_look(entry)]


def hurt_clients(result: Verdict) -> set[str]:
    """Who is on the cards of those, by client ID, or by address without one."""
    harms = [entry.card.harm for entry in blamed(result)]
    return {one.client_id or one.address or "" for harm in harms for one in (*harm.clients, *harm.briefly)}


def needs_a_look(entry: CardEntry) -> bool:
    """Whether an entry does, for itself or for its consequences, or because it says what must not be done."""
    return hurts_or_is(entry, BLAMED) or (bool(entry.card.action.forbids) and not entry.expected)


def fails(entry: CardEntry) -> bool:
    """Whether it has a red mark, and `replay` exits with 1: Kafka's rules are broken, or a client is hurt, also if that
    is over.
    """
    return hurts_or_is(entry, BLAMED[:1])


def hurts_or_is(entry: CardEntry, kinds: Collection[str]) -> bool:
    """Whether an unexpected entry hurts a client, or a finding of it is of one of these kinds."""
    if entry.expected:
        return False
    return bool(entry.card.harm.clients) or any(one.kind in kinds for one in entry.with_consequences)


def failing(result: Verdict) -> set[str]:
    """The findings by which a result fails: violations, and what hurts clients."""
    entries = [entry for entry in result.entries if fails(entry)]
    blamed = [one for entry in entries for one in entry.with_consequences if one.kind in BLAMED]
    return {name for one in (*entries, *blamed) for name in one.findings}


class ShownCard(NamedTuple):
    """The card of a cause as every form of a result shows it."""

    mood: str
    """violation or anomaly: its mark."""
    headline: str
    since: str
    rows: list[tuple[str, str]]
    """Label and text of each line below the headline."""
    is_open: bool = False
    """It forbids something: a page folds it never."""


def first_cards(result: Verdict, *, every: bool = False) -> list[ShownCard]:
    """Those of the first causes, as many as a first screen has, and all that forbid something; or of all causes."""
    shown = [one for place, one in enumerate(blamed(result)) if every or place < MOST_CARDS or one.card.action.forbids]
    return [*shown_cards(result, shown)]


def shown_cards(result: Verdict, entries: Iterable[CardEntry]) -> Iterator[ShownCard]:
    """With the names of their clusters where the result has several, and with days where it has several."""
    clients, dated, several = clients_seen(result.clients), result.of_several_days, len(clusters_seen(result)) > 1
    for entry in entries:
        cluster = named_cluster(entry.cluster) if several else ""
        yield shown_card(entry.card, clients[entry.cluster], mood_of(entry), dated=dated, cluster=cluster)


def mood_of(entry: CardEntry) -> Literal["violation", "anomaly"]:
    return "violation" if fails(entry) else "anomaly"


def shown_card(
    card: Card, clients: int, mood: str = "violation", *, dated: bool = False, cluster: str = ""
) -> ShownCard:
    """`clients`: how many of its cluster were seen at all."""
    rows = [*([("cluster", cluster)] if cluster else []), *below(card, clients)]
    return ShownCard(mood, card.headline, state(card, dated=dated), rows, bool(card.action.forbids))


def clusters_seen(result: Verdict) -> set[str]:
    """Clusters by ID, or by label without one, that have a topic or a client."""
    found = {one.cluster for one in result.topics} | {one.cluster for one in result.clients}
    return {cluster for cluster in found if cluster is not None}


def nothing_of_kafka(coverage: Coverage) -> str:
    """What there was instead of Kafka messages."""
    if coverage.encrypted_connections:
        return f"no Kafka message could be read; {plural(coverage.encrypted_connections, 'connection')} encrypted"
    refused = coverage.parts("refused_connections")
    if refused and sum(refused.values()) + coverage.unlisted_connections >= coverage.connections:
        many = plural(coverage.connections, "connection")
        return f"{many} refused by {listed(sorted(refused))}: no process listens there"
    reasons = coverage.parts("skipped_frames")
    other = sum(count for reason, count in reasons.items() if reason.rpartition(": ")[2] in NOT_TCP)
    closed = Counter[str]()
    for reason, count in reasons.items():
        closed[NOT_OPENED.get(reason.rpartition(": ")[2], "")] += count
    del closed[""]
    if other and not coverage.frames and other == sum(reasons.values()):
        return f"{plural(other, 'packet')}, none of them TCP"
    what = f"{plural(coverage.frames, 'frame')} of {plural(coverage.connections, 'connection')}"
    return "; ".join(
        [f"no Kafka traffic in {what}", *(f"{plural(count, 'packet')} {how}" for how, count in sorted(closed.items()))]
    )


def mood(result: Verdict) -> str:
    """What marks and colours the verdict: violation (it fails), anomaly, visibility (it cannot be known), or clear."""
    found = {mood_of(entry) for entry in blamed(result)} | {one.mark for _, one in marks_of(result).both}
    if not result.coverage.messages or (blind(result) and found <= {"clear"}):
        return "visibility"
    return next(kind for kind in (*KINDS[:2], "visibility", "clear") if kind in found)


def blind(result: Verdict) -> bool:
    coverage = result.coverage
    unread = coverage.unseen_bytes or coverage.encrypted_connections or coverage.undecoded_messages
    return bool(unread or coverage.input_errors)


def overflow(others: NotKept) -> str:
    """What bounds by number omit."""
    return f"{others.count:,} more {others.table} of {others.cluster} that were seen and are not kept"


def basis(result: Verdict) -> str:
    coverage = result.coverage
    text = f"{coverage.share} of {coverage.messages:,} messages were decoded"
    if coverage.encrypted_connections:
        text += f", {plural(coverage.encrypted_connections, 'connection')} encrypted"
    if coverage.unseen_bytes:
        text += f", {size(coverage.unseen_bytes)} never captured"
    return text + "".join(f", {words}" for words in not_compared(coverage))


def not_compared(coverage: Coverage) -> list[str]:
    """What is of no known cluster, in a few words; nothing where there is none."""
    counts = (
        (coverage.unassigned_endpoints, "endpoint"),
        (coverage.unassigned_topics, "topic"),
        (coverage.unassigned_clients, "client"),
    )
    found = [plural(count, noun) for count, noun in counts if count]
    return [f"{', '.join(found)} of an unknown cluster not compared"] if found else []


def too_young(result: Verdict) -> str:
    """Which clients fail, too young for a card: their last requests were not granted."""
    found = failing_clients(result)
    if not found:
        return ""
    first = found[0]
    how = f" ({first.work.how})" if first.work is not None else ""
    names = listed([one.client_id or "a client without an ID" for one in found])
    return f"{names}{how}, too young to be called stalled: wirecheck errors"


def without_card(result: Verdict, code: str) -> str:
    """What a check found that is on no card, because it is unknown which clients that hurts; empty without any. Not
    that a client does no work, whatever the topic, where a card says already that it is hurt; but that of another group
    may be about another process of the same client ID.
    """
    found = blamed(result)
    hurt = {hurt.client[0] for entry in found for hurt in entry.card.harm.clients}
    groups = {one.id: one.words.get("group") for one in result.findings}
    on_cards = {groups.get(name) for entry in found for name in entry.finding_ids} | {None}
    shown = on_cards | {topic for entry in found for topic in entry.topics}
    mine = (one for one in result.entries if one.code == code and not needs_a_look(one))
    new = (
        one
        for one in mine
        if not one.client_ids
        or not hurt.issuperset(one.client_ids)
        or not shown.issuperset({*one.topics, *(groups.get(name) for name in one.findings)})
    )
    return sentences([one.card.headline for one in new])


def sentences(every: Sequence[str], left: int = 0) -> str:
    """The first MOST_NOTES, and how many more there are; a name may hold an "and", so they are parted otherwise."""
    left += len(every[MOST_NOTES:])
    return "; ".join([*every[:MOST_NOTES], *([f"{left:,} more with -v"] if left else [])])


MOST_NOTES = 2


def notes(result: Verdict) -> str:
    """The first note of each of the first checks that have one, and how many more there are; empty without any."""
    every = [one for one in result.entries if one.kind == "information" and one.code not in LINES and not one.expected]
    first = list({one.code: one for one in reversed(every)}.values())[::-1][:MOST_NOTES]
    left = sum(one.count for one in every) - sum(one.count for one in first)
    return sentences([one.card.headline for one in first], left)


def besides(result: Verdict) -> Iterator[tuple[str, str]]:
    """Label and text of what is on no card: clients that may be about to fail, what was expected, notes if there is no
    card, LINES, and clocks that were set. Who is refused for long is on a card (`story/unexplained.py`).
    """
    if failing_now := too_young(result):
        yield "failing", failing_now
    for remark in remarks(result):
        yield "expected", remark
    if not blamed(result) and (found := notes(result)):
        yield "note", found
    for code, label in LINES.items():
        if found := without_card(result, code):
            yield label, found
    for line in (*result.coverage.parts("clock_steps"), *unknown_clocks(result.coverage)):
        yield "clock", line
    for line in result.coverage.parts(AWAY):
        yield "away", line
    if behind := result.coverage.parts("connections_behind_key_updates"):
        yield "joined", joined(behind)


def unknown_clocks(coverage: Coverage) -> Iterator[str]:
    """One line, however many files have such a clock, and what that takes from the findings."""
    every = [*coverage.parts(CLOCKS_UNKNOWN)]
    if every:
        others = f", nor of {plural(len(every) - 1, 'other file')}" if every[1:] else ""
        yield f"{every[0]}{others}; findings that rest on files of several clocks have to hold a minute apart"


def not_read(coverage: Coverage) -> list[str]:
    """What is missing, in a few words each; nothing where all was read."""
    found = (
        (coverage.unseen_bytes, "byte", f" not captured{cut(coverage)}"),
        (coverage.encrypted_connections, "encrypted connection", undecrypted(coverage)),
        (coverage.undecoded_messages, "message", f" not decoded{reasons(coverage)}"),
        (coverage.dropped_frames, "packet", " dropped while capturing"),
        (coverage.measures.get(AWAY, 0), "second", " not captured"),
        (sum(unreadable(coverage).values()), "packet", f" not readable ({', '.join(unreadable(coverage))})"),
    )
    return [f"{plural(count, noun)}{rest}" for count, noun, rest in found if count]


def cut_messages(coverage: Coverage) -> str:
    """What was captured of messages that a gap cut, or that began before the capture; they are in no count. Bytes of
    encrypted connections are no part of any message that can be known.
    """
    count = 0 if coverage.encrypted_connections else coverage.measures.get("skipped_bytes", 0)
    return f", besides {plural(count, 'byte')} of messages that were cut" if count else ""


def suggestions(coverage: Coverage) -> list[str]:
    """A line for each draft that would read messages that were not decoded."""
    found = coverage.parts("draft_messages")
    return [
        f"{plural(count, 'message')} decode{'s' * (count == 1)} as {name}: use `--dialect {name}`"
        for name, count in sorted(found.items())
    ]


def cut(coverage: Coverage) -> str:
    """How many of the bytes that are missing the snap length of the capture cut off."""
    found = coverage.parts("unseen_bytes").get("snap length", 0)
    return f" ({found:,} cut by the snap length; capture whole packets)" if found else ""


def unreadable(coverage: Coverage) -> Counter[str]:
    """Packets that may have been Kafka's and cannot be read, by why; what is no TCP is none of them."""
    found: Counter[str] = Counter()
    for detail, count in coverage.parts("skipped_frames").items():
        if (reason := detail.rpartition(": ")[2]) not in NOT_TCP | {TRANSLATED}:
            found[reason] += count
    return found


def counted_once(coverage: Coverage) -> str:
    """That packets are in the capture before and after a translation of addresses; empty without any."""
    skipped = coverage.parts("skipped_frames")
    copies = sum(count for detail, count in skipped.items() if detail.rpartition(": ")[2] == TRANSLATED)
    return f"the same packets under two addresses (NAT): {copies:,} counted once" if copies else ""


def undecrypted(coverage: Coverage) -> str:
    """Why connections stayed encrypted although keys were given."""
    found = coverage.parts("undecrypted_connections")
    return f" ({', '.join(f'{count:,}: {reason}' for reason, count in sorted(found.items()))})" if found else ""


def joined(behind: Mapping[str, int]) -> str:
    """Which generation of their keys opened connections that are older than the capture."""
    listed = ", ".join(f"{count:,} {how}" for how, count in sorted(behind.items()))
    return f"{plural(sum(behind.values()), 'TLS connection')} older than the capture: {listed}"


def reasons(coverage: Coverage) -> str:
    """Why messages were not decoded, most frequent first: ` (3 without their request, 2 truncated)`."""
    found = coverage.parts("undecoded_messages")
    counts = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    listed = ", ".join(f"{count:,} {WHY_UNDECODED.get(reason, reason.replace('_', ' '))}" for reason, count in counts)
    return f" ({listed})" if listed else ""


def by_kind(findings: Iterable[Finding]) -> dict[str, int]:
    counts = dict.fromkeys(KINDS, 0)
    for finding in findings:
        counts[finding.kind] += finding.others or 1
    return counts


def counted(kind: str, count: int) -> str:
    return f"{count:,} {SINGULARS[kind] if count == 1 else PLURALS[kind]}"


def size(count: int) -> str:
    """Bytes in the largest binary unit that leaves at least one."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def named_cluster(cluster: str | None) -> str:
    """What people read where something speaks against every cluster that is known."""
    return UNKNOWN_CLUSTER if cluster is None else cluster


def heading(cluster: Cluster, clusters: Iterable[Cluster]) -> str:
    """A cluster, as people call it among the others of its label."""
    if cluster.cluster_id:
        return cluster.cluster_id
    has_id = any(other.cluster_id for other in clusters if other.label == cluster.label)
    return UNKNOWN_CLUSTER if has_id else "(ID not captured)"


CARD_HEADINGS = ("age", "cluster", "who is hurt", "what", "cause", "finding")


def card_cells(entry: CardEntry, end_ns: int, cluster: str = "") -> tuple[str, ...]:
    """One row of a list of cards, in the order of CARD_HEADINGS. `end_ns`: when anything was seen last. `cluster`:
    its name, where there are several.
    """
    card, harm = entry.card, entry.card.harm
    begins = [one.first_ns for one in harm.clients] + [one.first_ns for one in harm.partitions]
    since_ns = min([card.cause.time_ns, *begins])
    if harm.clients:
        hurt, what = names(entry), cannot(harm.clients[0])[0]
        hurt += "" if any(one.ongoing for one in harm.clients) else " (over)"
    else:
        hurt, what = "", card.headline
    age, cause = duration((end_ns - since_ns) / NS_PER_S), card.cause.sentence
    why = "" if cause == card.headline else cause
    return age, cluster, hurt or NO_CLIENT, what, why, f"{entry.code} {entry.findings[0]}"
