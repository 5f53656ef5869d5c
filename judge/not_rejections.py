"""Errors that reject nothing: a working client gets them as a matter of course, and goes on by itself.

Rule: each has an API, or all, and its reason; such an error counts again while nothing succeeds by which its client
would go on (`not_rejections.tsv`).
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from wirecheck.decode import schemas

EVERY, NONE = "*", "-"


class NotRejection(NamedTuple):
    """An error that is part of the protocol."""

    works_on_by: frozenset[str]
    """APIs whose success shows that the client works on; `*`: it never counts."""


@cache
def not_rejections() -> Mapping[tuple[str, str], NotRejection]:
    """By API and name of the error."""
    lines = Path(__file__).with_name("not_rejections.tsv").read_text("ascii").splitlines()[1:]
    rows = (line.split("\t") for line in lines)
    return {(api, error): NotRejection(frozenset(by.split(",")) - {NONE}) for api, error, by, _ in rows}


def not_rejection(api: str, error: str) -> NotRejection | None:
    table = not_rejections()
    places = ((api, error), (api, EVERY), (EVERY, error))
    return next((table[place] for place in places if place in table), None)


def is_final_answer(api: str, error: str) -> bool:
    """Whether an error is part of the protocol, and there is nothing to ask again."""
    rule = not_rejection(api, error)
    return rule is not None and not rule.works_on_by and error not in retriable_errors()


@cache
def retriable_errors() -> frozenset[str]:
    return frozenset(error.name for error in schemas.errors().values() if error.retriable)


DESCRIBES = ("Describe", "List")
"""Requests that only look at something."""


def is_protocols_own(api: str, error: str, *, in_part: bool) -> bool:
    """Whether an error of a topic is no refusal, however long it lasts: the client works on by other requests, or only
    looks; or other requests of the topic succeed meanwhile (`in_part`).
    """
    rule = not_rejection(api, error)
    looks = api.startswith(DESCRIBES) and api != "ListOffsets"
    return looks or (rule is not None and (in_part or bool(rule.works_on_by)))
