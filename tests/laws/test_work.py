"""The law of work: what one subject costs grows no faster than n log n with what it has.

Each kind of claim is taken from shipped captures and stated many times over, with another value in one field of its
key: topic IDs of one name, leader epochs of one partition, ISRs, controllers, clients. Steps are counted, not seconds:
lines of Python that ran, each time round a loop included. The servers of a cluster are compared in pairs: there are few
of them, and each must have answered.
"""

import base64
import struct
import sys

import pytest

from tests.decode.connection.conversations import METADATA, request, response
from tests.depth import DEEP, some
from tests.judge.lab import Lab
from tests.laws.test_judge_stands import claims_of_capture  # noqa: F401 - a fixture
from tests.story.values import finding
from tests.traffic import Talk, packets, pcap
from wirecheck import library
from wirecheck.judge.claims.claim import Claim, Sighting
from wirecheck.judge.claims.kinds import KINDS
from wirecheck.judge.results.agreement_rows import TopicStatement
from wirecheck.judge.revisions.judge import Judge
from wirecheck.story import agreement

CAPTURES = ("zk28-recreate", "kraft4-groups-recreate", "zk39-inconsistent-id", *["kraft4-stale-broker"] * DEEP)
"""Those first of which a judgement takes the fewest steps: it is in each figure."""
FEW, MANY = 280, 560
"""More than what is held apart of any subject (256), so that a square would show."""
AS_MUCH = 1.25
"""log(560) / log(280) is 1.12, log(300) / log(100) 1.24; a square would be 2 and 3."""
MIDDLE_NS = 20_000_000


@pytest.fixture(scope="module")
def samples(claims_of_capture):  # noqa: F811 - a fixture
    """Of each kind, and of some its source, the claim that the first capture which has one states most often."""
    found = {}
    for name in CAPTURES:
        for claim in claims_of_capture(name):
            sort = claim.kind, claim["source"] if claim.kind in BY_SOURCE else None
            if sort not in found or (found[sort][0] == name and found[sort][1].count < claim.count):
                found[sort] = (name, claim)
    return found


def other(field, value, number):
    """Another value of the same sort."""
    if field == "topic_id":
        return base64.urlsafe_b64encode(struct.pack(">QQ", 0x4000 + (number << 20), 1 << 63 | number)).decode()[:22]
    if field in {"address", "client"}:
        return f"10.77.{number >> 8}.{number & 255}:9092"
    if field == "host":
        return f"10.77.{number >> 8}.{number & 255}"
    if field == "by":
        return f"{number % 5}@{number}"
    if field in {"replicas", "isr", "offline"}:
        return ",".join(map(str, sorted({number % 7, 7 + number % 11, 18 + number // 77})))
    if field == "ranges":
        return f"0:0-{number}"
    if isinstance(value, int) and not isinstance(value, bool):
        return number
    return f"{value or ''}{number}" if value is None or isinstance(value, str) else None


def stated(sample, field, many):
    at = KINDS[sample.kind].at[field]
    for number in range(many):
        key = (*sample.key[:at], other(field, sample.key[at], number), *sample.key[at + 1 :])
        first, last = (
            Sighting(seen.ts_ns + number * MIDDLE_NS, *seen[1:4], seen.correlation_id + number, *seen[5:])
            for seen in (sample.first, sample.last)
        )
        yield Claim(
            sample.kind, key, first, last, count=sample.count, tally={**sample.tally}, peak={**sample.peak},
            outcomes=sample.outcomes.copy(),
        )  # fmt: skip


class Steps:
    """Lines of the judge, or of another place, that ran while it was open."""

    def __init__(self, place="/judge/"):
        self.number, self.place = 0, place

    def __enter__(self):
        sys.settrace(self.traced)
        return self

    def __exit__(self, *_):
        sys.settrace(None)

    def traced(self, frame, event, _argument):
        if self.place not in frame.f_code.co_filename:
            return None
        self.number += event == "line"
        return self.traced


def steps(around, more, place="/judge/"):
    """Of stating more, and of judging what it is about, where a capture was judged before."""
    judge = Judge("default")
    judge.absorb([claim.copy() for claim in around])
    judge.progress("agent", max(claim.last.ts_ns for claim in around), ended=False)
    judge.rows()
    with Steps(place) as counted:
        judge.absorb(more)
        judge.progress("agent", max(claim.last.ts_ns for claim in [*around, *more]), ended=True)
        judge.rows()
    assert judge.failures.new_ones() == []
    return counted.number


BY_SOURCE = {"binding": ("metadata", "metadata-log"), "partition": ("metadata", "leader-and-isr", "metadata-log")}
FEW_VALUES = {"endpoint", "api", "version", "operations"}
OFTEN = {"topic_id", "leader_epoch", "by", "epoch", "isr"}
"""Fields of which one subject has very many on real clusters; the others are for the deep profile."""
CASES = [
    (kind, source, field)
    for kind, of in KINDS.items()
    if not kind.startswith("unanswered_")
    for source in BY_SOURCE.get(kind, (None,))
    for field in of.fields
    if field not in FEW_VALUES and (field in OFTEN or DEEP)
]


@pytest.mark.parametrize(("kind", "source", "field"), some(CASES, each=6), ids=str)
def test_a_subject_costs_no_more_than_it_has(kind, source, field, samples, claims_of_capture):  # noqa: F811 - a fixture
    if (kind, source) not in samples:
        pytest.skip("no shipped capture has such a claim")
    name, sample = samples[kind, source]
    if other(field, sample[field], 1) is None:
        pytest.skip("the field has few values")
    around = claims_of_capture(name)
    alone, few, many = (steps(around, [*stated(sample, field, number)]) for number in (1, FEW, MANY))
    assert many - alone <= (few - alone) * (MANY / FEW) * AS_MUCH + alone / 10, (alone, few, many)


FEW_CLUSTERS, MANY_CLUSTERS = 30, 90
"""More than an address's former clusters that are looked at (16)."""
SAME = 1.15
"""In proportion to the number, and what rounds up."""


def cluster(number, *, endpoint=None, controller=False):
    """A cluster of one broker, which states its cluster ID and, at an address of its own, a topic that all of them
    have; its controller states nothing.
    """
    lab, host = Lab(), f"10.77.{number}.1"
    server = endpoint or f"{host}:9092"
    topics = [] if endpoint else [("orders", other("topic_id", None, number + 1))]
    for at in (number / 50, number / 50 + 0.012):  # 10 s apart, a slot each would add to an address's answers
        lab.metadata(at, topics, server=server, brokers={server: 1}, cluster_id=f"cluster-{number:014}")
        if controller:
            talk = lab.talk(f"10.77.{number}.2:9093", "1", host)
            talk.ask(at, "BrokerHeartbeat", 1, {"brokerId": 1, "brokerEpoch": 5}, {})
    return lab.claims()


@pytest.mark.parametrize(
    "of",
    some([{"endpoint": "10.77.0.1:9092"}, {}, {"controller": True}], each=2),
    ids=some(["one-address", "own-addresses", "controllers"], each=2),
)
def test_clusters_cost_no_more_than_there_are(of):
    around = cluster(0, **of)
    alone, few, many = (
        steps(around, [claim for number in range(1, 1 + count) for claim in cluster(number, **of)])
        for count in (1, FEW_CLUSTERS, MANY_CLUSTERS)
    )
    assert many - alone <= (few - alone) * (MANY_CLUSTERS / FEW_CLUSTERS) * SAME, (alone, few, many)


FEW_TOPICS, MANY_TOPICS = 50, 150
CHECKS, OF_A_TOPIC = "/judge/check", 780
"""Steps of checks that a topic costs with which nothing is wrong, stated by three brokers: wide clusters have 16,000.
Nothing of these folders is ever compiled.
"""


def test_a_healthy_topic_costs_few_steps():
    brokers = {f"10.77.0.{number}:9092": number for number in (1, 2, 3)}

    def stated_by_all(number):
        lab = Lab()
        topics = [(f"orders-{n}", other("topic_id", None, n + 1)) for n in range(number)]
        for at, server in enumerate(brokers):
            lab.metadata(at, topics, server=server, brokers=brokers)
        return lab.claims()

    few, many = (steps(stated_by_all(1), stated_by_all(number), CHECKS) for number in (FEW_TOPICS, MANY_TOPICS))
    assert many - few <= OF_A_TOPIC * (MANY_TOPICS - FEW_TOPICS)


def test_a_table_of_agreement_costs_its_rows_and_the_findings(monkeypatch):
    """However many of the findings contradict an ID."""
    monkeypatch.setattr(agreement, "agreement", lambda _: None)

    def lines_of(number):
        ids = [other("topic_id", None, n + 1) for n in range(number)]
        rows = [{**TOPIC_ID_FINDING, "id": one, "topic": f"t-{n}", "topic_ids": [one]} for n, one in enumerate(ids)]
        monkeypatch.setattr(agreement, "contradictions", lambda _: list(map(finding, rows)))
        stated = [TopicStatement("C", row["topic"], row["id"], "ID", "broker 1", "Metadata", 0, 0, 1) for row in rows]
        with Steps("/story/agreement") as counted:
            found = agreement.agreement_table(None, stated, [])
        assert {marked.codes for _, marked in found.topics} == {("TID001",)}
        assert not found.others
        return counted.number

    few, many = map(lines_of, (FEW, MANY))
    assert many <= few * (MANY / FEW) * SAME, (few, many)


TOPIC_ID_FINDING = {"code": "TID001", "kind": "violation", "cluster": "C", "label": "L", "sides": [], "words": {}}
TOPIC_ID_FINDING |= {"client_ids": [], "brokers": [], "first_seen": 0, "last_seen": 0}
FEW_PARTITIONS, MANY_PARTITIONS = 100, 300
"""Of one topic. Going through the claims of all partitions for each of them would show."""
ONE_OF_EACH = {"client_id": "app", "host": "10.77.0.1", "group": "readers"}


def about_all_partitions(samples, same, number):
    """Every kind of statement about a partition, about so many partitions; `same`: what their other fields have."""
    for sample in samples:
        fields = KINDS[sample.kind].fields
        values = dict(zip(fields, sample.key, strict=True))
        values |= {field: value for field, value in same.items() if values.get(field) is not None}
        for partition in range(number):
            yield Claim(
                sample.kind, tuple({**values, "partition": partition}[field] for field in fields), sample.first,
                sample.last, count=sample.count, tally={**sample.tally}, peak={**sample.peak},
                outcomes=sample.outcomes.copy(),
            )  # fmt: skip


@pytest.mark.parametrize("capture", some(["zk28-recreate", "zk39-inconsistent-id"]))
def test_partitions_of_one_topic_cost_no_more_than_there_are(capture, samples, claims_of_capture):  # noqa: F811
    around = claims_of_capture(capture)
    every = [claim for _, claim in samples.values() if "partition" in KINDS[claim.kind].fields]
    bound = max((one for one in around if one.kind == "binding" and one["name"]), key=lambda one: one.count)
    same = {"name": bound["name"], "topic_id": bound["topic_id"], "endpoint": bound.last.server, **ONE_OF_EACH}
    alone, few, many = (
        steps(around, [*about_all_partitions(every, same, number)]) for number in (1, FEW_PARTITIONS, MANY_PARTITIONS)
    )
    in_proportion = (few - alone) * (MANY_PARTITIONS / FEW_PARTITIONS) * AS_MUCH
    assert many - alone <= in_proportion + alone / 10, (alone, few, many)


FEW_CLIENTS, MANY_CLIENTS = 60, 180
GROUPS, SERVER, HOST = 2, "10.77.0.1:9092", "10.77.1.1"


def test_clients_of_one_host_cost_no_more_than_there_are():
    """Each with members of groups of its own."""

    def clients(number):
        lab = Lab()
        lab.metadata(0, [("orders", other("topic_id", None, 1))], server=SERVER, brokers={SERVER: 1})
        for at, (one, group) in enumerate((n, g) for n in range(number) for g in range(GROUPS)):
            talk = lab.talk(SERVER, f"app-{one}", HOST)
            body = {"groupId": f"g-{one}-{group}", "memberId": f"m-{one}", "memberEpoch": 0}
            answer = {"memberId": f"m-{one}", "memberEpoch": 1, "assignment": {"topicPartitions": []}}
            talk.ask(1 + at / 1000, "ConsumerGroupHeartbeat", 0, body, answer)
        return lab.claims()

    alone, few, many = (steps(clients(1), clients(number), CHECKS) for number in (1, FEW_CLIENTS, MANY_CLIENTS))
    assert many - alone <= (few - alone) * (MANY_CLIENTS / FEW_CLIENTS) * SAME, (alone, few, many)


FEW_SERVERS, MANY_SERVERS = 60, 180


def test_servers_that_one_client_asks_cost_no_more_than_there_are():
    """Each of them a cluster by itself, as far as is known."""

    def asked(number):
        lab = Lab()
        for n in range(number):
            lab.talk(f"10.77.{n >> 8}.{n & 255}:9092", "app", HOST).ask(n / 100, "ApiVersions", 3, {}, {})
        return lab.claims()

    few, many = (steps(asked(1), asked(number), CHECKS) for number in (FEW_SERVERS, MANY_SERVERS))
    assert many <= few * (MANY_SERVERS / FEW_SERVERS) * SAME, (few, many)


FEW_FILES, MANY_FILES = 40, 120
"""Of one capture, each of an exchange. That each file is compared with each would show."""


def test_files_of_a_capture_cost_no_more_than_there_are(tmp_path):
    def lines_of(number):
        folder = tmp_path / str(number)
        folder.mkdir()
        talk = Talk().open()
        for at in range(number):
            before = len(talk.segments)
            talk.request(request(METADATA, 9, at, bytes(10))).response(response(at, bytes(10)))
            (folder / f"{at:04d}.pcap").write_bytes(pcap(packets(talk.segments[before:]), nanoseconds=True))
        counts = []
        for place in ("/capture/source/merge", "/streaming/run/local_replay"):
            with Steps(place) as counted:
                found = library.replay(*sorted(folder.iterdir()))
            counts.append(counted.number)
        assert found.coverage.messages == 2 * number
        return counts

    for few, many in zip(lines_of(FEW_FILES), lines_of(MANY_FILES), strict=True):
        assert many <= few * (MANY_FILES / FEW_FILES) * SAME, (few, many)
