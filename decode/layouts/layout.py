"""The notation of decode/schemas, read into layouts.

    1 Fetch request v0-18 flexible v12+        key, api, side, versions, flexible from where on (or none)
      .since v12=2.7 v13=3.1                   first release that has a version (others: the oldest looked at, 2.4)
      .last v0-3=3.9                           last release that has it
      .unstable v10=4.1                        releases that had it behind the unstable flag
      .aka AlterIsr                            older name of the api
      .header v0=0                             header version, where the rule (1, a response 0; flexible +1) fails
      .lacked v12 in 2.7: responses.snapshotId   tags which those releases did not have yet
      replicaId int32 v0-14 =-1                name, type, versions (none: as what encloses it), default
      topics []                                array of structs: its fields follow, indented; {} is a single struct
        name string ?v10+ tag0                 ? nullable (there or always), tagN tagged
        requestData bytes open                 open: content that may be kept, though its type or name says otherwise
        topicId uuid tag* literal              drafts: tag of no fixed number; literal: only in a reading by the letter
      .changed v0 in 3.5,3.6 flexible          another layout that those releases had for the version: its fields follow

Every line of the files is read or refused, but for NOTES, which are for people.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping  # noqa: TC003 - compiled, a NamedTuple looks at its annotations
from functools import cache
from types import MappingProxyType
from typing import NamedTuple, TypeAlias, final

from wirecheck.decode import schemas

SIDES = ("request", "response", "record", "data")
OPEN = 32767
NOTES = {".since", ".last", ".unstable", ".deprecated", ".lacked"}
Default: TypeAlias = int | float | str | bool | None
PRIMITIVES = {"bool", "int8", "int16", "uint16", "int32", "int64", "float64", "uuid"}
SIZED = {"string", "bytes", "records"}
VALUES = {"value", "payload", "token"}
REMARKS, ERROR_MESSAGE = {"metadata", "reason"}, {"error", "message"}
"""Words in names of text fields that hold content, and not a name. A server's error message repeats the value that it
refuses."""
CAMEL = re.compile(r"[A-Z]?[a-z]+")


@final
class Versions:
    """A range of versions, both ends included; empty if low is above high."""

    def __init__(self, low: int, high: int) -> None:
        self.low: int = low
        self.high: int = high

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Versions) and (self.low, self.high) == (other.low, other.high)

    def __hash__(self) -> int:
        return hash((self.low, self.high))

    def __contains__(self, version: int) -> bool:
        return self.low <= version <= self.high

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.low, self.high + 1))

    @classmethod
    def of(cls, text: str) -> Versions:
        """Range of `v3`, `v0-4`, `v2+` or `none`."""
        if text == "none":
            return cls(1, 0)
        low, dash, high = text.removeprefix("v").rstrip("+").partition("-")
        return cls(int(low), OPEN if text.endswith("+") else int(high if dash else low))


NEVER = Versions(1, 0)


class Field(NamedTuple):
    """One field of a layout."""

    name: str
    """Kafka's name, first letter lowered."""
    type: str
    """A primitive's name, string, bytes, records, or struct; of an array that of its elements."""
    array: bool
    """Whether the type stands for the elements of an array."""
    versions: Versions
    """Where it is on the wire."""
    nullable: Versions
    """Where it may be null."""
    tag: int | None
    """Number in the tag section of its struct; -1 any number; None an ordinary field."""
    default: Default
    """What its absence means."""
    inflexible: bool
    """Keeps the old encoding in flexible versions (the client id of the request header)."""
    secret: bool
    """A credential or configuration value: its bytes need not be there."""
    literal: bool
    """Of a draft: listed by it, but implied by what it was derived from not to be on the wire."""
    fields: tuple[Field, ...] = ()
    """Of a struct, in wire order."""


class Changed(NamedTuple):
    """What some releases had for a version before a later one changed it in place."""

    versions: Versions
    releases: tuple[str, ...]
    flexible: bool
    fields: tuple[Field, ...]


class Layout(NamedTuple):
    """One message in all its versions."""

    key: int
    """API key, record type, or position in its file."""
    api: str
    side: str
    versions: Versions
    flexible: Versions
    fields: tuple[Field, ...]
    aka: tuple[str, ...] = ()
    headers: Mapping[int, int] = MappingProxyType({})
    """Header version, where the rule fails."""
    changed: tuple[Changed, ...] = ()

    def header_version(self, version: int) -> int:
        return self.headers.get(version, int(version in self.flexible) + (self.side == "request"))


@cache
def layouts(name: str) -> tuple[Layout, ...]:
    """All layouts of one file of decode/schemas."""
    return parse(schemas.text(f"{name}.txt"))


def parse(text: str) -> tuple[Layout, ...]:
    blocks = [block.splitlines() for block in text.split("\n\n") if block.strip()]
    return tuple(_layout(position, [line for line in block if line]) for position, block in enumerate(blocks))


def _layout(position: int, lines: list[str]) -> Layout:
    key, api, side, versions, word, flexible = lines[0].split()
    assert word == "flexible", lines[0]
    rows = [((len(line) - len(line.lstrip())) // 2, line.split()) for line in lines[1:]]
    whole = Versions.of(versions)
    facts: dict[str, list[list[str]]] = {}
    changed, at = [], 0
    body: list[tuple[int, list[str]]] = []
    while at < len(rows):
        depth, words = rows[at]
        at += 1
        if not words[0].startswith("."):
            body.append((depth, words))
        elif words[0] == ".changed":
            end = next((i for i in range(at, len(rows)) if rows[i][0] < 2), len(rows))
            changed.append(_changed(words, rows[at:end]))
            at = end
        else:
            assert words[0] in NOTES | {".aka", ".header"}, words
            facts.setdefault(words[0], []).append(words[1:])
    return Layout(
        position if key == "-" else int(key), api, side, whole, Versions.of(flexible), _fields(body, 1, whole),
        changed=tuple(changed), **_facts(facts, whole),
    )  # fmt: skip


def _changed(words: list[str], rows: list[tuple[int, list[str]]]) -> Changed:
    _, versions, _, releases, flexible = words
    whole = Versions.of(versions)
    return Changed(whole, tuple(releases.split(",")), flexible == "flexible", _fields(rows, 2, whole))


def _facts(facts: dict[str, list[list[str]]], whole: Versions) -> dict:  # type: ignore[type-arg]
    headers = [word.split("=") for words in facts.get(".header", []) for word in words]
    return {
        "aka": tuple(word for words in facts.get(".aka", []) for word in words),
        "headers": {v: int(text) for on, text in headers for v in (whole if on == "all" else Versions.of(on))},
    }


def _fields(rows: list[tuple[int, list[str]]], depth: int, enclosing: Versions) -> tuple[Field, ...]:
    out, at = [], 0
    while at < len(rows):
        assert rows[at][0] == depth, rows[at]
        end = next((i for i in range(at + 1, len(rows)) if rows[i][0] <= depth), len(rows))
        out.append(_field(rows[at][1], rows[at + 1 : end], depth, enclosing))
        at = end
    return tuple(out)


def _field(words: list[str], inner: list[tuple[int, list[str]]], depth: int, enclosing: Versions) -> Field:
    name, type_, *marks = words
    array, element = type_.startswith("[]"), type_.removeprefix("[]")
    element = "struct" if element in {"", "{}"} else element
    assert element in PRIMITIVES | SIZED | {"struct"}, words
    versions, nullable, tag, default, flags = enclosing, NEVER, None, "", set()
    for mark in marks:
        if re.fullmatch(r"v\d.*", mark):
            versions = Versions.of(mark)
        elif mark.startswith("?"):
            nullable = Versions.of(mark[1:]) if mark[1:] else versions
        elif mark.startswith("tag"):
            tag = -1 if mark == "tag*" else int(mark[3:])
        elif mark.startswith("="):
            default = mark[1:]
        else:
            assert mark in {"inflexible", "open", "literal"}, words
            flags.add(mark)
    return Field(
        name, element, array, versions, nullable, tag, _default(default, element, array=array),
        "inflexible" in flags, "open" not in flags and holds_content(name, element), "literal" in flags,
        _fields(inner, depth + 1, versions),
    )  # fmt: skip


def holds_content(name: str, type_: str) -> bool:
    """Whether a field of this name and type may hold what an application or an operator put there: its content is not
    to be kept. Names of topics, groups, clients, transactions and principals are names, not content.
    """
    words = {word.lower() for word in CAMEL.findall(name)}
    return type_ == "bytes" or (type_ == "string" and (bool(words & (VALUES | REMARKS)) or words >= ERROR_MESSAGE))


def holds_value(name: str, type_: str) -> bool:
    """Whether that content may be a credential or a value as a whole: not a text that speaks of one."""
    return holds_content(name, type_) and (type_ == "bytes" or bool({*map(str.lower, CAMEL.findall(name))} & VALUES))


def _default(text: str, type_: str, *, array: bool) -> Default:
    if text == "null":
        return None
    if array or type_ in {"struct", "uuid"}:
        return 0
    if type_ in SIZED:
        return text
    if type_ == "bool":
        return text == "true"
    return float(text or 0) if type_ == "float64" else int(text or "0", 0)


def snake(name: str) -> str:
    """`isKRaftController` to `is_kraft_controller`: how columns are called."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.replace("KRaft", "Kraft").replace("kRaft", "kraft")).lower()
