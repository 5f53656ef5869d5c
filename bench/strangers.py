"""Strangers: what invented names cost the judge, by the thousand, beside a cluster that is real.

Knows: a small cluster that is answered, and the claims that one host makes with client ids or topics nobody else ever
named. Refuses to know: bytes on the wire, Spark.
Rule: every batch holds as many new names as the one before; CPU time and state of a batch after the bound by number
was reached are held against those of the first one beyond it. What was answered before the flood is there after it.
"""

import base64
import hashlib
import os
import time
from collections.abc import Callable, Iterator

from bench.judge import BEGIN_NS, SECOND_NS, SLOT_NS, Cluster, row
from wirecheck.decode.collector_pause import collector_paused
from wirecheck.judge.claims.claim import Claim, Sighting
from wirecheck.judge.judge import Judge
from wirecheck.judge.ledger.bounds import SLACK
from wirecheck.judge.thresholds import Settings

CLIENT_IDS, TOPICS = (int(os.environ.get(name, most)) for name, most in (("IDS", 1_000_000), ("NAMES", 200_000)))
CLIENTS_A_BATCH, TOPICS_A_BATCH = 20_000, 5_000
HONEST_TOPICS, HONEST_CLIENTS = 50, 20
STEP_NS = 2 * SECOND_NS
HOST = "10.66.6.6"
WARM = 3
"""Of the batches beyond the bound, those that are held against the last ones."""
GROWTH, FLAT = 1.3, "below 1.3 times the first ones beyond the bound"
Flood = Callable[[int], Iterator[Claim]]


def seen(number: int, n: int, api: str, version: int) -> Sighting:
    at_ns = BEGIN_NS + number * STEP_NS + n * 10_000
    return Sighting(at_ns, f"{HOST}:{20_000 + number % 40_000}>10.1.0.0:9092", api, version, n, "a.pcap", n, n)


def client_ids(number: int) -> Iterator[Claim]:
    """New client ids in each batch, by one host, never answered without error."""
    for n in range(CLIENTS_A_BATCH):
        name = f"invented-{number * CLIENTS_A_BATCH + n}"
        key = (name, HOST, "10.1.0.0:9092")
        yield Claim("client", key, seen(number, n, "Metadata", 12), tally={"Metadata:12": 1})


def topics(number: int) -> Iterator[Claim]:
    """In each batch Fetches of new topic ids and Metadata requests of new names, all refused."""
    for n in range(TOPICS_A_BATCH):
        at = number * TOPICS_A_BATCH + n
        topic_id = base64.urlsafe_b64encode(hashlib.sha256(b"%d" % at).digest()[:16]).decode().rstrip("=")
        fetched, asked = (seen(number, n, api, version) for api, version in (("Fetch", 13), ("Metadata", 12)))
        tally = {f"{fetched.ts_ns // SLOT_NS}:100": 1, "asked": 1}
        yield Claim("use", (topic_id, "Fetch", "stranger", HOST, "10.1.0.0:9092"), fetched, tally=tally)
        yield Claim("absence", (f"invented-{at}", "metadata", "10.1.0.0:9092", 3), asked)


def flooded(flood: Flood, batches: int) -> tuple[list[tuple[float, int, int]], int]:
    """Per batch its CPU seconds, the bytes it rewrote and the bytes of all state; and how many honest topics stayed."""
    shards: dict[str, bytes] = {}
    honest = Cluster(HONEST_TOPICS, HONEST_CLIENTS)
    shards |= one_batch(list(honest.batch(0)), 0, shards)
    told = []
    for number in range(1, batches + 1):
        claims = list(flood(number))
        began = time.process_time()
        new = one_batch(claims, number, shards)
        shards |= new
        told.append((time.process_time() - began, size(new), size(shards)))
    judge = Judge("bench", shards.get)
    stayed = sum(bool(judge.ledger.claims_of("name", f"topic-{n}")) for n in range(HONEST_TOPICS))
    return told, stayed


@collector_paused()
def one_batch(claims: list[Claim], number: int, shards: dict[str, bytes]) -> dict[str, bytes]:
    judge = Judge("bench", shards.get)
    judge.absorb(claims)
    judge.progress("agent", BEGIN_NS + (number + 1) * STEP_NS, ended=False)
    judge.rows()
    return judge.shards()


def size(shards: dict[str, bytes]) -> int:
    return sum(map(len, shards.values()))


def measure() -> list[dict]:
    return [
        *rows("client ids", client_ids, CLIENT_IDS, CLIENTS_A_BATCH, Settings().most_clients),
        *rows("topics", topics, TOPICS, TOPICS_A_BATCH, Settings().most_topics),
    ]


def rows(what: str, flood: Flood, most: int, a_batch: int, bound: int) -> Iterator[dict]:
    told, stayed = flooded(flood, most // a_batch)
    beyond = bound * (SLACK + 1) // SLACK // a_batch
    early, late = told[beyond : beyond + WARM], told[-WARM:]
    for name, unit, of, per in (("CPU of a batch", "s", 0, 1), ("state", "MB", 2, 1e6)):
        first, last = (sum(one[of] for one in part) / len(part) / per for part in (early, late))
        yield row(f"strangers: {a_batch} new {what} a batch, {name} at the bound", first, unit)
        yield row(f"strangers: {name} after {most} {what}", last, unit, bar=FLAT, met=last < GROWTH * first)
    name = f"strangers: of {HONEST_TOPICS} topics answered before {most} {what}, still known"
    yield row(name, stayed, "topics", bar="all", met=stayed == HONEST_TOPICS)
