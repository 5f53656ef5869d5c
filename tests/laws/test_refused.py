"""The law of refusals: a request that is refused says nothing about a broker, a controller or a cluster.

A host that is granted nothing sends any request that carries an identity (a node, a controller, a principal or a
cluster), with the true values of the cluster that it is sent to, and gets any error: what was found about others stays.
"""

import gzip
import random
import re
import struct
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import traffic
from tests.build import CASES, HEADERS, Still, Writer
from tests.depth import DEEP
from wirecheck import library
from wirecheck.decode.layouts.program import Dialect
from wirecheck.decode.schemas import Range, releases

EXAMPLES = Path(__file__).parents[2] / "examples"
SEEDS = range(30 if DEEP else 1)
OUTSIDE = "127.0.77."
"""The hosts that are granted nothing."""
S = 1_000_000_000
IDENTITY = re.compile(
    r"(node|broker|replica|controller|leader|voter|candidate|cluster|directory)s?(Id|Ids|s)?$|principal|isr",
    re.IGNORECASE,
)
REQUESTS = {
    (layout.key, version): layout
    for dialect, layout, version in CASES
    if dialect == Dialect.KAFKA and layout.side == "request"
}
RESPONSES = {
    (layout.key, version): layout
    for dialect, layout, version in CASES
    if dialect == Dialect.KAFKA and layout.side == "response"
}
LEAST = -1
ERRORS = [-1, *range(1, 134)]
USUAL = [29, 30, 31, 35, 41, 42, 77, 101, 104]
"""What a server refuses with: no authorization, another version, controller, epoch or ID."""
TOPIC_AUTHORIZATION_FAILED, UNSUPPORTED_VERSION = 29, 35
HOSTS = 4
"""That send one API, each with its own values and errors."""


@dataclass(frozen=True)
class Cluster:
    """What is true of the cluster in a capture."""

    servers: tuple[tuple[str, int], ...]
    nodes: tuple[int, ...]
    cluster_id: str
    topics: dict[str, str]
    clients: tuple[str, ...]
    begin_s: int
    seconds: int
    advertised: dict[int, Range]
    """What its servers advertise, per API key."""


CLUSTERS = {
    "kraft4-stale-broker": Cluster(
        (("127.0.2.1", 20621), ("127.0.2.2", 20602), ("127.0.2.3", 20603), ("127.0.2.4", 20604)),
        (1, 2, 3, 4), "YlXd91xRSnq-aJ-J9mPLtA",
        {"calm": "dm3VbxWfQveFYPAqMlysXw", "tickets": "KHrEQJ4WSduMdJpyMZSmXg"},
        ("p-lost", "c-lost", "broker-4-fetcher-0", "4", "raft-client-1"), 1795221370, 120, releases()["4.3.1"],
    ),
    "zk39-inconsistent-id": Cluster(
        (("127.0.1.1", 19091), ("127.0.1.2", 19092), ("127.0.1.3", 19093)),
        (1, 2, 3), "aqj98zPCSGyEHO5efX6mPg",
        {"shipments": "da2uCyqPT-6vP4yDIMcDSw", "parcels": "fp8KGPpwRjGe9x5uzj5Yhg"},
        ("dock", "gate", "broker-3-fetcher-0", "2", "3"), 1795220390, 30, releases()["3.9.1"],
    ),
}  # fmt: skip


def carries_identity(fields, version):
    return any(
        version in field.versions and (IDENTITY.search(field.name) or carries_identity(field.fields, version))
        for field in fields
    )


CARRYING = sorted(case for case, layout in REQUESTS.items() if carries_identity(layout.fields, case[1]))


def asked(fields, version, of, dice):
    """A request's values: true names and numbers of the cluster, any epoch."""
    return {f.name: asked_value(f, version, of, dice) for f in fields if version in f.versions}


def asked_value(field, version, of, dice):
    if field.array:
        return [one_value(field, version, of, dice) for _ in range(dice.choice([1, 1, 2]))]
    return one_value(field, version, of, dice)


def one_value(field, version, of, dice):
    name = field.name
    if field.type == "struct":
        return asked(field.fields, version, of, dice)
    if field.type == "uuid":
        return dice.choice([*of.topics.values(), "AAAAAAAAAAAAAAAAAAAAAA"])
    if field.type == "string":
        texts = (
            [of.cluster_id, "PzO7DHjzQRiEIAS0px5gbQ"]
            if "luster" in name
            else [*of.topics, *of.clients, "User:admin", "127.0.2.4"]
        )
        return dice.choice(texts)
    if field.type in {"bytes", "records"}:
        return ""
    if field.type == "bool":
        return dice.random() < 0.5
    if IDENTITY.search(name) or name == "key":
        return dice.choice(of.nodes)
    return dice.choice([0, 0, 1, 2, 5, 100]) if field.type != "float64" else 0.0


def answered(fields, version, of, error, topic_id=None):
    """A response's values: every error code is this error, and the server states what is true of the cluster; of a
    request that names a topic by ID, its answer names that ID.
    """
    values = {}
    for field in fields:
        if version not in field.versions:
            continue
        if field.name == "errorCode":
            values[field.name] = error
        elif field.array:
            has_error = field.type == "struct" and states_error(field.fields, version)
            values[field.name] = [answered(field.fields, version, of, error, topic_id)] if has_error else []
        elif field.type == "struct":
            values[field.name] = answered(field.fields, version, of, error, topic_id)
        elif version in field.nullable:
            values[field.name] = of.cluster_id if field.name == "clusterId" else None
        elif field.type == "string":
            values[field.name] = of.cluster_id if field.name == "clusterId" else next(iter(of.topics))
        elif field.type == "uuid":
            values[field.name] = topic_id or next(iter(of.topics.values()))
        elif field.type.startswith("int"):
            values[field.name] = LEAST if field.name != "throttleTimeMs" else 0
    return values


def topic_id_of(fields, version, body):
    """The first one that a request names; None if it names none."""
    for field in (field for field in fields if field.name in body):
        values = body[field.name] if field.array else [body[field.name]]
        if field.type == "uuid" and "topic" in field.name.lower():
            return values[0]
        for value in values if field.type == "struct" else ():
            if (found := topic_id_of(field.fields, version, value)) is not None:
                return found
    return None


def states_error(fields, version):
    return any(
        version in field.versions and (field.name == "errorCode" or states_error(field.fields, version))
        for field in fields
    )


def bytes_of(layout, version, body, header):
    writer = Writer(Still())
    head = HEADERS["RequestHeader" if layout.side == "request" else "ResponseHeader"]
    number = layout.header_version(version)
    given = {"requestApiKey": layout.key, "requestApiVersion": version, **header}
    writer.struct(head.fields, number, number in head.flexible, given)
    writer.struct(layout.fields, version, version in layout.flexible, body)
    return traffic.size_prefixed(bytes(writer.out))


def refusal(case, of, dice):
    """Any error that does not contradict what the server advertises."""
    error, (key, version) = dice.choice([dice.choice(USUAL), dice.choice(ERRORS)]), case
    advertised = of.advertised.get(key)
    known = advertised is not None and advertised.low <= version <= advertised.high
    return TOPIC_AUTHORIZATION_FAILED if error == UNSUPPORTED_VERSION and known else error


def outsider(number, case, of, dice):
    """One host that sends one kind of request so many times, and is refused with one error."""
    version = case[1]
    times, error = dice.choice([1, 12, 50, 50]), refusal(case, of, dice)
    begin = of.begin_s * S + dice.randrange(of.seconds * S // 4)
    talk = traffic.Talk(
        client=(f"{OUTSIDE}{number}", 50000 + number), server=dice.choice(of.servers), ts_ns=begin, step_ns=20_000
    ).open()
    client_id, body = dice.choice(of.clients), asked(REQUESTS[case].fields, version, of, dice)
    topic_id = topic_id_of(REQUESTS[case].fields, version, body)
    for correlation in range(1, times + 1):
        head = {"correlationId": correlation, "clientId": client_id}
        talk.ts_ns = begin + correlation * of.seconds * S // 80
        talk.request(bytes_of(REQUESTS[case], version, body, head))
        answer = answered(RESPONSES[case].fields, version, of, error, topic_id)
        talk.response(bytes_of(RESPONSES[case], version, answer, {"correlationId": correlation}))
    return talk.close().segments


LINK_HEADERS = {
    1: bytes(12) + b"\x08\0",
    101: b"",
    113: struct.pack(">HHH8sH", 0, 1, 6, bytes(8), 0x800),
    276: struct.pack(">HHIHBB8s", 0x800, 0, 1, 1, 0, 6, bytes(8)),
}


def with_talks(name, talks, path):
    """The capture, and the segments of other connections."""
    data = gzip.decompress((EXAMPLES / name / "capture.pcap.gz").read_bytes())
    nanoseconds = struct.unpack("<I", data[:4])[0] == 0xA1B23C4D
    link = LINK_HEADERS[struct.unpack("<I", data[20:24])[0]]
    packets, at = [], 24
    while at < len(data):
        second, part, size = struct.unpack("<III", data[at : at + 12])
        ts_ns = second * S + part * (1 if nanoseconds else 1000)
        packets.append((ts_ns, data[at : at + 16 + size]))
        at += 16 + size
    for segment in (segment for talk in talks for segment in talk):
        whole = link + traffic.ip(segment)
        part = segment.ts_ns % S // (1 if nanoseconds else 1000)
        head = struct.pack("<IIII", segment.ts_ns // S, part, len(whole), len(whole))
        packets.append((segment.ts_ns, head + whole))
    packets.sort(key=lambda packet: packet[0])
    path.write_bytes(data[:24] + b"".join(packet for _, packet in packets))
    return path


ABOUT_A_CLIENT = {"VER001", "ADM001"}
"""Codes of findings about a client that also show what a server told others: its ranges, or that a topic exists."""


def of_outsiders(finding):
    """Whether a finding is about one of the hosts: it rests on what was said to it or by it."""
    some = any if finding.code in ABOUT_A_CLIENT else all
    return bool(finding.sides) and some(OUTSIDE in side.connection for side in finding.sides)


def findings_of(verdict):
    return sorted(
        (finding.code, finding.topic or "", finding.brokers, finding.client_ids, finding.summary)
        for finding in verdict.findings
        if not of_outsiders(finding)
    )


def cards_of(verdict):
    """Headline, cause and advice of each card that is not about one of the hosts alone."""
    theirs = {finding.id for finding in verdict.findings if of_outsiders(finding)}
    return [
        (card.code, card.headline, card.cause.sentence, card.action.sentence)
        for card in verdict.cards
        if OUTSIDE not in f"{card.headline} {card.cause} {card.action}"
        and not (theirs.issuperset(card.findings) and (card.code in NAMELESS or not names_a_host(card)))
    ]


NAMELESS = {"CLU001"}
"""Cards that name the client ID of what a host sends, and no address."""


def names_a_host(card):
    return "(127.0.0.1)" in f"{card.headline} {card.cause} {card.action}"


@pytest.fixture(scope="module", params=CLUSTERS)
def capture(request):
    return request.param, library.replay(EXAMPLES / request.param / "capture.pcap.gz")


@pytest.mark.parametrize("seed", SEEDS)
def test_a_refused_request_changes_nothing_about_others(capture, seed, tmp_path):
    name, before = capture
    dice = random.Random(seed)
    apis = sorted({key for key, _ in CARRYING})
    cases = [dice.choice([case for case in CARRYING if case[0] == api]) for api in apis for _ in range(HOSTS)]
    talks = [outsider(number, case, CLUSTERS[name], dice) for number, case in enumerate(cases, 1)]
    after = library.replay(with_talks(name, talks, tmp_path / "outsiders.pcap"))
    assert after.coverage.messages > before.coverage.messages
    assert after.coverage.decoded_messages == after.coverage.messages
    assert findings_of(after) == findings_of(before)
    assert cards_of(after) == cards_of(before)
    blamed = {one.code for one in after.findings if of_outsiders(one) and one.kind == "violation"}
    assert blamed <= {"VER001", "CLU001"}
