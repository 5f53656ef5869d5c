"""Whom a question is about: names that were seen, what they are, and whose rows come first."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING

from wirecheck.session.session import InputError
from wirecheck.wording import plural

if TYPE_CHECKING:
    from wirecheck.questions.error_rows import ErrorRow
    from wirecheck.questions.subject import Subject


def unknown(noun: str, name: str, seen: set[str]) -> str:
    """`no topic order was seen; close to it: orders`."""
    counted = f"; {plural(len(seen), noun)} {'was' if len(seen) == 1 else 'were'} seen" if seen else "; none was seen"
    return f"no {noun} {name} was seen{close_to(name, seen) or counted}"


def close_to(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, sorted(known), n=3, cutoff=0.5)
    return f"; close to it: {', '.join(close)}" if close else ""


def kind_of(subject: "Subject", asked: str | None) -> tuple[str, list[str]]:
    """What the name is, and what else it is. Raises InputError where it is nothing, or not what was asked for."""
    from wirecheck.questions.subject_facts import kinds_of

    kinds = kinds_of(subject)
    if not kinds:
        traffic = subject.traffic
        close = close_to(subject.name, traffic.topics() | traffic.client_ids()) or f"; {traffic.text()}"
        raise InputError(f"{subject.name}: no topic, client, group or broker of this name was seen{close}")
    if asked not in {None, *kinds}:
        raise InputError(f"{subject.name} is not a {asked} in this capture; it is a {' and a '.join(kinds)}")
    kind = asked or kinds[0]
    return kind, [other for other in kinds if other != kind]


def clients_first(rows: "Iterable[ErrorRow]") -> "list[ErrorRow]":
    """Brokers' own requests behind those of clients; else the worst first."""
    return sorted(rows, key=of_broker)


def of_broker(row: "ErrorRow") -> bool:
    from wirecheck.client_ids import is_internal

    return is_internal(row.client_id)
