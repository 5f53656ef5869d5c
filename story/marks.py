"""The verdict's two questions, each with its mark: do all agree on IDs and versions; is every client's work done?

Rule: a tick is earned: only over what was seen, and only if no client is stalled, works in part, fails or is in doubt.
A party that no server ever granted anything is in no count, nor are the nodes' own clients. The exit status is 1 where
either mark is red.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from wirecheck.client_ids import is_of_node
from wirecheck.decode.peer import Conversation
from wirecheck.judge.activity_states import (
    BEFORE_WORK,
    COORDINATOR,
    ELSEWHERE,
    FAILING,
    IN_PART,
    NOT_CAPTURED,
    STALLED,
    WORKING,
)
from wirecheck.judge.checks import declaration
from wirecheck.judge.checks.listed_checks import check_of
from wirecheck.judge.not_rejections import is_final_answer, not_rejection
from wirecheck.judge.results.finding import DOUBTED
from wirecheck.story.cards import listed
from wirecheck.story.harm import NEVER_READ, UNREACHABLE, hurts, stated
from wirecheck.story.seen import Activity, Client, ClientState, Cluster, Coverage
from wirecheck.story.verdict import PARTIAL_S, CardEntry, Finding, Harm, Mark, MarkKind, Marks, Verdict
from wirecheck.wording import and_list, plural

IN_DOUBT, SKIPPED = "in doubt", "skipped"
LEFT, LOST = "left", "lost"
"""It closed its last connection; a server closed it."""
AWAY = "agent_away_seconds"
"""The measure of times in which an agent was not there."""
CLOCKS_UNKNOWN = "unknown_clocks"
"""The measure of files of which nothing shows how far their clocks are from those of others."""
GREETING = "versions"
"""The step that any server grants to anybody."""
FIRST = frozenset({"ApiVersions", "SaslHandshake", "Metadata"})
"""What a client asks for on its first connection, before all else."""
NOT_THERE = "UNKNOWN_TOPIC_OR_PARTITION"
SAYS_SO = {
    "Metadata": {NOT_THERE, "LEADER_NOT_AVAILABLE"},
    "ListOffsets": {NOT_THERE},
    "FindCoordinator": {"COORDINATOR_NOT_AVAILABLE"},
}
"""By API what an answer says of what a client asks for: that it is not there, or not yet."""
ELECTION_NS = 30_000_000_000
"""No longer is a partition, or a group, without its broker while one is restarted."""
IDLE_NS = 10_000_000_000
"""A balancer, or a broker, closes a connection that was idle for so long."""
AWAY_NS = 60_000_000_000
"""Who was cut off comes back before that: libraries wait up to some 30 s between two tries."""
UNKNOWN_ONE_IN = 10
"""Of so many rejections the outcome of one more request may be unknown: it was most likely rejected, too."""
AGAIN = 3
"""Who needs what is not there asks for it so often at least: no library gives up sooner."""
NO_WORK = BEFORE_WORK | {"DescribeCluster", "InitProducerId"}
"""What is granted to who may do nothing else."""
STATES = (STALLED, IN_PART, SKIPPED, FAILING, IN_DOUBT, NOT_CAPTURED, ELSEWHERE, LOST, LEFT, WORKING)
"""Of a client, worst first."""
MARK_SIGNS: Mapping[MarkKind, str] = {"violation": "\u2717", "anomaly": "!", "visibility": "?", "clear": "\u2713"}
Key = tuple[str | None, str | None]


def with_states(
    clients: Iterable[Client],
    activities: Iterable[Activity],
    harms: Iterable[Harm],
    findings: Iterable[Finding],
    clusters: Iterable[Cluster] = (),
) -> tuple[Client, ...]:
    """Each client with the worst that is known of its work. Harm without an address is of the client with that ID, if
    it is on one host: others may have the same default.
    """
    every, found, of_clients = [*clients], [*findings], by_client(activities)
    gone = {one.key for one in every if one.closed_ns is not None}
    worst: dict[Key, ClientState] = {}
    unseen = any(one.uncaptured_brokers for one in clusters)
    rejected = {} if unseen else dict(only_rejected(of_clients, gone))
    stuck = (
        (key, ClientState(FAILING, one.first_ns, rejection(one)))
        for key, one in rejected.items()
        if one.state == STALLED
    )
    for key, state in (*states(of_clients, harms, found, gone), *stuck):
        if key not in worst or STATES.index(state.state) < STATES.index(worst[key].state):
            worst[key] = state
    doubtful = (one for one in found if question(one.code) == declaration.IN_DOUBT or DOUBTED in one.words)
    doubted = {who: one for one in doubtful for who in whom(one)}
    hosts = Counter(one.client_id for one in every)
    anywhere = {one.client_id: worst.get((one.client_id, "")) for one in every if hosts[one.client_id] == 1}
    return tuple(
        replace(
            one,
            work=worst_of(
                worst.get(one.key),
                anywhere.get(one.client_id),
                doubt(one, doubted),
                at_rest(one, rejected.get(one.key), waits=waits(one, of_clients.get(one.key, ()))),
            ),
        )
        for one in every
    )


def worst_of(*known: ClientState | None) -> ClientState:
    return min(filter(None, known), key=lambda one: STATES.index(one.state))


def at_rest(client: Client, rejected: Activity | None, *, waits: bool) -> ClientState:
    """Of a client that nothing is known against, but that it was granted no work before it left."""
    if client.closed_ns is None:
        return ClientState(WORKING, None, "")
    opens_again = client.closed_ns - client.last_ns >= IDLE_NS or is_of_node(client.client_id)
    if client.closed_by == "server" and opens_again and not waits:
        return ClientState(WORKING, None, "")  # who has nothing to ask opens one when it has; a node has others
    if client.closed_by == "server":
        return ClientState(LOST, client.closed_ns, "server closed its last connection")
    return ClientState(LEFT, client.closed_ns, rejection(rejected) if rejected else "")


def waits(client: Client, every: Iterable[Activity]) -> bool:
    """Whether its last request got no answer before the server closed: of one that did, the response was seen later."""
    asked = [*every]
    return any(one.closed for one in asked) and all(one.last_ns <= client.last_ns for one in asked)


def by_client(activities: Iterable[Activity]) -> dict[Key, list[Activity]]:
    found: dict[Key, list[Activity]] = {}
    for one in activities:
        found.setdefault((one.client_id, one.address), []).append(one)
    return found


def only_rejected(
    activities: Mapping[Key, Sequence[Activity]], gone: Collection[Key]
) -> Iterator[tuple[Key, Activity]]:
    """Clients that were granted no work, each with what it was rejected at last, if all of it was seen: the furthest
    that it came. `gone`: those that closed their last connection. What nodes ask of each other is not theirs to be
    granted: a quorum's other members may refuse it.
    """
    for key, every in activities.items():
        if is_of_node(key[0]):
            continue
        work = [one for one in every if one.api not in NO_WORK]
        furthest = work or [one for one in every if one.step != GREETING]
        undecided = any(one.granted or one.in_flight or is_unknown(one) for one in work)
        if undecided or any(one.state == NOT_CAPTURED for one in every):
            continue
        brief = may_have_worked(every)
        certain = (one for one in furthest if one.state == STALLED or not (brief or only_looked(one, gone)))
        if rejected := [one for one in certain if not one.granted and is_rejected(one)]:
            yield key, max(rejected, key=lambda one: (one.state == STALLED, one.last_ns, one.api))


def is_unknown(one: Activity) -> bool:
    """Whether a request may have been granted: the last one, or one of few."""
    may_be_last = one.state == STALLED and one.until_ns is not None
    return one.unknown > 0 and (may_be_last or one.unknown * UNKNOWN_ONE_IN > one.rejected + one.closed)


def is_rejected(one: Activity) -> bool:
    """Whether by more than what is part of the protocol: there may be no such group, or its coordinator loads. Of who
    administers, an answer of that kind which is final is all that it asked for.
    """
    if not one.is_work and any(is_final_answer(one.api, error) for error in one.errors):
        return False
    return any(not_rejection(one.api, error) is None for error in one.errors)


def rejection(one: Activity) -> str:
    return f"{one.api}: {', '.join(one.errors)}"


def states(
    of_clients: Mapping[Key, Sequence[Activity]],
    harms: Iterable[Harm],
    findings: Iterable[Finding],
    gone: Collection[Key],
) -> Iterator[tuple[Key, ClientState]]:
    for harm in (*harms, *(one for finding in findings for one in stated(finding))):
        if hurts(harm):
            about = " ".join(filter(None, (harm.api, harm.topic or harm.topic_id)))
            how = ": ".join(filter(None, (about, ", ".join(harm.errors))))
            yield harm.client, ClientState(state_of(harm, of_clients), harm.first_ns, how)
    for key, every in of_clients.items():
        for one in every:
            if one.state == FAILING and one.is_work:
                yield key, ClientState(FAILING, one.since_ns, rejection(one))
            elif one.state == STALLED and is_of_node(key[0]):  # no harm is a node's, and no client's row is its own
                yield key, ClientState(STALLED, one.since_ns, rejection(one))
        if all(one.state == NOT_CAPTURED or one.in_flight == one.requests for one in every):
            yield key, ClientState(NOT_CAPTURED, None, "no response was captured")
        elif missing := mostly_unseen(every):
            yield key, ClientState(NOT_CAPTURED, None, missing)
        elif sent := moved_away(every):
            first = min(sent, key=lambda one: one.since_ns or 0)
            yield key, ClientState(ELSEWHERE, first.since_ns, f"{first.api}: sent to a broker that was not captured")
        elif not any(one.granted for one in every if one.step != GREETING) and not may_have_worked(every):
            yield from never_granted(key, every, gone)


def mostly_unseen(every: Iterable[Activity]) -> str:
    """Of a client of whose reads and writes most have no response that was captured and decoded, how many, in words: of
    its work the others say too little. Empty for any other client.
    """
    needed = [one for one in every if one.step in {"reads", "writes"}]
    requests = sum(one.requests - one.in_flight for one in needed)
    unknown = sum(one.unknown for one in needed)
    if unknown < AGAIN or unknown <= requests - unknown:
        return ""
    worst = max(needed, key=lambda one: (one.unknown, one.api))
    return f"{worst.api}: {worst.unknown:,} of {plural(worst.requests, 'response')} not captured or not decoded"


def moved_away(every: Iterable[Activity]) -> list[Activity]:
    """What a client needs, if it does nothing more of it at the brokers that were captured."""
    needed = [one for one in every if one.step in {"reads", "writes"} and one.state != NOT_CAPTURED]
    needed = needed or [one for one in every if one.is_work and one.step != GREETING and one.state != NOT_CAPTURED]
    return needed if needed and all(one.state == ELSEWHERE for one in needed) else []


def may_have_worked(every: Collection[Activity]) -> bool:
    """Whether the rejections of a client may be an election's, of one that worked before the capture: it did not ask
    first for what comes first on its first connection, as later ones begin so, too, and they are few, or soon over.
    """
    begin_ns = min(one.first_ns for one in every)
    if any(one.api in FIRST for one in every if one.first_ns == begin_ns):
        return False
    rejected = [one for one in every if one.rejected]
    lasted_ns = max((one.last_ns for one in rejected), default=begin_ns) - begin_ns
    return sum(one.rejected for one in rejected) < AGAIN or lasted_ns < ELECTION_NS


def only_looked(one: Activity, gone: Collection[Key]) -> bool:
    """Whether it was answered that there is no such thing, and left: who needs it asks again, or stays."""
    looked = {*one.errors} <= SAYS_SO.get(one.api, set()) and one.rejected == one.requests < AGAIN
    return looked and (one.client_id, one.address) in gone


def never_granted(key: Key, every: Iterable[Activity], gone: Collection[Key]) -> Iterator[tuple[Key, ClientState]]:
    """Few rejections are no failure, but a client that has nothing else does not work. Who is answered which versions
    there are asks for these next, perhaps at a broker that was not captured.
    """
    known = (one for one in every if one.is_work and one.state != NOT_CAPTURED and not only_looked(one, gone))
    rejected = [one for one in known if not one.granted and (one.rejected or one.closed or one.given_up)]
    if rejected:
        first = min(rejected, key=lambda one: one.first_ns)
        yield key, ClientState(FAILING, first.first_ns, f"{first.api}: nothing was granted")


def state_of(harm: Harm, by_client: Mapping[Key, Sequence[Activity]]) -> str:
    """Of a client that is hurt; one that skipped records reads on, one that a broker's address refuses may write or
    read at the others, and one that finds no coordinator may need none to read.
    """
    if NEVER_READ in harm.errors:
        return SKIPPED
    works = UNREACHABLE in harm.errors and any(
        one.granted and one.step in {"reads", "writes"} and one.last_ns >= harm.last_ns - round(PARTIAL_S * 1e9)
        for one in activities_of(harm, by_client)
    )
    if harm.api == COORDINATOR:
        works |= any(one.api == harm.api and one.state == IN_PART for one in activities_of(harm, by_client))
    return IN_PART if works or harm.is_partial else STALLED


def activities_of(harm: Harm, by_client: Mapping[Key, Sequence[Activity]]) -> Iterator[Activity]:
    """Of its client; of each host with that ID where the harm has no address."""
    if harm.address:
        yield from by_client.get((harm.client_id, harm.address), ())
        return
    for (client_id, _), every in by_client.items():
        if client_id == harm.client_id:
            yield from every


def whom(doubted: Finding) -> Iterator[Key]:
    """The clients that a finding doubts; without an address where it may be about any with that ID. A check that looks
    at one client shows what that one was answered.
    """
    hosts = {Conversation.of(side.connection).client.host for side in doubted.sides if side.connection}
    of_one = check_of(doubted.code).spaces == ("client",) and hosts
    yield from ((name, host) for name in doubted.client_ids for host in (hosts if of_one else {None}))


def doubt(client: Client, doubted: Mapping[Key, Finding]) -> ClientState | None:
    name = client.client_id or ""
    finding = doubted.get((name, client.address)) or doubted.get((name, None))
    if finding is None:
        return None
    return ClientState(IN_DOUBT, finding.first_ns, f"{finding.code} {finding.name}")


# --- the two marks


def marks_of(result: Verdict) -> Marks:
    return Marks(agreement(result), work(result))


def unexpected(result: Verdict) -> list[CardEntry]:
    return [entry for entry in result.entries if not entry.expected]


def question(code: str) -> str:
    """What a check is about."""
    return check_of(code).question


def is_of_work(code: str) -> bool:
    return question(code) != declaration.AGREEMENT


def worst_kind(result: Verdict, *, of_work: bool) -> MarkKind:
    """Of findings about one question; an outage without a victim is worth a look."""
    by_id = result.by_id
    kinds = {one.kind for entry in unexpected(result) for one in entry.with_consequences
             if is_of_work(one.code) is of_work}  # fmt: skip
    outages = (by_id[name] for entry in unexpected(result) for name in entry.finding_ids if name in by_id)
    if any(is_outage(one) and is_of_work(one.code) is of_work for one in outages):
        kinds.add("anomaly")
    if "violation" in kinds:
        return "violation"
    return "anomaly" if "anomaly" in kinds else "clear"


def is_outage(finding: Finding) -> bool:
    """Whether it leaves no tick, though it contradicts nothing and hurts no known client."""
    from_s = check_of(finding.code).no_tick_from_s
    return from_s is not None and finding.lasted_s >= from_s


def agreement(result: Verdict) -> Mark:
    """Whether everybody agrees on topic IDs and versions, over what was seen."""
    if not result.coverage.messages:
        return Mark("visibility", "nothing was read")
    kind = worst_kind(result, of_work=False)
    if kind == "clear":
        numbered = len({(one.cluster, one.name) for one in result.topics if one.topic_id})
        every = sum(len(one.brokers) or len(one.endpoints) for one in result.clusters)
        serving = every - sum(one.uncaptured_brokers for one in result.clusters)
        brokers = plural(serving, "broker")
        if result.coverage.decoded_messages * 2 < result.coverage.messages:
            return Mark("visibility", f"{brokers}, none known to disagree; most messages were not decoded")
        if numbered:
            return Mark(kind, f"{plural(numbered, 'topic')} and {brokers} agree")
        return Mark(kind, f"{brokers} {'agrees' if serving == 1 else 'agree'}; no topic ID was seen")
    codes = {one.code for entry in unexpected(result) for one in entry.with_consequences
             if one.kind in {"violation", "anomaly"} and not is_of_work(one.code)}  # fmt: skip
    outages = {one.code for one in result.findings if is_outage(one) and not is_of_work(one.code)}
    does = "contradicted" if kind == "violation" else "to be looked at"
    return Mark(kind, f"{does}: {listed(sorted(codes | outages))}")


class Clients(NamedTuple):
    """How many clients are counted, and what came of their work."""

    every: int
    states: Counter[str]
    """Of those whose harm is not expected."""
    gone: int
    """They left, granted no work."""
    cut_off: int
    """The server closed their last connection, and none came back in AWAY_NS."""

    @property
    def unseen(self) -> int:
        return self.states[NOT_CAPTURED]

    @property
    def at_work(self) -> int:
        return self.every - self.gone - self.unseen - self.cut_off

    @property
    def doubts(self) -> int:
        return self.states[FAILING] + self.states[IN_DOUBT]

    @property
    def are_known_to_work(self) -> bool:
        """Whether one does, none is in doubt, and most were captured. It is known of those that are not stalled."""
        works = self.states[WORKING] + self.states[LEFT] + self.states[LOST]
        return bool(works) and not self.doubts and self.at_work > 0 and 2 * self.unseen <= self.every


def clients_of(result: Verdict) -> Clients:
    counted = [one for one in result.clients if one.is_counted]
    expected = {one.client for entry in result.entries if entry.expected for one in entry.card.harm.clients}
    states = Counter(one.work.state for one in counted if one.work is not None and one.key not in expected)
    gone = sum(one.work is not None and one.work.state == LEFT and one.work.how != "" for one in counted)
    until_ns = result.last_ns - AWAY_NS
    lost = [one.work for one in counted if one.work is not None and one.work.state == LOST and one.key not in expected]
    cut_off = sum(one.since_ns is not None and one.since_ns < until_ns for one in lost)
    return Clients(len(counted), states, gone, cut_off)


def work(result: Verdict) -> Mark:
    """Whether every client gets its work done, over what was seen."""
    clients, nodes = clients_of(result), stalled_nodes(result)
    away = clients.states[ELSEWHERE]
    rest = [f"{plural(away, 'client')} went on at brokers that were not captured"] if away else []
    rest += [*uncaptured(result.clusters), *unread(result.coverage)]
    if not clients.every:
        return Mark("anomaly" if nodes else "visibility", " \u00b7 ".join(["no client was read", *nodes, *rest]))
    kind: MarkKind = worst_kind(result, of_work=True)
    hurt = clients.states[STALLED] + clients.states[IN_PART]
    if hurt or any(entry.card.harm.clients for entry in unexpected(result)):
        kind = "violation"
    elif kind == "clear" and not clients.are_known_to_work:
        kind = "visibility"
    if found := troubles(clients):
        text = f"{', '.join(found)} of {plural(clients.every, 'client')}"
    elif kind == "clear":
        apart_from_them = clients.at_work < clients.every
        text = all_work(clients.at_work, "other client" if apart_from_them else "client")
    else:
        text = f"{plural(clients.every, 'client')}, none known to be stalled{outage_codes(result)}"
    if nodes and kind in {"clear", "visibility"}:
        kind = "anomaly"
    return Mark(kind, " \u00b7 ".join([text, *apart(clients), *nodes, *rest]))


def troubles(clients: Clients) -> list[str]:
    states = clients.states
    found = {"stalled": states[STALLED], "rejected in part": states[IN_PART], "skipped records": states[SKIPPED]}
    return [f"{count:,} {what}" for what, count in {**found, IN_DOUBT: clients.doubts}.items() if count]


def apart(clients: Clients) -> list[str]:
    """Those of whom it is not known, or that did no work."""
    unseen = f"{'was' if clients.unseen == 1 else 'were'} not captured"
    lost = f"lost {'its' if clients.cut_off == 1 else 'their'} last connection and did not come back"
    every = ((clients.gone, "left, granted no work"), (clients.cut_off, lost), (clients.unseen, unseen))
    return [f"{plural(count, 'client')} {what}" for count, what in every if count]


def all_work(count: int, noun: str) -> str:
    return f"the only {noun} gets its work done" if count == 1 else f"all {plural(count, noun)} get their work done"


def stalled_nodes(result: Verdict) -> list[str]:
    """Nodes' own requests that are not granted, in words: the first, and how many more."""
    found = [one for one in result.activities if is_of_node(one.client_id) and one.state == STALLED]
    if not found:
        return []
    first, more = found[0], len({one.client_id for one in found}) - 1
    others = f" and {plural(more, 'more node')}" if more else ""
    return [f"node {first.client_id}{others} stalled at {first.api} ({', '.join(first.errors)})"]


def outage_codes(result: Verdict) -> str:
    """The findings about work that leave no tick."""
    named = {one.code for one in result.findings if is_of_work(one.code)
             and (one.kind in {"violation", "anomaly"} or is_outage(one))}  # fmt: skip
    return f"; see {and_list(sorted(named))}" if named else ""


def failing_clients(result: Verdict) -> list[Client]:
    """Those whose last requests were not granted, too few of them for more."""
    return [one for one in result.clients if one.work is not None and one.work.state == FAILING and one.is_counted]


def uncaptured(clusters: Iterable[Cluster]) -> list[str]:
    """What clients asked brokers of which nothing was captured is not known."""
    every = [*clusters]
    brokers, missing = sum(len(one.brokers) for one in every), sum(one.uncaptured_brokers for one in every)
    if not missing:
        return []
    return [f"{missing:,} of {plural(brokers, 'broker')} {'was' if missing == 1 else 'were'} not captured"]


def unread(coverage: Coverage) -> list[str]:
    """What was not seen, in numbers."""
    found = (
        (coverage.encrypted_connections, "encrypted connection", "not read"),
        (coverage.unseen_bytes, "byte", "not captured"),
        (coverage.undecoded_messages, "message", "not decoded"),
        (coverage.measures.get(AWAY, 0), "second", "not captured"),
    )
    return [f"{plural(count, noun)} {'was' if count == 1 else 'were'} {how}" for count, noun, how in found if count]
