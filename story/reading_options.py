"""The options with which a printed command reads an input as the run did that prints it: key logs and dialects.

Rule: every command line for people ends with these, so that it shows what the run saw.
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

DRAFT_DIALECT = "DRF001"


def reading_options(keylogs: Sequence[str], findings: Iterable[Mapping[str, Any]]) -> str:
    """As ` --keylog FILE --dialect kip516-draft`. A dialect by which messages were read is a finding (DRF001), also in
    a monitor's result folder.
    """
    dialects = {row["words"]["dialect"] for row in findings if row["code"] == DRAFT_DIALECT and row.get("words")}
    named = [f" --keylog {shlex.quote(keylog)}" for keylog in keylogs]
    return "".join([*named, *(f" --dialect {dialect}" for dialect in sorted(dialects))])
