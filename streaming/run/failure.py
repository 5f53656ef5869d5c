"""Why a monitor's query failed, in one line with the way out.

Knows: which of Spark's words mean that its state cannot be read, that a disk is full, or that a worker died. Which line
of a long failure says what happened is `replay.reason`'s affair.
Rule: the next start repeats the batch that failed; so every line says what to fix before it, or that nothing will.
"""

import re

from wirecheck.streaming.run.manifest import FIX
from wirecheck.streaming.run.plan import Plan
from wirecheck.streaming.run.replay import reason

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
DIED = ("Python worker exited unexpectedly", "Python worker crashed", "Python worker faulthandler")
NOISE = re.compile(r"\s*SQLSTATE: \w+|^\s*\[[A-Z_.]+\] ")
OF_STORE = re.compile(r"PySparkRuntimeError: Error [^:\n]*: ([^\n]*?)(?: +in /[^\n]*)?$", re.MULTILINE)
"""What RocksDB said to a worker; where its working copy is helps nobody."""


def worker_died(text: str) -> bool:
    """Whether a process that worked for Spark ended without a word: of a signal, or for want of memory."""
    return any(words in text for words in DIED)


def in_one_line(text: str, plan: Plan) -> str:
    """`text`: all that Spark says of the failure."""
    if full := next((words for words in FULL if words in text), None):
        return f"the query failed: {full}; make room for {plan.out} and {plan.checkpoint}, and start again"
    of_store = OF_STORE.search(text)
    if worker_died(text):
        fix = "give it more memory, or move the files of that batch away, and start again"
        return f"the query failed: a worker died twice over one batch, and no file of it kills on its own; {fix}"
    said = NOISE.sub("", of_store[1] if of_store else reason(text)).strip().rstrip(".")
    if not said or any(words in text for words in STATE):  # Java has no words for a file that ends too soon
        return f"{plan.checkpoint}: cannot be gone on with (Spark's state: {said or 'damaged'}); {FIX}"
    return f"the query failed: {said}; fix that and start again: it goes on where it stopped"
