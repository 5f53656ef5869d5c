"""What Kafka's errors mean to a client, what to do about them, and which of them are part of the protocol.

Rule: an error that a working client gets as a matter of course, and answers by itself, is the protocol's own: it
refuses nothing. It is marked with the APIs for which that holds.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

EVERY, NONE = "*", "-"
DESCRIBES = ("Describe", "List")
"""Requests that only look at something: a refusal stops no work."""


class ErrorMeaning(NamedTuple):
    own_answer_of: frozenset[str]
    """The APIs of which it is the protocol's own answer; `*` for all."""
    means: str
    """One sentence."""
    action: str
    """What to do, in one or two sentences."""


@cache
def error_meanings() -> Mapping[str, ErrorMeaning]:
    """By the error's name in Kafka's class Errors, those that clients get."""
    lines = Path(__file__).with_name("error_meanings.tsv").read_text("ascii").splitlines()[1:]
    return {
        name: ErrorMeaning(frozenset(apis.split(",")) - {NONE}, means, action)
        for name, apis, means, action in (line.split("\t") for line in lines)
    }


def is_own_answer(api: str, error: str) -> bool:
    """Whether an error, by its name, is part of how the protocol works, so that it refuses nothing."""
    if api.startswith(DESCRIBES) and api != "ListOffsets":
        return True
    known = error_meanings().get(error)
    return known is not None and not known.own_answer_of.isdisjoint({EVERY, api})
