"""Kafka's layouts, error codes and releases, as data that tools/import_schemas.py writes."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

__all__ = ["DraftError", "ErrorCode", "Range", "draft_errors", "errors", "newest_line", "releases", "text"]

FOLDER = Path(__file__).parent


def text(name: str) -> str:
    return (FOLDER / name).read_text(encoding="ascii")


class ErrorCode(NamedTuple):
    """What a number in an errorCode field means."""

    name: str
    """Kafka's constant, as NOT_LEADER_OR_FOLLOWER."""
    retriable: bool
    """Whether clients are meant to try again."""
    since: str
    """First release looked at that has it (2.4.1: or before)."""


@cache
def errors() -> dict[int, ErrorCode]:
    rows = [line.split("\t") for line in text("errors.tsv").splitlines()[1:]]
    return {int(code): ErrorCode(name, retriable == "true", since) for code, name, retriable, since in rows}


class DraftError(NamedTuple):
    """What a number in an errorCode field means where KIP-4 is spoken as it was drafted."""

    name: str
    """The draft's, as TopicAlreadyExists."""
    apis: tuple[str, ...]
    """The requests that it answers, by the draft's names; not all of them became APIs."""
    meaning: str


@cache
def draft_errors() -> dict[int, DraftError]:
    """KIP-4 as drafted, "Error codes". No release has these numbers."""
    rows = [line.split("\t") for line in text("kip4_draft_errors.tsv").splitlines()[1:]]
    return {int(code): DraftError(name, tuple(apis.split(",")), meaning) for code, name, apis, meaning in rows}


class Range(NamedTuple):
    """Versions of one API that a release has."""

    low: int
    """Lowest version."""
    high: int
    """Highest version."""
    latest_unstable: bool
    """The highest is advertised only with unstable.api.versions.enable."""
    listeners: str
    """Who serves it: Z ZooKeeper-mode broker, B KRaft broker, C controller; empty before 2.8."""


@cache
def releases() -> dict[str, dict[int, Range]]:
    """Release to API key to versions, releases oldest first."""
    heading, *lines = text("releases.txt").splitlines()
    order = heading.split()[1:]
    table: dict[str, dict[int, Range]] = {release: {} for release in order}
    for line in lines:
        key, _, *changes = line.split()
        changed = dict(change.split("=") for change in changes)
        now = "-"
        for release in order:
            now = changed.get(release, now)
            if now != "-":
                table[release][int(key)] = _range(now)
    return table


def newest_line() -> str:
    """The line of the newest release known, as 4.4: there is no other place to change when Kafka has a new one."""
    return list(releases())[-1].rpartition(".")[0]


def _range(entry: str) -> Range:
    versions, _, listeners = entry.partition("@")
    low, high = versions.removesuffix("u").split("-")
    return Range(int(low), int(high), versions.endswith("u"), listeners)
