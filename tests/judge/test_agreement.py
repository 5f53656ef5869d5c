"""Two parties that keep stating different IDs for one name are found, whichever messages carry the IDs."""

from functools import cache
from itertools import product

import pytest

from tests.depth import DEEP, some
from tests.judge.agreement_kinds import KINDS, LEFT_OUT, LOG, both_parties
from tests.judge.lab import B1, B2, B3, ID_1, ID_2, Lab, ns, open_rows
from wirecheck.decode.layouts.layout import layouts, snake
from wirecheck.judge.claims.claim import pack, unpack
from wirecheck.judge.revisions.judge import Judge
from wirecheck.judge.thresholds import Settings

EVERY, END = 10, 120
NAMES = {"topic", "topicName", "name"}
SOURCES = ("kafka", "metadata_records", "other", "kip516_draft", "kip4_draft")
CELLS = [
    (one, other, *servers)
    for one, other in product(KINDS, KINDS)
    for servers in both_parties(one, other)
    if DEEP or [*KINDS].index(one) <= [*KINDS].index(other) or KINDS[other].party == LOG
]
EACH = 18
"""One in so many cells has each kind of message; the law that a disagreement is found takes all."""


def parties(*kinds):
    return {KINDS[kind].party for kind in kinds}


@cache
def cluster():
    """Three brokers that list each other, and no topics."""
    lab = Lab()
    for at in (0, END):
        for server in (B1, B2, B3):
            lab.metadata(at, server=server)
    return pack(lab.claims())


@cache
def facts(kind, topic_id, server, begin, end):
    """What one kind of message states, every EVERY seconds."""
    lab = Lab()
    KINDS[kind].states(lab, range(begin, end, EVERY), topic_id, server)
    return pack(lab.claims())


def judged(*stated, end=END + 100):
    return [*by_id(*stated, end=end).values()]


def by_id(*stated, end):
    judge = Judge("lab", settings=Settings())
    judge.absorb([claim for packed in (cluster(), *stated) for claim in unpack(packed)])
    judge.progress("agent", ns(end), ended=True)
    return open_rows(judge.rows())["findings"]


def contradictions(findings):
    return [one for one in findings if one["kind"] in {"violation", "anomaly"}]


@pytest.mark.parametrize(("one", "other", "here", "there"), CELLS)
def test_a_disagreement_is_found(one, other, here, there):
    """Both IDs for two minutes, interleaved."""
    mine, theirs = facts(one, ID_1, here, 6, END + 6), facts(other, ID_2, there, 9, END + 9)
    found = [finding for finding in judged(mine, theirs) if finding["kind"] == "violation" and names_both(finding)]
    assert found
    connections = {claim.first.connection for packed in (mine, theirs) for claim in unpack(packed)}
    assert {side["connection"] for finding in found for side in finding["sides"]} <= connections
    assert min(finding["first_seen"] for finding in found) >= ns(9)


@pytest.mark.parametrize(("one", "other", "here", "there"), some(CELLS, each=EACH))
def test_a_recreated_topic_is_no_disagreement(one, other, here, there):
    """Both have the first ID for a minute, and then the second, whose leader epochs start again."""
    lab = Lab()
    lab.metadata(6, [("orders", ID_1, 0, 4)])
    lab.deleted(63, "orders", ID_1)
    lab.control(65, "LeaderAndIsr", [("orders", ID_2, 0, {"isNew": True})], server=B3)
    both = ((one, here), (other, there))
    before = [facts(kind, ID_1, server, 6, 60) for kind, server in both if KINDS[kind].party != LOG]
    after = [facts(kind, ID_2, server, 66, END + 66) for kind, server in both]
    assert contradictions(judged(*before, *after, pack(lab.claims()), end=END + 200)) == []


@pytest.mark.parametrize(("one", "other", "here", "there"), some(CELLS[1:], each=EACH))
def test_one_late_message_is_no_disagreement(one, other, here, there):
    if LOG in parties(one, other):
        pytest.skip("a record is never late")
    lab = Lab()
    lab.deleted(63, "orders", ID_1)
    lab.control(65, "LeaderAndIsr", [("orders", ID_2, 0, {"isNew": True})], server=B3)
    stated = [facts(one, ID_1, here, 6, 60), facts(one, ID_1, here, 106, 107), facts(other, ID_2, there, 66, END + 66)]
    found = judged(*stated, pack(lab.claims()), end=END + 200)
    assert [finding for finding in found if finding["code"] == "TID020"] == []


FOREIGN = {B1: "10.0.9.1:9092", B2: "10.0.9.2:9092"}


@pytest.mark.parametrize(
    ("one", "other"),
    some([cell[:2] for cell in CELLS if cell[2] == cell[3] and LOG not in parties(*cell[:2])], each=6),
)
def test_two_clusters_do_not_disagree(one, other):
    """Each has its own topic of that name, for two minutes."""
    lab = Lab()
    brokers = {server: number for number, server in enumerate(FOREIGN.values(), 1)}
    for at in (0, END):
        for server in brokers:
            lab.metadata(at, server=server, brokers=brokers, cluster_id="another-cluster-22-chr")
    mine, theirs = facts(one, ID_1, B1, 6, END + 6), facts(other, ID_2, FOREIGN[B1], 9, END + 9)
    assert [one for one in judged(mine, theirs, pack(lab.claims())) if one["code"] == "TID020"] == []


def names_both(finding):
    """In its IDs, or in what it rests on."""
    words = " ".join([*finding["topic_ids"], *(side["claim"] for side in finding["sides"])])
    return finding["topic"] == "orders" and ID_1 in words and ID_2 in words


def paired(fields, path, version):
    """The structures of a layout that have a topic's name and its ID."""
    there = {field.name: field for field in fields if version in field.versions}
    if NAMES & there.keys() and any(name.lower().endswith("topicid") for name in there):
        yield ".".join(path)
    for field in there.values():
        yield from paired(field.fields or (), (*path, snake(field.name)), version)


def test_every_structure_with_a_name_and_an_id_is_in_the_table():
    found = {
        (source, layout.api, layout.side, path)
        for source in SOURCES
        for layout in layouts(source)
        for version in layout.versions
        for path in paired(layout.fields, (), version)
    }
    covered = [structure for kind in KINDS.values() for structure in kind.structures]
    assert found == {*covered} | LEFT_OUT.keys()
    assert len(covered) == len({*covered} - LEFT_OUT.keys())


AGREED_UNTIL = 209


@pytest.mark.parametrize(("one", "other", "here", "there"), some(CELLS, each=EACH))
def test_a_finding_begins_with_the_first_message_that_disagrees(one, other, here, there):
    """Both have one ID for 200 s; then the second party has another. What is found then began no earlier."""
    healthy = [facts(one, ID_1, here, 6, AGREED_UNTIL + END), facts(other, ID_1, there, 9, AGREED_UNTIL - EVERY)]
    changed = facts(other, ID_2, there, AGREED_UNTIL, AGREED_UNTIL + END)
    before = by_id(*healthy, end=AGREED_UNTIL + 400)
    after = by_id(*healthy, changed, end=AGREED_UNTIL + 400)
    began = [finding["first_seen"] for key, finding in after.items() if key not in before]
    assert began
    assert min(began) >= ns(AGREED_UNTIL)


@pytest.mark.parametrize(("alike", "alone"), [((B1,), None), ((B1, B2), "broker 3")])
def test_of_two_ids_without_an_order_what_one_broker_alone_reports_is_looked_at_first(alike, alone):
    lab = Lab()
    for at in range(0, 90, 3):
        for server in alike:
            lab.metadata(at, [("orders", ID_1)], server=server)
        lab.metadata(at, [("orders", ID_2)], server=B3)
    lab.until = 90
    (found,) = (one for one in lab.judge()["findings"].values() if one["code"] == "TID007")
    words = {word["name"]: word["value"] for word in found["words"]}
    assert words.get("alone") == alone
