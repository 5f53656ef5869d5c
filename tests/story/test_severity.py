"""How loud harm is, and what it says does not change while it goes on."""

import pytest

from tests.story.test_causes import found
from tests.story.values import card, card_entry, finding, hurt
from wirecheck.story.severity import CRITICAL, WARNING, affected, label, names, severity


def entry(*clients):
    return card_entry(card(*clients))


def findings(brokers=(), client_ids=("teller",)):
    return {"a": finding(found("TID001", brokers=brokers, client_ids=client_ids))}


@pytest.mark.parametrize(
    ("clients", "about", "loud"),
    [
        ([], findings(), None),
        ([hurt(ongoing=False, granted_before=True)], findings([1], []), None),
        ([hurt()], findings(), WARNING),
        ([hurt()], findings([1]), WARNING),  # the brokers that answered it
        ([hurt()], findings([1], []), CRITICAL),
        ([hurt(granted_before=True)], findings(), CRITICAL),
        ([hurt(), hurt("audit")], findings(), CRITICAL),
        ([hurt(), hurt(api="Fetch")], findings(), WARNING),
    ],
)
def test_harm_is_as_loud_as_whom_it_hits_and_who_causes_it(clients, about, loud):
    assert severity(entry(*clients), about) == loud


def test_a_client_on_two_cards_counts_once_and_by_the_louder_one():
    every = [entry(hurt()), entry(hurt(), hurt("audit"))]
    found = affected(every, findings())
    assert {loud: sorted(one for one, _ in clients) for loud, clients in found.items()} == {
        CRITICAL: ["audit", "teller"],
        WARNING: [],
    }


def test_what_an_alert_says_stays_while_more_of_the_same_comes():
    """A label that changes with each batch would be a new time series, and a new notification, each time."""
    assert {label(entry(hurt(count=count))) for count in range(10, 500)} == {"teller (10.0.0.7) cannot write to orders"}
    assert label(entry()) == "Topic t was recreated"
    assert names(entry(hurt("a"), hurt("b"), hurt("b", api="Fetch"), hurt("c"), hurt("d"))) == "a, b, c and 1 other"
