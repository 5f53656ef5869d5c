"""Writes messages by the same layouts that decode/ reads: random values out, with their bytes and their canonical JSON.

Knows Kafka's encodings a second time, on the writing side, and nothing of instructions and tokens: what it writes and
what the interpreter reads agree only if both follow the layout.
"""

import base64
import random
import struct
from dataclasses import dataclass, field

from wirecheck.decode.layouts.layout import Field, Layout, layouts
from wirecheck.decode.layouts.program import Dialect, readings

CASES = list(readings())  # (dialect, layout, version) of everything there is
BY_NAME = {
    (dialect, layout.api, layout.side, version): (dialect, layout, version) for dialect, layout, version in CASES
}
HEADERS = {layout.api: layout for layout in layouts("kafka") if layout.side == "header"}
PACKED = {
    "int8": ">b", "int16": ">h", "uint16": ">H", "int32": ">i", "int64": ">q", "float64": ">d",
}  # fmt: skip
RANGES = {
    "int8": (-(2**7), 2**7 - 1), "int16": (-(2**15), 2**15 - 1), "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1),
}  # fmt: skip
TEXTS = ["", "t", "orders", "größe", "注文", "🚀 rocket", "x" * 126, "x" * 127, "y" * 300]
NO_SIZE_OF_A_DRAFT = range(2, 12)  # an unknown tag of 1 or 16 bytes would be a draft's own


@dataclass
class Built:
    """One message."""

    data: bytes
    value: dict
    contents: list[tuple[int, int]] = field(default_factory=list)
    """Where text, bytes, records and unknown tags lie: (offset, length)."""


def case(api: str, side: str, version: int, dialect: int = Dialect.KAFKA) -> tuple[Dialect, Layout, int]:
    return BY_NAME[dialect, api, side, version]


def build(layout: Layout, version: int, rng: random.Random, body: dict | None = None) -> Built:
    """A random message of this layout; with `body`, those fields of the body have these values."""
    writer = Writer(rng)
    value = {}
    if layout.side in {"request", "response"}:
        header = HEADERS["RequestHeader" if layout.side == "request" else "ResponseHeader"]
        number = layout.header_version(version)
        fixed = {"requestApiKey": layout.key, "requestApiVersion": version} if layout.side == "request" else {}
        value["header"] = writer.struct(header.fields, number, number in header.flexible, fixed)
    value["body"] = writer.struct(layout.fields, version, version in layout.flexible, body or {})
    return Built(bytes(writer.out), value, writer.contents)


def filled(fields, version, text, path="", *, tagged=True):
    """A body with one of everything that the version has, lists too. `text`: from a path and a type what stands in
    texts and bytes; `tagged`: tagged fields, too.
    """
    return {
        one.name: _filled(one, version, text, f"{path}.{one.name}", tagged=tagged)
        for one in fields
        if version in one.versions and (tagged or one.tag is None)
    }


def _filled(one, version, text, path, *, tagged):
    if one.type == "struct":
        value = filled(one.fields, version, text, path, tagged=tagged)
    elif one.type in {"string", "bytes"}:
        value = text(path, one.type)
    elif one.type == "records":
        value = ""
    elif one.type == "uuid":
        value = "JMxDMvfeRaOyTjPWGqDRbA"
    else:
        value = 1
    return [value] if one.array else value


class Still:
    """In place of a random generator: zeros, empty, nothing optional."""

    def random(self) -> float:
        return 0.99

    def choice(self, options: list) -> object:
        return options[0]

    def randbytes(self, count: int) -> bytes:
        return bytes(count)

    def randint(self, low: int, _high: int) -> int:
        return low


def plain(api: str, side: str, version: int, body: dict, header: dict | None = None) -> bytes:
    """A whole message, size in front; what is not given is zero, empty or absent."""
    _, layout, _ = case(api, side, version)
    writer, number = Writer(Still()), layout.header_version(version)
    head = HEADERS["RequestHeader" if side == "request" else "ResponseHeader"]
    given = {"requestApiKey": layout.key, "requestApiVersion": version, **(header or {})}
    writer.struct(head.fields, number, number in head.flexible, given)
    writer.struct(layout.fields, version, version in layout.flexible, body)
    return struct.pack(">i", len(writer.out)) + bytes(writer.out)


class Writer:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.out = bytearray()
        self.contents: list[tuple[int, int]] = []

    def struct(self, fields: tuple[Field, ...], version: int, flexible: bool, given: dict) -> dict:
        here = [f for f in fields if version in f.versions]
        value = {f.name: self.field(f, version, flexible, given) for f in here if f.tag is None}
        if flexible:
            self.tags([f for f in here if f.tag is not None], version, value, given)
        return value

    def field(self, f: Field, version: int, flexible: bool, given: dict) -> object:
        compact = flexible and not f.inflexible
        nullable = version in f.nullable
        null = (given[f.name] is None) if f.name in given else nullable and self.rng.random() < 0.3
        if f.array:
            return self.array(f, version, compact, given.get(f.name), null)
        if f.type == "struct":
            if nullable:
                self.out += b"\xff" if null else b"\x01"
            return None if null else self.struct(f.fields, version, flexible, given.get(f.name) or {})
        if f.type in {"string", "bytes", "records"}:
            return self.sized(f, compact, given.get(f.name), null)
        return self.fixed(f.type, given.get(f.name))

    def array(self, f: Field, version: int, compact: bool, given: list | None, null: bool) -> list | None:
        count = len(given) if given is not None else self.rng.choice([0, 1, 1, 2, 3])
        self.length(None if null else count, compact, ">i")
        if null:
            return None
        given = given if given is not None else [None] * count
        if f.type == "struct":
            return [self.struct(f.fields, version, compact, one or {}) for one in given]
        if f.type == "string":
            return [self.sized(f, compact, one, null=False) for one in given]
        return [self.fixed(f.type, one) for one in given]

    def sized(self, f: Field, compact: bool, given: object, null: bool) -> object:
        if null:
            self.length(None, compact, ">h" if f.type == "string" else ">i")
            return None
        if f.type == "string":
            value = given if given is not None else self.rng.choice(TEXTS)
            data = value.encode()
        else:
            data = base64.b64decode(given) if given is not None else self.rng.randbytes(self.rng.choice([0, 1, 40]))
            value = base64.b64encode(data).decode()
        self.length(len(data), compact, ">h" if f.type == "string" else ">i")
        self.content(data)
        return value

    def content(self, data: bytes) -> None:
        self.contents += [(len(self.out), len(data))] if data else []
        self.out += data

    def fixed(self, kind: str, given: object) -> object:
        if kind == "bool":
            value = given if given is not None else self.rng.random() < 0.5
            self.out.append(value)
        elif kind == "uuid":
            value = given or base64.urlsafe_b64encode(self.rng.randbytes(16)).rstrip(b"=").decode()
            self.out += base64.urlsafe_b64decode(value + "==")
        else:
            value = given if given is not None else self.number(kind)
            self.out += struct.pack(PACKED[kind], value)
        return value

    def number(self, kind: str) -> float:
        if kind == "float64":
            return self.rng.choice([0.0, -1.5, 1e300, 0.1])
        low, high = RANGES[kind]
        return self.rng.choice([0, 1, max(low, -1), low, high, self.rng.randint(low, high)])

    def tags(self, fields: list[Field], version: int, value: dict, given: dict) -> None:
        known = [f for f in fields if f.name in given or self.rng.random() < 0.5]
        entries = {}
        for f in known:
            number = self.rng.choice([0, 7, 300]) if f.tag == -1 else f.tag
            inner = Writer(self.rng)
            value[f.name] = inner.field(f, version, True, given)
            entries[number] = bytes(inner.out), inner.contents
        unknown = []
        for tag in given.get("_unknownTaggedFields", ()):
            data = base64.b64decode(tag["data"])
            entries[tag["tag"]] = data, [(0, len(data))]
        while self.rng.random() < 0.15:
            number = self.rng.choice([99, 128, 16384, 2**31 - 1]) - len(unknown)
            if number not in entries:
                data = self.rng.randbytes(self.rng.choice(NO_SIZE_OF_A_DRAFT))
                entries[number] = data, [(0, len(data))]
                unknown.append({"tag": number, "data": base64.b64encode(data).decode()})
        if unknown:
            value["_unknownTaggedFields"] = sorted(unknown, key=lambda entry: entry["tag"])
        self.out += uvarint(len(entries))
        for number, (data, contents) in sorted(entries.items()):
            self.out += uvarint(number) + uvarint(len(data))
            self.contents += [(len(self.out) + offset, length) for offset, length in contents]
            self.out += data

    def length(self, count: int | None, compact: bool, code: str) -> None:
        if compact:
            self.out += uvarint(0 if count is None else count + 1)
        else:
            self.out += struct.pack(code, -1 if count is None else count)


def uvarint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])
