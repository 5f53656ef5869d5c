"""Claims made by hand, for tests of the ledger that need no bytes."""

from wirecheck.judge.claims.claim import Claim, Sighting
from wirecheck.judge.claims.outcomes import SLOT_NS, Outcomes, Run, single

S = 1_000_000_000
EAST, WEST = "10.0.0.1:9092", "10.0.9.1:9092"
ID_1, ID_2, ID_3 = "aaaaaaaaSaaaaaaaaaaaaA", "bbbbbbbbTbabbbbbbbbbbA", "ccccccccQceccccccccccA"


def seen(second, server=EAST, api="Metadata", version=12):
    return Sighting(int(second * S), f"10.0.0.99:40000>{server}", api, version, int(second), "a.pcap", 1, 2)


def claim(kind, *key, at=0.0, until=None, server=EAST, **more):
    return Claim(kind, key, seen(at, server), seen(at if until is None else until, server), **more)


def cluster(cluster_id="east-cluster-id-22-chars", server=EAST, at=0.0):
    return claim("cluster_id", server, cluster_id, "metadata", at=at, server=server)


def bound(name, topic_id, at, until=None, *, server=EAST, source="metadata", by=None):
    return claim("binding", name, topic_id, source, server, by, at=at, until=until, server=server)


def carries(server, topic_id, at):
    """That a server spoke of an id."""
    return claim("carries", server, at=at, server=server, peak={f"least:{topic_id}": -int(at * S)})


def outcomes(*answers, port=40000):
    """Answers over time, from (second, error) or (second, error, count)."""
    made = Outcomes()
    for at, error, *count in answers:
        ts_ns = int(at * S)
        made.merge(single(error, ts_ns // SLOT_NS, port, Run(*(count or [1]), ts_ns, ts_ns)))
    return made
