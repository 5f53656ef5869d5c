"""A migration to KRaft that is repeated with empty controllers (Strimzi 11262): what is said, and where nothing is."""

import pytest

from tests.judge.cases_lives import (
    ctl008_fires__a_broker_asks_a_controller_that_waits,
    first_life,
    formatted_again,
    repeated,
    shows,
)
from tests.judge.lab import B1, B2, B3, ID_1, ID_2, Lab, ns
from wirecheck.judge.thresholds import SECOND_NS
from wirecheck.story.causes import linked
from wirecheck.story.verdict import Finding


def found(build):
    lab = Lab()
    build(lab)
    return {row["code"]: row for row in lab.findings()}


def words(row):
    return {word["name"]: word["value"] for word in row["words"]}


def test_the_log_is_the_cause_and_begins_with_the_first_answer():
    rows = found(ctl008_fires__a_broker_asks_a_controller_that_waits)
    began = rows["LOG005"]
    assert (began["kind"], began["first_seen"]) == ("violation", ns(60) + 1_000_000)
    assert words(began)["vanished"] == "topic orders"
    assert words(began)["deniers"] == "1 and 3"
    assert began["summary"].endswith("; controller 3000 took over with it, and topic orders is gone.")
    assert rows["CTL008"]["summary"].startswith("Broker 1 has sent CreateTopics to broker 3 (10.0.0.3:9092)")
    assert not rows.keys() & {"VER006", "CTL001"}
    every = [{"label": "lab", "others": None, "id": code, **row} for code, row in rows.items()]
    causes = {one.code: one.cause for one in linked(list(map(Finding.of, every)))}
    assert causes["TID007"] == causes["CTL008"] == "LOG005"


def deleted(lab):
    repeated(lab, known=range(0, 55, 5))
    lab.deleted(57, "orders", ID_1)


def for_a_moment(lab):
    """After its start a broker of ZooKeeper's time knows no topics until the controller sends them."""
    repeated(lab, denies=(60, 62, 64))
    for at in (70, 100, 130):
        for server in (B1, B3):
            lab.metadata(at, [("orders", ID_1)], server=server)


def not_named_lately(lab):
    repeated(lab, known=(), denies=range(400, 500, 5))
    lab.until = 520


def empty_requests_alone(lab):
    repeated(lab, denies=())


def goes_on(lab):
    """A migration whose log goes on: its controller sends a request without topics whenever a broker starts."""
    first_life(lab)
    for at in range(30, 130, 10):
        for server in (B1, B2, B3):
            more = {"controller": 3000, "epoch": 7, "version": 8, "isKRaftController": True}
            lab.control(at, "UpdateMetadata", [], server=server, **more)
            lab.metadata(at + 1, [("orders", ID_1)], server=server)
            lab.metadata(at + 2, [("other", None, 3)], server=server)
    shows(lab, 130, 90)


@pytest.mark.parametrize(
    "build",
    [
        deleted,
        for_a_moment,
        not_named_lately,
        empty_requests_alone,
        goes_on,
        formatted_again,
        lambda lab: repeated(lab, kraft=False),
        lambda lab: repeated(lab, takes_over=False),
        lambda lab: repeated(lab, error=11),
        lambda lab: repeated(lab, denies=range(5, 40, 5)),
    ],
    ids=[
        "deleted", "for-a-moment", "long-ago", "empty-requests", "a-log-that-goes-on", "formatted-again",
        "of-zookeeper", "no-controller", "rejected", "before",
    ],
)  # fmt: skip
def test_without_one_of_its_conditions_nothing_vanished(build):
    row = found(build).get("LOG005")
    assert row is None or (row["kind"], words(row).get("vanished")) == ("information", None)


def test_a_denial_that_is_not_old_enough_is_no_finding_yet_and_is_looked_at_again():
    lab = Lab()
    repeated(lab)
    seen = {row["code"]: row for row in lab.findings(until=80)}
    assert seen["LOG005"]["kind"] == "information"


def test_the_time_is_that_of_the_answer_where_the_topic_was_unknown_before_its_creation():
    lab = Lab()
    lab.metadata(-30, [("orders", None, 3)], server=B1)
    repeated(lab)
    (row,) = lab.findings("LOG005")
    assert 0 <= row["first_seen"] - ns(60) < 10 * SECOND_NS


def test_another_id_of_the_topic_after_that_is_its_present_one():
    lab = Lab()
    repeated(lab, denies=range(60, 110, 5))
    lab.created(112, "orders", ID_2)
    for at in (113, 140):
        for server in (B1, B2, B3):
            lab.metadata(at, [("orders", ID_2)], server=server)
    (row,) = lab.findings("LOG005")
    assert row["kind"] == "information"
