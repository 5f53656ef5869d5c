"""Which findings are named in metrics, and by which values."""

from wirecheck.story.worst_findings import LONGEST, MOST, kept, under, worst
from wirecheck.wording import NS_PER_S, ns_of

T_NS = ns_of("2026-01-01T00:00:00Z")


def row(number, kind="violation", **more):
    return {
        "name": "x",
        "label": "prod", "code": "TID002", "kind": kind, "topic": "orders", "brokers": [3], "id": f"f{number:03}",
        "first_seen": T_NS, "last_seen": T_NS + 3 * 60 * number * NS_PER_S, "topic_ids": ["1kItcVyISSW2qinBWMWing"],
    } | more  # fmt: skip


def ids(rows, roles=()):
    return [named.id for named in worst({one["id"]: kept(one) for one in rows}, dict(roles))]


def test_the_worst_come_first_and_then_what_was_seen_last():
    rows = [row(1, "visibility"), row(2, "information"), row(3, "anomaly"), row(4), row(5), row(6)]
    assert ids(rows, {"f006": "consequence", "f004": "cause"}) == ["f005", "f004", "f006", "f003", "f002", "f001"]


def test_whose_turn_it_is_to_be_told_changes_nothing():
    at = [T_NS + second * NS_PER_S for second in range(60)]
    rows = [row(n, last_seen=at[n % 60]) for n in range(2 * MOST)]
    assert ids(rows) == ids([row(n, last_seen=at[(n + 30) % 60]) for n in range(2 * MOST)])
    assert ids([*rows, row(999, last_seen=T_NS - 3600 * NS_PER_S)]) == ids(rows)


def test_there_are_never_more_than_so_many():
    assert ids([row(n) for n in range(500)]) == [f"f{n:03}" for n in range(499, 499 - MOST, -1)]


def test_labels_are_short_and_can_be_printed():
    named = kept(row(1, topic="\x1b[31mred\n" + "x" * 500, brokers=list(range(300)))).named
    assert named.topic.startswith("\ufffd[31mred\ufffdxxx")
    assert (len(named.topic), len(named.broker)) == (LONGEST, LONGEST)
    assert kept(row(1, topic="t" * LONGEST)).named.topic == "t" * LONGEST
    assert kept(row(1, topic=None, brokers=[])).named[3:5] == ("", "")
    assert kept(row(1, brokers=[1, 2])).named.broker == "1, 2"


def test_the_sentence_is_the_headline_of_its_card_or_else_the_name_of_the_check():
    named = kept(row(1, name="version-outside-advertised-range", client_ids=["client"])).named
    assert named.sentence == "Version outside advertised range"
    shown = under(named, "billing is refused", "billing")
    assert (shown.sentence, shown.clients) == ("billing is refused", "billing")


def test_a_cause_that_is_about_no_topic_names_those_of_what_follows_from_it():
    about = {"f1": None, "f2": "tickets", "f3": "calm", "f4": "tickets", "f5": None, "f6": "x" * LONGEST}
    named = {name: kept(row(1, code="LOG003", brokers=[4], topic=topic, id=name)) for name, topic in about.items()}
    roles = dict.fromkeys(about, "consequence") | {"f1": "cause"}
    topics = lambda follow: next(iter(worst(named, roles, {"f1": follow}))).topic  # noqa: E731
    assert topics(("f2", "f3", "f4", "f5", "gone")) == "calm, tickets"
    assert topics(("f5",)) == ""
    assert len(topics(("f2", "f6"))) == LONGEST
    named["f1"] = kept(row(1, code="TID002", topic="own", id="f1"))
    assert topics(("f2",)) == "own"
