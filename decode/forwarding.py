"""Requests that come back out of the host that received them: a proxy or a balancer forwards them.

Knows: which requests are compared, and when two of them are one request on both legs of a forwarder. Does not know
which endpoints are brokers, and what follows from a forwarder.
Rule: whether a request is in a sample depends on its own time and size alone, so both legs choose the same ones, and
samples merge in any order. A share of all short stretches of time is sampled; of these the least are kept.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

import numpy as np

from wirecheck.decode.api_names import key_of
from wirecheck.decode.peer import Peer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from wirecheck.decode.connection.exchanges import Exchanges
    from wirecheck.decode.wire import Ints

STRETCH_BITS = 28
"""Stretches of 268 ms, of which one in `1 << SHARE_BITS` is sampled."""
SHARE_BITS = 2
HEAD_BYTES = 136
"""So much of a request is compared: the client ID, and what names a fetch session, a partition or a record batch."""
OWN_REQUESTS = (17, 36, 18)
"""SaslHandshake, SaslAuthenticate, ApiVersions: a proxy may send and answer these by itself."""
SOON_NS = 100_000_000
"""Within this a forwarder sends on what it received."""
EDGE_NS = 20_000_000
"""What came so shortly before the end of a stretch may have been sent on after it."""
MOST_SAMPLED = MOST_ALIKE = 128
"""Of requests of one leg, and of those that are held against one request."""
FEWEST_REQUESTS, FEWEST_COMPARED, SHARE = 50, 12, 0.9
OF_ONE_SERVER = frozenset(
    map(key_of, ("Produce", "Fetch", "Heartbeat", "ConsumerGroupHeartbeat", "ShareFetch", "ShareAcknowledge"))
)
"""No client sends one of these to two servers. A proxy that renames topics or groups sends those on unchanged that name
none.
"""
MANY, SHARE_OF_MANY = 30, 0.75
"""Of so many requests for one server each fewer may come out again: where packets are lost, so are exchanges."""
OPEN = 5
"""So many requests of one kind may be known of one leg before they are of the other."""
SHARE_OF_LEG = 0.5
"""Of one leg of a forwarder less has to be found on the other side: a few requests are compared, and some are lost."""


class Leg(NamedTuple):
    """Requests of one client ID from one host to one server."""

    client_id: str | None
    host: str
    server: str


class Way(NamedTuple):
    """How a forwarder sends on what it receives."""

    endpoint: str
    host: str
    """From which it sends."""
    server: str


class Sampled(NamedTuple):
    """One request of a sample."""

    place: int
    """By which samples are sorted, and bounded."""
    ts_ns: int
    end_ns: int
    """When its response came."""
    code: int
    """Of its API, version, size, client ID and the beginning of its content."""
    key: int = 0
    """Of its API."""
    host: str = ""
    """Who sent it, of what an endpoint receives; empty for a node, whose requests no forwarder sends on."""
    answer: int = 0
    """Of the size and the beginning of its response."""


@dataclass(frozen=True)
class Forwarder:
    endpoint: str
    legs: tuple[Leg, ...]
    """Its back legs: what of which client is sent on, and where to."""
    others: tuple[Leg, ...]
    """What its host sends by itself."""
    matched: int
    compared: int
    reached: tuple[tuple[str, str], ...] = ()
    """From which host it sends on, and where to."""


def mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spreads every bit over all 64 (the finaliser of splitmix64)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def sampled(exchanges: Exchanges) -> tuple[Ints, Ints, NDArray[np.uint64]]:
    """Requests of a batch that are in a sample, the responses to them, and their places."""
    answered = (exchanges.request >= 0) & (exchanges.response >= 0)
    request, response = exchanges.request[answered].astype(np.int64), exchanges.response[answered].astype(np.int64)
    ts_ns = exchanges.ts_ns[request].astype(np.uint64)
    spread = mixed(ts_ns >> np.uint64(STRETCH_BITS))
    own = np.isin(exchanges.messages.key[request], OWN_REQUESTS)
    rows = np.flatnonzero((spread >> np.uint64(64 - SHARE_BITS) == 0) & ~own)
    request, response, spread, ts_ns = request[rows], response[rows], spread[rows], ts_ns[rows]
    within = ts_ns & np.uint64((1 << STRETCH_BITS) - 1)
    tie = exchanges.messages.size[request].astype(np.uint64) & np.uint64(15)
    return request, response, (spread >> np.uint64(30) << np.uint64(32)) | within << np.uint64(4) | tie


def codes(exchanges: Exchanges, requests: Ints) -> list[int]:
    """Of what is the same on both legs: all but the correlation ID, which a proxy may replace."""
    data = memoryview(cast("bytes", exchanges.messages.data))
    return [
        zlib.crc32(data[at + 8 : to], zlib.crc32(data[at : at + 4], size))
        for at, to, size in heads(exchanges, requests)
    ]


def answers(exchanges: Exchanges, responses: Ints) -> list[int]:
    """The same of responses, which begin with the correlation ID."""
    data = memoryview(cast("bytes", exchanges.messages.data))
    return [zlib.crc32(data[at + 4 : to], size) for at, to, size in heads(exchanges, responses)]


def heads(exchanges: Exchanges, chosen: Ints) -> Iterable[tuple[int, int, int]]:
    """Where the compared part of each message begins and ends, and the size of the message."""
    messages = exchanges.messages
    begin, end = messages.at[chosen], messages.at[chosen + 1]
    sizes = (messages.size[chosen] & 0xFFFFFFFF).tolist()
    return zip(begin.tolist(), np.minimum(end, begin + HEAD_BYTES).tolist(), sizes, strict=True)


class Sample:
    """The least requests of one leg, or of all that one endpoint received."""

    def __init__(self, requests: Iterable[Sampled], count: int = 0) -> None:
        self.requests = sorted(requests)[:MOST_SAMPLED]
        self.count = count
        """How many requests there were, in the sample or not."""

    @property
    def last(self) -> int | None:
        """Up to which place it is complete; None: to the end."""
        return self.requests[-1].place if len(self.requests) >= MOST_SAMPLED else None

    def covers(self, request: Sampled) -> bool:
        """Whether a request at this time, or soon after, would be in it."""
        return self.last is None or request.place + (EDGE_NS << 4) <= self.last


if TYPE_CHECKING:
    Apart = Callable[[str, str], bool]
    """Whether two endpoints are known to be different brokers."""
    End = TypeVar("End", Leg, str)
    """What sent a request, or received it."""
    Requests = list[tuple[int, Sampled, End]]
    Alike = dict[int, Requests[End]]
    """By code the requests with it, in the order of time."""


def forwarders(received: Mapping[str, Sample], sent: Mapping[Leg, Sample], apart: Apart) -> list[Forwarder]:
    """The endpoints whose requests nearly all come out of the same host again, each once: with the same client ID,
    API, version, size and content, after the request and answered before it is. Replicas and nodes are not in `sent`.
    """
    of_host: dict[str, list[Leg]] = defaultdict(list)
    for leg in sorted(sent, key=str):
        of_host[leg.host].append(leg)
    out_of = {host: by_code((leg, sent[leg]) for leg in legs) for host, legs in of_host.items()}
    found = []
    for endpoint in sorted(received):
        front, host = received[endpoint], Peer.of(endpoint).host
        if front.count >= FEWEST_REQUESTS and host in of_host:
            one = forwarder(endpoint, front, out_of[host], {leg: sent[leg] for leg in of_host[host]}, apart)
            if one is not None:
                found.append(one)
    known = {one.endpoint for one in found}
    return found + [one for one in with_other_addresses(received, apart) if one.endpoint not in known]


def by_code(samples: Iterable[tuple[End, Sample]]) -> Alike[End]:
    """All requests of some samples, by what they are, in the order of time."""
    found: Alike[End] = defaultdict(list)
    for end, sample in samples:
        for request in sample.requests:
            found[request.code].append((request.ts_ns, request, end))
    for alike in found.values():
        alike.sort(key=itemgetter(0, 1))
    return found


def sent_on(asked: Sampled, alike: Requests[End], may_be: Callable[[Sampled, End], bool]) -> list[tuple[Sampled, End]]:
    """The requests that may be this one, sent on. None where too many alike came at the time."""
    begin = bisect_left(alike, asked.ts_ns, key=itemgetter(0))
    until_ns = min(asked.ts_ns + SOON_NS, asked.end_ns)
    fitting: list[tuple[Sampled, End]] = []
    for ts_ns, request, end in alike[begin : begin + MOST_ALIKE]:
        if ts_ns > until_ns:
            return fitting
        if fits(asked, request) and may_be(request, end):
            fitting.append((request, end))
    return fitting if begin + MOST_ALIKE >= len(alike) else []


def forwarder(
    endpoint: str, front: Sample, waiting: Alike[Leg], backs: Mapping[Leg, Sample], apart: Apart
) -> Forwarder | None:
    other = cache(lambda server: server != endpoint and not apart(endpoint, server))
    taken: dict[Leg, Counter[int]] = defaultdict(Counter)
    compared = Compared()
    used: set[tuple[Leg, int]] = set()

    def may_be(request: Sampled, leg: Leg) -> bool:
        return (leg, request.place) not in used and other(leg.server)

    for asked in sorted(front.requests, key=lambda one: one.ts_ns):
        fitting = sent_on(asked, waiting.get(asked.code, []), may_be)
        if len({leg for _, leg in fitting}) == 1:
            request, leg = min(fitting)
            used.add((leg, request.place))
            taken[leg][asked.key] += 1
            compared.matched[asked.key] += 1
        elif not is_last_of_stretch(asked):
            compared.missed[asked.key] += 1
    proven = compared.proven()
    if proven is None:
        return None
    found = {leg: sum(taken[leg][key] for key in proven) for leg in backs if other(leg.server)}
    least = {leg: SHARE_OF_LEG * comparable(backs[leg], front, proven) for leg in found}
    legs = tuple(leg for leg in found if found[leg] and found[leg] >= least[leg])
    others = tuple(leg for leg in found if found[leg] < least[leg])
    reached = tuple(sorted({(leg.host, leg.server) for leg in legs}))
    return Forwarder(endpoint, legs, others, *compared.counts(proven), reached) if legs else None


def with_other_addresses(received: Mapping[str, Sample], apart: Apart) -> Iterator[Forwarder]:
    """The endpoints whose requests nearly all come out of other hosts again: a proxy with two interfaces, or several
    proxies behind one address. What one endpoint receives is held against what all others do. A client may ask two
    servers the same: both requests have to come from different hosts, or to get the same response.
    """
    if len(received) < 2:
        return
    arrived = by_code(received.items())
    of_clients = {code: [one for one in alike if one[1].host] for code, alike in arrived.items() if len(alike) > 1}
    again = {code: alike for code, alike in of_clients.items() if len(alike) > 1}
    for endpoint, front in sorted(received.items()):
        if front.count >= FEWEST_REQUESTS and sum(one.code in again for one in front.requests) >= FEWEST_COMPARED:
            one = sent_on_elsewhere(endpoint, received, again, apart)
            if one is not None:
                yield one


def sent_on_elsewhere(
    endpoint: str, received: Mapping[str, Sample], again: Alike[str], apart: Apart
) -> Forwarder | None:
    front = sorted(received[endpoint].requests, key=lambda one: one.ts_ns)
    other = cache(lambda server: server != endpoint and not apart(endpoint, server))
    taken: list[tuple[Sampled, str]] = []
    used: set[tuple[str, int]] = set()
    missed = []
    for asked in front:

        def may_be(request: Sampled, server: str, asked: Sampled = asked) -> bool:
            differs = request.host != asked.host or (request.answer == asked.answer != 0)
            return differs and (server, request.place) not in used and other(server)

        fitting = sent_on(asked, again.get(asked.code, []), may_be)
        if len({(request.host, server) for request, server in fitting}) == 1:
            request, server = min(fitting)
            used.add((server, request.place))
            taken.append((request, server))
        elif not is_last_of_stretch(asked):
            missed.append(asked)
    targets = {server for _, server in taken}
    covered = (one.key for one in missed if all(received[target].covers(one) for target in targets))
    compared = Compared(Counter(request.key for request, _ in taken), Counter(covered))
    if (proven := compared.proven()) is None:
        return None
    reached = tuple(sorted({(request.host, server) for request, server in taken if request.key in proven}))
    return Forwarder(endpoint, (), (), *compared.counts(proven), reached)


def all_legs(found: Iterable[Forwarder], asked: Mapping[Leg, Mapping[str, int]]) -> dict[Leg, str]:
    """The back legs of all forwarders, by leg the endpoint. Clients with so few requests that none was compared are
    among them if the forwarder received as many of their client ID, by API and version. `asked`: those of every leg.
    """
    found = [*found]
    through = {leg: one.endpoint for one in found for leg in one.legs}
    own = {leg for one in found for leg in one.others} - through.keys()
    reached = {place: one.endpoint for one in found for place in one.reached}
    senders: dict[str, set[str]] = defaultdict(set)
    for one in found:
        senders[one.endpoint] |= {host for host, _ in one.reached}
    received: dict[tuple[str, str | None], Counter[str]] = defaultdict(Counter)
    for leg, counts in asked.items():
        for host in senders.get(leg.server, ()):
            received[host, leg.client_id].update(counts)
    for leg, counts in asked.items():
        endpoint, front = reached.get((leg.host, leg.server)), received.get((leg.host, leg.client_id))
        if endpoint and front and leg not in own and are_as_many(counts, front):
            through.setdefault(leg, endpoint)
    return through


def are_as_many(sent: Mapping[str, int], received: Mapping[str, int]) -> bool:
    """Whether nearly all requests of a leg are of kinds of which the other leg has as many: the only request of a kind
    may be lost on one of them.
    """
    more = sum(count for word, count in sent.items() if not as_many(count, received.get(word, 0)))
    return more <= (1 - SHARE) * sum(sent.values())


def as_many(sent: int, received: int) -> bool:
    """Whether one leg has no more requests than the other: some are open, and some were not captured."""
    return bool(received) and sent <= received / SHARE + OPEN


def comparable(back: Sample, front: Sample, proven: set[int]) -> int:
    """How many requests of a leg, of these APIs or of one that the endpoint does not receive, would be in its sample if
    it had received them.
    """
    asked = {one.key for one in front.requests} - proven
    return sum(one.key not in asked and front.covers(one) and not is_first_of_stretch(one) for one in back.requests)


def fits(asked: Sampled, request: Sampled) -> bool:
    return asked.ts_ns <= request.ts_ns <= asked.ts_ns + SOON_NS and request.end_ns <= asked.end_ns


@dataclass
class Compared:
    """Requests of an endpoint by the key of their API: those that came out again, and those that did not."""

    matched: Counter[int] = field(default_factory=Counter)
    missed: Counter[int] = field(default_factory=Counter)

    def proven(self) -> set[int] | None:
        """The APIs whose requests nearly all came out again: all there are, or, where a proxy changes the others, those
        for one server each of which most did. None if they prove nothing.
        """
        every = self.matched.keys() | self.missed.keys()
        own = {key for key in every if key in OF_ONE_SERVER and self.share({key}) >= SHARE_OF_MANY}
        for keys in (every, own):
            if self.proves(keys):
                return keys
        return own if self.matches(own) >= MANY else None

    def proves(self, keys: set[int]) -> bool:
        return self.matches(keys) >= FEWEST_COMPARED and self.share(keys) >= SHARE

    def matches(self, keys: set[int]) -> int:
        return sum(self.matched[key] for key in keys)

    def share(self, keys: set[int]) -> float:
        """Of these APIs' requests that were compared those that came out again."""
        matched, compared = self.counts(keys)
        return matched / max(compared, 1)

    def counts(self, keys: set[int]) -> tuple[int, int]:
        """How many of these APIs' requests came out again, and how many were compared."""
        matched = self.matches(keys)
        return matched, matched + sum(self.missed[key] for key in keys)


def is_last_of_stretch(request: Sampled) -> bool:
    return (request.ts_ns & ((1 << STRETCH_BITS) - 1)) > (1 << STRETCH_BITS) - EDGE_NS


def is_first_of_stretch(request: Sampled) -> bool:
    return (request.ts_ns & ((1 << STRETCH_BITS) - 1)) < EDGE_NS
