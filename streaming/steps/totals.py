"""Totals of one label since its run began: what metrics count, kept with the judge's state and written with each batch.

A total is part of the batch that changed it, so a repeated batch or a restart counts nothing twice. Details come from
closed sets: what the layouts do not know is `other`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from wirecheck.capture.frames import LATE
from wirecheck.decode import api_names
from wirecheck.decode.message import Status
from wirecheck.judge.agents import MARKS, Marks
from wirecheck.judge.claims.claim import Claim
from wirecheck.judge.claims.extract.unlisted import OTHERS
from wirecheck.judge.ledger.emitted_rows import EmittedRow
from wirecheck.judge.ledger.ledger import Ledger
from wirecheck.streaming.steps.cells import from_cell, to_cell
from wirecheck.streaming.steps.request_counts import (
    ERRORS,
    MOST_ERRORS,
    MOST_SERVERS,
    OTHER,
    SERVER_ERRORS,
    SERVERS,
)
from wirecheck.streaming.store.result_tables import BROKER_AT

GROWING = {"frames": "frames", "unseen_bytes": "unseen_bytes", "retransmitted": "retransmitted_segments"}
"""Facts of a connection and the totals they grow."""
TRANSPORTS = {"kafka": "plaintext", "tls": "encrypted", "other": OTHER}
MALFORMED = frozenset(status.name.lower() for status in Status if status >= Status.TRUNCATED)
ALONE = ("exchanges:request_unseen", "exchanges:orphan")
"""Exchanges without a captured request, so of an unknown API."""


class Totals:
    """Measure and detail to a count; `detail` may be empty."""

    def __init__(self, cell: bytes | None = None) -> None:
        self.known: dict[tuple[str, str], tuple[int, int]] = from_cell(cell) if cell else {}
        """(measure, detail) to (revision, count)."""
        self.changed: set[tuple[str, str]] = set()

    def add(self, measure: str, detail: str, count: int) -> None:
        if count > 0:
            self.put(measure, detail, self.known.get((measure, detail), (0, 0))[1] + count)

    def put(self, measure: str, detail: str, count: int) -> None:
        revision, before = self.known.get((measure, detail), (0, 0))
        if count != before:
            again = (measure, detail) in self.changed
            self.known[measure, detail] = (revision + (not again), count)
            self.changed.add((measure, detail))

    def claims(self, claims: Iterable[Claim], oldest_ns: int, ledger: Ledger) -> None:
        """What was last seen at `oldest_ns` or later, before the ledger has absorbed it: it says how far a connection
        was counted.
        """
        grown, words, requests = Counter[str](), Counter[str](), Counter[str]()
        for claim in claims:
            if claim.last.ts_ns < oldest_ns:
                continue
            if claim.kind == "connection":
                (subject,) = claim.subjects()
                self.connection(claim, ledger.taken_in(*subject).get(claim.identity), grown)
                for word, count in claim.tally.items():
                    words[word] += count
            elif claim.kind == "mark" and claim["agent"] == OTHERS:
                self.unlisted(str(claim["what"]), claim["reason"], claim.tally["count"])
            elif claim.kind == "mark":  # what decoding set aside
                self.add(str(claim["what"]), "", claim.tally.get("count", 0))
            elif claim.kind == "client":
                for word, count in claim.tally.items():
                    requests[word] += count
        for measure, count in grown.items():
            self.add(measure, "", count)
        for word, count in words.items():
            for measured in measures(word):
                self.add(*measured, count)
        for word, count in requests.items():
            self.add("exchanges", api_and_version(word), count)

    def connection(self, claim: Claim, before: Claim | None, grown: Counter[str]) -> None:
        """`grown`: what many connections add to, by measure."""
        peak = before.peak if before else {}
        for fact, measure in GROWING.items():
            if (more := claim.peak.get(fact, 0) - peak.get(fact, 0)) > 0:
                grown[measure] += more
        if transport(peak) is None and (now := transport(newer(claim.peak, peak))):
            self.add("connections", now, 1)

    def unlisted(self, measure: str, detail: str | None, count: int) -> None:
        """What connections without rows of their own add."""
        if measure in GROWING:
            self.add(GROWING[measure], "", count)
        elif measure == "connections":
            self.add(measure, TRANSPORTS.get(str(detail), OTHER), count)
        elif measure.endswith("decoded_messages"):
            for measured in measures(f"{measure}:{detail}"):
                self.add(*measured, count)

    def on_marks(self, received: Marks) -> None:
        for mark in received.marks:
            if mark.kind in MARKS:
                self.add(MARKS[mark.kind], received.agent if mark.kind == LATE else "", max(1, mark.count))

    def requests(self, counts: Mapping[tuple[str, str], int], broker_at: Callable[[str], int | None]) -> None:
        """Addresses, and errors by API, beyond those that are counted each, are counted together. Who is at an address
        is a measure too, since it may come to be known later: the broker's ID and 1.
        """
        errors = sum(measure == ERRORS for measure, _ in self.known)
        servers = {detail for measure, detail in self.known if measure == f"{SERVERS}_us"}
        of_servers = {SERVERS, f"{SERVERS}_us", SERVER_ERRORS}
        for (measure, detail), count in counts.items():
            place, named = (measure, detail), detail
            if measure in of_servers:
                server = detail.partition("|")[0]
                servers |= {server} if len(servers) < MOST_SERVERS else set()
                named = detail if server in servers else OTHER + detail[len(server) :]
            elif measure == ERRORS and place not in self.known:
                errors += 1
                named = detail if errors <= MOST_ERRORS else f"{OTHER}:{OTHER}"
            self.add(measure, named, count)
        for server in servers:
            if (broker := broker_at(server)) is not None:
                self.put(BROKER_AT, server, broker + 1)

    def left(self, by_space: Mapping[str, int]) -> None:
        """What bounds made leave the ledger."""
        for space, count in by_space.items():
            self.add("evicted", space, count)

    def count(self, emitted: Iterable[EmittedRow]) -> None:
        for row in emitted:
            if row.table == "findings":
                self.add("finding_revisions", str(row.body["code"]), 1)

    def rows(self) -> Iterator[dict[str, Any]]:
        """What has changed in this batch, each as a revision."""
        changed, self.changed = sorted(self.changed), set()
        for measure, detail in changed:
            revision, count = self.known[measure, detail]
            body = {"id": f"{measure}|{detail}", "revision": revision, "measure": measure, "detail": detail or None}
            yield {**body, "count": count}

    def cell(self) -> bytes:
        return to_cell(self.known)


def measures(word: str) -> tuple[tuple[str, str], ...]:
    """What one of a connection's counters adds to."""
    measure, _, detail = word.partition(":")
    if measure == "decoded_messages":
        return (("messages", "decoded"),)
    if measure == "undecoded_messages":
        return ("messages", "malformed" if detail in MALFORMED else "undecoded"), (measure, detail)
    return (("exchanges", f"{OTHER}:{OTHER}"),) if word in ALONE else ()


def api_and_version(word: str) -> str:
    """api:version of a request, from the sets the layouts know."""
    api, _, version = word.rpartition(":")
    key = api_names.keys().get(api)
    if key is None:
        return f"{OTHER}:{OTHER}"
    return f"{api}:{version}" if 0 <= int(version) <= api_names.newest(key) else f"{api}:{OTHER}"


def newer(peak: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """What shows the transport, as it was known last."""
    found = {name: [one[name] for one in (peak, before) if name in one] for name in ("protocol", "closed_by")}
    return {name: max(values) for name, values in found.items() if values}


def transport(peak: dict[str, Any]) -> str | None:
    """The protocol of a connection, once its content shows it or it has closed without any; None before."""
    protocol = str(peak.get("protocol", ["undecided"])[-1])
    closed = bool(peak.get("closed_by", [""])[-1])
    return TRANSPORTS.get(protocol, OTHER if closed else None)
