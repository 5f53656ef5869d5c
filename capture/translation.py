"""Packets that a capture shows under several addresses, before and after a translation of addresses or ports (NAT).

Knows: which connections of different addresses are the same packets, and which of their rows stay. Each end keeps the
address that it has where its packets are seen first, its own; a server one that brokers advertise, if it is another
(`advertised.py`). Does not know what else packets contain.
Rule: connections are one if both ends' sequence numbers of the handshake are equal, each within milliseconds, and the
server's answer was seen in the opposite order: a translator passes packets on. A proxy has numbers of its own. If no
server answers, the SYN's number decides, unless a port scanner made it: a kernel draws it from 2^32. Where no handshake
decides, packets do (`packet_twins.py`). Rows wait for the milliseconds in which a copy would come.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from itertools import accumulate, islice, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wirecheck.capture import frames
from wirecheck.capture.advertised import Advertised
from wirecheck.capture.packet_twins import NEAR_NS, PacketTwins
from wirecheck.capture.routes import Routes, back, codes_of, with_routes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from wirecheck.capture.routes import Endpoint, Route

SYN: Final = 2
RST: Final = 4
ACK: Final = 16
SEQUENCE: Final = 0xFFFFFFFF
MADE_UP: Final = 1 << 16
"""Sequence numbers below it prove nothing: programs that write captures begin there. A kernel does in one of 65,536."""
SCANNED_WINDOW: Final = 4096
"""Port scanners that make their own SYNs use one sequence number for many servers and a window of at most this (nmap:
1024 to 4096). A kernel's window is that of a whole segment and more.
"""
WAIT_NS: Final = 300_000_000
"""So long rows wait for the answer to a handshake that is seen twice."""
MOST_HELD_BYTES: Final = 16 << 20
MOST_HELD_ROWS: Final = 32_000
MOST_BEGUN: Final = 10_000
"""SYNs that are seen twice, of a batch: the others are connections of their own, or are found by their packets."""
MOST_COPIES: Final = 32
"""SYNs with one sequence number, within milliseconds: of more nothing is concluded."""
MOST_ROUTES: Final = 1 << 16
"""That are remembered. The oldest is forgotten first, and found again by its packets."""
MARK_NS: Final = 10_000_000_000
"""Copies are reported this often."""
TRANSLATED: Final = "translated"
"""Reason of the mark that counts the copies."""


class Fate(NamedTuple):
    """What becomes of the rows of one route."""

    kept_as: Route | None
    """None: they are copies of rows that stay."""
    number: int = -1
    """The client's first sequence number; -1 where its SYN was not seen."""


if TYPE_CHECKING:
    Changes = dict[Route, list[tuple[int, Fate | None]]]
    """By route, from which row on which fate it has."""


class Handshake(NamedTuple):
    """A SYN, or what answers it."""

    row: int
    ts_ns: int
    route: Route
    seq: int
    window: int | None
    refuses: bool


class Decided(NamedTuple):
    """A connection that is seen under several addresses."""

    legs: tuple[Handshake, ...]
    """From the client to the server."""

    @property
    def rows(self) -> range:
        at = [leg.row for leg in self.legs]
        return range(min(at), max(at) + 1)

    @property
    def number(self) -> int:
        """The client's first sequence number."""
        return self.legs[0].seq

    @property
    def is_of_server(self) -> bool:
        """Whether the server has several addresses."""
        return len({leg.route[1] for leg in self.legs}) > 1

    def fates(self, advertised: Advertised) -> Iterator[tuple[Route, int, Fate]]:
        """Of its routes from a row on, all but those that stay as they are."""
        fates = fates_of([leg.route for leg in self.legs], advertised, self.number)
        for leg in self.legs:
            for route in (leg.route, back(leg.route)):
                if route in fates:
                    yield route, leg.row, fates[route]


def servers_of(legs: Sequence[Route]) -> set[Endpoint]:
    """The addresses of the end that is the server, by its ports: a client's own one is larger."""
    return min(({leg[side] for leg in legs} for side in (0, 1)), key=lambda ends: max(port for _, port in ends))


def fates_of(legs: Sequence[Route], advertised: Advertised, number: int = -1) -> dict[Route, Fate]:
    """What becomes of routes that show the same packets, the nearest to one end first. One stays, if possible one that
    has both ends' own addresses; else the first is given them. Of a server's addresses the one that brokers name is its
    own.
    """
    own = (advertised.best([leg[0] for leg in legs]), advertised.best([leg[1] for leg in reversed(legs)]))
    kept = own if own in legs else legs[0]
    fates = {leg: Fate(None, number) for leg in legs if leg != kept}
    if kept != own:
        fates[kept] = Fate(own, number)
    return fates | {back(leg): Fate(one.kept_as and back(one.kept_as), number) for leg, one in fates.items()}


class Translation:
    """Rows in, the same rows without copies out."""

    def __init__(self, *, in_turn: bool = False) -> None:
        """`in_turn`: rows come one interface after the other, and not by time. Then only `advance` shows what is
        still to come.
        """
        self._in_turn = in_turn
        self._held: list[pa.RecordBatch] = []
        self._fates: dict[Route, Fate] = {}
        self._twins, self._advertised = PacketTwins(), Advertised()
        self._undecided: pa.RecordBatch | None = None
        """Rows that no handshake decides and that wait for their packets to do so."""
        self._copies: Counter[str] = Counter()
        self._stamp: frames.Stamp | None = None
        self._newest_ns = self._marked_ns = self._shown_ns = 0
        self.copies = 0
        """Rows that were removed."""

    @property
    def _has_space(self) -> bool:
        """For rows that wait, besides those that do already."""
        rows, held_bytes = (sum(getattr(piece, what) for piece in self._waiting) for what in ("num_rows", "nbytes"))
        return bool(rows < MOST_HELD_ROWS and held_bytes < MOST_HELD_BYTES)

    @property
    def _waiting(self) -> list[pa.RecordBatch]:
        return self._held if self._undecided is None else [self._undecided, *self._held]

    @property
    def oldest_ns(self) -> int | None:
        """Time of the oldest row that waits; None if none does."""
        return min((int(rows.column("ts_ns").to_numpy().min()) for rows in self._waiting), default=None)

    def add(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        if not rows.num_rows:
            return
        if self._stamp is None:
            self._stamp = frames.Stamp(*(rows.column(name)[0].as_py() for name in ("cluster", "agent")))
        self._newest_ns = max(self._newest_ns, int(rows.column("ts_ns").to_numpy().max()))
        if not self._in_turn:
            self._shown_ns = self._newest_ns
        if rows.column("kind")[-1].as_py() == frames.ENDED:
            rest = [*self._released([*self._held, rows], may_wait=False)]
            yield from self._marks()
            yield from rest
            return
        yield from self._released([*self._held, rows], may_wait=self._has_space)
        if self._newest_ns - self._marked_ns > MARK_NS:
            yield from self._marks()

    def advance(self, now_ns: int) -> Iterator[pa.RecordBatch]:
        """Nothing up to this time is still to come. If it is the time of the newest row, nothing else is to come."""
        self._shown_ns = max(self._shown_ns, now_ns)
        yield from self._released(self._held, may_wait=self._newest_ns != now_ns)
        if now_ns - self._marked_ns > MARK_NS:
            yield from self._marks()

    def drain(self) -> Iterator[pa.RecordBatch]:
        yield from self._released(self._held, may_wait=False)
        yield from self._marks()

    def _marks(self) -> Iterator[pa.RecordBatch]:
        self._marked_ns = self._newest_ns
        if self._copies and self._stamp is not None:
            found, self._copies = self._copies, Counter()
            marks = [frames.Mark(frames.SKIPPED, self._newest_ns, one, n, TRANSLATED) for one, n in found.items()]
            yield frames.mark_rows(marks, self._stamp)

    def _released(self, pieces: Sequence[pa.RecordBatch], *, may_wait: bool) -> Iterator[pa.RecordBatch]:
        """What of these rows need not wait, without copies."""
        self._held = []
        count = sum(piece.num_rows for piece in pieces)
        syns = Syns(pieces)
        decided, waits_at = syns.decided(self._shown_ns) if len(syns.row) else ([], count)
        upto = waits_at if may_wait else count
        for one in sorted(decided, key=lambda one: one.rows.start, reverse=True):
            if upto in one.rows:
                upto = one.rows.start
        decided = [one for one in decided if one.rows.stop <= upto]
        self._advertised.look([{leg.route[1] for leg in one.legs} for one in decided if one.is_of_server], pieces)
        changes = syns.changes(decided, self._fates, self._advertised)
        at = 0
        for piece in pieces:
            size = piece.num_rows
            ready = min(max(upto - at, 0), size)
            if ready:
                yield from self._without_copies(piece.slice(0, ready), at, changes, may_wait=may_wait)
            if ready < size:
                self._held.append(piece.slice(ready))
            at += size
        if not upto and self._undecided is not None:
            yield from self._by_packets(self._undecided, may_wait=may_wait)
        for route, each in changes.items():
            for row, fate in each:
                if row < upto:
                    self._remember(route, fate)

    def _remember(self, route: Route, fate: Fate | None) -> None:
        self._fates.pop(route, None)
        if fate is not None:
            self._fates[route] = fate
            if len(self._fates) > MOST_ROUTES:
                del self._fates[next(iter(self._fates))]

    def _without_copies(
        self, rows: pa.RecordBatch, at: int, changes: Changes, *, may_wait: bool
    ) -> Iterator[pa.RecordBatch]:
        """The rows that stay; the first has number `at`."""
        if self._fates or changes:
            rows = self._fated(rows, at, self._fates, changes)
        if self._undecided is not None:
            both = pa.Table.from_batches([self._undecided, rows]).unify_dictionaries().combine_chunks()
            rows = both.to_batches()[0]
        yield from self._by_packets(rows, may_wait=may_wait)

    def _by_packets(self, rows: pa.RecordBatch, *, may_wait: bool) -> Iterator[pa.RecordBatch]:
        """The rows that stay, of which no handshake decides."""
        self._undecided = None
        since_ns = self._shown_ns - WAIT_NS if may_wait else self._newest_ns + 1
        proven, waits_at = self._twins.look(rows, since_ns)
        ready, waiting = rows.slice(0, waits_at), rows.slice(waits_at)
        if proven:
            self._advertised.look([servers_of(one.legs) for one in proven], [rows])
            new: dict[Route, Fate] = {}
            shown_at: dict[Route, int] = {}
            for one in proven:
                fates = fates_of(one.legs, self._advertised)
                new |= fates
                shown_at |= dict.fromkeys(fates, one.row)
            begun, changed = beginning_at(rows, new, shown_at)
            ready = self._fated(ready, 0, begun, changed)
            waiting = self._fated(waiting, waits_at, begun, changed)
            for route in new:
                self._remember(route, changed[route][-1][1] if route in changed else new[route])
        if waiting.num_rows:
            self._undecided = waiting
        if ready.num_rows:
            yield ready

    def _fated(self, rows: pa.RecordBatch, at: int, fates: dict[Route, Fate], changes: Changes) -> pa.RecordBatch:
        copies = np.zeros(rows.num_rows, np.bool_)
        renamed: list[tuple[Route, NDArray[np.int64]]] = []
        for route, mine in Routes(rows).rows_by_route().items():
            if route not in fates and route not in changes:
                continue
            since = [(0, fates.get(route)), *((max(row - at, 0), fate) for row, fate in changes.get(route, ()))]
            edges = [*np.searchsorted(mine, [row for row, _ in since]).tolist(), len(mine)]
            for (_, fate), begin, end in zip(since, edges[:-1], edges[1:], strict=True):
                if fate is None:
                    continue
                if fate.kept_as is None:
                    copies[mine[begin:end]] = True
                else:
                    renamed.append((fate.kept_as, mine[begin:end]))
        rows = with_routes(rows, renamed)
        if not copies.any():
            return rows
        self.copies += int(copies.sum())
        source = rows.column("source")
        for code, count in enumerate(np.bincount(codes_of(source)[copies]).tolist()):
            if count:
                self._copies[source.dictionary[code].as_py()] += count
        return rows.filter(pa.array(~copies))


class Syns:
    """The rows that begin connections or refuse them, of several batches in a row."""

    def __init__(self, pieces: Sequence[pa.RecordBatch]) -> None:
        self._pieces = [Routes(piece) for piece in pieces]
        self._edges = [0, *accumulate(piece.num_rows for piece in pieces)]
        found = [np.flatnonzero(piece.column("tcp_flags").to_numpy() & (SYN | RST)) for piece in pieces]
        self.row = np.concatenate(
            [np.zeros(0, np.int64), *(rows + at for rows, at in zip(found, self._edges, strict=False))]
        )
        self.ts_ns, self.seq, self.ack, self.flags = (
            np.concatenate(
                [np.zeros(0, np.int64)]
                + [piece.column(name).to_numpy()[rows] for piece, rows in zip(pieces, found, strict=True)]
            )
            for name in ("ts_ns", "tcp_seq", "tcp_ack", "tcp_flags")
        )
        self.first = self.flags & (SYN | ACK) == SYN
        """Which are SYNs of clients."""

    def decided(self, shown_ns: int) -> tuple[list[Decided], int]:
        """Connections that are seen under several addresses; and the first row that waits for more than was shown."""
        late = self.first & (shown_ns - self.ts_ns < NEAR_NS)
        waits_at = int(self.row[late].min(initial=self._edges[-1]))
        numbers, counts = np.unique(self.seq[self.first], return_counts=True)
        again = numbers[(counts > 1) & (numbers >= MADE_UP)]
        if not len(again):
            return [], waits_at
        answers: dict[int, list[Handshake]] = defaultdict(list)
        for i in np.flatnonzero((self.flags & ACK != 0) & np.isin(self.ack, (again + 1) & SEQUENCE)).tolist():
            mine = answers[(int(self.ack[i]) - 1) & SEQUENCE]
            if len(mine) < MOST_COPIES:
                mine.append(self._handshake(i))
        decided: list[Decided] = []
        unanswered: list[Decided] = []
        for cluster in islice(self._clusters(again), MOST_BEGUN):
            legs: dict[Route, Handshake] = {}
            for i in cluster:
                one = self._handshake(i)
                legs.setdefault(one.route, one)
            if len(legs) < 2 or len({leg.window for leg in legs.values()}) > 1:
                continue
            answered = [(leg, answer) for leg in legs.values() if (answer := answer_to(leg, answers[leg.seq]))]
            oldest = min(legs.values(), key=lambda leg: leg.row)
            if len(answered) < len(legs) and shown_ns - oldest.ts_ns < WAIT_NS:
                waits_at = min(waits_at, oldest.row)
            elif answered:
                decided += connections(answered)
            elif not answers[oldest.seq] and (oldest.window or 0) > SCANNED_WINDOW:
                unanswered.append(Decided(tuple(sorted(legs.values(), key=lambda leg: (leg.ts_ns, leg.row)))))
        return [*decided, *self._without_an_answer(unanswered)], waits_at

    def _without_an_answer(self, unanswered: Sequence[Decided]) -> Iterator[Decided]:
        """Of connections whose SYN no captured packet answers those whose client sends nothing else. If it does, an
        answer reached it, and only that one would show in which order the answer passed.
        """
        if not unanswered:
            return
        numbers = pa.array({one.number + 1 & SEQUENCE for one in unanswered}, pa.int64())
        going_on: set[int] = set()
        for piece in self._pieces:
            sent = pc.cast(piece.rows.column("tcp_seq"), pa.int64())
            going_on.update(pc.unique(sent.filter(pc.is_in(sent, numbers))).to_pylist())
        yield from (one for one in unanswered if one.number + 1 & SEQUENCE not in going_on)

    def changes(self, decided: Iterable[Decided], fates: dict[Route, Fate], advertised: Advertised) -> Changes:
        """What changes with these rows: fates begin with the connections that were decided, and end where the ports
        are used again.
        """
        changes: Changes = defaultdict(list)
        for one in decided:
            for route, row, fate in one.fates(advertised):
                changes[route].append((row, fate))
        if not changes and not fates:
            return changes
        for i in np.flatnonzero(self.first).tolist():
            row, number, route = int(self.row[i]), int(self.seq[i]), self._route(i)
            if route not in changes and route not in fates:
                continue
            before = [fate for at, fate in sorted(changes[route], key=lambda change: change[0]) if at <= row]
            last = before[-1] if before else fates.get(route)
            if last is not None and last.number != number:
                changes[route].append((row, None))
                changes[back(route)].append((row, None))
        for each in changes.values():
            each.sort(key=lambda change: change[0])
        return changes

    def _clusters(self, numbers: NDArray[np.int64]) -> Iterator[list[int]]:
        """SYNs of one number that are near in time, as many as may be copies of one."""
        at = np.flatnonzero(self.first & np.isin(self.seq, numbers))
        at = at[np.lexsort((self.ts_ns[at], self.seq[at]))]
        apart = (np.diff(self.seq[at]) != 0) | (np.diff(self.ts_ns[at]) > NEAR_NS)
        for begin, end in pairwise([0, *(np.flatnonzero(apart) + 1).tolist(), len(at)]):
            if 1 < end - begin <= MOST_COPIES:
                yield at[begin:end].tolist()

    def _handshake(self, i: int) -> Handshake:
        routes, at = self._piece(i)
        window = routes.rows.column("tcp_window")[at].as_py()
        return Handshake(
            int(self.row[i]), int(self.ts_ns[i]), routes.of(at), int(self.seq[i]), window, bool(self.flags[i] & RST)
        )

    def _route(self, i: int) -> Route:
        routes, at = self._piece(i)
        return routes.of(at)

    def _piece(self, i: int) -> tuple[Routes, int]:
        row = int(self.row[i])
        k = bisect_right(self._edges, row) - 1
        return self._pieces[k], row - self._edges[k]


def answer_to(leg: Handshake, answers: Iterable[Handshake]) -> Handshake | None:
    """The first one on its way back."""
    mine = [one for one in answers if one.route == back(leg.route) and one.ts_ns >= leg.ts_ns]
    return min(mine, key=lambda one: (one.ts_ns, one.row), default=None)


def connections(answered: Iterable[tuple[Handshake, Handshake]]) -> Iterator[Decided]:
    """SYNs of one number with what answered them: those that are one connection."""
    alike: dict[tuple[int, int | None, bool], list[tuple[Handshake, Handshake]]] = defaultdict(list)
    for leg, answer in answered:
        if answer.seq >= MADE_UP or answer.refuses:
            alike[answer.seq, answer.window, answer.refuses].append((leg, answer))
    for pairs in alike.values():
        pairs.sort(key=lambda pair: (pair[0].ts_ns, -pair[1].ts_ns, pair[0].row))
        times = [answer.ts_ns for _, answer in pairs]
        if len(pairs) > 1 and times == sorted(times, reverse=True) and times[0] - times[-1] <= NEAR_NS:
            yield Decided(tuple(leg for leg, _ in pairs))


def beginning_at(
    rows: pa.RecordBatch, new: dict[Route, Fate], shown_at: dict[Route, int]
) -> tuple[dict[Route, Fate], Changes]:
    """From where on routes have a new fate: from the SYN on that comes before the row `shown_at`, which is known to be
    seen twice, else from the first row; up to a SYN after it.
    """
    fates: dict[Route, Fate] = dict(new)
    changes: Changes = defaultdict(list)
    routes = Routes(rows)
    for row in np.flatnonzero(rows.column("tcp_flags").to_numpy() & (SYN | ACK) == SYN).tolist():
        route = routes.of(row)
        for way in (route, back(route)) if route in new else ():
            if row < shown_at[route]:
                fates.pop(way, None)
                changes[way] = [(row, new[way])]
            else:
                changes[way].append((row, None))
    return fates, changes
