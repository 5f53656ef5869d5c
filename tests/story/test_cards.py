"""Cards: who is hurt is named and nobody else, a cause is never younger than its harm, and names give no orders."""

import datetime as dt
import html
import json
import re
import shlex
from dataclasses import replace
from types import SimpleNamespace
from typing import get_args
from xml.etree import ElementTree as ET

import pyarrow as pa
import pytest
from click.testing import CliRunner

import wirecheck
from tests.commands.conftest import EXAMPLE
from tests.judge.cases_lives import clu001_fires__in_turn_for_less_than_10_s
from tests.judge.cases_topic_ids import (
    replica_back_in_sync,
    tid002_fires__leads_again,
    tid002_fires__never_left_the_isr,
)
from tests.judge.cases_wire import wir003_fires__a_client, wir003_fires__a_server, wir003_fires__what_a_broker_closes_on
from tests.judge.lab import B1, Lab
from tests.story.test_causes import NEW, OLD, RECREATED, STUCK, found, side
from tests.story.values import NOON_NS, activity, card_entry, entry, finding, findings, hurt
from tests.story.values import card as made_card
from tests.story.values import harm as harm_of
from wirecheck import cli
from wirecheck.commands.screen import legible
from wirecheck.dashboards.terminal import card_lines
from wirecheck.dashboards.verdict import besides, shown_card
from wirecheck.document import document
from wirecheck.judge.checks.cause_rules import rules
from wirecheck.judge.checks.listed_checks import LISTED
from wirecheck.judge.checks.page import remedy
from wirecheck.judge.results.result_table import rows_of
from wirecheck.story import harm, severity
from wirecheck.story.card_context import CardContext
from wirecheck.story.cards import MOST_CARDS, NOT_AFFECTED, below, clients_seen, impact, rejected, state, with_cards
from wirecheck.story.entries import entries
from wirecheck.story.seen import Coverage
from wirecheck.story.verdict import Act, CardCause, Fix, Lack, ListedCard, Requester
from wirecheck.streaming.run.metrics_page import Page
from wirecheck.streaming.store.result_folder import latest_run, read
from wirecheck.streaming.store.run_result import Result
from wirecheck.wording import NS_PER_S, ns_of

HURT = EXAMPLE.parent.parent / "kraft4-stale-broker/capture.pcap.gz"
EVIL = "$(reboot); `id` '\"\n\x1b[2J"
FITS = harm.Reason.fits
STALE = found("LOG001", topic="t", topic_ids=[OLD, NEW], brokers=[4])


def moment(seconds):
    return dt.datetime.fromisoformat(at(seconds))


def at(seconds):
    return f"2026-11-21T12:{seconds // 60:02}:{seconds % 60:02}.000000Z"


def refused(client_id="reader", api="Fetch", at_s=12, until_s=60, **columns):
    """A row of the table of harms."""
    return harm_of(
        **{
            "cluster": "C",
            "level": "hurt",
            "client_id": client_id,
            "address": "10.0.0.7",
            "api": api,
            "topic": "t",
            "topic_id": OLD,
            "partitions": [0],
            "errors": ["UNKNOWN_TOPIC_ID"],
            "brokers": [1],
            "metadata_brokers": [],
            "count": 5,
            "first_seen": at(at_s),
            "last_seen": at(until_s),
            "blocked_ms": (until_s - at_s) * 1000,
            "recovered": False,
            **columns,
        }
    )


def cards(rows, harms, **options):
    """Cards in their order, of findings as they are stored."""
    every = findings(rows)
    context = CardContext({one.id: one for one in every}, ns_of(at(60)), **options)
    return [one.card for one in with_cards(entries(every), harms, context)]


def named(card):
    return [one.client_id for one in card.harm.clients]


def test_the_headline_is_who_is_hurt_and_the_cause_stands_below():
    (card,) = cards([RECREATED, STUCK], [refused()], inputs=["a b.pcap"])
    assert card.headline == card.harm.sentence == "reader (10.0.0.7) has read nothing from t for 48 s"
    assert card.cause.sentence.endswith("; reader kept the old topic ID")
    assert card.action.sentence == "Restart reader (10.0.0.7)."
    assert card.action.commands == ("wirecheck decode 'a b.pcap' --client reader --error",)
    assert impact(card, 9) == "5 fetches rejected (UNKNOWN_TOPIC_ID) · 1 of 9 clients"
    assert card.harm.clients[0].ongoing


BY = Requester("User:alice", "admin", "10.0.0.9")
APP = Requester(None, "app", None)


def changed(action, by):
    return {f"{action}_by_{name}": value for name, value in document(by).items() if value} if by else {}


@pytest.mark.parametrize(
    ("deleted", "created", "text", "by"),
    [
        (BY, BY, " by admin (User:alice, 10.0.0.9)", BY),
        (replace(BY, principal=None), replace(BY, principal=None), " by admin (10.0.0.9)", replace(BY, principal=None)),
        (BY, APP, "; admin (User:alice, 10.0.0.9) deleted it, app recreated it", BY),
        (BY, None, "; admin (User:alice, 10.0.0.9) deleted it", BY),
        (None, APP, "; app recreated it", APP),
        (None, None, "", None),
    ],
)
def test_the_cause_says_who_did_it_as_far_as_it_was_seen(deleted, created, text, by):
    words = {"ended": ns_of("2026-11-21T12:00:10.250Z"), "time": ns_of("2026-11-21T12:00:11.500Z")}
    words |= changed("deleted", deleted) | changed("created", created)
    (card,) = cards([{**RECREATED, "words": words}, STUCK], [refused()])
    sentence = f"Topic t was deleted at 12:00:10 and recreated at 12:00:11{text}; reader kept the old topic ID"
    assert card.cause == CardCause(sentence, ns_of("2026-11-21T12:00:10.250Z"), by)


def test_what_a_client_does_by_itself_it_did():
    side = {"api": "CreateTopics", "version": 4, "connection": "10.0.0.7:1>10.0.0.1:9092", "time": moment(12)}
    (card,) = cards([found("ADM001", client_ids=["maker"], sides=[side])], [])
    assert card.cause.by == Requester(None, "maker", "10.0.0.7")


@pytest.mark.parametrize(
    ("does", "sentence"),
    [
        ("closes the connection on", "it closes the connection on Fetch v18"),
        ("answers UNSUPPORTED_VERSION (35) to", "it answers UNSUPPORTED_VERSION (35) to Fetch v18"),
    ],
)
def test_a_version_that_is_not_accepted_hurts_its_client(does, sentence):
    words = {"does": does, "api": "Fetch", "version": "18"}
    (card,) = cards([found("VER001", client_ids=["new"], words=words, sides=[side("Fetch", 18)])], [])
    assert card.headline == f"new (10.0.0.7) cannot use the broker: {sentence}"


def test_a_member_that_waits_without_an_error_is_hurt():
    words = {"group": "g", "partition": "0", "hurt_host": "10.0.0.7"}
    waiting = found("GRP007", at_s=10, lasts_s=50, topic="t", topic_ids=[NEW], client_ids=["reader"], words=words)
    (card,) = cards([waiting], [])
    assert card.headline == "reader (10.0.0.7) has fetched nothing of t partition 0 for 50 s"
    assert impact(card, 9) == "nothing fetched, without an error · 1 of 9 clients"
    assert (state(card), card.harm.clients[0].ongoing) == ("since 12:00:10 UTC, still failing", True)
    (card,) = cards([waiting | {"last_seen": waiting["last_seen"] - dt.timedelta(seconds=20)}], [])
    assert state(card) == "since 12:00:10 UTC, until 12:00:40 UTC"
    (card,) = cards([waiting | {"client_ids": [], "words": {"group": "g", "partition": "0"}}], [])
    assert named(card) == [], "no member is known to hold the partition"


def test_what_a_restart_ends_is_what_the_sentences_say():
    says = {code: one.sentences["fix"][0].text for code, one in LISTED.items() if "fix" in one.sentences}
    ends = {code for code, text in says.items() if "Restart {" in text and "{clients}" in text}
    assert ends == {code for code, one in LISTED.items() if one.ended_by_a_restart}


ASKS = {
    "restart brokers": r"[Rr]estart (\{(brokers|them)\}|controller|th(e|at) broker|the leader|the other one|what has)",
    "start brokers": r"[Ss]tart (them\. A|the brokers|broker \{)",
    "restart clients": r"[Rr]estart (\{(clients|slow|rejected)\}|clients|(or update )?the client|the group's members)"
    r"|its log, and restart it|log of \{clients\}, and restart it",
    "reset offsets": r"--reset-offsets",
    "set a configuration": r"[Rr]aise [a-z]+\.|[Ss]et (un|group\.|bootstrap|advertised)|Lower [a-z]+\.|Correct the p",
}
FORBIDS = {
    "restart brokers": r"[Rr]estart no (broker|replica)|[Ss]tart no other replica|before you restart anything",
    "restart its brokers": r"Restart neither",
    "start brokers": r"[Ss]tart no other replica",
}


def test_each_sentence_that_asks_for_something_or_forbids_it_says_so_by_its_type():
    """By the sentences of the cards, and by the pages' own words where a check has none."""
    for code, check in LISTED.items():
        known = check.sentences
        texts = [one.text for one in known.get("fix", ())] or [remedy(code)]
        for part, patterns in (("asks", ASKS), ("forbids", FORBIDS)):
            typed = {act for one in known.get(part, ()) for act in one.text.split(", ")} - {"none"}
            found = {act for act, pattern in patterns.items() for text in texts if re.search(pattern, text)}
            assert typed == found, (code, part, texts)
            assert typed - {"restart its brokers"} <= {*get_args(Act)}


def test_no_card_asks_for_what_another_one_of_its_cluster_forbids():
    stale = found("TID007", at_s=5, topic="t", topic_ids=[OLD], brokers=[4])
    lost = found("CTL018", at_s=40, topic="u", topic_ids=[NEW], brokers=[2], words={"partition": "0"})
    other = stale | {"id": "elsewhere", "cluster": "D"}
    first, *rest = with_cards(entries(findings([stale, lost, other])), [], context_of([stale, lost, other]))
    forbidden = (Fix("restart brokers", ()), Fix("start brokers", ()))
    assert (first.code, first.card.action.forbids) == ("CTL018", forbidden)
    mine, theirs = sorted(rest, key=lambda one: one.cluster)
    assert mine.card.action.sentence.startswith(
        "First do what the card of CTL018 about u says, and restart brokers only after that. Check whether"
    )
    assert theirs.card.action.sentence.startswith("Check whether")


def context_of(rows):
    return CardContext({one.id: one for one in findings(rows)}, ns_of(at(60)))


def test_a_writer_that_fell_silent_is_hurt_if_it_writes_after_a_restart():
    silent = found("CLI005", topic="t", client_ids=["writer"])
    assert named(*cards([silent], [])) == []
    (card,) = cards([silent | {"words": {"hurt_host": "10.0.0.7"}}], [])
    assert card.headline == "writer (10.0.0.7) wrote nothing to t for 60 s"
    assert state(card) == "since 12:00:00 UTC, until 12:01:00 UTC"


def test_without_harm_the_headline_is_the_cause_and_nobody_is_named():
    (card,) = cards([found("TID007", topic="t", topic_ids=[OLD, NEW], brokers=[3])], [])
    assert card.headline == "TID007 of t"
    assert (named(card), card.harm.sentence, impact(card, 9)) == ([], NOT_AFFECTED, NOT_AFFECTED)


def test_a_client_that_is_refused_now_and_then_is_not_said_to_be_cut_off():
    part = refused("flaky", api="Produce", blocked_ms=200, count=7)
    (card,) = cards([RECREATED, STUCK], [part])
    assert card.headline == "flaky (10.0.0.7) has some writes to t rejected: 7 in 48 s"
    (card,) = cards([RECREATED, STUCK], [part, refused("reader", at_s=20)])
    assert card.headline == "reader (10.0.0.7) has read nothing from t for 40 s; also hurt: flaky (10.0.0.7)"
    (card,) = cards([RECREATED, STUCK], [refused(blocked_ms=31_000)])
    assert card.headline == "reader (10.0.0.7) has read nothing from t for 31 s"


def test_refusals_that_ended_soon_are_listed_apart():
    (card,) = cards([RECREATED], [refused(level="briefly")])
    assert (named(card), [one.client_id for one in card.harm.briefly]) == ([], ["reader"])
    assert "has read nothing" not in card.headline


def test_who_does_nothing_since_a_recreation_is_not_called_briefly_affected():
    row = SimpleNamespace(cluster="C", topic="t", client_id="reader", address="10.0.0.7", is_lost=True)
    (card,) = cards([RECREATED], [refused(level="briefly"), refused("other", level="briefly")], recreations=[row])
    assert [one.client_id for one in card.harm.briefly] == ["other"]


def test_every_hurt_client_is_named_and_writes_are_writes():
    (card,) = cards([RECREATED], [refused(until_s=30), refused("writer", "Produce", count=28)])
    assert named(card) == ["writer", "reader"]
    assert card.headline == (
        "writer (10.0.0.7) cannot write to t: 28 writes rejected in 48 s; also hurt: reader (10.0.0.7)"
    )
    assert impact(card, 9).startswith("28 writes rejected (UNKNOWN_TOPIC_ID) · 5 fetches rejected (UNKNOWN_TOPIC_ID)")
    assert impact(cards([RECREATED], [refused(count=1)])[0], 9).startswith("1 fetch rejected (")


def test_a_rate_is_named_where_a_client_that_waits_does_not_have_it():
    (card,) = cards([RECREATED], [refused("fast", count=48_000)])
    assert impact(card, 9).startswith("48,000 fetches rejected (UNKNOWN_TOPIC_ID), 1,000 a second · ")
    (card,) = cards([RECREATED], [refused("slow", count=400)])
    assert impact(card, 9).startswith("400 fetches rejected (UNKNOWN_TOPIC_ID) · ")


def test_errors_of_requests_around_the_work_are_counted_together():
    around = [refused("writer", api, count=7) for api in ("Metadata", "OffsetForLeaderEpoch")]
    (card,) = cards([RECREATED], [refused("writer", "Produce", count=28), *around])
    assert impact(card, 9).startswith("28 writes rejected (UNKNOWN_TOPIC_ID) · 14 errors of Metadata and OffsetFor")
    (card,) = cards([RECREATED], around)
    assert impact(card, 9).startswith("7 Metadata errors (UNKNOWN_TOPIC_ID) · 7 OffsetForLeaderEpoch errors (")
    (card,) = cards([RECREATED], [refused("writer", "Produce", count=28), around[0]])
    assert "7 Metadata errors (UNKNOWN_TOPIC_ID)" in impact(card, 9)


@pytest.mark.parametrize("ids", [1_000, 1], ids=["of many topics", "of one topic"])
def test_as_many_findings_and_harms_as_a_monitor_keeps_take_few_comparisons(ids, monkeypatch):
    asked = []
    monkeypatch.setattr(harm.Reason, "fits", lambda *times: asked.append(times) or FITS(*times))
    topics = [f"{number % ids:022}" for number in range(1_000)]
    rows = [
        finding(row)
        for n, old in enumerate(topics)
        for row in (
            {**RECREATED, "id": f"a{n}", "topic_ids": [old, NEW]},
            {**STUCK, "id": f"b{n}", "topic_ids": [old], "client_ids": [f"c{n}"]},
        )
    ]
    entries = [entry([row.id]) for row in rows]
    harms = [refused(f"c{n % 1_000}", api, topic_id=topics[n % 1_000]) for n, api in enumerate(["Fetch", "X"] * 1_000)]
    found = harm.by_entry(entries, {row.id: row for row in rows}, harms)
    assert len(harms) == len(rows) == 2_000
    assert {place: sorted({one.harm.client_id for one in of}) for place, of in found.items()} == {
        2 * n + 1: [f"c{n}"] for n in range(1_000)
    }
    assert 2_000 <= len(asked) <= 2_000 * (harm.MOST + 1)
    assert ids == 1 or len(asked) == 4_000


def test_all_hurt_clients_of_a_card_are_counted():
    (card,) = cards([RECREATED], [refused(f"c{n:02}", count=99 - n) for n in range(40)])
    assert named(card) == [f"c{n:02}" for n in range(40)]
    assert card.harm.others == 0
    assert impact(card, 50).startswith(f"{sum(99 - n for n in range(40)):,} ")
    assert impact(card, 50).endswith(" · 40 of 50 clients")


def test_more_clients_than_a_card_keeps_are_counted(monkeypatch):
    monkeypatch.setattr("wirecheck.story.cards.MOST_LISTED", 3)
    (card,) = cards([RECREATED], [refused(f"c{n}", count=99 - n) for n in range(5)])
    assert (named(card), card.harm.others) == (["c0", "c1", "c2"], 2)
    assert impact(card, 9).endswith(" · 3 or more of 9 clients")
    assert impact(card, 3).endswith(" · 3 of 3 clients"), "there are no more"


def test_a_request_that_names_several_topics_is_counted_once():
    """A client asks for four topics at once, and is rejected 5 times about each."""
    me = {"client_id": "reader", "address": "10.0.0.7"}
    harms = [refused(topic=topic, topic_id=None, errors=["TOPIC_AUTHORIZATION_FAILED"]) for topic in "tuvw"]
    found_of = [found("CLI006", topic, topic=topic, client_ids=["reader"], kind="anomaly") for topic in "tuvw"]
    (card,) = cards(found_of, harms, activities=[activity("Fetch", "reads", 2, 7, **me)])
    assert card.headline == "reader (10.0.0.7) has read nothing from t, u, v and 1 other for 48 s"
    assert impact(card, 1) == "7 fetches rejected (TOPIC_AUTHORIZATION_FAILED) · 1 of 1 client"
    (card,) = cards(found_of, harms, activities=[activity("Fetch", "reads", 2, 40, **me)])
    assert impact(card, 1).startswith("20 fetches rejected"), "each topic may be at a broker of its own"
    (card,) = cards(found_of, harms, activities=[activity("Fetch", "reads", 9, 0, **me)])
    assert impact(card, 1).startswith("9 fetches rejected"), "each of them grants another topic"


def test_the_fix_and_the_evidence_are_about_the_topic_of_the_headline():
    def of(topic, error):
        words = {"api": "Fetch", "errors": error, "action": f"Give the right to {topic}."}
        return found("CLI006", topic, topic=topic, client_ids=["reader"], kind="anomaly", words=words)

    denied = "TOPIC_AUTHORIZATION_FAILED"
    harms = [refused(topic=topic, topic_id=None, errors=[denied], count=n) for topic, n in (("t", 5), ("u", 9))]
    (card,) = cards([of("t", denied), of("u", denied)], harms)
    headline = card.headline.partition(" from ")[2][0]
    assert (card.action.sentence, card.evidence.command[-8:]) == (
        f"Give the right to {headline}.",
        f"{headline}.pcapng",
    )


def test_what_is_sure_comes_before_what_may_be_and_that_is_called_so():
    recreated, stale = cards([RECREATED, STALE], [refused("writer", "Produce")])
    assert named(recreated) == ["writer"]
    assert recreated.cause.sentence.endswith("; writer kept the old topic ID, which broker 4 may still give them")
    assert recreated.action.sentence == ("Look at the metadata lag of broker 4. Then restart writer (10.0.0.7).")
    assert (named(stale), stale.harm.possibly) == ([], ("writer",))
    assert impact(stale, 9) == "this may be why requests of writer are rejected"


def test_a_client_that_asked_a_stale_broker_was_misled_by_it():
    """One fault, one card: who restarts the client first has it get the old ID again."""
    misled = refused("writer", "Produce", metadata_brokers=[1, 4])
    stale, recreated = cards([RECREATED, STALE], [misled])
    assert named(stale) == ["writer"]
    assert stale.cause.sentence.endswith("; broker 4 gave writer the old topic ID")
    assert stale.action.sentence == "Look at the metadata lag of broker 4, and restart it."
    assert stale.evidence.command.startswith("wirecheck evidence LOG001 ")
    assert (named(recreated), recreated.harm.possibly) == ([], ("writer",))
    assert recreated.harm.sentence == "this may be why requests of writer are rejected"


def test_a_client_that_has_its_metadata_from_other_brokers_kept_the_id():
    recreated, _ = cards([RECREATED, STALE], [refused("writer", "Produce", metadata_brokers=[1, 2])])
    assert named(recreated) == ["writer"]


def test_a_relation_that_is_not_sure_says_may():
    (card,) = cards([STALE], [refused("writer", "Produce")])
    assert named(card) == ["writer"]
    assert card.cause.sentence == "LOG001 of t; this may be why requests of writer are rejected"


def test_requests_of_a_client_that_has_recovered_were_rejected():
    (card,) = cards([STALE], [refused("writer", "Produce", recovered=True)])
    assert card.cause.sentence == "LOG001 of t; this may be why requests of writer were rejected"


def test_a_node_of_another_cluster_is_named_with_its_host():
    words = {
        "who": "raft-client-7",
        "does": "sends cluster ID",
        "sent": "X",
        "but": "but the cluster is",
        "actual": "Y",
    }
    side = {"connection": "10.0.0.7:1>10.0.0.1:9093", "time": moment(12)}
    (card,) = cards([found("CLU001", client_ids=["raft-client-7"], sides=[side], words=words)], [])
    assert card.action.sentence.startswith("On 10.0.0.7, the host of raft-client-7, compare cluster.id")


KNOWS_NOT = "Broker 3 does not know topic t; the other brokers report it with ID X"
KNEW_NOT = "Broker 3 did not know topic t from 12:00:00 UTC to 12:01:20 UTC; the other brokers report it with ID X"


@pytest.mark.parametrize(
    ("until", "headline", "action"),
    [
        ("", KNOWS_NOT, "Check whether the controller's updates reach broker 3"),
        (ns_of("2026-11-21T12:01:20Z"), KNEW_NOT, "No action needed if it stays so: broker 3 has answered"),
    ],
)
def test_a_broker_that_knows_the_topic_again_needs_nothing(until, headline, action):
    words = {"one": "no such topic", "other": "X", "since": ns_of("2026-11-21T12:00:00Z"), "until": until}
    (card,) = cards([found("TID007", topic="t", brokers=[3], words=words)], [])
    assert card.headline == headline
    assert card.action.sentence.startswith(action)


@pytest.mark.parametrize(
    ("unauthorized", "correct"), [("yes", "Correct the ACLs of maker"), ("", "Correct the request")]
)
def test_a_wrong_creation_is_called_by_what_is_wrong_with_it(unauthorized, correct):
    words = {"rule": "3", "broken": "the request is odd", "actual": "X (1)", "then": "", "unauthorized": unauthorized}
    (card,) = cards([found("ADM001", topic="t", client_ids=["maker"], words=words)], [])
    assert card.headline == "maker sent CreateTopics for t: the request is odd. The broker answered X (1)"
    assert card.action.sentence.startswith(correct)


def test_brokers_that_answer_otherwise_and_one_that_did_are_two_cards():
    words = {"one": "no such topic", "other": "X", "since": ns_of("2026-11-21T12:00:00Z")}
    over = words | {"does": "reported", "until": ns_of("2026-11-21T12:01:20Z")}
    rows = [("t", over), ("u", words | {"does": "report"})]
    made = cards([found("TID007", f"TID007-{topic}", topic=topic, brokers=[3], words=of) for topic, of in rows], [])
    assert [card.action.sentence.split()[0] for card in made] == ["No", "Check"]


@pytest.mark.parametrize(
    ("clients", "about", "is_named"),
    [
        (("app",), {}, False),
        (("app", "other"), {}, True),
        (("app",), {"topics": ("t",)}, True),
        ((), {}, True),
    ],
)
def test_a_client_that_a_card_names_is_not_said_to_do_nothing_once_more(clients, about, is_named):
    from tests.dashboards.results import RESULT

    ended = card_entry(made_card(headline="app ended"), code="CLI008", kind="information", client_ids=clients, **about)
    result = replace(RESULT, entries=(card_entry(made_card(hurt("app"))), ended), harms=())
    assert (("stopped", "app ended") in besides(result)) == is_named


def test_what_is_known_of_another_group_of_a_client_on_a_card_is_said():
    """Several processes of one client ID, as a library's own."""
    from tests.dashboards.results import RESULT

    rows = findings([found("GRP008", f"g-{group}", words={"group": group}) for group in ("g", "h")])
    on_card = card_entry(made_card(hurt("rdkafka")), findings=("g-g",))
    left = [
        card_entry(made_card(headline=f"left {group}"), code="GRP008", kind="information", client_ids=("rdkafka",),
                   findings=(f"g-{group}",))
        for group in ("g", "h")
    ]  # fmt: skip
    result = replace(RESULT, findings=(*rows,), entries=(on_card, *left), harms=())
    assert ("rejoins", "left h") in besides(result)


def test_on_a_clear_screen_the_first_notes_are_named():
    from tests.dashboards.results import RESULT

    def note(code, headline, count=1):
        return card_entry(made_card(headline=headline), code=code, findings=("a",) * count)

    notes = [note("TID001", "topic t was recreated"), note("TID001", "topic u was recreated", 2)]
    notes += [note("VER005", "old sends Produce v1 (4 more like it)", 5), note("VER008", "broker 1 was upgraded")]
    result = replace(RESULT, entries=tuple(notes), harms=())
    named = "topic t was recreated; old sends Produce v1 (4 more like it); 3 more with -v"
    assert ("note", named) in besides(result)
    assert "note" not in dict(besides(replace(result, entries=(*notes, card_entry(made_card(hurt("app"))))))), "a card"
    assert "note" not in dict(besides(replace(result, entries=(replace(notes[0], expected="known"),))))


def test_harm_of_another_topic_client_or_cluster_is_nobodys():
    others = [refused(topic_id=NEW), refused(cluster="D"), refused(topic_id=None)]
    assert [named(card) for card in cards([RECREATED], others)] == [[]]
    alone = cards([{**STUCK, "client_ids": ["somebody"]}], [refused()])
    assert [named(card) for card in alone] == [[]]


def test_a_consequence_is_never_older_than_its_cause():
    late = {**RECREATED, "first_seen": STUCK["last_seen"], "last_seen": STUCK["last_seen"]}
    assert [named(card) for card in cards([late], [refused(at_s=20, until_s=69)])] == [[]]
    (card,) = cards([RECREATED], [refused(at_s=0)])
    assert card.cause.time_ns <= card.harm.clients[0].first_ns


def test_a_finding_begins_with_the_first_of_its_evidence():
    words = {"partition": "0", "broker": "1", "epoch": "2"}
    side = {"api": "Produce", "version": 13, "connection": "10.0.0.7:1>10.0.0.1:9092", "time": moment(12)}
    denied = found("CTL010", at_s=50, topic="t", topic_ids=[OLD], brokers=[1], words=words, sides=[side])
    (card,) = cards([denied], [refused("writer", "Produce")])
    assert (named(card), card.cause.time_ns) == (["writer"], ns_of(at(12)))
    assert card.cause.sentence == "Broker 1 is the leader of t-0 in epoch 2 and rejects requests for it"


def test_names_from_the_wire_are_one_word_of_a_command_and_move_no_cursor():
    rows = [{**row, "topic": EVIL} for row in (RECREATED, {**STUCK, "client_ids": [EVIL]})]
    (card,) = cards(rows, [refused(EVIL, topic=EVIL)], inputs=["-x; rm y"])
    look, evidence = card.action.commands[0], card.evidence.command
    assert shlex.split(look) == ["wirecheck", "decode", "-x; rm y", "--client", EVIL, "--error"]
    assert shlex.split(evidence)[:2] == ["wirecheck", "evidence"]
    assert shlex.split(evidence)[3:5] == ["-x; rm y", "-o"]
    assert len(shlex.split(evidence)) == 6
    for line in card_lines(shown_card(legible(card), 9)):
        assert line.plain.isprintable()


def test_since_is_of_the_harm_and_not_of_its_cause():
    stuck = found("TID002", at_s=40, topic="t", topic_ids=[NEW], brokers=[3], words={"partitions": "partition 0"})
    (card,) = cards([RECREATED, stuck], [])
    assert (state(card), card.cause.time_ns) == ("since 12:00:40 UTC", ns_of(at(0)))
    assert state(card, dated=True) == "since 2026-11-21 12:00:40 UTC"


def test_a_card_has_one_clock_and_states_a_time_once():
    row = found("CTL001", brokers=[3])
    row["summary"] = "Controller 3 has sent requests with epoch 1 since 2026-11-21 12:00:00.124 UTC."
    (card,) = cards([row], [])
    assert (card.headline, state(card)) == ("Controller 3 has sent requests with epoch 1 since 12:00:00 UTC", "")
    (line, *_) = card_lines(shown_card(card, 9))
    assert line.plain.count("12:00:00") == 1
    dated = cards([row], [], dated=True)[0]
    assert dated.headline.endswith("since 2026-11-21 12:00:00 UTC")


def test_a_former_controller_that_stopped_need_not_be_restarted():
    words = {"controller": "3", "epoch": "1", "other": "2", "newer": "2", "until": ""}
    actions = []
    for until in ("", " until 2026-11-21 12:00:01.000 UTC"):
        (card,) = cards([found("CTL001", brokers=[2, 3], words=words | {"until": until})], [])
        actions.append(card.action.sentence.split(":")[0])
    assert actions == ["Restart controller 3", "No action needed if it stays so"]


@pytest.mark.parametrize(
    ("case", "repaired"),
    [(replica_back_in_sync, True), (tid002_fires__leads_again, True), (tid002_fires__never_left_the_isr, False)],
)
def test_a_replica_that_is_in_sync_again_is_not_short(case, repaired):
    """Findings made of bytes: a broker that never left the ISR may still refuse the ID, with any leader."""
    lab = Lab()
    case(lab)
    (finding,) = [one for one in lab.findings() if one["code"] == "TID002"]
    words = {word["name"]: word["value"] for word in finding["words"]}
    assert bool(words["until"]) == repaired
    until = {"until": words["until"] and ns_of("2026-11-21T12:00:40Z")}
    rejects = found("TID002", at_s=10, topic="t", topic_ids=[NEW], brokers=[3], words=words | until)
    (card,) = cards([rejects], [])
    does = "did not replicate" if repaired else "does not replicate"
    assert card.headline == f"Broker 3 {does} t partition 0: one replica short"
    assert state(card) == f"since 12:00:10 UTC{', until 12:00:40 UTC' if repaired else ''}"
    assert card.action.sentence.startswith("No action needed") == repaired


def test_an_address_that_leads_to_two_clusters_in_turn_is_no_node_with_a_wrong_disk():
    """The finding of bytes: `in_turn` makes the difference."""
    lab = Lab()
    clu001_fires__in_turn_for_less_than_10_s(lab)
    (finding,) = [one for one in lab.findings() if one["code"] == "CLU001"]
    words = {word["name"]: word["value"] for word in finding["words"]}
    assert finding["summary"].startswith(f"{B1} leads to cluster {words['sent']}, and in turn to {words['actual']};")
    (card,) = cards([found("CLU001", words=words)], [])
    assert card.action.sentence.startswith("Remove one of the two clusters from the load balancer")
    (card,) = cards([found("CLU001", words=words | {"in_turn": ""})], [])
    assert card.action.sentence.startswith(f"On the host of {B1} compare cluster.id")


def test_a_malformed_response_is_its_servers_fault_and_its_clients_are_named():
    """The finding of bytes: only a malformed request is its client's."""
    for case, action, affected, by in (
        (
            wir003_fires__a_server,
            f"update the server or proxy at {B1}",
            "the client without an ID, app and billing",
            None,
        ),
        (wir003_fires__what_a_broker_closes_on, "update or stop app at 10.0.0.99.", "", "app"),
        (wir003_fires__a_client, "No action needed in Kafka: the servers read these requests.", "", "app"),
    ):
        lab = Lab()
        case(lab)
        (finding,) = lab.findings("WIR003")
        words = {word["name"]: word["value"] for word in finding["words"]}
        (card,) = cards([found("WIR003", client_ids=finding["client_ids"], words=words)], [])
        assert action in card.action.sentence
        assert card.harm.sentence == (f"{affected} may be unable to read these responses" if affected else "")
        assert (card.cause.by.client_id if card.cause.by else None) == by


def test_the_pause_of_a_former_controller_is_the_cause():
    pause = found("VIS008", brokers=[3])
    pause["summary"] = "Broker 3 was paused."
    former = found("CTL001", at_s=1, brokers=[2, 3])
    former["summary"] = "Controller 3 sent requests with epoch 1 from 2026-11-21 12:00:01.000 UTC."
    (card,) = cards([pause, former], [])
    assert card.cause.sentence == "Broker 3 was paused"
    assert (card.headline, state(card)) == ("Controller 3 sent requests with epoch 1 from 12:00:01 UTC", "")
    assert "evidence CTL001 " in card.evidence.command


def test_a_recreation_that_hurts_nobody_needs_no_action():
    (card,) = cards([RECREATED], [])
    assert card.action.sentence == "No action needed: no client or broker is known to still use the old topic ID."


def test_who_is_hurt_comes_first_whatever_the_kind():
    disagree = found("TID007", topic="u", topic_ids=["A" * 22], brokers=[3])
    assert [named(card) for card in cards([disagree, RECREATED], [refused()])] == [["reader"], []]


@pytest.mark.parametrize(
    ("clients", "text"),
    [
        (["a"], "a uses partitions that it may no longer have"),
        (["a", "b"], "a and b use partitions that it may no longer have"),
    ],
)
def test_who_asks_for_partitions_of_before_a_recreation_may_be_hurt_by_it(clients, text):
    gone = {"topic_id": None, "errors": ["UNKNOWN_TOPIC_OR_PARTITION"]}
    (card,) = cards([RECREATED], [refused(client, "OffsetCommit", **gone) for client in clients])
    assert f"; {text}; this may be why" in card.cause.sentence
    assert named(card) == clients


def test_a_client_that_keeps_the_leader_of_a_recreated_topic_did_not_keep_the_id():
    former = found("FET007", at_s=12, topic="t", client_ids=["writer"], brokers=[4])
    refuses = refused("writer", "Produce", topic_id=None, errors=["NOT_LEADER_OR_FOLLOWER"])
    (card,) = cards([RECREATED, former], [refuses])
    assert card.cause.sentence.endswith("; writer kept the old leader")
    assert card.action.sentence == "Restart writer (10.0.0.7)."
    (card,) = cards([RECREATED, STUCK, former], [refused(), refuses])
    assert card.cause.sentence.endswith("; reader kept the old topic ID; writer kept the old leader")


def test_pages_name_relations_and_lacks_that_there_are():
    lacks = {one.text for check in LISTED.values() for one in check.sentences.get("lacks", ())}
    assert lacks == {*get_args(Lack)}
    assert all(set(one.relations) <= harm.KEYS.keys() for check in LISTED.values() for one in check.explains or ())
    unsure = {rule.cause for rule in rules() if not rule.sure and rule.consequence in {"FET001", "TID005"}}
    assert unsure
    every = [rule for code in unsure for rule in LISTED[code].explains or ()]
    assert {"metadata broker" in rule.relations for rule in every if rule.sure} == {True}


def test_no_principals_leaves_the_client_id():
    def by(*form):
        arguments = ["replay", str(HURT), "--engine", "local", "--format", "json", *form]
        printed = CliRunner().invoke(cli.main, arguments).stdout
        assert ("User:ANONYMOUS" in printed) == (not form)
        return [entry["card"]["cause"]["by"] for entry in json.loads(printed)["entries"] if entry["code"] == "TID001"]

    lab = {"principal": "User:ANONYMOUS", "client_id": "lab-admin", "host": "127.0.0.1"}
    assert by() == [lab]
    assert by("--no-principals") == [lab | {"principal": None, "host": None}]


def test_terminal_page_json_metrics_ticket_and_library_have_one_card(tmp_path):
    """An alert has the words of `/metrics`: tests/live/test_boards.py shows it with a Prometheus."""

    def printed(*form, width="200"):
        arguments = ["replay", str(HURT), "--engine", "local", *form]
        return CliRunner(env={"COLUMNS": width}).invoke(cli.main, arguments).stdout

    result = json.loads(printed("--format", "json", "--out", str(tmp_path / "out")))
    card = result["entries"][0]["card"]
    assert wirecheck.replay(HURT).json["entries"][0]["card"] == card
    assert result["verdict"] == card["headline"]
    screens = [" ".join(printed(width=width).split()) for width in ("80", "200")]
    words = (card["headline"], card["cause"]["sentence"], card["action"]["sentence"], *card["action"]["commands"])
    for text in (*words, card["evidence"]["command"]):
        assert all(" ".join(text.split()) in screen for screen in screens)
    ticket, tests, scan = (printed("--format", form) for form in ("markdown", "junit", "sarif"))
    ticket = ticket.replace("\\", "")
    stored = Result.latest(tmp_path / "out").verdict(inputs=[str(HURT)])
    (entry, *_) = stored.entries
    below_it = [text for _, text in below(entry.card, clients_seen(stored.clients)[entry.cluster])]
    assert all(text in ticket for text in (card["headline"], *below_it))
    (failure, *_), (run,) = ET.fromstring(tests).iter("failure"), json.loads(scan)["runs"]
    scanned = "\n".join(one["message"]["text"] for one in run["results"])
    assert failure.get("message") == card["headline"]
    assert all(text in failure.text and text in scanned for text in below_it)
    (first, *_) = result["cards"]
    listed = (first["cause"], first["impact"], *first["since_then"], first["fix"], *first["look"], first["evidence"])
    assert (first["headline"], *listed) == (card["headline"], *below_it)
    assert [one["findings"] for one in result["cards"]] == [names_of(one) for one in result["entries"]]
    (table,) = read(tmp_path / "out", "cards", latest_run(tmp_path / "out"))
    rows = [document(ListedCard(**kept(row))) for row in rows_of(table)]
    assert rows == result["cards"]
    printed("--report", str(tmp_path / "page.html"))
    shown = html.unescape(re.sub(r"<[^>]*>", "", (tmp_path / "page.html").read_text()))
    assert all(text in shown for text in (card["headline"], *below_it))
    page, run = Page(), latest_run(tmp_path / "out")
    page.take({table: pa.concat_tables(read(tmp_path / "out", table, run)) for table in ("findings", "harms")})
    samples = [sample for family in page.collect() for sample in family.samples]
    named = {one.labels["id"]: one.labels["sentence"] for one in samples if one.name == "wirecheck_finding_info"}
    shown_as = [(one.findings[0], severity.label(one)) for one in stored.entries]
    assert all(named[name] == text for name, text in shown_as)
    assert card["headline"].startswith(shown_as[0][1])
    affected = {one.labels["id"]: one.value for one in samples if one.name == "wirecheck_finding_affected_clients"}
    for each in result["entries"]:
        clients = {(one["client_id"], one["address"]) for one in each["card"]["harm"]["clients"]}
        assert {affected[name] for one in (each, *each["consequences"]) for name in one["findings"]} == {len(clients)}
    assert card["harm"]["clients"]


def names_of(entry):
    return [name for one in (entry, *entry["consequences"]) for name in one["findings"]]


def kept(row):
    """A row of the table of cards as a value has it; times there are to the microsecond."""
    times = {f"{name}_ns": row.pop(name) for name in ("since", "until")}
    return {name: value for name, value in row.items() if name not in {"revision", "label"}} | times


def test_a_healthy_result_is_two_marks_and_what_they_rest_on(capsys):
    from rich.console import Console

    from tests.dashboards.results import RESULT
    from wirecheck.dashboards.terminal import show_first_screen

    coverage = Coverage(messages=4200, decoded_messages=4200)
    show_first_screen(replace(RESULT, coverage=coverage, findings=(), entries=()), Console(width=200))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == " IDs and versions ✓ 1 topic and 1 broker agree"
    assert lines[1] == " work             ? no client was read"
    assert lines[2].startswith("   no findings · 4,200 messages, all decoded")
    assert len(lines) == 3


def test_what_hurts_most_clients_comes_first_unless_others_contradict_ids():
    """Of checks about work, whatever their kind and code."""
    rows = [
        found("CLI006", topic="a", kind="anomaly"),
        found("WIR008", topic="b", client_ids=["x", "y", "z"]),
        found("CLI014", topic="c", kind="anomaly", words={"hurt_host": "10.0.0.7"}, client_ids=["w"]),
    ]
    context = context_of(rows)
    assert next(one.code for one in with_cards(entries(findings(rows)), [], context)) == "WIR008"
    rows += [RECREATED, STUCK]
    first, second, *_ = with_cards(entries(findings(rows)), [refused()], context_of(rows))
    assert [first.code, second.code] == ["TID001", "WIR008"]


def test_what_hurts_no_client_stays_in_the_order_of_its_kind():
    rows = [found("CLI006", topic="a", kind="anomaly"), found("CLU005", topic="b", kind="information")]
    assert [one.code for one in with_cards(entries(findings(rows)), [], context_of(rows))] == ["CLI006", "CLU005"]


def test_a_screen_has_the_first_cards_and_with_the_details_all():
    from tests.dashboards.results import RESULT
    from wirecheck.dashboards.terminal import first_screen

    headlines = [f"{name} has read nothing" for name in "abcdefg"]
    hurts = [card_entry(made_card(hurt(), headline=one), kind="anomaly") for one in headlines]
    result = replace(RESULT, findings=(), entries=tuple(hurts))
    first, every = ("\n".join(line.plain for line in first_screen(result, every=every)) for every in (False, True))
    assert [one in first for one in headlines] == [place < MOST_CARDS for place in range(len(headlines))]
    assert "2 more causes: -v lists them" in first
    assert all(one in every for one in headlines)
    assert "more cause" not in every


def test_records_that_were_never_read_are_harm_beside_errors_that_ended():
    """A reader that got errors while its topic was away, and then began behind the first records."""
    words = {
        "hurt_host": "10.0.0.7",
        "partition": "0",
        "records": "4",
        "again": "9",
        "recreated": "yes",
        "why": "",
        "where": "",
    }
    skipped = found("GRP010", at_s=30, topic="t", client_ids=["reader"], words=words)
    (card,) = cards([skipped], [refused(level="briefly", recovered=True)])
    assert named(card) == ["reader"]
    assert card.harm.briefly == ()
    (card,) = cards([skipped], [refused(errors=["OFFSET_OUT_OF_RANGE"])])
    assert {one.error for one in card.harm.clients} == {"OFFSET_OUT_OF_RANGE", harm.NEVER_READ}


def test_what_happened_at_one_moment_was_then():
    moment, longer = hurt(ongoing=False, last_ns=NOON_NS), hurt(ongoing=False)
    assert state(made_card(moment)) == "at 12:00:00 UTC"
    assert state(made_card(moment, longer)).startswith("since 12:00:00 UTC, until ")


def test_records_come_before_the_commits_that_lack_them():
    commits, reads = hurt(api="OffsetCommit", count=50), hurt(api="Fetch", count=20)
    assert harm.worst_first([commits, reads]) == [reads, commits]
    assert harm.worst_first([replace(reads, ongoing=False), commits])[0] is commits


def test_an_address_that_refuses_connections_is_named_below():
    from tests.dashboards.results import RESULT
    from wirecheck.dashboards.verdict import without_card

    headline = "Brokers name h:1 for broker 6, but it has refused all connections since 16:25:42 UTC, 175 times"
    one = made_card(headline=headline)
    assert without_card(replace(RESULT, entries=(card_entry(one, code="WIR008"),)), "WIR008") == headline
    assert without_card(replace(RESULT, entries=(card_entry(one, code="WIR007"),)), "WIR008") == ""


def test_records_that_an_unclean_election_lost_are_named_below():
    """As after a broker came back with an old disk. An election that hurts a client has its own card."""
    from tests.dashboards.results import RESULT
    from wirecheck.dashboards.verdict import without_card

    headline = "Broker 6 became leader of t partition 1 at 21:30:36 UTC in an unclean election"
    harmless, hurts = made_card(headline=headline), made_card(hurt("reader"), headline=headline)
    assert without_card(replace(RESULT, entries=(card_entry(harmless, code="CTL013"),)), "CTL013") == headline
    assert without_card(replace(RESULT, entries=(card_entry(harmless, code="CTL014"),)), "CTL013") == ""
    assert without_card(replace(RESULT, entries=(card_entry(hurts, code="CTL013"),)), "CTL013") == ""


def test_errors_that_go_on_in_the_next_cluster_count_once():
    """Of a client that a former cluster refused briefly, and the next one for the whole time."""
    stuck = found("FET001", topic="t", topic_ids=[OLD], client_ids=["reader"], brokers=[1])
    switched = found(
        "CLU004", topic_ids=[OLD], cluster="B", words={"address": "10.0.0.1:9092"}, sides=[side("Fetch", 13)]
    )
    stuck["sides"] = switched["sides"] = [side("Fetch", 13) | {"time": moment(0)}]
    brief = refused(cluster="B", level="briefly", until_s=20, count=2)
    (card,) = cards([switched, stuck], [brief, refused()])
    (one,) = card.harm.clients
    assert (one.count, card.harm.briefly) == (5, ())
    assert "may be why" not in card.cause.sentence


def test_several_brokers_are_named_in_one_sentence():
    stale = [found("TID017", f"of {broker}", topic="t", topic_ids=[OLD], brokers=[broker]) for broker in (3, 1)]
    (card,) = cards(stale, [])
    assert card.action.sentence == "Restart brokers 1 and 3."
    assert cards(stale[:1], [])[0].action.sentence == "Restart broker 3."


def test_a_rollback_of_all_brokers_is_one_card_that_names_them():
    def returned(endpoint, *brokers):
        words = {"node": endpoint, "ranges": "the versions of Kafka 4.4, then those of 4.3"}
        return found("VER007", endpoint, brokers=brokers, words=words)

    rollback = [returned(f"10.0.0.{broker}:{port}", broker) for broker in (1, 2) for port in (9092, 9093)]
    (card,) = cards(rollback, [])
    assert card.headline == "Brokers 1 and 2 advertised the versions of Kafka 4.4, then those of 4.3"
    (card,) = cards([*rollback, returned("10.0.0.9:9093")], [])
    assert card.headline.endswith("(4 more like it)")


def test_what_a_cause_lists_by_name_is_not_counted_again():
    words = {"api": "Fetch", "errors": "TOPIC_AUTHORIZATION_FAILED"}
    rows = [
        found("CLI006", n, client_ids=[n], topic="t", kind="anomaly", words=words) for n in ("a", "b", "c", "d", "e")
    ]
    harms = [refused(n, topic="t", error="TOPIC_AUTHORIZATION_FAILED") for n in ("a", "b", "c", "d", "e")]
    (card,) = cards(rows, harms)
    assert " and 2 others with TOPIC_AUTHORIZATION_FAILED" in card.cause.sentence
    assert "more like it" not in card.cause.sentence
    twice = found("CLI006", "a of u", client_ids=["a"], topic="u", kind="anomaly", words=words)
    (card,) = cards([*rows, twice], harms)
    assert "(5 more like it)" in card.cause.sentence


def test_only_writes_that_time_out_follow_from_writes_that_time_out():
    late = found("CTL015", topic="t", client_ids=["writer"], brokers=[1])
    timed_out = refused("writer", "Produce", errors=["REQUEST_TIMED_OUT"])
    (card,) = cards([late], [timed_out, refused("writer", "Fetch")])
    assert [(one.client_id, one.api) for one in card.harm.clients] == [("writer", "Produce")]


def test_a_client_without_a_coordinator_is_hurt():
    away = found("GRP006", client_ids=["reader"])
    asked = refused("reader", "FindCoordinator", topic=None, topic_id=None, errors=["COORDINATOR_NOT_AVAILABLE"])
    (card,) = cards([away], [replace(asked, partitions=())])
    assert card.headline == "reader (10.0.0.7) finds no coordinator for 48 s"
    assert "5 FindCoordinator errors (COORDINATOR_NOT_AVAILABLE)" in impact(card, 3)


@pytest.mark.parametrize(
    ("api", "error", "count", "text"),
    [
        ("Produce", "UNKNOWN_TOPIC_ID", 28, "28 writes rejected (UNKNOWN_TOPIC_ID)"),
        ("ListOffsets", "NOT_LEADER_OR_FOLLOWER", 5, "5 ListOffsets errors (NOT_LEADER_OR_FOLLOWER)"),
        ("ListOffsets v0", harm.CLOSED, 106, "106 ListOffsets v0 requests rejected (connection closed)"),
        ("Fetch", harm.NO_RESPONSE, 1, "1 fetch unanswered"),
    ],
)
def test_errors_are_of_partitions_and_a_closed_connection_is_of_a_request(api, error, count, text):
    assert rejected(api, error, count) == text


def test_who_finds_no_leader_is_hurt_by_a_partition_without_one():
    gone = found("CTL016", topic="t", topic_ids=[OLD], brokers=[5], client_ids=["reader"])
    asked = refused("reader", "Metadata", errors=["LEADER_NOT_AVAILABLE"], brokers=[5])
    (card,) = cards([gone], [asked, refused("writer", "Produce", errors=["NOT_LEADER_OR_FOLLOWER"])])
    assert (named(card), card.headline) == (
        ["reader"],
        "reader (10.0.0.7) finds no leader of t partition 0 for 48 s",
    )


def test_only_writes_that_lack_replicas_follow_from_too_few_replicas():
    few = found("CTL017", topic="t", client_ids=["writer"], brokers=[1])
    writes = refused("writer", "Produce", errors=["REQUEST_TIMED_OUT", "NOT_ENOUGH_REPLICAS"])
    (card,) = cards([few], [writes, refused("other", "Produce", errors=["NOT_ENOUGH_REPLICAS"])])
    assert named(card) == ["writer"]


def test_writes_to_a_server_that_lets_others_wait_may_wait_for_it():
    """A write may wait for other brokers, so it is no evidence that the server answers nothing."""
    silent = found("WIR007", client_ids=["reader"], brokers=[4], words={"apis": "Fetch"})
    waited = {"errors": ["NO_RESPONSE"], "topic": "t"}
    (card,) = cards([silent], [refused("writer", "Produce", brokers=[4], **waited)])
    assert named(card) == ["writer"]
    assert card.cause.sentence.endswith("this may be why requests of writer get no response")
    (card,) = cards([silent], [refused("writer", "Produce", brokers=[5], **waited)])
    assert named(card) == []


def test_what_followed_from_a_pause_ended_with_it():
    paused = found("VIS008", brokers=[5])
    gone = found("CTL016", topic="t", topic_ids=[OLD], brokers=[5], client_ids=["reader"])
    asked = refused("reader", "Metadata", errors=["LEADER_NOT_AVAILABLE"], brokers=[5])
    (card,) = cards([paused, gone], [asked])
    assert named(card) == ["reader"]
    assert card.action.sentence.startswith("No action needed in Kafka: the pause is over. On the host of broker 5,")
    assert "Start the broker" not in card.action.sentence


def test_who_asks_for_a_topic_that_is_gone_is_hurt():
    gone = found("TID019", topic="t", topic_ids=[OLD], client_ids=["writer"])
    asked = refused("writer", "Metadata", errors=["UNKNOWN_TOPIC_OR_PARTITION"], topic_id=None, partitions=[])
    (card,) = cards([gone], [asked])
    assert (named(card), card.headline) == (["writer"], "writer (10.0.0.7) finds no topic t for 48 s")
    (card,) = cards([found("TID007", topic="t", topic_ids=[OLD], brokers=[2]), gone], [asked])
    assert named(card) == ["writer"]


def test_only_who_has_not_recovered_has_to_be_restarted():
    """After a topic was gone for a minute most clients find it again, and one keeps its old ID."""
    gone = found("TID019", topic="t", topic_ids=[NEW], client_ids=["writer"], words={"until": " until 12:01"})
    asked = refused("writer", "Metadata", errors=["UNKNOWN_TOPIC_OR_PARTITION"], topic_id=None, recovered=True)
    (card,) = cards([RECREATED, STUCK, gone], [refused("reader"), replace(asked, partitions=())])
    assert sorted(named(card)) == ["reader", "writer"]
    assert card.action.sentence.startswith("Restart reader (10.0.0.7). Find out who deleted topic t")


def test_all_groups_that_lost_their_offsets_are_named():
    both = {"topic": "t", "topic_ids": [OLD, NEW]}
    lost = [found("GRP004", at_s=10 + n, id=f"g{n}", words={"group": name}, **both) for n, name in enumerate("abc")]
    for row in lost:
        row["summary"] = f"Group {row['words']['group']} lost its offsets of t."
    (card,) = cards([found("TID001", at_s=1, **both), *lost], [])
    assert card.headline == "Group a lost its offsets of t; also groups b and c"
    (card,) = cards([found("TID001", at_s=1, **both), *lost[:2]], [])
    assert card.headline == "Group a lost its offsets of t; also group b"


def test_what_no_error_shows_is_looked_at_without_a_filter_of_errors():
    words = {"partition": "0", "high": "177", "low": "2"}
    (card,) = cards([found("CTL018", topic="t", topic_ids=[NEW], brokers=[2], words=words)], [])
    assert card.action.commands == ("wirecheck decode FILE --topic t",)
    assert card.action.sentence.startswith("Start no other replica of t-0 before you have copied its log")
    assert "what broker 2 lacks" in card.action.sentence
    assert card.harm.sentence == "no client gets an error; consumers skip what is lost"


def test_of_topics_that_are_recreated_together_the_offsets_of_all_groups_are_named_early():
    names = ["a", "b", "c", "d", "__consumer_offsets"]
    words = {"ended": NOON_NS, "time": NOON_NS + NS_PER_S}
    rows = [
        found("TID001", f"recreated-{name}", topic=name, topic_ids=[name, f"{name}-2"], words=words) for name in names
    ]
    (card,) = cards(rows, [])
    assert card.cause.sentence.startswith("Topics __consumer_offsets, a, b and 2 others were deleted")


def test_topics_that_are_recreated_together_are_all_named_and_their_readers_get_one_instruction():
    """Not the first one's name beside another one's client: each hurt client's topic comes first."""
    rows = []
    for number, name in enumerate("abc"):
        ids = [f"{name}-old", f"{name}-new"]
        times = {"ended": NOON_NS + number * NS_PER_S, "time": NOON_NS + (number + 2) * NS_PER_S}
        rows.append(found("TID001", f"recreated-{name}", topic=name, topic_ids=ids, words=times))
        lost = {"records": str(1_000 * number), "again": "7", "hurt_host": "10.0.0.7", "recreated": ids[1]}
        if number:
            of_it = {"topic": name, "topic_ids": [ids[1]], "client_ids": [f"r-{name}"], "words": lost}
            rows.append(found("GRP010", f"lost-{name}", at_s=2, **of_it))
    every = cards(rows, [])
    (card,) = [one for one in every if one.harm.clients]
    assert {one.topic for one in card.harm.clients} == {"b", "c"}
    assert card.cause.sentence.startswith("Topics b and c were deleted and recreated from 12:00:01 to 12:00:04; ")
    assert card.action.sentence == (
        "Stop r-b (10.0.0.7) and r-c (10.0.0.7), set their offsets to the first record that each did not read"
        " (kafka-consumer-groups.sh --reset-offsets --to-offset), and start them: they get 3,000 records for the first"
        " time, 14 again."
    )


def test_a_request_that_is_closed_on_is_explained_by_its_version_and_a_library_without_a_release_is_replaced():
    def old(client_id):
        return found("VER005", client_ids=[client_id], words={"api": "ListOffsets", "minimum": "1", "versions": "v0"})

    def closed(client_id, api="ListOffsets"):
        row = refused(client_id, api, topic_id=None, partitions=[], errors=["CLOSED_WITHOUT_RESPONSE"])
        return replace(row, topic=None)

    (card,) = cards([old("board-9")], [closed("board-9")])
    assert card.headline == "board-9 (10.0.0.7) cannot use the broker: it closes the connection on ListOffsets"
    assert card.action.sentence == "Update board-9 (10.0.0.7): the brokers already reject the versions."
    (card,) = cards([old("no-kafka-client")], [closed("no-kafka-client")])
    assert card.action.sentence == (
        "Replace the library of no-kafka-client (10.0.0.7): no release of no-kafka works with Kafka 4."
    )
    (card,) = cards([old("board-9")], [closed("board-9", "Metadata")])
    assert not card.harm.clients
