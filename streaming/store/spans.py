"""What a compaction knows of a table's files without opening them: which batches lie together, and how many rows.

Knows: how that is kept in one small file beside the batches. Knows nothing of what rows say or when they go.
Rule: it may be lost at any time: what it does not name is read like a batch that came since, and costs that once.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from wirecheck.streaming.store.batches import Folders

VERSION = 1


@dataclass(frozen=True)
class Span:
    """Batches whose rows lie in the file of the last of them."""

    first: int
    last: int
    rows: int
    begun_s: float
    """When the first of its rows were written, in seconds since 1970; never later than they were first seen here."""
    written_s: float
    """When the last were."""
    thinned: bool = False
    """Whether revisions that were replaced within it have left."""
    made_s: float | None = None
    """When its rows were put together; None once the files they came from have left."""


def read(run: Folders, numbers: Sequence[int]) -> list[Span]:
    """Those whose file is there, in order."""
    there = set(numbers)
    try:
        said = json.loads(run.summary() or b"{}")
        known = [Span(**one) for one in said["spans"]] if said.get("version") == VERSION else []
    except (ValueError, KeyError, TypeError, AttributeError):  # cut off, or of another release
        return []
    return [span for span in known if span.last in there]


def keep(run: Folders, known: Sequence[Span]) -> None:
    said = {"version": VERSION, "spans": [asdict(span) for span in known]}
    run.keep_summary(json.dumps(said).encode())
