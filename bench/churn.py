"""Churn: what a batch costs the judge after a day in which connections came and went, and beside much that stays.

Knows: what one connection claims, taken from captured bytes, and the judge's step as the query calls it: claims in
cells, state as bytes between the batches. Refuses to know: Spark, and how frames become claims.
Rule: connections come at five a second of capture time, end, and leave the follower some seconds later. A figure is the
median CPU time of several batches, with everything in it: state read, claims merged, rows made Arrow, state written.
There is no peer. CHURN=1000000 makes a million earlier connections instead of 60,000; it takes a quarter of an hour.
"""

import os
import resource
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from bench.judge import BEGIN_NS, CLUSTER, Cluster, row
from bench.traffic import write_capture
from wirecheck.capture.agent.offline_agent import write_frames
from wirecheck.judge.claims.claim import (
    LEAST,
    MOST_SLOTS,
    SLOT_NS,
    Claim,
    Sighting,
    least,
    merged,
    pack,
    slot_of,
    unpack,
)
from wirecheck.judge.claims.kinds import KINDS
from wirecheck.streaming.steps import tagged
from wirecheck.streaming.steps.cells import from_cell, to_cell
from wirecheck.streaming.steps.decode_step import Claimed, decode_row
from wirecheck.streaming.steps.follow_step import Bucket, Progress
from wirecheck.streaming.steps.judge_step import judge_rows
from wirecheck.streaming.steps.pack_step import pack_files
from wirecheck.streaming.steps.settings import Settings
from wirecheck.streaming.steps.tagged import Tagged
from wirecheck.streaming.store.batches import shape
from wirecheck.streaming.store.result_tables import from_ipc

MOST = int(os.environ.get("CHURN", "60000"))
EARLIER = (1_000, 20_000, *((60_000,) if MOST >= 60_000 else ()), *((MOST,) if MOST > 60_000 else ()))
NEW, EVERY_NS, LINGER = 20, 200_000_000, 3
"""Connections a batch, one each 0.2 s; so many batches later the follower lets them go."""
BUILT = 500
"""Connections a batch while the earlier ones are made."""
ROUNDS = 21
STEADY, STEP_NS, MINUTE, SETTLED = 2_000, 2_000_000_000, 30, 3
"""Connections that stay, what goes on per batch, batches a minute, and the first ones, which do not count."""
BEFORE = 16_000
"""Rows that such a batch told when every row was told again that had grown (release of November 2026)."""
SINCE = {"connection", "peer", "serving", "server"}
"""Claims that begin with their connection."""
GROWING = ("frames", "payload_bytes", "requests", "responses")
ONCE = {"ranges_told", "advertised", "software"}
"""Said when a connection begins."""
BROKERS, TOPICS, FEW = 30, 3_000, 10
SETTINGS = Settings(buckets=1)


class Batch(NamedTuple):
    """What one batch came to."""

    cpu_s: float
    state_bytes: int
    """Of what was written."""
    rows: int
    table_bytes: int


class Step:
    """The judge's step with its state."""

    def __init__(self, shards: dict[str, bytes] | None = None) -> None:
        self.shards = {} if shards is None else shards

    def batch(self, claims: Iterable[Claim], until_ns: int) -> Batch:
        cells = [Tagged("bench", 0, tagged.CLAIMS, to_cell(Claimed(pack(merged(claims)), None)))]
        cells.append(Tagged("bench", 0, tagged.PROGRESS, to_cell(Progress("agent", until_ns, ended=False))))
        began = time.process_time()
        told, changed = judge_rows("bench", cells, self.shards.get, SETTINGS)
        spent = time.process_time() - began
        self.shards |= changed
        tables = [from_ipc(row.cell) for row in told]
        written = sum(parquet_bytes(table) for table in tables)
        return Batch(spent, sum(map(len, changed.values())), sum(table.num_rows for table in tables), written)


def captured() -> list[Claim]:
    """What a few real connections claim."""
    with tempfile.TemporaryDirectory() as folder:
        pcap = Path(folder) / "c.pcap"
        write_capture(pcap, 1_000_000, "small", 30)
        files = write_frames([pcap], Path(folder) / "frames", "bench").files
        cells = [row.cell for rows in pack_files(map(str, files), SETTINGS) for row in rows]
        followed = [decode_row(row, SETTINGS) for row in Bucket("bench", 0, SETTINGS).receive(cells)]
    cells = [from_cell(row.cell, Claimed).claims for row in followed if row.route == tagged.CLAIMS]
    return [claim for cell in cells for claim in unpack(cell)]


class Connections:
    """Connections like one that was captured, one after the other."""

    def __init__(self, told: list[Claim]) -> None:
        claims = merged(told)
        speaks = {kind: {claim.first.client for claim in claims if claim.kind == kind} for kind in ("use", "follower")}
        consumers = speaks["use"] - speaks["follower"]
        model = next(claim for claim in claims if claim.kind == "connection" and claim["client"] in consumers)
        self.endpoint, self.host = model["endpoint"], model["host"]
        whole = {"advertised", "cluster_id", "address", "names"}
        mine = [
            claim
            for claim in claims
            if claim.server() == self.endpoint
            and (claim.kind in whole or f"{model['client']}>" in claim.first.connection)
        ]
        self.model = list({claim.kind: claim for claim in mine if claim.kind != "chunk"}.values())
        for claim in self.model:
            claim.peak.pop("over", None)  # as the capture ended

    def new(self, number: int) -> Iterator[Claim]:
        yield from (self.of(claim, number) for claim in self.model)

    def gone(self, number: int) -> Iterator[Claim]:
        """What is handed out once more when the follower lets it go."""
        for claim in self.model:
            if claim.kind in {"connection", "peer", "serving", "server"}:
                over = self.of(claim, number)
                over.count, over.tally = 0, {}
                over.peak |= {"over": 1} if claim.kind == "connection" else {}
                yield over

    def of(self, claim: Claim, number: int) -> Claim:
        started_ns = BEGIN_NS + number * EVERY_NS
        client = f"{self.host}:{1024 + number % 60_000}"
        return self.like(claim, {"client": client, "started_ns": started_ns}, started_ns)

    def like(self, claim: Claim, values: dict[str, Any], first_ns: int, last_ns: int = 0) -> Claim:
        """The same of another connection."""
        key = tuple(values.get(field, part) for field, part in zip(KINDS[claim.kind].fields, claim.key, strict=True))
        first = claim.first._replace(ts_ns=first_ns, connection=f"{values['client']}>{self.endpoint}")
        last = first._replace(ts_ns=last_ns or first_ns + 1_000)
        tally = slots_moved(claim.tally, [last.ts_ns // SLOT_NS])
        return Claim(claim.kind, key, first, last, count=claim.count, tally=tally, peak=dict(claim.peak))

    def speaking(self, number: int, batch: int, *, slots: int = 1) -> Iterator[Claim]:
        """What one of many that stay open says in a batch, or in so many slots, each of a client of its own."""
        host = f"10.9.{number // 250}.{number % 250}"
        values = {"client": f"{host}:5000", "host": host, "client_id": f"app-{number}", "started_ns": BEGIN_NS}
        for claim in self.model:
            until_ns = BEGIN_NS + batch * STEP_NS + STEP_NS // 2
            said = self.like(claim, values, BEGIN_NS if claim.kind in SINCE else until_ns - 1_000, until_ns)
            if claim.kind == "connection":
                said.peak |= {fact: said.peak[fact] * (batch + 1) for fact in GROWING}
                said.peak["protocol"] = [until_ns, 9, "kafka"]
            if slots > 1:
                last = until_ns // SLOT_NS
                said.tally = slots_moved(said.tally, range(last - slots + 1, last + 1))
            if batch == 0 or claim.kind not in ONCE:
                yield said

    def batch(self, begin: int, count: int) -> Iterator[Claim]:
        lag = LINGER * NEW
        for number in range(begin, begin + count):
            yield from self.new(number)
            if number >= lag:
                yield from self.gone(number - lag)


def churn(connections: Connections) -> Iterator[tuple[int, Batch, int]]:
    """Beside so many earlier connections: the median batch of NEW ones, and the process's memory in MB. What is known
    after each number is kept, and all of them are measured by turns, so that a busy machine is as unfair to each.
    """
    step, made, states, memory = Step(), 0, dict[int, Step](), dict[int, int]()
    for earlier in EARLIER:
        while made < earlier:
            step.batch(connections.batch(made, BUILT), BEGIN_NS + (made + BUILT) * EVERY_NS)
            made += BUILT
        states[earlier] = Step(dict(step.shards))
        memory[earlier] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    measured: dict[int, list[Batch]] = {earlier: [] for earlier in EARLIER}
    for turn in range(ROUNDS):
        for earlier, state in states.items():
            begin = earlier + turn * NEW
            batch = state.batch(connections.batch(begin, NEW), BEGIN_NS + (begin + NEW) * EVERY_NS)
            measured[earlier].append(batch)
    for earlier, batches in measured.items():
        yield earlier, Batch(*(median(column) for column in zip(*batches, strict=True))), memory[earlier]


def parquet_bytes(table: pa.Table) -> int:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **shape(table))
    return int(sink.getvalue().size)


def slots_moved(tally: dict[str, int], slots: Iterable[int]) -> dict[str, int]:
    """Counters by slot, as of other slots."""
    by_slot = {name: str(slot) for name in tally if (slot := slot_of(name)) is not None}
    if not by_slot:
        return dict(tally)
    rest = {name: count for name, count in tally.items() if name not in by_slot}
    return rest | {name.replace(was, str(slot)): tally[name] for slot in slots for name, was in by_slot.items()}


def steady(connections: Connections, *, slots: int = 1) -> Batch:
    """STEADY connections that stay open and speak in every batch, over more than a minute of capture time: the mean of
    its batches, as each tells the rows of another part of them. They have spoken for so many slots of 10 s before.
    """
    step, found = Step(), []
    for batch in range(SETTLED + MINUTE):
        before = slots if batch == 0 else 1
        claims = [claim for number in range(STEADY) for claim in connections.speaking(number, batch, slots=before)]
        found.append(step.batch(claims, BEGIN_NS + (batch + 1) * STEP_NS))
    return Batch(*(sum(column) / MINUTE for column in zip(*found[SETTLED:], strict=True)))


def carried() -> float:
    """A batch of some 100 claims where BROKERS brokers told of TOPICS topics each."""
    cluster, step = Cluster(TOPICS, FEW), Step()
    servers = cluster.servers[:BROKERS]

    def seen(batch: int, server: str) -> Sighting:
        at_ns = BEGIN_NS + batch * STEP_NS - 1
        return Sighting(at_ns, f"10.2.0.1:4000>{server}", "Metadata", 12, 7, "a.pcap", 1, 2)

    def said(batch: int) -> Iterator[Claim]:
        for broker, server in enumerate(servers):
            yield Claim("cluster_id", (server, CLUSTER, "metadata"), seen(batch, server))
            yield Claim("server", (server,), seen(batch, server))
            yield Claim("address", (server, server, broker), seen(batch, server))

    def carries(batch: int, server: str, topic_ids: list[str]) -> Iterator[Claim]:
        first = seen(batch, server)
        yield Claim("carries", (server,), first, peak=least({f"{LEAST}{i}": -first.ts_ns for i in topic_ids}))

    everything = [claim for server in servers for claim in carries(1, server, cluster.ids)]
    step.batch([*said(1), *everything], BEGIN_NS + STEP_NS)
    few = [
        step.batch([*said(n), *carries(n, servers[0], cluster.ids[:FEW])], BEGIN_NS + n * STEP_NS)
        for n in range(2, 2 + ROUNDS)
    ]
    return median(batch.cpu_s for batch in few)


def measure() -> list[dict]:
    connections = Connections(captured())
    rows, first = [], None
    for earlier, batch, rss_mb in churn(connections):
        first = first or (batch, rss_mb)
        told = f"churn.batch: {NEW} new connections beside {earlier:,} earlier ones"
        level, small = "below 1.2 times the first", "at most 100 kB"
        rows += [
            row(f"{told}, CPU", batch.cpu_s, "s", bar=level, met=batch.cpu_s <= 1.2 * first[0].cpu_s),
            row(f"{told}, state rewritten", batch.state_bytes / 1e3, "kB", bar=small, met=batch.state_bytes <= 1e5),
            row(f"{told}, RSS", rss_mb, "MB", bar=level, met=rss_mb <= 1.2 * first[1]),
        ]
    told, batches_an_hour = f"churn.steady: {STEADY:,} connections that speak in every batch", 1800
    batch = steady(connections)
    hourly_mb = batch.table_bytes * batches_an_hour / 1e6
    rows += [
        row(f"{told}, CPU", batch.cpu_s, "s", bar="at most 1.2", met=batch.cpu_s <= 1.2),
        row(f"{told}, rows told", batch.rows, "rows", bar="at most 5 % of before", met=batch.rows <= 0.05 * BEFORE),
        row(f"{told}, tables an hour as batches", hourly_mb, "MB", bar="at most 50", met=hourly_mb <= 50),
        row(f"{told}, state rewritten", batch.state_bytes / 1e6, "MB"),
    ]
    aged = steady(connections, slots=MOST_SLOTS)
    told += ", after two hours"
    rows.append(row(f"{told}, CPU", aged.cpu_s, "s", bar="at most 2 x", met=aged.cpu_s <= 2 * batch.cpu_s))
    rows.append(row(f"{told}, state rewritten", aged.state_bytes / 1e6, "MB"))
    seconds = carried()
    rows.append(
        row(
            f"churn.carries: {BROKERS} x {TOPICS:,} carries, CPU of a batch of 100 claims", seconds, "s",
            bar="at most 0.05", met=seconds <= 0.05,
        )
    )  # fmt: skip
    return rows


if __name__ == "__main__":
    for line in measure():
        print(line["name"], round(line["value"], 4), line["unit"], line["bar"], line["met"], flush=True)
