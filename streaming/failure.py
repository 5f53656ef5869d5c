"""Why a monitor's query failed, in one line with the way out.

Knows: which of Spark's words mean that its state cannot be read, and which that a disk is full. Which line of a long
failure says what happened is `replay.reason`'s affair.
Rule: the next start repeats the batch that failed; so every line says what to mend before it, or that nothing will.
"""

import re

from streaming.manifest import FIX
from streaming.plan import Plan
from streaming.replay import reason

STATE = (
    "CANNOT_LOAD_STATE_STORE",
    "STREAMING_STATEFUL_OPERATOR",
    "STREAMING_CHECKPOINT",
    "MALFORMED_LOG_FILE",
    "/_stateSchema/",
    "block checksum mismatch",  # RocksDB, of a file that it had opened
    "Corruption: ",
    "doesn't exist",  # a batch, in Spark's logs
)
FULL = ("No space left on device", "Disk quota exceeded")
NOISE = re.compile(r"\s*SQLSTATE: \w+|^\s*\[[A-Z_.]+\] ")
OF_STORE = re.compile(r"PySparkRuntimeError: Error [^:\n]*: ([^\n]*?)(?: +in /[^\n]*)?$", re.MULTILINE)
"""What RocksDB said to a worker; where its working copy is helps nobody."""


def in_one_line(text: str, plan: Plan) -> str:
    """`text`: all that Spark says of the failure."""
    if full := next((words for words in FULL if words in text), None):
        return f"the query failed: {full}; make room for {plan.out} and {plan.checkpoint}, and start again"
    of_store = OF_STORE.search(text)
    said = NOISE.sub("", of_store[1] if of_store else reason(text)).strip().rstrip(".")
    if not said or any(words in text for words in STATE):  # Java has no words for a file that ends too soon
        return f"{plan.checkpoint}: cannot be gone on with (Spark's state: {said or 'damaged'}); {FIX}"
    return f"the query failed: {said}; mend that and start again: it goes on where it stopped"
