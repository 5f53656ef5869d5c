"""Steady traffic as claims: connections that speak in every batch, and a fleet in which every partition has traffic.

Knows: what one connection of a captured model claims, what a cluster of some brokers and topics claims in 15 s, and the
judge's step as the query calls it: new for every batch, with its state as bytes in between. Does not know Spark.
Rule: capture time goes on, counts grow, and nothing else is news.
"""

import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from bench.traffic import write_capture
from tests.judge.busy_cluster import BEGIN_NS, CLUSTER, SECOND_NS, SLOT_NS, Cluster
from wirecheck.capture.agent.offline_agent import write_frames
from wirecheck.decode.collector_pause import collector_paused
from wirecheck.judge.claims.claim import Claim, Sighting, merged, pack, slot_of, unpack
from wirecheck.judge.claims.kinds import KINDS
from wirecheck.judge.claims.outcomes import SUCCESS, Outcomes, Run, single
from wirecheck.judge.revisions.judge import Judge
from wirecheck.streaming.steps import tagged
from wirecheck.streaming.steps.cells import from_cell, to_cell
from wirecheck.streaming.steps.decode_step import Claimed, decode_row
from wirecheck.streaming.steps.follow_step import Bucket, Progress
from wirecheck.streaming.steps.judge_step import judge_rows
from wirecheck.streaming.steps.pack_step import pack_files
from wirecheck.streaming.steps.settings import Settings
from wirecheck.streaming.steps.tagged import Tagged

SETTINGS = Settings(buckets=1)
STEP_NS, FLEET_STEP_NS = 2 * SECOND_NS, 15 * SECOND_NS
SINCE = {"connection", "peer", "serving", "server"}
"""Claims that begin with their connection."""
GROWING = ("frames", "payload_bytes", "requests", "responses")
ONCE = {"connection_ranges", "advertised", "software"}
"""Claimed when a connection begins."""
WHOLE = {"advertised", "cluster_id", "address", "names"}
REFRESHED = 20
"""One client in so many asks for metadata in a batch of the fleet: all do within 300 s."""


class Batch(NamedTuple):
    """What one batch came to."""

    claims: int
    cpu_s: float
    checked: int
    """Subjects that were checked again."""
    rows: int
    state_bytes: int
    """Of what was written."""


class Step:
    """The judge's step with its state."""

    def __init__(self) -> None:
        self.shards: dict[str, bytes] = {}

    def batch(self, claims: Iterable[Claim], until_ns: int) -> Batch:
        claims = merged(claims)
        given = self.given(claims, until_ns)
        checked, rows, judged, emitted = [], [], Judge.re_evaluate, Judge.revisions

        def counted(judge: Judge, subject: Any, *about: Any, **how: Any) -> Any:
            checked.append(subject)
            return judged(judge, subject, *about, **how)

        def emitted_rows(judge: Judge, **how: Any) -> Any:
            made = [*emitted(judge, **how)]
            rows.extend(made)
            return made

        with patch.object(Judge, "re_evaluate", counted), patch.object(Judge, "revisions", emitted_rows):
            began = time.process_time()
            changed = self.judged(given)
            spent = time.process_time() - began
        self.shards |= changed
        return Batch(len(claims), spent, len(checked), len(rows), sum(map(len, changed.values())))

    def given(self, claims: list[Claim], until_ns: int) -> Any:
        cells = [Tagged("bench", 0, tagged.CLAIMS, to_cell(Claimed(pack(claims))))]
        return [*cells, Tagged("bench", 0, tagged.PROGRESS, to_cell(Progress("agent", until_ns, ended=False)))]

    def judged(self, given: Any) -> dict[str, bytes]:
        return judge_rows("bench", given, self.shards.get, SETTINGS)[1]


class Kept(Step):
    """One judge that goes on: filing and judging, without state as bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.judge = Judge("bench")

    def given(self, claims: list[Claim], until_ns: int) -> Any:
        return claims, until_ns

    @collector_paused()
    def judged(self, given: Any) -> dict[str, bytes]:
        claims, until_ns = given
        self.judge.progress("agent", until_ns, ended=False)
        self.judge.absorb(claims)
        self.judge.rows()
        return {}


def captured() -> list[Claim]:
    """What a few connections claim."""
    with tempfile.TemporaryDirectory() as folder:
        pcap = Path(folder) / "c.pcap"
        write_capture(pcap, 1_000_000, "small", 30)
        files = write_frames([pcap], Path(folder) / "frames", "bench").files
        cells = [row.cell for rows in pack_files(map(str, files), SETTINGS) for row in rows]
        followed = [decode_row(row, SETTINGS) for row in Bucket("bench", 0, SETTINGS).receive(cells)]
    cells = [from_cell(row.cell, Claimed).claims for row in followed if row.route == tagged.CLAIMS]
    return [claim for cell in cells for claim in unpack(cell)]


class Speaking:
    """Connections that stay open, each of a client of its own, like one that was captured."""

    def __init__(self, count: int) -> None:
        self.count, claims = count, merged(captured())
        speaks = {kind: {claim.first.client for claim in claims if claim.kind == kind} for kind in ("use", "follower")}
        consumers = speaks["use"] - speaks["follower"]
        model = next(claim for claim in claims if claim.kind == "connection" and claim["client"] in consumers)
        self.endpoint = model["endpoint"]
        mine = [
            c for c in claims if c.server() == self.endpoint and (c.kind in WHOLE or c.first.client == model["client"])
        ]
        self.model = list({claim.kind: claim for claim in mine if claim.kind not in {"chunk", "fetch_odd"}}.values())
        for claim in self.model:
            claim.peak.pop("over", None)  # as the capture ended

    def batch(self, number: int) -> Iterator[Claim]:
        for connection in range(self.count):
            yield from self.speaks(connection, number)

    def speaks(self, number: int, batch: int) -> Iterator[Claim]:
        host = f"10.9.{number // 250}.{number % 250}"
        values = {"client": f"{host}:5000", "host": host, "client_id": f"app-{number}", "started_ns": BEGIN_NS}
        until_ns = BEGIN_NS + batch * STEP_NS + STEP_NS // 2
        for claim in self.model:
            if batch and claim.kind in ONCE:
                continue
            states = self.like(claim, values, BEGIN_NS if claim.kind in SINCE else until_ns - 1_000, until_ns)
            if claim.kind == "connection":
                states.peak |= {fact: states.peak[fact] * (batch + 1) for fact in GROWING}
                states.peak["protocol"] = [until_ns, 9, "kafka"]
            yield states

    def like(self, claim: Claim, values: dict[str, Any], first_ns: int, last_ns: int) -> Claim:
        """The same of another connection."""
        key = tuple(values.get(field, part) for field, part in zip(KINDS[claim.kind].fields, claim.key, strict=True))
        first = claim.first._replace(ts_ns=first_ns, connection=f"{values['client']}>{self.endpoint}")
        slot = last_ns // SLOT_NS
        outcomes = Outcomes()
        for outcome in claim.outcomes.codes():
            outcomes.add(outcome, slot, 5000, Run(9, last_ns - 1_000, last_ns))
        tally = {moved(name, slot): count for name, count in claim.tally.items()}
        last = first._replace(ts_ns=last_ns)
        return Claim(
            claim.kind, key, first, last, count=claim.count, tally=tally, peak=dict(claim.peak), outcomes=outcomes
        )


def moved(name: str, slot: int) -> str:
    """A counter's name, as of another slot."""
    was = slot_of(name)
    return name if was is None else name.replace(str(was), str(slot))


class Fleet(Cluster):
    """What servers and clients of a cluster claim in 15 s."""

    def __init__(self, brokers: int, topics: int, clients: int) -> None:
        super().__init__(topics, clients, brokers=brokers)
        self.topics = topics

    def batch(self, number: int) -> Iterator[Claim]:
        end_ns = BEGIN_NS + (number + 1) * FLEET_STEP_NS
        for client in self.random.sample(range(self.clients), self.clients // REFRESHED):
            yield from self.refreshed(client, end_ns)
        yield from self.brokers_follow(end_ns)
        for topic in range(self.topics):
            if not number:
                yield from self.answered(topic, end_ns)
            yield from self.replicated(topic, end_ns)
        for client in range(self.clients):
            yield from self.spoke(client, end_ns)

    def seen(self, end_ns: int, server: str, client: str, api: str, version: int) -> Sighting:
        ts_ns = end_ns - self.random.randrange(FLEET_STEP_NS)
        return Sighting(ts_ns, f"{client}>{server}", api, version, 7, "a.pcap", 1, 2)

    def refreshed(self, client: int, end_ns: int) -> Iterator[Claim]:
        """Metadata of a client's topics, with all brokers' addresses."""
        server = self.random.choice(self.servers)
        seen = self.seen(end_ns, server, "10.2.0.1:4000", "Metadata", 12)
        yield Claim("cluster_id", (server, CLUSTER, "metadata"), seen)
        yield Claim("server", (server,), seen, peak={"answers": 1})
        for broker, address in enumerate(self.servers):
            yield Claim("address", (server, address, broker), seen)
        yield from self.answered(client % self.topics, end_ns)

    def brokers_follow(self, end_ns: int) -> Iterator[Claim]:
        """Every broker fetches from every other one."""
        for broker in range(self.brokers):
            host = f"10.1.0.{broker}"
            for leader, server in enumerate(self.servers):
                if leader != broker:
                    seen, name = self.seen(end_ns, server, f"{host}:5000", "Fetch", 17), f"broker-{broker}-fetcher-0"
                    yield Claim("follower", (broker, server, name, host), seen, peak={"full": -1, "granted": 1})
            slots = {f"{seen.ts_ns // SLOT_NS}:17": 30}
            yield Claim("fetch_versions", (broker, host, 9092), seen, count=30, tally=slots, peak={"granted": 1})

    def spoke(self, client: int, end_ns: int) -> Iterator[Claim]:
        """A client reads ten topics over two connections."""
        name, host = f"client-{client}", f"10.4.{client // 250}.{client % 250}"
        for n in (0, 1):
            server = self.servers[(client + n) % self.brokers]
            seen = self.seen(end_ns, server, f"{host}:600{n}", "Fetch", 17)
            key = (host, server, f"{host}:600{n}", BEGIN_NS)
            port, slot = 6000 + n, seen.ts_ns // SLOT_NS
            yield Claim(
                "client", (name, host, server), seen, tally={"Fetch:17": 54, "Metadata:12": 3}, peak={"answered": 1}
            )
            yield Claim(
                "activity",
                (name, host, server, "Fetch"),
                seen,
                outcomes=single(SUCCESS, slot, port, Run(9, seen.ts_ns, seen.ts_ns)),
            )
            yield Claim("peer", (host, server), seen, peak={"granted": 1, "unread": 0, "encrypted": 0})
            facts = {"from_start": 1, "protocol": [seen.ts_ns, "kafka"], "frames": 90, "requests": 54, "responses": 54}
            yield Claim("connection", key, seen, peak=facts)
            yield Claim("connection_requests", (*key, name), seen, tally={"Fetch:17": 54})
            for k in range(5):
                topic_id = self.ids[(client + 5 * n + k) % self.topics]
                used = {"used": seen.ts_ns, "asked": 1}
                yield Claim(
                    "use",
                    (topic_id, "Fetch", name, host, server),
                    seen,
                    tally={"asked": 54},
                    peak=used,
                    outcomes=single(SUCCESS, slot, port, Run(9, seen.ts_ns, seen.ts_ns)),
                )
