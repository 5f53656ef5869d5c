"""The law of strangers' servers: what a server grants says nothing about a cluster whose members do not name it.

A server of its own states the true ClusterId or none, lists the true brokers, with and without itself, other servers of
its own (two list each other as members), or no server, and answers any request of its own client with any values of the
cluster and any error: what was found about others stays.
"""

import random

import pytest

from tests import traffic
from tests.depth import DEEP
from tests.laws.test_refused import (
    CLUSTERS,
    EXAMPLES,
    IDENTITY,
    OUTSIDE,
    REQUESTS,
    RESPONSES,
    USUAL,
    S,
    asked,
    bytes_of,
    cards_of,
    findings_of,
    with_talks,
)
from wirecheck import library
from wirecheck.decode.api_names import BETWEEN_BROKERS, key_of

SEEDS = range(30 if DEEP else 2)
WITHOUT_METADATA = "without Metadata"
"""It never shows which brokers there are."""
LISTED = [
    "members", "members and itself", "itself as a member", "itself alone", "members renumbered", "nobody",
    "one beside it", WITHOUT_METADATA, "a pair",
]  # fmt: skip
METADATA = [(key, version) for key, version in sorted(REQUESTS) if key == key_of("Metadata") and version >= 2]
"""Those that have a place for the ClusterId."""
OWN_ID = "7777777777777777777777"
DESCRIBES = (key_of("DescribeTopicPartitions"), 0)
"""Its answer has topics with IDs, and leaders."""
OF_LISTENERS = {*BETWEEN_BROKERS, key_of("Fetch"), key_of("Metadata")}
"""What a listener between brokers answers, which is in no list of clients either; and the list itself."""
AT_ONCE = 25
"""So many servers are in one capture."""


def granted(fields, version, of, error, dice):
    """A response's values: true names and numbers of the cluster, and sometimes an ID of the stranger's own."""
    values = {}
    for field in fields:
        if version in field.versions:
            times = dice.choice([1, 1, 2]) if field.array else None
            found = [one_value(field, version, of, error, dice) for _ in range(times or 1)]
            values[field.name] = found if field.array else found[0]
    return values


def one_value(field, version, of, error, dice):
    if field.type == "struct":
        return granted(field.fields, version, of, error, dice)
    if field.name == "errorCode":
        return error
    if field.type == "uuid":
        return dice.choice([*of.topics.values(), OWN_ID])
    if field.type == "string":
        return of.cluster_id if field.name == "clusterId" else dice.choice([*of.topics, *of.clients, "127.0.2.4"])
    if field.type in {"bytes", "records"}:
        return ""
    if field.type == "bool":
        return dice.random() < 0.5
    if field.type == "float64":
        return 0.0
    return dice.choice(of.nodes) if IDENTITY.search(field.name) else dice.choice([0, 0, 1, 2, 5, 100])


def brokers_of(of, number, listed):
    host = f"{OUTSIDE}{number}"
    true = [{"nodeId": n, "host": h, "port": p} for n, (h, p) in zip(of.nodes, of.servers, strict=True)]
    itself = {"nodeId": 7, "host": host, "port": 9092}
    if listed == "itself as a member":
        return [*true[:-1], {**itself, "nodeId": of.nodes[-1]}]
    if listed == "members renumbered":
        return [{**one, "nodeId": n} for one, n in zip(true, (*of.nodes[1:], of.nodes[0]), strict=True)]
    lists = {"members": true, "members and itself": [*true, itself], "itself alone": [itself], "nobody": []}
    lists[WITHOUT_METADATA] = []
    first = number - len(LISTED) * (number // len(LISTED) % 2)
    pair = (first, first + len(LISTED))
    lists["a pair"] = [
        {"nodeId": n, "host": f"{OUTSIDE}{k}", "port": 9092} for n, k in zip(of.nodes[-2:], pair, strict=True)
    ]
    lists["one beside it"] = [itself, {**itself, "nodeId": 8, "host": f"{OUTSIDE}99"}]
    return lists[listed]


def topics_of(of, other_id, other_leader):
    topics = []
    for number, (name, topic_id) in enumerate(of.topics.items()):
        leader = of.nodes[-1] if other_leader else of.nodes[0]
        parts = [{"partitionIndex": 0, "leaderId": leader, "replicaNodes": list(of.nodes), "isrNodes": [leader]}]
        changed = other_id and number == 0
        topics.append(
            {"name": name, "topicId": OWN_ID if changed else topic_id, "partitions": parts if other_leader else []}
        )
    return topics


def stranger(number, case, of, dice):
    """One server with one client: it says who it is, then answers one kind of request so many times."""
    version, begin = case[1], of.begin_s * S + of.seconds * S // 4 + dice.randrange(of.seconds * S // 8)
    host, listed = f"{OUTSIDE}{number}", LISTED[number % len(LISTED)]
    if listed == WITHOUT_METADATA and (case[0] in OF_LISTENERS or number < len(LISTED)):
        case, version = DESCRIBES, DESCRIBES[1]
    error = dice.choice([0, 0, 0, *USUAL, dice.choice([3, 6, 19, 25, 27, 100])])
    error = 0 if case == DESCRIBES else error
    talk = traffic.Talk(
        client=(f"{OUTSIDE}{100 + number}", 50000 + number), server=(host, 9092), ts_ns=begin, step_ns=20_000
    ).open()
    client_id, times = dice.choice(of.clients), dice.choice([1, 12, 50])
    metadata, cluster_id = dice.choice(METADATA), dice.choice([of.cluster_id, of.cluster_id, None])
    own = {"brokers": brokers_of(of, number, listed), "clusterId": cluster_id, "controllerId": of.nodes[0]}
    own["topics"] = topics_of(of, dice.random() < 0.5, dice.random() < 0.5)
    for correlation in range(1, 2 * times + 1):
        if correlation % 2 and listed != WITHOUT_METADATA:
            key, body, answer = metadata, {"topics": None}, own
        else:
            key, body = case, asked(REQUESTS[case].fields, version, of, dice)
            answer = granted(RESPONSES[case].fields, version, of, error, dice)
        talk.ts_ns = begin + correlation * of.seconds * S // 160
        talk.request(bytes_of(REQUESTS[key], key[1], body, {"correlationId": correlation, "clientId": client_id}))
        talk.response(bytes_of(RESPONSES[key], key[1], answer, {"correlationId": correlation}))
    return talk.close().segments


@pytest.fixture(scope="module", params=CLUSTERS)
def capture(request):
    return request.param, library.replay(EXAMPLES / request.param / "capture.pcap.gz")


@pytest.mark.parametrize("seed", SEEDS)
def test_what_a_strangers_server_grants_changes_nothing_about_others(capture, seed, tmp_path):
    name, before = capture
    dice = random.Random(seed)
    cases = dice.sample(sorted(REQUESTS.keys() & RESPONSES.keys()), AT_ONCE)
    talks = [stranger(number, case, CLUSTERS[name], dice) for number, case in enumerate(cases, 1)]
    after = library.replay(with_talks(name, talks, tmp_path / "strangers.pcap"))
    assert after.coverage.messages > before.coverage.messages
    assert findings_of(after) == findings_of(before)
    assert cards_of(after) == cards_of(before)
