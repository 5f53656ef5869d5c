"""What Kafka's errors mean to a client, and what to do about them; and what stands in an error's place.

Rule: one sentence says what it means, and one or two what to do. Which errors reject nothing is `not_rejections.tsv`.
"""

import shlex
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

NONE = "-"
"""In place of an API: every other one."""


class ErrorMeaning(NamedTuple):
    means: str
    """One sentence."""
    action: str
    """What to do, in one or two sentences."""

    def action_for(self, topic: str | None) -> str:
        """With the topic in its commands, as far as it is known."""
        return self.action.replace("TOPIC", shlex.quote(topic or "TOPIC"))


@cache
def by_api() -> Mapping[tuple[str, str], ErrorMeaning]:
    """By the error's name in Kafka's class Errors and the API, NONE for every other API."""
    lines = Path(__file__).with_name("error_meanings.tsv").read_text("ascii").splitlines()[1:]
    rows = (line.split("\t") for line in lines)
    return {(name, api): ErrorMeaning(means, action) for name, apis, means, action in rows for api in apis.split(",")}


def error_meanings() -> Mapping[str, ErrorMeaning]:
    """By name, those that clients get, whatever the API."""
    return {name: meaning for (name, api), meaning in by_api().items() if api == NONE}


@cache
def error_causes() -> Mapping[str, tuple[str, ...]]:
    """By name the three usual causes of the errors that are seen most, the most usual first."""
    lines = Path(__file__).with_name("error_causes.tsv").read_text("ascii").splitlines()[1:]
    return {name: tuple(causes) for name, *causes in (line.split("\t") for line in lines)}


def denial_action(error: str, api: str, topic: str | None = None) -> str:
    """What gives a client a right that it does not have; empty for an error that denies none."""
    meaning = meaning_of(error, api) if error.endswith("AUTHORIZATION_FAILED") else None
    return meaning.action_for(topic) if meaning else ""


def meaning_of(error: str, api: str) -> ErrorMeaning | None:
    """What an error means in the answer to this API."""
    return by_api().get((error, api)) or by_api().get((error, NONE))
