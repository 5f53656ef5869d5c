"""Frames of decrypted connections as they were captured, and the key log lines that decrypt them.

Only connections in which TLS was undone are read again; redacted plaintext stays as Trim left it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from wirecheck.capture.agent.offline_agent import read_encrypted
from wirecheck.capture.evidence.pcapng_export import SEGMENT, pair_of
from wirecheck.capture.source.pcap import CaptureFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

RANDOM_AT, RANDOM_BYTES = 11, 32  # of a hello, behind the headers of record and handshake and the version
SESSION_AT = RANDOM_AT + RANDOM_BYTES  # its length, in a byte, then the session's ID
_HELLO = re.compile(rb"\x16\x03[\x00-\x04]..[\x01\x02]", re.DOTALL)
_HEX = rb"[0-9a-fA-F]"
_LINE = re.compile(
    rb"(?:[A-Z0-9_]+ (" + _HEX + rb"{64}) |RSA Session-ID:(" + _HEX + rb"+) Master-Key:)" + _HEX + rb"+\s*"
)


def encrypted(table: pa.Table, captures: Sequence[Path]) -> pa.Table | None:
    """These frames, those inside TLS as they are in the captures; None where that is none, or one is not there."""
    rows = table.to_pylist()
    undone = {pair_of(row) for row in rows if row["decrypted"]}
    frames_of = {(row["source"], row["frame_no"]) for row in rows if pair_of(row) in undone}
    if not frames_of or not captures:
        return None
    found = {}
    for part in read_encrypted(captures):
        numbers = part.filter(pc.is_in(part["frame_no"], pa.array({number for _, number in frames_of})))
        for row in numbers.select(["source", "frame_no", *SEGMENT]).to_pylist():
            if (row["source"], row["frame_no"]) in frames_of:
                found[row["source"], row["frame_no"]] = {name: row[name] for name in SEGMENT}
    if found.keys() != frames_of:
        return None
    return pa.Table.from_pylist(
        [{**row, **found.get((row["source"], row["frame_no"]), {})} for row in rows], table.schema
    )


def key_lines(table: pa.Table, key_logs: Iterable[Path], captures: Iterable[Path]) -> bytes:
    """The lines that open these frames, of key logs and of those in captures. Raises OSError."""
    hellos = [p for p in table["payload"].to_pylist() if _HELLO.match(p)]
    names = {p[RANDOM_AT:SESSION_AT].hex() for p in hellos}
    names |= {p[SESSION_AT + 1 : SESSION_AT + 1 + p[SESSION_AT]].hex() for p in hellos if len(p) > SESSION_AT}
    lines = (line for text in _texts(key_logs, captures) for line in text)
    found = dict.fromkeys(
        line.strip() for line in lines if (m := _LINE.fullmatch(line)) and (m[1] or m[2]).decode().lower() in names
    )
    return b"".join(line + b"\n" for line in found)


def _texts(key_logs: Iterable[Path], captures: Iterable[Path]) -> Iterator[Iterable[bytes]]:
    for path in key_logs:
        with path.open("rb") as file:
            yield file
    blocks: list[bytes] = []
    for path in captures:
        file_of = CaptureFile(path)
        file_of.on_keys = blocks.append
        try:
            file_of.look_for_keys()
        finally:
            file_of.close()
    yield from (block.splitlines() for block in blocks)
