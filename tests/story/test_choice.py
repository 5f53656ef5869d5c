"""Which findings are listed: each column that can be asked for, alone and together."""

import datetime as dt
from dataclasses import replace

import pytest

from tests.story.test_causes import found
from tests.story.values import finding
from wirecheck.story.choice import EVERYTHING, Choice

FIRST, LAST = (dt.datetime(2026, 11, 21, 0, 20, second, tzinfo=dt.UTC) for second in (3, 10))
FINDING = finding(
    found("TID002", topic="orders", topic_ids=["da2uCyqPT-6vP4yDIMcDSw"], first_seen=FIRST, last_seen=LAST)
)
FIRST_NS, LAST_NS = FINDING.first_ns, FINDING.last_ns
FITTING = (
    {"kinds": frozenset({"violation", "anomaly"})},
    {"codes": frozenset({"TID002"})},
    {"topics": frozenset({"orders"})},
    {"topics": frozenset({"da2uCyqPT-6vP4yDIMcDSw"})},
    {"since_ns": LAST_NS},
    {"until_ns": FIRST_NS},
    {"since_ns": FIRST_NS + 1000, "until_ns": FIRST_NS + 2000},
)
OTHERS = (
    {"kinds": frozenset({"anomaly"})},
    {"codes": frozenset({"TID001"})},
    {"topics": frozenset({"payments"})},
    {"since_ns": LAST_NS + 1},
    {"until_ns": FIRST_NS - 1},
)


def named(asked):
    """The same in every process, which the order of a set is not."""
    return "-".join(
        f"{name}-{'-'.join([str(value)] if isinstance(value, int) else sorted(value))}" for name, value in asked.items()
    )


@pytest.mark.parametrize("asked", FITTING, ids=named)
def test_what_is_asked_for_fits(asked):
    assert Choice(**asked).fits(FINDING)


@pytest.mark.parametrize("asked", OTHERS, ids=named)
def test_what_is_not_asked_for_does_not_fit_whatever_else_is(asked):
    assert not Choice(**asked).fits(FINDING)
    for also in FITTING:
        assert not Choice(**{**also, **asked}).fits(FINDING)


def test_who_asks_for_nothing_gets_everything():
    assert EVERYTHING.fits(replace(FINDING, topic=None, topic_ids=()))
    assert not EVERYTHING
    assert Choice(since_ns=1)
