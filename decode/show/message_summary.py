"""What a message is about, in a few words: which topics, which group or transaction, which errors.

It is read from columns, many messages at once; no value of a message is built for it. A topic that a message names only
by its ID gets the name that earlier messages gave this ID, otherwise the ID is shown.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wirecheck.decode.columns import kinds, tables
from wirecheck.decode.layouts.form import Kind
from wirecheck.decode.layouts.layout import SIDES
from wirecheck.decode.layouts.program import form
from wirecheck.decode.nested import id_text
from wirecheck.decode.texts import id_codes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from wirecheck.decode.columns import Table
    from wirecheck.decode.layouts.form import Slot
    from wirecheck.decode.message import Decoded
    from wirecheck.decode.wire import Ints

FEW = 2
"""Topics that are named; of further ones only the number is shown."""
ALWAYS_TOPICS = {"topic", "topic_name"}
"""Kafka's names for a field that is a topic wherever it stands."""
OF_TOPICS = {"responses", "results"}
"""Arrays besides those called after topics in which `name` is a topic's: Produce, DeleteTopics, CreatePartitions."""
NO_TOPIC = {"configs", "regex"}
"""Words in the name of an array whose elements are about a topic and do not name one."""
ABOUT = (("group_id", "group"), ("transactional_id", "transaction"))
"""What else a message may be about, first come first shown."""
ERRORS = {"error_code", "error", "partition_error_code", "topic_config_error_code", "acknowledge_error_code"}
PARTITIONS = ("partition_index", "partition", "partition_id", "index")
"""Kafka's names for a partition's number, in the table of an error code or around it."""
NO_ID = bytes(16)


class Failure(NamedTuple):
    """One error code of a message, and what it is about."""

    error: int
    topics: tuple[str, ...]
    """The topics that have it, each once; none if the code is about the whole message."""
    places: tuple[str, ...]
    """The first FEW of them, with the partition where there is one: `orders-0`."""
    more_places: int


class Summary(NamedTuple):
    topics: tuple[str, ...]
    """The first FEW, by name, or by id in Kafka's base64."""
    more_topics: int
    about: str | None
    """Of a message without topics: `group billing`."""
    errors: tuple[int, ...]
    """Codes that are not 0, each once, in the order of their first occurrence."""
    failures: tuple[Failure, ...] = ()
    """The same codes with the topics and partitions that have them."""


NOTHING = Summary((), 0, None, ())


TopicColumns = tuple[str, str | None, str | None]
"""(table, column of the name, column of the ID)"""


class ErrorColumn(NamedTuple):
    table: str
    code: str
    topic: TopicColumns | None
    """Of the topic that the code is about."""
    partition: tuple[str, str] | None
    """Table and column of its partition."""


class Columns(NamedTuple):
    """Tables and columns in which one kind of message states topics, other subjects and errors."""

    topics: tuple[TopicColumns, ...]
    about: tuple[tuple[str, str], ...]
    """(column of the table of messages, word)"""
    errors: tuple[ErrorColumn, ...]


def summaries(decoded: Decoded, names: Mapping[bytes, str]) -> dict[int, Summary]:
    """Summaries by message; messages without topics, subjects and errors have none. `names`: of known topic IDs."""
    found: dict[int, Summary] = {}
    for key, side in kinds(decoded):
        where = columns(key, side)
        if any(where):
            found |= of_kind(tables(decoded, key, SIDES[side]), where, names)
    return found


def of_kind(there: dict[str, Table], where: Columns, names: Mapping[bytes, str]) -> dict[int, Summary]:
    topics: dict[int, list[str]] = {}
    counts: dict[int, int] = {}
    messages, codes, texts = first_topics(there, where, names)
    for message, code, rank in zip(messages.tolist(), codes.tolist(), rank_of(messages).tolist(), strict=True):
        counts[message] = rank + 1
        if rank < FEW:
            topics.setdefault(message, []).append(texts[code])
    about = about_of(there[""], where)
    errors: dict[int, dict[int, dict[str, str]]] = {}
    for column in where.errors:
        for message, code, place, topic in errors_of(there, column, names):
            errors.setdefault(message, {}).setdefault(code, {}).update({place: topic} if place else {})
    return {
        message: Summary(
            tuple(topics.get(message, ())),
            max(counts.get(message, 0) - FEW, 0),
            None if message in topics else about.get(message),
            tuple(errors.get(message, ())),
            tuple(failure(code, places) for code, places in errors.get(message, {}).items()),
        )
        for message in topics.keys() | about.keys() | errors.keys()
    }


def failure(code: int, places: Mapping[str, str]) -> Failure:
    """`places`: topics with their partitions, to their topics."""
    return Failure(code, tuple(dict.fromkeys(places.values())), tuple(places)[:FEW], max(len(places) - FEW, 0))


def first_topics(
    there: Mapping[str, Table], where: Columns, names: Mapping[bytes, str]
) -> tuple[Ints, NDArray[np.int64], list[str]]:
    """(message, number of a topic's text) of each topic of each message once, as they occur; and the texts."""
    messages, codes, numbers = list[Any](), list[Any](), dict[str, int]()
    for path, name, topic_id in where.topics:
        table = there[path]
        if not len(table):
            continue
        by_row, texts = topic_codes(table, name, topic_id, names)
        renumbered = np.array([numbers.setdefault(text, len(numbers)) for text in texts], np.int64)
        rows = np.flatnonzero(by_row >= 0)
        messages.append(table.message[rows])
        codes.append(renumbered[by_row[rows]])
    return *each_once(messages, codes), list(numbers)


def first_errors(there: Mapping[str, Table], where: Columns) -> tuple[Ints, NDArray[np.int64]]:
    """(message, error code) of each code of each message once, as they occur; without 0."""
    messages, codes = list[Any](), list[Any]()
    for column in where.errors:
        table = there[column.table]
        rows = np.flatnonzero(table[column.code] != 0)
        messages.append(table.message[rows])
        codes.append(table[column.code][rows])
    return each_once(messages, codes)


def each_once(messages: list[Any], codes: list[Any]) -> tuple[Ints, NDArray[np.int64]]:
    """Pairs of a message and a number, each once, by message and then by first occurrence."""
    message = np.concatenate([np.zeros(0, np.int64), *messages])
    code = np.concatenate([np.zeros(0, np.int64), *codes])
    fresh = np.r_[True, (message[1:] != message[:-1]) | (code[1:] != code[:-1])][: len(message)]
    message, code = message[fresh], code[fresh]
    if (message[1:] > message[:-1]).all():  # most messages are about one topic: nothing to sort
        return message, code
    lowest = int(code.min())
    width = int(code.max()) - lowest + 1
    _, first = np.unique(message * width + (code - lowest), return_index=True)
    first = first[np.lexsort((first, message[first]))]
    return message[first], code[first]


def rank_of(message: Ints) -> Ints:
    """Of each row the number of rows of the same message before it; rows are sorted by message."""
    begins = np.flatnonzero(np.r_[True, message[1:] != message[:-1]][: len(message)])
    counts = np.diff(np.r_[begins, len(message)])
    ranks: Ints = np.arange(len(message), dtype=np.int64) - np.repeat(begins, counts)
    return ranks


def topic_codes(
    table: Table, name: str | None, topic_id: str | None, names: Mapping[bytes, str]
) -> tuple[NDArray[np.int64], list[str]]:
    """By row the number of its topic's text, -1 without a topic; and the texts."""
    codes, texts = np.full(len(table), -1, np.int64), list[str]()
    if name is not None:
        numbered, texts = table[name].codes()
        codes = np.where(numbered >= 0, numbered, -1).astype(np.int64)
    texts = list(texts)
    if topic_id is not None:
        by_id, unique = id_codes(table[topic_id])
        raw_ids = [each.tobytes() for each in unique]
        real = np.array([each != NO_ID for each in raw_ids], np.bool_)[by_id]
        nameless = (codes < 0) | (np.array([*map(len, texts), 0])[codes] == 0)
        codes = np.where(nameless, np.where(real, by_id + len(texts), -1), codes)
        texts += [names.get(each) or id_text(each) for each in raw_ids]
    return codes, texts


def errors_of(
    there: Mapping[str, Table], column: ErrorColumn, names: Mapping[bytes, str]
) -> Iterator[tuple[int, int, str, str]]:
    """(message, code, topic with its partition, topic) of the codes of one column that are not 0, each once."""
    table, topic, partition = there[column.table], column.topic, column.partition
    rows = np.flatnonzero(table[column.code] != 0)
    if not len(rows):
        return
    messages, codes = table.message[rows].tolist(), table[column.code][rows].tolist()
    topics: list[int] = [-1] * len(rows)
    partitions: list[int | None] = [None] * len(rows)
    texts = [""]
    if topic is not None:
        by_row, known = topic_codes(there[topic[0]], topic[1], topic[2], names)
        topics, texts = by_row[table.enclosing_rows(topic[0], rows)].tolist(), [*known, ""]
    if topic is not None and partition is not None:
        partitions = there[partition[0]][partition[1]][table.enclosing_rows(partition[0], rows)].tolist()
    for message, code, number, index in dict.fromkeys(zip(messages, codes, topics, partitions, strict=True)):
        about = texts[number]
        yield message, code, about if index is None or not about else f"{about}-{index}", about


def about_of(table: Table, where: Columns) -> dict[int, str]:
    found: dict[int, str] = {}
    for name, word in where.about:
        for message, text in zip(table.message.tolist(), table[name].strings(), strict=True):
            if text:
                found.setdefault(message, f"{word} {text}")
    return found


@cache
def columns(key: int, side: int) -> Columns:
    here = form(key, SIDES[side])
    topics: dict[str, TopicColumns] = {}
    partitions: dict[str, tuple[str, str]] = {}
    codes, about = list[tuple[str, str]](), list[tuple[str, str]]()
    for path, slot in here.tables.items():
        own = {name: found for name, found in own_slots(slot).items() if "header" not in name}
        name = next((name for name, found in own.items() if names_topic(path, name, found)), None)
        topic_id = next(
            (name for name, found in own.items() if found.kind == Kind.UUID and last(name) == "topic_id"), None
        )
        if name or topic_id:
            topics[path] = (path, name, topic_id)
        if index := next((name for name in PARTITIONS if name in own and own[name].kind == Kind.INTEGER), None):
            partitions[path] = (path, index)
        codes += [(path, name) for name, found in own.items() if found.kind == Kind.INTEGER and last(name) in ERRORS]
        if path == "":
            about = [(name, word) for name, word in ABOUT if name in own and own[name].kind == Kind.TEXT]
    errors = [
        ErrorColumn(path, name, topics.get(nearest(topics, path)), partitions.get(nearest(partitions, path)))
        for path, name in codes
    ]
    return Columns(tuple(topics.values()), tuple(about), tuple(errors))


def nearest(paths: Iterable[str], path: str) -> str:
    """Of the tables at these paths the one at a path, or the innermost that encloses it; "" if there is none."""
    around = [other for other in paths if other in {path, ""} or path.startswith(f"{other}.")]
    return max(around, key=len, default="")


def own_slots(slot: Slot) -> dict[str, Slot]:
    """Columns of a table, as `Table.names` calls them."""
    cut = len(slot.path) + 1 if slot.path else 0
    return {found.path[cut:]: found for found in slot.walk() if found.level == slot.level and found.path[cut:]}


def names_topic(path: str, name: str, slot: Slot) -> bool:
    if slot.kind != Kind.TEXT:
        return False
    if last(name) in ALWAYS_TOPICS:
        return True
    array = last(path)
    words = set(array.split("_"))
    return (
        name in {"name", "value"} and (array in OF_TOPICS or bool(words & {"topic", "topics"})) and not words & NO_TOPIC
    )


def last(path: str) -> str:
    return path.rpartition(".")[2]
