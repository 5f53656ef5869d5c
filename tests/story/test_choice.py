"""Which findings are listed: each column that can be asked for, alone and together."""

import pytest

from wirecheck.story.choice import EVERYTHING, Choice

FINDING = {
    "kind": "violation",
    "code": "TID002",
    "topic": "orders",
    "topic_ids": ["da2uCyqPT-6vP4yDIMcDSw"],
    "first_seen": "2026-11-21T00:20:03.747000Z",
    "last_seen": "2026-11-21T00:20:10.443000Z",
}
FITTING = (
    {"kinds": frozenset({"violation", "anomaly"})},
    {"codes": frozenset({"TID002"})},
    {"topics": frozenset({"orders"})},
    {"topics": frozenset({"da2uCyqPT-6vP4yDIMcDSw"})},
    {"since": "2026-11-21T00:20:10.443000Z"},
    {"until": "2026-11-21T00:20:03.747000Z"},
    {"since": "2026-11-21T00:20:05.000000Z", "until": "2026-11-21T00:20:06.000000Z"},
)
OTHERS = (
    {"kinds": frozenset({"anomaly"})},
    {"codes": frozenset({"TID001"})},
    {"topics": frozenset({"payments"})},
    {"since": "2026-11-21T00:20:10.443001Z"},
    {"until": "2026-11-21T00:20:03.746999Z"},
)


def named(asked):
    """The same in every process, which the order of a set is not."""
    return "-".join(
        f"{name}-{'-'.join([value] if isinstance(value, str) else sorted(value))}" for name, value in asked.items()
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
    assert EVERYTHING.fits({**FINDING, "topic": None, "topic_ids": []})
    assert not EVERYTHING
    assert Choice(since="2026")
