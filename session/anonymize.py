"""A capture to one that may be shared, and the key file that maps back."""

import json
import os
import tempfile
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from wirecheck.session.inputs import files_in, places
from wirecheck.session.local_check import OTHER_TMPDIR, write_frames
from wirecheck.session.session import InputError, Session

if TYPE_CHECKING:
    from wirecheck.capture.anonymize.anonymizer import Written
    from wirecheck.capture.anonymize.names import Names

FORM = "wirecheck anonymize 1"
TITLE = "under other names, by wirecheck anonymize; records and secrets are zeros"
KINDS = ("words", "ids", "addresses", "texts")


@dataclass
class Anonymized:
    """What was written, and what was not."""

    written: "Written"
    not_tcp: int = 0
    """Packets that are no TCP segments."""
    dropped: int = 0
    errors: list[str] = field(default_factory=list)
    """Inputs that could not be read to their end."""


def anonymize(session: Session, name: str, target: Path, names: "Names") -> Anonymized:
    """Raises InputError where the input cannot be read, or its TLS not be decrypted; OSError of the target."""
    from wirecheck.capture import frames, frames_file
    from wirecheck.capture.anonymize.anonymizer import Anonymizer

    given = places([name])
    if any(path.is_dir() for path in given):
        raise InputError(f"{name}: holds frames; anonymize reads captures (pcap or pcapng)")
    anonymizer, marks = Anonymizer(names), Counter[int]()
    with TemporaryDirectory(prefix="wirecheck-") as scratch:
        folder = Path(scratch) / "frames"
        summary = write_frames(
            session, given, folder, "default", keep_records=False, batch_headers=True, advice=OTHER_TMPDIR
        )
        for file in files_in([folder]):
            rows = frames_file.read(file)
            kinds, counts = rows["kind"].to_pylist(), rows["count"].to_pylist()
            for kind, count in zip(kinds, counts, strict=True):
                if kind in {frames.SKIPPED, frames.DROPPED}:
                    marks[kind] += count
            part = rows.filter([kind == frames.FRAME for kind in kinds])
            if part.num_rows:
                anonymizer.add(part)
    parts = list(anonymizer.finish())
    written = anonymizer.written
    if written.encrypted:
        raise InputError(
            f"{name}: {written.encrypted} TLS connections cannot be decrypted, so nothing is written; give --keylog"
        )
    if not written.frames:
        raise InputError(f"{name}: no TCP segments of Kafka connections, so nothing is written")
    write(target, parts, marks[frames.DROPPED])
    return Anonymized(written, marks[frames.SKIPPED], marks[frames.DROPPED], list(summary.input_errors))


def write(target: Path, parts: list[Any], dropped: int) -> None:
    import numpy as np
    import pyarrow as pa

    from wirecheck.capture.evidence import pcapng_export

    table = pa.concat_tables(parts)
    for column in ("src_ip", "dst_ip", "source"):
        table = table.set_column(table.schema.get_field_index(column), column, table[column].cast(pa.string()))
    order = np.argsort(table["ts_ns"].to_numpy(), kind="stable")
    pcapng_export.write(target, table.take(pa.array(order)), TITLE, {}, dropped=dropped)


# --- the key file


def read_key(path: Path) -> "Names":
    """The names of an earlier run. Raises InputError if the file is none of ours."""
    from wirecheck.capture.anonymize.names import Names

    try:
        stored = json.loads(path.read_text("utf-8"))
        maps = {kind: {_bytes(old): _bytes(new) for old, new in stored[kind].items()} for kind in KINDS}
        found = Names(bytes.fromhex(stored["key"]), **maps) if stored["form"] == FORM else None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: not a key file of wirecheck anonymize; choose another --key-file") from error
    if found is None:
        raise InputError(f"{path}: a key file of another release; choose another --key-file")
    return found


def write_key(path: Path, names: "Names") -> None:
    """Whole or not at all, mode 0600. `back` is for people: what was written, to what it was. Raises OSError."""
    from wirecheck.capture.anonymize.back import shown_names

    stored: dict[str, Any] = {"form": FORM, "back": shown_names(names), "key": names.key.hex()}
    for kind in KINDS:
        stored[kind] = {old.hex(): new.hex() for old, new in getattr(names, kind).items()}
    handle, hidden = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)  # 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(stored, file, indent=1)
        Path(hidden).replace(path)
    finally:
        with suppress(OSError):
            Path(hidden).unlink(missing_ok=True)


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text)
