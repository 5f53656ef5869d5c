"""Detection: plausible Fetch v12 requests of each dialect are told apart, each on a connection of its own."""

import random
import string

import pytest

from tests.build import build, case
from wirecheck.decode.dialect import read
from wirecheck.decode.message import Dialect, Status
from wirecheck.decode.wire import REQUEST, pack

COUNT = 400
NAME = string.ascii_lowercase + string.digits + "._-"


class Untagged(random.Random):
    """Chance without tags and nulls."""

    def random(self):
        return 0.99


def partition(rng, dialect):
    fields = {
        "partition": rng.randint(0, 30), "currentLeaderEpoch": rng.choice([-1, 0, 5]),
        "fetchOffset": rng.choice([0, rng.randint(0, 10**9)]), "logStartOffset": rng.choice([-1, 0, 77]),
        "partitionMaxBytes": 1 << 20,
    }  # fmt: skip
    return fields if dialect else {**fields, "lastFetchedEpoch": rng.choice([-1, 0, 3])}


def topic(rng, dialect):
    name = "".join(rng.choices(NAME, k=rng.randint(1, 20)))
    there = {"topic": name, "partitions": [partition(rng, dialect) for _ in range(rng.randint(1, 3))]}
    return {**there, "topicId": "JxMDMvfeRaOyTjPWGqDRbA"} if dialect else there


def request(rng, dialect):
    body = {
        "replicaId": rng.choice([-1, 1, 2]), "maxWaitMs": 500, "minBytes": 1, "maxBytes": 10 << 20, "isolationLevel": 0,
        "sessionId": rng.choice([0, rng.randint(1, 2**31 - 1)]), "sessionEpoch": rng.choice([-1, 0, 9]), "rackId": "",
        "forgottenTopicsData": [], "topics": [topic(rng, dialect) for _ in range(rng.randint(1, 3))],
    }  # fmt: skip
    return build(case("Fetch", "request", 12, dialect)[1], 12, Untagged(rng.randint(0, 2**31)), body).data


@pytest.mark.parametrize("dialect", [Dialect.KAFKA, Dialect.KIP516_DRAFT, Dialect.KIP516_DRAFT_INLINE])
def test_plausible_requests_are_read_in_their_own_dialect(dialect):
    rng = random.Random(dialect)
    messages = pack([request(rng, dialect) for _ in range(COUNT)], [REQUEST] * COUNT, [1] * COUNT, [12] * COUNT)
    out = read(messages, ["kip516-draft"] if dialect else [])
    assert set(out.status.tolist()) == {Status.OK}
    assert set(out.dialect.tolist()) == {dialect}
