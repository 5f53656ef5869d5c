"""Conversations with a canary wherever a secret or a record can be, and the search for it on disk.

Knows: which fields hold what must not be written, and that a cut canary is found by any eight bytes of it.
"""

import base64
import random
import struct
from pathlib import Path

import pyarrow.parquet as pq

from tests.build import plain
from tests.decode.connection.conversations import HANDSHAKE, request, response
from tests.decode.log.batches import Batch, batch, config, entry, record, text, topic, uvarint
from tests.traffic import Segment, Talk

WORD = b"c4n4ry-Zq7!vX2#tK9"
PART = 8  # what is kept by accident may be a few bytes of a word, never half of it
PARTS = {WORD[i : i + PART] for i in range(len(WORD) - PART + 1)}
SECRET = WORD * 3
TEXT = SECRET.decode()
CODED = base64.b64encode(SECRET).decode()
CLIENT = {"clientId": "client-1"}
RECORDS = base64.b64encode(
    Batch([record(SECRET, key=SECRET, headers=[(b"h" + SECRET, SECRET)]) for _ in range(8)]).bytes()
).decode()
SCRAM = entry(11, text("alice") + b"\x01" + (uvarint(len(SECRET) + 1) + SECRET) * 3 + bytes(4) + b"\x00")
LOG = base64.b64encode(batch(topic(), config(TEXT), SCRAM, entry(26, text(TEXT) + b"\x00"), topic("after"))).decode()
METADATA_ID = base64.urlsafe_b64encode(bytes(15) + b"\x01").rstrip(b"=").decode()

CONFIGS = [{"name": "sasl.jaas.config", "value": TEXT}]
UNKNOWN = {"_unknownTaggedFields": [{"tag": 99, "data": CODED}]}
PRODUCED = {"acks": -1, "topicData": [{"name": "t", "partitionData": [{"records": RECORDS}]}]}
EXCHANGES = {
    "produce": ("Produce", 9, PRODUCED, {}),
    "produce-old": ("Produce", 3, PRODUCED, {}),
    "fetch": ("Fetch", 11, {}, {"responses": [{"topic": "t", "partitions": [{"records": RECORDS}]}]}),
    "fetch-by-id": ("Fetch", 13, {}, {"responses": [{"partitions": [{"records": RECORDS}, {"records": RECORDS}]}]}),
    "sign-in": ("SaslAuthenticate", 2, {"authBytes": CODED}, {"authBytes": CODED}),
    "alter": ("AlterConfigs", 1, {"resources": [{"resourceType": 2, "resourceName": "t", "configs": CONFIGS}]}, {}),
    "alter-more": (
        "IncrementalAlterConfigs", 1, {"resources": [{"resourceType": 2, "resourceName": "t", "configs": CONFIGS}]}, {},
    ),
    "create": ("CreateTopics", 7, {"topics": [{"name": "t", "configs": CONFIGS}]},
               {"topics": [{"name": "t", "configs": CONFIGS}]}),
    "describe": ("DescribeConfigs", 4, {}, {"results": [{"resourceName": "t", "configs": CONFIGS}]}),
    "scram": ("AlterUserScramCredentials", 0,
              {"upsertions": [{"name": "a", "mechanism": 1, "salt": CODED, "saltedPassword": CODED}]}, {}),
    "token": ("CreateDelegationToken", 3, {}, {"hmac": CODED}),
    "tokens": ("DescribeDelegationToken", 3, {}, {"tokens": [{"hmac": CODED}]}),
    "tagged": ("Metadata", 12, UNKNOWN, UNKNOWN | {"topics": [{"name": "t", **UNKNOWN}]}),
    "renew": ("RenewDelegationToken", 2, {"hmac": CODED}, {}),
    "raft": ("Fetch", 12, {}, {"responses": [{"topic": "__cluster_metadata", "partitions": [{"records": LOG}]}]}),
    "raft-by-id": ("Fetch", 13, {}, {"responses": [{"topicId": METADATA_ID, "partitions": [{"records": LOG}]}]}),
    "snapshot": ("FetchSnapshot", 0, {}, {"topics": [{"name": "__cluster_metadata", "partitions": [
        {"snapshotId": {"endOffset": 7, "epoch": 1}, "size": 400, "position": 0, "unalignedRecords": LOG}]}]}),
}  # fmt: skip


def exchange(name: str, number: int) -> tuple[bytes, bytes]:
    api, version, asked, answered = EXCHANGES[name]
    head = {**CLIENT, "correlationId": number}
    return (
        plain(api, "request", version, asked, head),
        plain(api, "response", version, answered, {"correlationId": number}),
    )


def enveloped(name: str, number: int) -> tuple[bytes, bytes]:
    inner = [base64.b64encode(data[4:]).decode() for data in exchange(name, 0)]
    head = {"correlationId": number}
    asked = {"requestData": inner[0], "clientHostAddress": base64.b64encode(bytes(4)).decode()}
    return (
        plain("Envelope", "request", 0, asked, {**CLIENT, **head}),
        plain("Envelope", "response", 0, {"responseData": inner[1]}, head),
    )


def kafka(names: list[str], port: int, mss: int) -> Talk:
    """One connection that says all this, some of it in Envelopes."""
    talk = Talk(client=("10.0.0.1", port), mss=mss).open()
    for number, name in enumerate(names):
        asked, answered = (enveloped if number % 5 == 4 and not name.startswith(("raft", "snap")) else exchange)(
            name, number + 1
        )
        talk.request(asked).response(answered)
    return talk


def sign_in_raw(port: int, mss: int) -> Talk:
    """SaslHandshake v0, tokens without header, then Kafka."""
    talk = Talk(client=("10.0.0.2", port), mss=mss).open()
    talk.request(request(HANDSHAKE, 0, 1, struct.pack(">h", 5) + b"PLAIN"))
    talk.response(response(1, bytes(2) + struct.pack(">ih", 1, 5) + b"PLAIN"))
    token = b"\0user\0" + SECRET
    talk.request(struct.pack(">i", len(token)) + token).response(struct.pack(">i", len(SECRET)) + SECRET)
    asked, answered = exchange("fetch", 2)
    return talk.request(asked).response(answered)


def login(mechanism: str, tokens: list[bytes], port: int, mss: int = 1448) -> Talk:
    """SaslHandshake v1 and one SaslAuthenticate per token, then Kafka."""
    talk = Talk(client=("10.0.0.4", port), mss=mss).open()
    asked = [("SaslHandshake", 1, {"mechanism": mechanism})]
    asked += [("SaslAuthenticate", 2, {"authBytes": base64.b64encode(token).decode()}) for token in tokens]
    for number, (api, version, body) in enumerate(asked):
        head = {"correlationId": number}
        talk.request(plain(api, "request", version, body, {**CLIENT, **head}))
        talk.response(plain(api, "response", version, {}, head))
    asked, answered = exchange("fetch", len(tokens) + 1)
    return talk.request(asked).response(answered)


LOGINS = (
    ("PLAIN", [b"\0alice\0" + SECRET]),
    ("SCRAM-SHA-256", [b"n,,n=alice,r=" + SECRET, b"c=biws,r=" + SECRET + b",p=" + SECRET]),
    ("SCRAM-SHA-512", [b"n,,n=" + SECRET + b",r=nonce,tokenauth=true"]),
    ("OAUTHBEARER", [b"n,,\1auth=Bearer " + SECRET + b"\1\1"]),
)


def foreign(port: int, mss: int) -> Talk:
    talk = Talk(client=("10.0.0.3", port), server=("10.0.0.9", 8080), mss=mss).open()
    talk.request(b"POST /login HTTP/1.1\r\nAuthorization: Basic " + SECRET + b"\r\n\r\npassword=" + SECRET)
    return talk.response(b"HTTP/1.1 200 OK\r\n\r\n" + SECRET * 20)


def traffic(names: list[str], mss: int) -> list[Segment]:
    talks = [kafka(names, 40000, mss), sign_in_raw(40001, mss), foreign(40002, mss)]
    talks += [login(mechanism, tokens, 40003 + at, mss) for at, (mechanism, tokens) in enumerate(LOGINS)]
    return sorted((s for talk in talks for s in talk.segments), key=lambda s: s.ts_ns)


def mutated(segments: list[Segment], rng: random.Random, what: set[str]) -> list[Segment]:
    found = [s for s in segments if not ("loss" in what and rng.random() < 0.05)]
    if "repeat" in what:
        found = [copy for s in found for copy in [s] * (1 + (rng.random() < 0.1))]
    if "reorder" in what:
        places = [i + (rng.randint(1, 6) if rng.random() < 0.2 else 0) for i in range(len(found))]
        found = [s for _, s in sorted(zip(places, found, strict=True), key=lambda pair: pair[0])]
    return found[rng.randrange(len(found) // 2) :] if "middle" in what else found


def leaks(files: list[Path]) -> list[str]:
    """Where parts of the canary stand in these files."""
    found = []
    for file in files:
        for name, column in pq.read_table(file).to_pydict().items():
            values = b"\0".join(v if isinstance(v, bytes) else str(v).encode() for v in column)
            joined = b"".join(v for v in column if isinstance(v, bytes))
            found += [f"{name}: {part!r}" for part in PARTS if part in values or part in joined]
        found += [f"{file.name}: {part!r}" for part in PARTS if part in file.read_bytes()]
    return found
