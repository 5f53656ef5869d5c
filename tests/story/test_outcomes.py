"""What clients do not get done, in words: rows of one table, each of something that a page or Kafka names."""

import pytest

from wirecheck.decode import schemas
from wirecheck.story import cards, harm, outcomes
from wirecheck.story.outcomes import COUNTED, counts
from wirecheck.story.verdict import HurtClient

ALL_WORDS = {*counts(1), "api", "lasted", "topic", "partitions"}


def hurt(error, api="Fetch", *, topic="orders", partitions=(), count=3):
    return HurtClient(
        client_id="app", address="10.0.0.7", api=api, topic=topic, partitions=partitions, error=error, count=count,
        first_ns=0, last_ns=75_000_000_000, blocked_ms=0, granted_before=False, ongoing=False,
    )  # fmt: skip


def test_each_row_is_of_what_a_page_or_kafka_names_and_every_word_is_known():
    kafkas = {error.name for error in schemas.errors().values()}
    of_requests = {harm.CLOSED_AT_ONCE, harm.CLOSED_WITHOUT_RESPONSE}
    for one in outcomes.outcomes():
        assert one.error in harm.WITHOUT_CODE | kafkas | of_requests
        assert one.needs <= ALL_WORDS
        assert one.cannot


def test_what_a_page_hurts_by_without_an_error_has_words_of_its_own():
    """Else the card says of requests without an error that they were rejected; but for reads, writes and commits."""
    kafkas = {error.name for error in schemas.errors().values()}
    rows = {one.error for one in outcomes.outcomes()}
    for code, hurts in harm.KINDS_OF_HARM.items():
        own_words = hurts.outcome in rows or hurts.api in {*cards.READS, "Produce", "OffsetCommit"}
        assert own_words or hurts.outcome in kafkas, code


def test_no_row_is_hidden_by_the_one_before():
    rows = outcomes.outcomes()
    for place, later in enumerate(rows):
        for earlier in rows[:place]:
            same = earlier.error == later.error and earlier.api in {outcomes.EVERY, later.api}
            assert not (same and earlier.needs <= later.needs)


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (hurt("nothing fetched", partitions=(0, 1)), ("has fetched nothing of orders partitions 0, 1", " for 75 s")),
        (hurt("nothing fetched"), ("has fetched nothing of orders", " for 75 s")),
        (hurt("nothing accepted", topic=None), ("accepts no record", " for 75 s")),
        (hurt("UNKNOWN_TOPIC_OR_PARTITION", "Metadata", topic=None), ("finds none of its topics", " for 75 s")),
        (hurt("UNKNOWN_TOPIC_OR_PARTITION", "Fetch"), None),
        (hurt("records never read", count=1), ("never read 1 record of orders", "")),
    ],
    ids=lambda part: part.error if isinstance(part, HurtClient) else None,
)
def test_the_first_row_whose_words_are_known_says_it(one, words):
    assert outcomes.cannot(one) == words


def test_the_impact_is_counted():
    assert outcomes.impact("connection refused", "Fetch", 1) == "1 connection refused"
    assert outcomes.impact("connection refused", "Fetch", 3_000) == "3,000 connections refused"
    assert outcomes.impact("nothing fetched", "Fetch", 3) == ""
    assert {f"{noun}s" for noun in COUNTED} == set(counts(2))
