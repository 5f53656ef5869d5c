"""The options with which a printed command reads an input as the run did that prints it: key logs and dialects.

Rule: every command line for people ends with these, so that it shows what the run saw, also where only some of its
findings are listed.
"""

import shlex
from collections.abc import Iterable, Sequence

from wirecheck.story.verdict import Finding

DRAFT_DIALECT = "DRF001"


def reading_options(keylogs: Sequence[str], dialects: Sequence[str]) -> str:
    """As ` --keylog FILE --dialect kip516-draft`."""
    return "".join(
        [f" --keylog {shlex.quote(keylog)}" for keylog in keylogs] + [f" --dialect {one}" for one in dialects]
    )


def dialects_read(findings: Iterable[Finding]) -> list[str]:
    """The drafts by which messages were read: each is a finding of its run, also in a monitor's result folder."""
    return sorted({one.words["dialect"] for one in findings if one.code == DRAFT_DIALECT})
