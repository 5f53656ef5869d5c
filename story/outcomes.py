"""What a client does not get done, in words, as data: a row of outcomes.tsv for each error, or what is in its place,
that has words of its own.

Rule: the first row of an error and API whose words are all known says it. What no row has is counted by its requests
(`cards.py`).
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from string import Formatter
from typing import NamedTuple

from wirecheck.story.verdict import HurtClient
from wirecheck.wording import duration, filled, plural

EVERY, NONE = "*", "-"
COUNTED = ("connection", "record", "time", "transaction", "write")


class Outcome(NamedTuple):
    """One row; empty where it says nothing."""

    error: str
    api: str
    cannot: str
    """What its client cannot do: the headline."""
    how_long: str
    """What the headline says behind the names of several clients."""
    impact: str
    """How often, in the card's impact."""

    @property
    def needs(self) -> set[str]:
        return {name for _, name, _, _ in Formatter().parse(self.cannot + self.how_long) if name}


@cache
def outcomes() -> tuple[Outcome, ...]:
    lines = Path(__file__).with_name("outcomes.tsv").read_text("ascii").splitlines()[1:]
    return tuple(Outcome(*("" if cell == NONE else cell for cell in line.split("\t"))) for line in lines)


def of_error(error: str, api: str) -> Iterator[Outcome]:
    return (one for one in outcomes() if one.error == error and one.api in {EVERY, api})


def cannot(hurt: HurtClient) -> tuple[str, str] | None:
    """What a client cannot do, and how often or for how long; None where no row says it."""
    words = counts(hurt.count) | {"api": hurt.api, "lasted": duration(hurt.lasted_s)}
    if hurt.topic:
        numbers = ", ".join(map(str, hurt.partitions))
        words["topic"] = hurt.topic
        many = f" partition{'' if len(hurt.partitions) == 1 else 's'} {numbers}" if hurt.partitions else ""
        words["partitions"] = f"{hurt.topic}{many}"
    found = next((one for one in of_error(hurt.error, hurt.api) if one.needs <= words.keys()), None)
    return None if found is None else (filled(found.cannot, words), filled(found.how_long, words))


def impact(error: str, api: str, count: int) -> str:
    """`3 connections refused`; empty where no row says it."""
    found = next(of_error(error, api), None)
    return "" if found is None else filled(found.impact, counts(count))


def counts(count: int) -> dict[str, str]:
    return {f"{noun}s": plural(count, noun) for noun in COUNTED}
