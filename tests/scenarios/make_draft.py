"""python -m tests.scenarios.make_draft: writes captures/kip516-draft, a cluster that speaks KIP-516 as it was drafted.

No release ever spoke so; the bytes come from the drafts' own layouts, by the encoder of tests/build.py. A controller
(broker 1) tells broker 2 about two topics with their ids and takes a third one away, broker 2 fetches from broker 1 by
name with ids as tags, and a client asks broker 2 for everything.
Rule: nothing random; the same capture every time.
"""

import base64
import gzip
import json
import random
import struct
from pathlib import Path

from tests import traffic
from tests.build import build, case
from wirecheck.decode.layouts.program import Dialect

FOLDER = Path(__file__).parent / "captures" / "kip516-draft"
CONTRADICTION = FOLDER.with_name("kip516-draft-contradiction")
CLUSTER_ID = "dRaFtKip516clusterAAAA"
ONE, TWO = ("10.51.6.1", 9092), ("10.51.6.2", 9092)
BEGIN_NS = 1_600_000_000_000_000_000
SECOND = 1_000_000_000
BEGIN = BEGIN_NS // SECOND


def topic_id(number):
    return base64.urlsafe_b64encode(bytes.fromhex("24cc4332f7de45a3b24e33d61aa0d1") + bytes([number])).decode()[:22]


ORDERS, PAYMENTS, RETIRED, OTHER = (topic_id(number) for number in (1, 2, 3, 4))
TOPICS = {"orders": ORDERS, "payments": PAYMENTS}
CONTRADICTED = TOPICS | {"orders": OTHER}
INCREMENTAL = 1


class Calm(random.Random):
    """Takes the first of every choice and leaves out whatever may be: what a test does not say is plain."""

    def random(self):
        return 0.99

    def choice(self, seq):
        return seq[0]


def body(api, side, version, value, dialect=Dialect.KIP516_DRAFT):
    """Of a message of the draft, what follows its header."""
    _, layout, version = case(api, side, version, dialect)
    header = 11 if side == "request" else 5  # flexible, an empty client id, no tags
    return layout.key, build(layout, version, Calm(0), value).data[header:]


class Peer:
    """One connection with its client id."""

    def __init__(self, client, server, client_id, at_s):
        self.talk = traffic.Talk(client, server, ts_ns=BEGIN_NS + at_s * SECOND).open()
        self.client_id, self.correlation_id = client_id.encode(), 0

    def exchange(self, api, version, asked, answered, *, shipped_answer=False, at_s=None):
        if at_s is not None:
            self.talk.ts_ns = BEGIN_NS + int(at_s * SECOND)
        self.correlation_id += 1
        key, request = body(api, "request", version, asked)
        head = struct.pack(">hhih", key, version, self.correlation_id, len(self.client_id)) + self.client_id + b"\x00"
        self.talk.request(traffic.size_prefixed(head + request))
        _, response = body(
            api, "response", version, answered, Dialect.KAFKA if shipped_answer else Dialect.KIP516_DRAFT
        )
        self.talk.response(traffic.size_prefixed(struct.pack(">i", self.correlation_id) + b"\x00" + response))


def replicas(leader=1):
    return {"leader": leader, "leaderEpoch": 4, "isr": [1, 2], "replicas": [1, 2], "controllerEpoch": 7}


TOLD = {"controllerId": 1, "controllerEpoch": 7, "brokerEpoch": 90}


def lead(peer, topics, at_s):
    """LeaderAndIsr."""
    peer.exchange("LeaderAndIsr", 3, TOLD | {
        "type": INCREMENTAL,
        "topicStates": [
            {"topicName": name, "topicId": id_, "partitionStates": [
                replicas() | {"partitionIndex": 0, "zkVersion": 2, "isNew": False}]}
            for name, id_ in topics.items()
        ],
        "liveLeaders": [{"brokerId": 1, "hostName": ONE[0], "port": ONE[1]}],
    }, {
        "errorCode": 0,
        "partitionErrors": [{"topicName": name, "topicId": id_, "partitionIndex": 0, "errorCode": 0}
                            for name, id_ in topics.items()],
    }, at_s=at_s)  # fmt: skip


def update(peer, topics):
    """UpdateMetadata, right after what was said before."""
    peer.exchange("UpdateMetadata", 7, TOLD | {
        "topicStates": [
            {"topicName": name, "topicId": id_, "partitionStates": [
                replicas() | {"partitionIndex": 0, "zkVersion": 2, "offlineReplicas": []}]}
            for name, id_ in topics.items()
        ],
        "liveBrokers": [
            {"id": number, "rack": "r", "endpoints": [
                {"port": port, "host": host, "listener": "PLAINTEXT", "securityProtocol": 0}]}
            for number, (host, port) in ((1, ONE), (2, TWO))
        ],
    }, {"errorCode": 0}, shipped_answer=True)  # fmt: skip


def stop(peer, at_s):
    """StopReplica, with deletion."""
    peer.exchange("StopReplica", 2, TOLD | {
        "deletePartitions": True,
        "topics": [{"name": "retired", "topicId": RETIRED, "partitionIndexes": [0]}],
    }, {
        "errorCode": 0,
        "partitionErrors": [{"topicName": "retired", "topicId": RETIRED, "partitionIndex": 0, "errorCode": 0}],
    }, at_s=at_s)  # fmt: skip


def controlled(later=()):
    """What the controller says to broker 2; `later`: (seconds, topics of LeaderAndIsr), each with an UpdateMetadata."""
    peer = Peer(("10.51.6.1", 51000), TWO, "1", 0)
    lead(peer, TOPICS, 0.003)
    update(peer, TOPICS)
    stop(peer, 3)
    for at_s, topics in later:
        lead(peer, topics, at_s)
        update(peer, TOPICS)
    return peer.talk.close().segments


def fetched():
    peer = Peer(("10.51.6.2", 52000), ONE, "broker-2-fetcher-0", 1)
    for turn in range(4):
        asked = {
            "replicaId": 2, "maxWaitMs": 500, "minBytes": 1, "maxBytes": 10_485_760, "isolationLevel": 0,
            "sessionId": 0, "sessionEpoch": -1, "forgottenTopicsData": [], "rackId": "",
            "topics": [
                {"topic": name, "topicId": id_, "partitions": [
                    {"partition": 0, "currentLeaderEpoch": 4, "fetchOffset": turn, "logStartOffset": 0,
                     "partitionMaxBytes": 1_048_576}]}
                for name, id_ in TOPICS.items()
            ],
        }  # fmt: skip
        answered = {
            "throttleTimeMs": 0, "errorCode": 0, "sessionId": 0,
            "responses": [
                {"topic": name, "topicId": id_, "partitions": [
                    {"partitionIndex": 0, "errorCode": 0, "highWatermark": turn, "lastStableOffset": turn,
                     "logStartOffset": 0, "abortedTransactions": [], "preferredReadReplica": -1, "records": ""}]}
                for name, id_ in TOPICS.items()
            ],
        }  # fmt: skip
        peer.exchange("Fetch", 12, asked, answered, at_s=1 + turn)
    return peer.talk.close().segments


def described():
    peer = Peer(("10.51.6.9", 53000), TWO, "draft-admin", 2)
    asked = {"topics": [{"name": name} for name in TOPICS], "allowAutoTopicCreation": False,
             "includeClusterAuthorizedOperations": False, "includeTopicAuthorizedOperations": False}  # fmt: skip
    peer.exchange("Metadata", 10, asked, {
        "throttleTimeMs": 0, "clusterId": CLUSTER_ID, "controllerId": 1, "clusterAuthorizedOperations": -(2**31),
        "brokers": [{"nodeId": n, "host": host, "port": port, "rack": "r"} for n, (host, port) in ((1, ONE), (2, TWO))],
        "topics": [
            {"errorCode": 0, "name": name, "topicId": id_, "isInternal": False,
             "topicAuthorizedOperations": -(2**31), "partitions": [
                {"errorCode": 0, "partitionIndex": 0, "leaderId": 1, "leaderEpoch": 4, "replicaNodes": [1, 2],
                 "isrNodes": [1, 2], "offlineReplicas": []}]}
            for name, id_ in TOPICS.items()
        ],
    })  # fmt: skip
    return peer.talk.close().segments


def capture(controlled):
    segments = sorted([*controlled, *fetched(), *described()], key=lambda segment: segment.ts_ns)
    return traffic.pcap(traffic.packets(segments))


def topic(name, id_, created_at=None, deleted_at=None):
    return {"name": name, "topic_id": id_, "created_at": created_at, "deleted_at": deleted_at}


def truth(name, topics, events, must, may=()):
    return {
        "name": name,
        "cluster_id": CLUSTER_ID,
        "brokers": [{"id": n, "host": h, "port": p, "version": "none"} for n, (h, p) in ((1, ONE), (2, TWO))],
        "topics": topics,
        "clients": [{"client_id": "draft-admin", "role": "admin"}],
        "events": [{"ts": BEGIN + at_s, "what": what} for at_s, what in events],
        "expected": [{"kind": "must-find", "text": text} for _, text in must],
        "expect": {
            "must": [found for found, _ in must],
            "may": list(may),
            "ids_not_on_wire": [],
            "ids_never_named": [],
        },
        "hurt_clients": [],
        "dialects": ["kip516-draft"],
    }


KNOWN = [topic(*pair) for pair in TOPICS.items()] + [topic("retired", RETIRED, deleted_at=BEGIN + 3)]
EVENTS = [(0, "capture started"), (3, "retired is deleted")]
DRAFT = {"code": "DRF001"}, "the dialect of the drafts, with topics and ids"
BOTH = {"topic": "orders", "topic_ids": [ORDERS, OTHER]}
AGAINST = [
    ({"code": "TID006"} | BOTH, "LeaderAndIsr and UpdateMetadata of controller 1 name two ids for orders"),
    ({"code": "TID018"} | BOTH, "what broker 2 has of orders is stale by the LeaderAndIsr that it gets from 10 s on"),
]
LATER = [(10, CONTRADICTED), (30, CONTRADICTED), (50, CONTRADICTED), (70, CONTRADICTED)]
CAPTURES = {
    FOLDER: ([], truth(FOLDER.name, KNOWN, EVENTS, [DRAFT])),
    CONTRADICTION: (
        LATER,
        truth(
            CONTRADICTION.name,
            [topic("orders", OTHER, BEGIN + 10), topic("orders", ORDERS, BEGIN), *KNOWN[1:]],
            [*EVENTS, (10, "LeaderAndIsr turns to another id for orders, UpdateMetadata does not")],
            [DRAFT, *AGAINST],
            ("TID003",),  # the older id is said again
        ),
    ),
}


def main():
    for folder, (later, true) in CAPTURES.items():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "capture.pcap.gz").write_bytes(gzip.compress(capture(controlled(later)), 9, mtime=0))
        (folder / "truth.json").write_text(json.dumps(true, indent=1) + "\n")


if __name__ == "__main__":
    main()
