"""The card of an entry: which clients are hurt, what caused it, what to do, and the evidence. All outputs show the same
text.

Rule: everything on a card comes from its findings and harms. Text from the wire is quoted for a shell in commands, and
escaped where it is printed.
"""

import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from operator import attrgetter
from typing import Any, cast, get_args

from wirecheck.client_ids import broker_of, is_internal
from wirecheck.decode.peer import Conversation
from wirecheck.judge.checks.declaration import AGREEMENT
from wirecheck.judge.checks.listed_checks import check_of
from wirecheck.judge.checks.page import remedy
from wirecheck.story import harm, outcomes
from wirecheck.story.card_context import Asks, CardContext
from wirecheck.story.causes import requesters
from wirecheck.story.entries import BLAMED, origin
from wirecheck.story.just_before import OF_COORDINATORS, just_before, missing, rejected_creation
from wirecheck.story.seen import Client, Recreation
from wirecheck.story.verdict import (
    Act,
    Card,
    CardAction,
    CardCause,
    CardEntry,
    CardEvidence,
    CardHarm,
    Entry,
    Finding,
    Fix,
    Harm,
    HurtClient,
    HurtPartitions,
    HurtRequests,
    Lack,
    Requester,
)
from wirecheck.wording import NS_PER_S, and_list, clock, duration, filled, number_list, pace, plural, shortened

READS = frozenset({"Fetch", "ShareFetch", "ListOffsets", "OffsetForLeaderEpoch"})
NOT_AFFECTED = "no client is affected in this capture"
NOUNS = {
    "Fetch": ("fetch", "fetches"),
    "ShareFetch": ("share fetch", "share fetches"),
    "Produce": ("write", "writes"),
    "OffsetCommit": ("offset commit", "offset commits"),
}
CANNOT = {
    "SaslHandshake": "cannot log in",
    "SaslAuthenticate": "cannot log in",
    "FindCoordinator": "cannot use its group or transactional ID",
    "JoinGroup": "cannot join its group",
    "InitProducerId": "gets no producer ID",
    "Metadata": "gets no metadata",
    "OffsetFetch": "gets no committed offsets",
    "TxnOffsetCommit": "cannot commit offsets",
    "ShareAcknowledge": "cannot acknowledge records",
}
"""What a client cannot do whose requests of an API are rejected; of others the API is named."""
OF_REQUESTS = frozenset({harm.NO_RESPONSE, harm.CLOSED, harm.CLOSED_WITHOUT_RESPONSE, harm.UNSUPPORTED})
"""Errors that a request has as a whole; others are counted by partition."""
OF_HOSTS = frozenset({harm.NOT_KAFKA, harm.UNREACHABLE})
"""What stands in place of an error where a host answered none of its clients."""
REJECTED_NOW, REJECTED_BEFORE, WITHOUT = "are rejected", "were rejected", "get no response"
NAMES_SHOWN = 3
MOST_LISTED = 10_000
"""Clients or partitions of one card, as many as one check has findings at most: all of them are counted. Names that
traffic chose without end are not kept.
"""
NO_HARM = CardHarm("", (), (), (), (), (), 0)
FRAMES_SHOWN = 4
MOST_CARDS = 5
"""So many causes are read at once."""
FULL_TIME = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)\.\d{3}(?= UTC)", re.ASCII)
UTC_TIME = re.compile(r"\d\d:\d\d:\d\d(?= UTC)", re.ASCII)


def with_cards(entries: Sequence[Entry], harms: Sequence[Harm], context: CardContext) -> list[CardEntry]:
    """Entries with their cards in reading order: those that hurt a client first; of those that contradict nothing the
    ones that hurt most clients.
    """
    if not context.hosts:
        harms = [replace(one, address="") for one in harms]
    found = harm.by_entry(entries, context.findings, harms)
    elsewhere = possibly_hurt(found)
    made = [
        card_entry(
            entry, card(entry, with_stated(found.get(place, ()), entry, context), elsewhere.get(place, ()), context)
        )
        for place, entry in enumerate(entries)
    ]
    return in_accord(sorted(made, key=lambda entry: (-hurt(entry.card.harm), *widest(entry))))


def in_accord(made: list[CardEntry]) -> list[CardEntry]:
    """A card that asks for what another one of its cluster forbids says what comes first. Cards that forbid something
    come before all others.
    """
    forbid = [one for one in made if one.card.action.forbids]
    worded = []
    for entry in made:
        against = [one for one in forbid if one.cluster == entry.cluster and one is not entry and forbidden(one, entry)]
        worded.append(after(entry, against) if against else entry)
    return sorted(worded, key=lambda one: not one.card.action.forbids)


def forbidden(one: CardEntry, other: CardEntry) -> set[Act]:
    """What the first forbids of what the other asks for."""
    asks = other.card.action.asks
    return {asked.act for asked in asks if any(each.against(asked) for each in one.card.action.forbids)}


def after(entry: CardEntry, before: Sequence[CardEntry]) -> CardEntry:
    acts = and_list(sorted({act for one in before for act in forbidden(one, entry)}))
    which = and_list([f"{one.code} about {one.topics[0]}" if any(one.topics[:1]) else one.code for one in before])
    text = f"First do what the card of {which} says, and {acts} only after that. {entry.card.action.sentence}"
    return replace(entry, card=replace(entry.card, action=replace(entry.card.action, sentence=text)))


def card_entry(entry: Entry, made: Card) -> CardEntry:
    same: dict[str, Any] = {column.name: getattr(entry, column.name) for column in fields(Entry)}
    return CardEntry(**same, card=made)


def hurt(of: CardHarm) -> int:
    """How much harm there is: clients count more than partitions, and continuing harm more than harm that ended."""
    return 4 * any(one.ongoing for one in of.clients) + 2 * bool(of.clients) + bool(of.partitions)


def widest(entry: CardEntry) -> tuple[bool, int]:
    """Where an entry comes among those of as much harm: as it came before where it hurts no client."""
    hit = len({one.client for one in entry.card.harm.clients})
    about_work = hit > 0 and check_of(entry.code).question != AGREEMENT
    return about_work, -hit * about_work


def with_stated(found: Sequence[harm.Attached], entry: Entry, context: CardContext) -> list[harm.Attached]:
    """With the harm that the entry's findings state themselves: that says more than what is refused to the client
    besides, unless it has no error, and the client is refused the same for long. Records that were never read are lost
    beside that.
    """
    refused = {(one.harm.client, one.harm.api) for one in found if not one.declared and one.harm.level == harm.HURT}
    states = [
        one
        for one in stated_by(entry, context)
        if harm.SILENT.isdisjoint(one.harm.errors) or is_loss(one) or (one.harm.client, one.harm.api) not in refused
    ]
    explained = {one.harm.client for one in states if not is_loss(one)}
    lost = {one.harm.client for one in states if is_loss(one)}

    def says_more(one: harm.Attached) -> bool:
        client = one.harm.client
        return client not in explained | lost or (client not in explained and (client, one.harm.api) in refused)

    return [*(one for one in found if one.declared or says_more(one)), *states]


def is_loss(one: harm.Attached) -> bool:
    return harm.NEVER_READ in one.harm.errors


def stated_by(entry: Entry, context: CardContext) -> list[harm.Attached]:
    found = ((name, one) for name in entry.finding_ids for one in harm.stated(context.findings[name]))
    return [
        harm.Attached(one if context.hosts else replace(one, address=""), sure=True, finding=name)
        for name, one in found
    ]


def card(entry: Entry, harms: Sequence[harm.Attached], possibly: Sequence[str], context: CardContext) -> Card:
    """The card of an entry with its harms. `possibly`: clients on other cards that this entry may have caused to be
    rejected.
    """
    of = harm_of(entry, harms, possibly, context)
    facts = CardFacts(entry, of, harms, context)
    cause = cause_of(facts)
    hurts = of.clients or (of.partitions and entry.kind != "visibility")
    headline = capitalized(of.sentence if hurts else fault(entry, cause, context))
    before: tuple[str, ...] = ()
    if of.clients and entry.code in CHANGED_BEFORE:
        changes = context.changes_before(of.clients[0].first_ns, entry.cluster)
        before = just_before(of.clients[0], changes, dated=context.dated)
    return Card(headline, of, cause, action_of(facts), evidence_of(facts), before, since_then(entry, context))


def since_then(entry: Entry, context: CardContext) -> tuple[str, ...]:
    """What the clients of recreated topics have done since, as far as it fits on a card; a writer that goes on is what
    one expects.
    """
    if entry.code != RECREATED or not entry.consequences:
        return ()
    found = since_recreation(entry, context)
    known = (one for one in found if one.is_lost or (one.does == "reads" and one.partitions))
    found = sorted(known, key=lambda one: not one.is_lost)
    if len(found) == 1 and not found[0].partitions:
        return ()  # as the headline has it
    several = len(entry.topics) > 1
    shown = [
        f"{one.client if context.hosts else one.client_id}{f' of {one.topic}' * several} {one.what}"
        for one in found[:MOST_SINCE]
    ]
    return (*shown, *([plural(len(found) - MOST_SINCE, "other client")] if len(found) > MOST_SINCE else []))


def since_recreation(entry: Entry, context: CardContext) -> list[Recreation]:
    if entry.code != RECREATED:
        return []
    return [one for one in context.recreations if one.topic in entry.topics and one.cluster == entry.cluster]


MOST_SINCE = 4
REFUSED = "CLI006"
LACKS_A_TOPIC = {REFUSED, "GRP006"}
"""Whose clients, or coordinators, may lack a topic that another one cannot create."""
CHANGED_BEFORE = {REFUSED, "CLI007"}
"""Whose cards name what was changed just before: a rejection without a known cause, and a quota."""
"""The check of clients that are rejected without a known cause."""


@dataclass(frozen=True)
class CardFacts:
    """What the sentences of one card are made of."""

    entry: Entry
    harmed: CardHarm
    harms: Sequence[harm.Attached]
    context: CardContext

    @cached_property
    def finding(self) -> Finding:
        """Of the entry the first; where each topic of a client is one, that with which the headline begins."""
        first = self.context.findings[self.entry.findings[0]]
        if first.code != REFUSED or not self.harmed.clients:
            return first
        worst = self.harmed.clients[0]
        every = map(self.context.findings.__getitem__, self.entry.findings)
        return next((one for one in every if one.topic == worst.topic and worst.client_id in one.client_ids), first)

    @cached_property
    def stale(self) -> list[int]:
        """Brokers that may be why clients keep an old topic ID."""
        return sorted({broker for one in self.harms if one.sure for broker in one.stale})

    @property
    def every_is_of_a_broker(self) -> bool:
        return all(self.context.findings[name].brokers for name in self.entry.findings)

    def of(self, entry: Entry) -> "CardFacts":
        """The same card's facts for one of its consequences."""
        return replace(self, entry=entry)


def fault(entry: Entry, cause: CardCause, context: CardContext) -> str:
    """The cause; for a normal event, such as a recreation, what has been wrong since then."""
    wrong = [one for one in entry.consequences if one.kind in BLAMED]
    if entry.kind in BLAMED or not wrong:
        return cause.sentence
    first, *more = (context.findings[name] for one in wrong for name in one.findings)
    return summary(first, context) + also_groups(first, more)


def also_groups(first: Finding, more: Iterable[Finding]) -> str:
    """The other groups of which the same is found."""
    alike = (one.words.get("group", "") for one in more if one.code == first.code)
    names = sorted({*alike} - {"", first.words.get("group", "")})
    return f"; also group{'' if len(names) == 1 else 's'} {listed(names)}" if names else ""


def summary(finding: Finding, context: CardContext) -> str:
    """With the clock that all of the card has."""
    return short_times(finding.summary.removesuffix("."), context)


def short_times(text: str, context: CardContext) -> str:
    """Times of the judge's sentences to the second; with their day where there are several."""
    return FULL_TIME.sub(r"\1 \2" if context.dated else r"\2", text)


def capitalized(text: str) -> str:
    """A name from the wire stays as it is."""
    word = text.split(" ", 1)[0]
    return text[:1].upper() + text[1:] if word in {"broker", "brokers", "no", "an", "a", "the"} else text


# harm


def harm_of(entry: Entry, harms: Sequence[harm.Attached], possibly: Sequence[str], context: CardContext) -> CardHarm:
    mine = harm.joined(one.harm for one in harms)
    clients = harm.worst_first(harm.hurt_client(one, context.end_ns) for one in mine if one.level == harm.HURT)
    named = {one.client for one in clients}
    named |= {(one.client_id, one.address) for one in since_recreation(entry, context) if one.is_lost}
    lesser = (one for one in mine if one.level != harm.HURT and one.client not in named)
    briefly = harm.worst_first(harm.hurt_client(one, context.end_ns) for one in lesser)
    partitions = partitions_of(entry, context)
    none = possible_sentence(possibly) or unhurt(entry, context)
    return CardHarm(
        sentence=harm_sentence(clients, partitions, context) or none,
        clients=tuple(clients[:MOST_LISTED]),
        requests=tuple(requests_of(clients, context)),
        briefly=tuple(briefly[:MOST_LISTED]),
        partitions=tuple(partitions[:MOST_LISTED]),
        possibly=tuple(possibly[:MOST_LISTED]),
        others=sum(max(0, len(found) - MOST_LISTED) for found in (clients, briefly, partitions, possibly)),
    )


def requests_of(clients: Iterable[HurtClient], context: CardContext) -> Iterator[HurtRequests]:
    """What came of all their requests. One request may name several topics, and counts in the row of each: it is not
    rejected more often than its requests came to nothing. What a host refuses counts in the rows of all its clients.
    """
    of_kind: dict[tuple[str, str], dict[tuple[str | None, str | None], list[int]]] = {}
    for one in clients:
        of_kind.setdefault((one.api, one.error), {}).setdefault(one.client, []).append(one.count)
    for (api, error), of_client in of_kind.items():
        sums = [
            sum(counts)
            if len(counts) == 1 or error in harm.WITHOUT_CODE
            else max(*counts, min(sum(counts), rejected_at_most((*client, api), max(counts), context) or sum(counts)))
            for client, counts in of_client.items()
        ]
        yield HurtRequests(api, error, max(sums) if error in OF_HOSTS else sum(sums))


def rejected_at_most(asks: Asks, least: int, context: CardContext) -> int:
    """Requests that came to nothing; if one topic alone was rejected more often than that, the rest of those requests
    was granted.
    """
    in_vain, every = context.requests.get(asks, (0, 0))
    return in_vain if in_vain >= least else every


def unhurt(entry: Entry, context: CardContext) -> str:
    """The sentence where no harm is known: what may be lost, or that no client is affected. Nothing where a finding
    names a client or a group: these may be affected in a way that no row of harms shows.
    """
    losses = (loss(one, context) for one in entry.with_consequences)
    return next(filter(None, losses), "" if names_clients(entry, context) else NOT_AFFECTED)


def loss(entry: Entry, context: CardContext) -> str:
    """What an entry's check says that may be lost, or which clients may be affected."""
    finding = context.findings[entry.findings[0]]
    words = {**finding.words, "clients": affected(entry, NO_HARM, context)}
    known = check_of(finding.code).sentences.get("unhurt", ())
    return next((filled(one.text, words) for one in known if all(words.get(name) for name in one.needs)), "")


def possibly_hurt(found: Mapping[int, Sequence[harm.Attached]]) -> dict[int, list[str]]:
    """By place of an entry the clients on other cards that may be refused because of it."""
    names: dict[int, set[str]] = {}
    for mine, attached in found.items():
        for one in attached:
            for place in one.may_also - {mine} if one.harm.level == harm.HURT else ():
                names.setdefault(place, set()).add(one.harm.client_id or "")
    return {place: sorted(every) for place, every in names.items()}


def possible_sentence(names: Sequence[str], fate: str = REJECTED_NOW) -> str:
    return f"this may be why requests of {listed(list(map(who, names)))} {fate}" if names else ""


def harm_sentence(clients: Sequence[HurtClient], partitions: Sequence[HurtPartitions], context: CardContext) -> str:
    """The worst in words, the other clients by name, as far as they fit into a sentence; empty if nothing is hurt."""
    if not clients:
        return partition_sentence(partitions) if partitions else ""
    worst = clients[0]
    others = list(dict.fromkeys(who(*one.client) for one in clients if one.client != worst.client))
    more = f"; also hurt: {listed(others)}" if others else ""
    return f"{who(*worst.client)} {does_not(of_its_topics(worst, clients, context))}{more}"


def of_its_topics(worst: HurtClient, clients: Iterable[HurtClient], context: CardContext) -> HurtClient:
    """With all topics of which the client is refused the same, in the topic's place."""
    if worst.topic is None or worst.error in harm.WITHOUT_CODE:
        return worst
    kind = attrgetter("client", "api", "error", "ongoing", "is_partial")
    alike = [one for one in clients if one.topic is not None and kind(one) == kind(worst)]
    (counted,) = requests_of(alike, context)
    return replace(worst, topic=listed(list(dict.fromkeys(one.topic or "" for one in alike))), count=counted.count)


def still_hurt(facts: CardFacts) -> Sequence[HurtClient]:
    """The hurt clients that have not recovered; all of them where each has."""
    still = {one.harm.client for one in facts.harms if not one.harm.recovered}
    return [one for one in facts.harmed.clients if one.client in still] or facts.harmed.clients


def names_clients(entry: Entry, context: CardContext) -> bool:
    """Whether a finding that needs a look is about a client or a group."""
    return any(
        one.kind in BLAMED and ("group" in one.words or not all(map(is_internal, one.client_ids)))
        for one in map(context.findings.__getitem__, entry.finding_ids)
    )


def who(client_id: str | None, *more: str | None) -> str:
    known = ", ".join(filter(None, more))
    return f"{shortened(client_id or 'a client without an ID')}{f' ({known})' if known else ''}"


def does_not(hurt: HurtClient, *, counted: bool = True) -> str:
    """What a client cannot do; how often and for how long, if that counts."""
    what, much = cannot(hurt)
    return f"{what}{much}" if counted else what


def cannot(hurt: HurtClient) -> tuple[str, str]:
    """What a client cannot do, and how often and for how long."""
    return outcomes.cannot(hurt) or (in_part(hurt) if hurt.is_partial else not_at_all(hurt))


def in_part(hurt: HurtClient) -> tuple[str, str]:
    """Of a client whose other requests succeed."""
    much = f": {hurt.count:,} in {duration(hurt.lasted_s)}"
    did = "unanswered" if hurt.error == harm.NO_RESPONSE else "rejected"
    what = nouns(hurt.api)[1] + about("to" if hurt.api == "Produce" else "of", hurt.topic)
    if did == "rejected" and hurt.api not in NOUNS:
        return f"gets errors from some {what}", much
    return f"has some {what} {did}", much


def not_at_all(hurt: HurtClient) -> tuple[str, str]:
    """Of a client none of whose requests of a kind succeeds."""
    lasted, topic = f" in {duration(hurt.lasted_s)}", hurt.topic
    if hurt.error == harm.NO_RESPONSE:
        what = "gets no response" if topic is None else f"cannot write to {topic}"
        return what, f": {plural(hurt.count, hurt.api + ' request')} unanswered{lasted}"
    if hurt.api in READS:
        return f"has read nothing{about('from', topic)}", f" for {duration(hurt.blocked_ms / 1000)}"
    if hurt.api == "Produce":
        return f"cannot write{about('to', topic)}", f": {plural(hurt.count, 'write')} rejected{lasted}"
    if hurt.api == "OffsetCommit":
        return f"cannot commit offsets{about('of', topic)}", f": {plural(hurt.count, 'commit')} rejected{lasted}"
    what = CANNOT.get(hurt.api, f"has its {hurt.api} requests rejected") + about("of", topic)
    return what, f": {plural(hurt.count, 'error')}{lasted}"


def about(preposition: str, topic: str | None) -> str:
    """` of orders`; empty for what is about no topic."""
    return f" {preposition} {topic}" if topic else ""


def listed(names: Sequence[str]) -> str:
    left = len(names) - NAMES_SHOWN
    return and_list([*names[:NAMES_SHOWN], plural(left, "other")] if left > 0 else names)


def partitions_of(entry: Entry, context: CardContext) -> list[HurtPartitions]:
    """Partitions without a working leader, or that a broker does not replicate, as the entry's findings state it."""
    found = []
    for finding in map(context.findings.__getitem__, entry.finding_ids):
        if (what := lacking(finding)) is not None:
            words, number = finding.words, finding.words.get("partition")
            found.append(
                HurtPartitions(
                    topic=finding.topic or next(iter(finding.topic_ids), None),
                    partitions=words.get("partitions") or (f"partition {number}" if number else ""),
                    what=what,
                    brokers=tuple(sorted(requesters(finding))) or finding.brokers,
                    first_ns=finding.first_ns,
                    until_ns=finding.times.get("until"),
                )
            )
    return sorted(found, key=lambda one: (one.what != LEADERLESS, one.first_ns, str(one.topic)))


LEADERLESS = "no working leader"


def lacking(finding: Finding) -> Lack | None:
    """What partitions lack by a finding."""
    known = {name for name, value in finding.words.items() if value}
    found = (one.text for one in check_of(finding.code).sentences.get("lacks", ()) if one.needs <= known)
    return cast("Lack | None", next(found, None))


def partition_sentence(partitions: Sequence[HurtPartitions]) -> str:
    first, left = partitions[0], len(partitions) - 1
    of = f"{first.topic} {first.partitions}".strip()
    broker = numbered(first.brokers) if first.brokers else "a broker"
    if first.what == LEADERLESS:
        rejects = "reject" if len(first.brokers) > 1 else "rejects"
        text = f"{of} has no working leader: {broker} {rejects} requests for it"
    else:
        does = "did" if first.until_ns else "do" if len(first.brokers) > 1 else "does"
        text = f"{broker} {does} not replicate {of}: {first.what}"
    return text + (f" ({left:,} more)" if left else "")


# cause


def cause_of(facts: CardFacts) -> CardCause:
    """What happened, when, and which client did it. The time is never later than the harm, because the same responses
    may show that first.
    """
    entry, finding, harms = facts.entry, facts.finding, facts.harms
    text = sentence("cause", facts)
    if text is None:
        called = origin(finding, dated=facts.context.dated) if entry.consequences else finding.summary.removesuffix(".")
        text = short_times(called, facts.context)
    if (more := entry.count - 1) and not names_all(facts):
        text += f" ({more:,} more like it)"
    text = capitalized(text)
    sure = {one.harm.client for one in harms if one.sure}
    unsure = [one.harm for one in harms if not one.sure and one.harm.client not in sure]
    still = {one.client for one in unsure if not one.recovered}
    for fate in (REJECTED_NOW, REJECTED_BEFORE, WITHOUT):
        names = list(dict.fromkeys(one.client_id or "" for one in unsure if fate == fate_of(one, still)))
        text += f"; {possible_sentence(names, fate)}" if names else ""
    if misled := [one for one in harms if one.misled]:
        brokers = sorted({broker for one in misled for broker in facts.context.findings[one.finding].brokers})
        names = list(dict.fromkeys(one.harm.client_id or "a client" for one in misled))
        text += f"; {numbered(brokers)} gave {listed(names)} the old topic ID"
    time_ns = min([finding.times.get("ended", finding.first_ns), *(one.harm.first_ns for one in harms)])
    return CardCause(text, time_ns, by_of(facts))


def fate_of(one: Harm, still: Collection[tuple[str | None, str | None]]) -> str:
    """What happens to the requests of a client; `still`: the clients that have not recovered."""
    if harm.NO_RESPONSE in one.errors:
        return WITHOUT
    return REJECTED_NOW if one.client in still else REJECTED_BEFORE


def names_all(facts: CardFacts) -> bool:
    """Whether the sentence of the cause is about all findings of the entry: one for each client that it lists, too."""
    code, entry = facts.finding.code, facts.entry
    text = " ".join(one.text for one in check_of(code).sentences.get("cause", ()))
    hurt = {one.client for one in still_hurt(facts)} if "{hurt}" in text else ()
    named = entry.client_ids if "{clients}" in text else hurt
    if facts.finding.words.get("addresses") or len(named) >= entry.count:
        return True
    return code == RECREATED or (code == RETURNED and facts.every_is_of_a_broker)


DELETED, CREATED = "deleted_by", "created_by"


def by_of(facts: CardFacts) -> Requester | None:
    """The client that did it; None if none was captured, or several are possible."""
    finding = facts.finding
    if len({by_whom(facts.context.findings[name]) for name in facts.entry.findings}) > 1:
        return None
    if one := requester(finding, DELETED) or requester(finding, CREATED):
        return one
    names = finding.client_ids if sentence("by", facts) else ()
    hosts = {Conversation.of(side.connection).client.host for side in finding.sides if side.connection}
    host = hosts.pop() if len(hosts) == 1 and facts.context.hosts else None
    return Requester(None, names[0] or None, host) if len(names) == 1 else None


def requester(finding: Finding, action: str) -> Requester | None:
    """Who asked for one of the changes that a finding is about."""
    found = Requester(*(finding.words.get(f"{action}_{name.name}") for name in fields(Requester)))
    return found if found.principal or found.client_id or found.host else None


def by_whom(finding: Finding) -> str:
    """` by lab-admin (User:alice, 10.0.0.9)`; of a recreation by two clients, or of which only one is known, `; app
    deleted it` and who recreated it.
    """
    deleted, created = requester(finding, DELETED), requester(finding, CREATED)
    if deleted == created or (deleted and finding.code != RECREATED):
        return f" by {party(deleted)}" if deleted else ""
    parts = (f"{party(one)} {what} it" for what, one in (("deleted", deleted), ("recreated", created)) if one)
    return f"; {', '.join(parts)}"


def party(one: Requester) -> str:
    return who(one.client_id, one.principal, one.host)


def kept_of_before(facts: CardFacts) -> str:
    """What clients and brokers kept from before a topic was recreated: its ID, a leader, or partitions."""
    hurt = facts.harmed.clients
    if not hurt:
        brokers = sorted(of_consequences(facts, REJECTED, "brokers"))
        verb = "rejects" if len(brokers) == 1 else "reject"
        if not brokers and (away := missed_recreation(facts)):
            verb = "was away then and has" if len(away) == 1 else "were away then and have"
            return f"; {numbered(away)} {verb} never followed the new topic (KAFKA-14616)"
        return f"; {numbered(brokers)} {verb} the new topic ID" if brokers else ""
    former = of_consequences(facts, FORMER_LEADER, "client_ids")
    names: dict[str, list[str]] = {"ID": [], "leader": [], "partitions": [], "records": []}
    kinds = {harm.UNKNOWN_PARTITION: "partitions", harm.NEVER_READ: "records"}
    read_on = {one.client for one in hurt if one.error == harm.NEVER_READ}
    for one in (one for one in hurt if one.client not in read_on or one.error == harm.NEVER_READ or one.ongoing):
        lost = kinds.get(one.error, "ID")
        of_it = names["leader" if one.client_id in former else lost]
        if (name := one.client_id or "a client") not in of_it:
            of_it.append(name)
    kept = [f"{listed(names['ID'])} kept the old topic ID"] if names["ID"] else []
    if kept and facts.stale:
        kept = [f"{kept[0]}, which {numbered(facts.stale)} may still give them"]
    if names["leader"]:
        kept.append(f"{listed(names['leader'])} kept the old leader")
    if names["records"]:
        does = "does" if len(names["records"]) == 1 else "do"
        kept.append(f"{listed(names['records'])} {does} not begin at the first record")
    if kept:
        return f"; {'; '.join(kept)}"
    verb = "uses" if len(names["partitions"]) == 1 else "use"
    return f"; {listed(names['partitions'])} {verb} partitions that it may no longer have"


def missed_recreation(facts: CardFacts) -> list[int]:
    """The brokers that were away when the topic was recreated, and have not followed it since."""
    findings = [facts.context.findings[name] for name in facts.entry.finding_ids]
    return sorted({broker for one in findings if one.words.get("recreated") for broker in one.brokers})


def of_consequences(facts: CardFacts, code: str, field: str) -> set[Any]:
    """The values of a field in all findings of a check that follow from the entry."""
    names = [name for one in facts.entry.consequences if one.code == code for name in one.findings]
    return {value for name in names for value in getattr(facts.context.findings[name], field)}


def numbered(brokers: Sequence[int]) -> str:
    return f"broker{'' if len(brokers) == 1 else 's'} {and_list(number_list(brokers))}"


def state(card: Card, *, dated: bool = False) -> str:
    """`since 00:44:48 UTC, still failing`: of the harm, else of the cause where the headline states no time."""
    clients, partitions = card.harm.clients, card.harm.partitions

    def at(time_ns: int) -> str:
        return f"{clock(time_ns, dated=dated)} UTC"

    if not clients:
        times = [one.first_ns for one in partitions] or [card.cause.time_ns]
        ends = [one.until_ns for one in partitions if one.until_ns]
        until = f", until {at(max(ends))}" if ends and len(ends) == len(partitions) else ""
        return "" if UTC_TIME.search(card.headline) else f"since {at(min(times))}{until}"
    first, last = at(min(one.first_ns for one in clients)), at(max(one.last_ns for one in clients))
    if any(one.ongoing for one in clients):
        return f"since {first}, still failing"
    return f"at {first}" if first == last else f"since {first}, until {last}"


def impact(card: Card, clients: int) -> str:
    """How many requests of how many clients; who was affected briefly."""
    of, parts = card.harm, list[str]()
    counts = {(one.api, one.error): one.count for one in of.requests}
    work = {key: count for key, count in counts.items() if key[0] in NOUNS}
    rest = {key: count for key, count in counts.items() if key not in work}
    shown = work if work and len(rest) > 1 else counts
    phrases = (rejected(api, error, count) + paced(of, api, error, count) for (api, error), count in shown.items())
    parts += dict.fromkeys(phrases)  # what is silent is said once of several APIs
    if shown is work:
        parts.append(f"{plural(sum(rest.values()), 'error')} of {and_list(sorted({api for api, _ in rest}))}")
    if of.clients:
        hit = len({one.client for one in of.clients})
        least = " or more" if of.others and len(of.clients) == MOST_LISTED and hit < clients else ""
        parts.append(f"{hit:,}{least} of {plural(max(clients, hit), 'client')}")
    elif not of.partitions:
        parts.append(of.sentence)
    else:
        parts.append(possible_sentence(of.possibly) or NOT_AFFECTED)
    if of.partitions and of.clients:
        parts.append(partition_sentence(of.partitions))
    if of.briefly:
        names = list(dict.fromkeys(one.client_id or "a client" for one in of.briefly))
        parts.append(f"briefly affected: {listed(names)}")
    return " · ".join(parts)


def rejected(api: str, error: str, count: int) -> str:
    """`28 writes rejected (UNKNOWN_TOPIC_ID)`, `5 ListOffsets errors (NOT_LEADER_OR_FOLLOWER)`: of requests,
    however many partitions they name.
    """
    if own := outcomes.impact(error, api, count):
        return own
    if error in harm.SILENT:
        return f"{error}, without an error"
    if error not in OF_REQUESTS and api not in NOUNS:
        return f"{plural(count, api + ' error')} ({error})"
    one, many = nouns(api)
    did = "unanswered" if error == harm.NO_RESPONSE else f"rejected ({error})"
    return f"{count:,} {one if count == 1 else many} {did}"


def paced(of: CardHarm, api: str, error: str, count: int) -> str:
    """`, 4,480 a second`, of all these clients together; empty where it is not remarkable."""
    mine = [one for one in of.clients if (one.api, one.error) == (api, error)]
    lasted_ns = max(one.last_ns for one in mine) - min(one.first_ns for one in mine)
    often = "" if error in harm.SILENT else pace(count, lasted_ns / NS_PER_S)
    return f", {often}" if often else ""


def nouns(api: str) -> tuple[str, str]:
    """What one request is called, and several."""
    return NOUNS.get(api, (f"{api} request", f"{api} requests"))


def below(card: Card, clients: int) -> Iterator[tuple[str, str]]:
    """The lines below the headline, as (label, text). Commands have the labels `look` and `evidence`."""
    if card.cause.sentence != card.headline:
        yield "cause", card.cause.sentence
    if affected := impact(card, clients):
        yield "impact", affected
    if card.just_before:
        yield "before", "; ".join(card.just_before)
    yield from (("since", text) for text in card.since_then)
    if card.action.sentence:
        yield "fix", card.action.sentence
    yield from (("look", command) for command in card.action.commands)
    yield "evidence", card.evidence.command


# action


UNKNOWN_TOPIC = "no such topic"
"""What brokers report that do not know a topic, in place of its ID."""
NO_RELEASE = {
    name: library
    for library in ("afkak", "kafka-node", "no-kafka", "pykafka")
    for name in (library, f"{library}-client")
}
"""Client IDs that libraries have by default, or that name them, whose last release cannot read from Kafka 4: afkak
21.5.0, kafka-node 5.0.0, no-kafka 3.4.4, pykafka 2.8.0 (November 2026).
"""
RECREATED, REJECTED, FORMER_LEADER = "TID001", "TID002", "FET007"
"""Its sentences name all of its clients; several of it are several topics."""
NEVER_READ, OFFSETS_LOST = "GRP010", "GRP004"
RETURNED = "VER007"
"""Its sentence names all brokers, where every finding of the entry is of one."""


def sentence(part: str, facts: CardFacts) -> str | None:
    """None if the finding lacks a word of each sentence."""
    known = check_of(facts.finding.code).sentences.get(part)
    if known is None:
        return None
    words = words_of(facts)
    text = next((filled(one.text, words) for one in known if all(words.get(name) for name in one.needs)), None)
    return text and short_times(text, facts.context)


def words_of(facts: CardFacts) -> dict[str, str]:
    entry, finding, dated = facts.entry, facts.finding, facts.context.dated
    deleted = clock(finding.times["ended"], dated=dated) if "ended" in finding.times else ""
    created = clock(finding.times.get("time", finding.last_ns), dated=dated)
    hosts = {Conversation.of(side.connection).client.host for side in finding.sides if side.connection}
    every = [facts.context.findings[name] for name in entry.findings]
    several = len(entry.brokers) != 1
    return {
        **finding.words,
        **(recreations(facts, every) if finding.code == RECREATED else {}),
        **(uncreated(facts) if finding.code in LACKS_A_TOPIC else {}),
        **({"price": price(every), "readers": "yes" if len(every) > 1 else ""} if finding.code == NEVER_READ else {}),
        **dict(zip(("them", "do", "have", "their"), PRONOUNS[several], strict=True)),
        "client_host": next(iter(hosts)) if len(hosts) == 1 and facts.context.hosts else "",
        "clients": affected(entry, facts.harmed, facts.context),
        "hurt": listed(list(dict.fromkeys(who(*one.client) for one in still_hurt(facts)))),
        "rejected": listed(list(dict.fromkeys(who(*one.client) for one in to_restart(facts)))),
        "library": and_list(sorted({NO_RELEASE[name] for name in entry.client_ids if name in NO_RELEASE})),
        "stale": numbered(facts.stale) if facts.stale else "",
        "brokers": numbered(entry.brokers) if entry.brokers else "",
        "all_brokers": numbered(entry.brokers) if facts.every_is_of_a_broker else "",
        "topic": finding.topic or (finding.topic_ids or ("(name unknown)",))[0],
        "topic_id": (finding.topic_ids or ("",))[0],
        "deleted": deleted,
        "created": created,
        "at_once": created if created == deleted else "",
        "by": by_whom(finding) if len({by_whom(one) for one in every}) == 1 else "",
        "kept": kept_of_before(facts),
        "fewer": finding.words.get("fewer", ""),
        "unknown": "yes" if finding.words.get("one") == UNKNOWN_TOPIC else "",
        "unused": "" if entry.consequences or facts.harmed.possibly else "yes",
    }


def uncreated(facts: CardFacts) -> dict[str, str]:
    """Words about the topic of the worst of the clients, if attempts to create it were rejected."""
    if not facts.harmed.clients:
        return {}
    worst = facts.harmed.clients[0]
    return rejected_creation(worst, facts.context.creations_of(missing(worst), facts.entry.cluster))


PRONOUNS = {False: ("it", "does", "has", "its"), True: ("them", "do", "have", "their")}
"""Of one broker, and of none or several."""


def recreations(facts: CardFacts, every: Sequence[Finding]) -> dict[str, str]:
    """Of several recreations at once: the topics, those of hurt clients first, then those with the state of all groups
    and transactions; and from when to when.
    """
    if len(topics := {one.topic for one in every}) == 1:
        return {"several": "", "between": ""}
    hurt = dict.fromkeys(one.topic for one in facts.harmed.clients if one.topic in topics)
    others = sorted((one.topic for one in every), key=lambda topic: topic not in OF_COORDINATORS)
    names = [name or "" for name in dict.fromkeys([*hurt, *others])]
    ended = [one.times.get("ended", one.first_ns) for one in every]
    times = [*ended, *(one.times.get("time", one.last_ns) for one in every)]
    first, last = (clock(time_ns, dated=facts.context.dated) for time_ns in (min(times), max(times)))
    return {"several": listed(names), "between": f"at {first}" if first == last else f"from {first} to {last}"}


def to_restart(facts: CardFacts) -> list[HurtClient]:
    """Without those that read on, without some of the records: a restart does not bring them."""
    read_on = {one.client for one in facts.harmed.clients if one.error == harm.NEVER_READ and not one.ongoing}
    return [one for one in still_hurt(facts) if one.client not in read_on or one.ongoing]


def action_of(facts: CardFacts) -> CardAction:
    """What to do about the cause, or, where each consequence needs its own, about these; hurt clients first."""
    entry = facts.entry
    ones = entry.consequences if any(one.own_next for one in entry.consequences) else (entry,)
    first = sentence("fix", facts) if entry not in ones else None
    forbids = fixes("forbids", facts, (entry, *entry.consequences))
    others = [
        one
        for one in ones
        if not (first and check_of(one.code).ended_by_a_restart) and not clash(forbids, fixes("asks", facts, (one,)))
    ]
    others = as_one(others, facts.context)
    texts = [first, *(advice(facts.of(one)) for one in others)]
    text = " ".join(dict.fromkeys(filter(None, texts))).replace("`", "")  # of pages, which are Markdown
    asked = fixes("asks", facts, (*([entry] if first else ()), *others))
    asks = tuple(one for one in asked if not clash(forbids, (one,)))
    return CardAction(text, commands(entry, facts.harmed, facts.context), asks, forbids)


def clash(forbids: Iterable[Fix], asks: Collection[Fix]) -> bool:
    return any(one.against(other) for one in forbids for other in asks)


ITS_BROKERS = "restart its brokers"
"""Of the brokers that a finding is about alone; `restart brokers` is forbidden of all."""


def fixes(part: str, facts: CardFacts, ones: Iterable[Entry]) -> tuple[Fix, ...]:
    """What the advice about these entries asks for, or forbids."""
    found: dict[Fix, None] = {}
    for one in ones:
        about = facts if one is facts.entry else facts.of(one)
        words = (sentence(part, about) or "").split(", ")
        for act in get_args(Act):
            its_own = part == "asks" or (act == "restart brokers" and ITS_BROKERS in words)
            if act in words or (its_own and ITS_BROKERS in words):
                found[Fix(act, of_whom(act, about) if its_own else ())] = None
    return tuple(sorted(found, key=lambda one: (one.act, one.of)))


def of_whom(act: Act, facts: CardFacts) -> tuple[str, ...]:
    """To whom something is done that the advice about an entry asks for; empty where that is not known."""
    every = [facts.context.findings[name] for name in facts.entry.findings]
    if act in {"restart brokers", "start brokers"}:
        return tuple(f"broker {number}" for number in facts.entry.brokers)
    if act == "reset offsets":
        return tuple(sorted({f"group {group}" for one in every if (group := one.words.get("group"))}))
    if act == "restart clients":
        names = facts.entry.client_ids or [one.client_id for one in to_restart(facts)]
        return tuple(dict.fromkeys(filter(None, names)))
    return ()


def as_one(every: list[Entry], context: CardContext) -> list[Entry]:
    """Entries of readers that lost records of recreated topics as one, which need one thing done; and where it is known
    where the readers of a topic go on, nothing about offsets that its groups lost.
    """
    skips = [one for one in every if one.code == NEVER_READ]
    lost = [one for one in skips if all("recreated" in context.findings[name].words for name in one.findings)]
    topics = {topic for one in lost for topic in one.topics}
    known = [one for one in every if one.code == OFFSETS_LOST and topics.issuperset(one.topics)]
    left = [one for one in every if one not in lost and one not in known]
    if not lost:
        return left
    names = tuple(name for one in lost for name in one.findings)
    clients = tuple(sorted({name for one in lost for name in one.client_ids}))
    return [replace(lost[0], findings=names, client_ids=clients, count=len(names)), *left]


def price(findings: Sequence[Finding]) -> str:
    """What comes if readers go back to the first record that they did not read."""
    records, again = (sum(number(one.words.get(name)) for one in findings) for name in ("records", "again"))
    verb = "it gets" if len(findings) == 1 else "they get"
    return f"{verb} {plural(records, 'record')} for the first time, {again:,} again"


def number(text: str | None) -> int:
    """Of a word as it is printed."""
    return int((text or "0").replace(",", ""))


def advice(facts: CardFacts) -> str:
    return sentence("fix", facts) or remedy(facts.finding.code)


def affected(entry: Entry, of: CardHarm, context: CardContext) -> str:
    """Clients of an entry with their addresses, as far as harm has them; a broker's fetcher is its broker."""
    address = {one.client_id: one.address for one in (*of.clients, *of.briefly)}
    brokers = {broker for name in entry.findings for broker in requesters(context.findings[name])}
    names = []
    hurt_first = (name for name in (*address, *entry.client_ids) if name in entry.client_ids)
    for name in dict.fromkeys(hurt_first):
        broker = broker_of(name)
        shown = f"{name} ({address[name]})" if address.get(name) else name or "the client without an ID"
        names.append(f"broker {broker}" if broker in brokers else shown)
    return listed(names)


def commands(entry: Entry, of: CardHarm, context: CardContext) -> tuple[str, ...]:
    topics = [topic for topic in entry.topics if topic]
    if of.clients and (name := of.clients[0].client_id):
        has_code = of.clients[0].error not in {*harm.WITHOUT_CODE, harm.CLOSED_AT_ONCE, harm.CLOSED_WITHOUT_RESPONSE}
        about = f"--client {shlex.quote(name)}{' --error' * has_code}"
    elif topics:
        about = f"--topic {shlex.quote(topics[0])}{narrowed(context.findings[blamed(entry, of).findings[0]])}"
    else:
        return (f"wirecheck explain {blamed(entry, of).code}",)
    return (f"wirecheck decode {context.files} {about}{context.options}",)


def narrowed(finding: Finding) -> str:
    """The options that leave of a topic's messages those with errors, or where there may be none those of the APIs that
    the finding's sides are.
    """
    if not check_of(finding.code).shows_no_error:
        return " --error"
    return "".join(f" --api {api}" for api in sorted({side.api for side in finding.sides if side.api}))


def blamed(entry: Entry, of: CardHarm) -> Entry:
    """The entry or its consequence that the headline is about."""
    indirect = of.clients or of.partitions or entry.kind not in BLAMED
    ones = (*entry.consequences, entry) if indirect else (entry,)
    return next((one for one in ones if one.kind in BLAMED), entry)


# evidence


def evidence_of(facts: CardFacts) -> CardEvidence:
    """The packets of the finding that shows the harm, else of the cause, and the command that cuts them out."""
    context = facts.context
    worst = next(((one.client, one.topic) for one in facts.harmed.clients), None)
    theirs = ((one, (one.harm.client, one.harm.topic or one.harm.topic_id)) for one in facts.harms if one.sure)
    proofs = (context.findings[one.finding] for one, of in theirs if of == worst)
    wrong = blamed(facts.entry, facts.harmed)
    shown = facts.finding if wrong is facts.entry else context.findings[wrong.findings[0]]
    finding = next((one for one in proofs if one.kind in BLAMED), shown)
    frames = dict.fromkeys(side.frame for side in finding.sides if side.frame and side.frame.first)
    target = shlex.quote(
        f"{re.sub(r'[^A-Za-z0-9._-]', '_', finding.topic or finding.code)[:64].lstrip('-.') or 'finding'}.pcapng"
    )
    name = finding.code if context.codes[finding.code] == 1 else finding.id
    return CardEvidence(
        frames=tuple(frames)[:FRAMES_SHOWN],
        command=f"wirecheck evidence {name} {context.found_in} -o {target}{context.options}",
    )


def clients_seen(clients: Iterable[Client]) -> Counter[str | None]:
    """How many each cluster has, as the mark of *work* counts them."""
    return Counter(one.cluster for one in clients if one.is_counted)
