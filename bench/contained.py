"""A judge contains exceptions: they become findings, and it continues. No measurement and no test may rest on that.

Knows: where every contained exception passes (`judge/ledger/failures.py`), and which check reports those of another
process.
Rule: whatever was contained is an error here, with the traceback of the first one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from wirecheck.judge.ledger.failures import Failure, Failures

ADD = Failures.add


class ContainedError(Exception):
    """A judge could not judge something, and continued."""


@contextmanager
def nothing_contained(planted: str | None = None) -> Iterator[None]:
    """Raises ContainedError if a judge of this process contained an exception meanwhile, other than those whose
    description (kind and place) contains `planted`.
    """
    contained: list[Failure] = []

    def recorded(self: Failures, *failed: Failure) -> None:
        contained.extend(one for one in failed if planted is None or planted not in one.error)
        ADD(self, *failed)

    with patch.object(Failures, "add", recorded):
        yield
    if contained:
        first = contained[0]
        raise ContainedError(f"{len(contained)} contained, the first in {first.check}: {first.error}\n{first.trace}")


def nothing_contained_in(findings: list[dict[str, Any]]) -> None:
    """The same for the findings of other processes: VIS006 reports what was contained."""
    if contained := [finding["summary"] for finding in findings if finding["code"] == "VIS006"]:
        raise ContainedError("; ".join(contained))
