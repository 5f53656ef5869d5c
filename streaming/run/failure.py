"""Why a monitor's query failed, in one line that says what to fix. The next start repeats the batch that failed.

It reads Spark's texts: unreadable state, a full disk, a dead worker, a machine that was too busy.
"""

import re

from wirecheck.streaming.checkpoint import NEW, newest_files
from wirecheck.streaming.run.plan import Plan

STATE = (
    "CANNOT_LOAD_STATE_STORE",
    "STREAMING_STATEFUL_OPERATOR",
    "STREAMING_CHECKPOINT",
    "MALFORMED_LOG_FILE",
    "Failed to read log file",
    "Failed to read the operator metadata",
    "com.fasterxml.jackson",  # Spark's reader of its own logs, and how it begins what it reports
    "Unexpected end-of-input",
    "Unexpected character (",
    "Unrecognized token",
    "CheckpointDamaged",
    "/_stateSchema/",
    "block checksum mismatch",  # RocksDB, of a file that it had opened
    "Corruption: ",
    "doesn't exist",  # a batch, in Spark's logs
    "Checksum error",  # of a file of Spark's logs that was cut
    "exception: Input length = ",  # of one whose bytes are no text (MalformedInputException)
)
FULL = ("No space left on device", "Disk quota exceeded")
DIED = (
    "Python worker exited unexpectedly",
    "Python worker crashed",
    "Python worker faulthandler",
    "driver worker exited unexpectedly",
)
STARTER_DIED = re.compile(
    r"reading the port number from \S+'s stdout(?! and terminated with code: (?:\d\d?|1[01]\d)\b)"
)
"""Of the process that starts workers, unless it says by a code of its own what it lacks; a signal is 128 and more."""
NOISE = re.compile(r"\s*SQLSTATE: \w+|^\s*\[[A-Z_.]+\] ")
OF_STORE = re.compile(r"PySparkRuntimeError: Error [^:\n]*: ([^\n]*?)(?: +in /[^\n]*)?$", re.MULTILINE)
"""RocksDB's message in a worker, without the path of its working copy."""


RAISED = re.compile(  # Java's last words, and those of our Python among them
    r"^\s*(?:Caused by: |: )?(?P<java>(?:org|java|scala)\.)?(?:\w+\.)*"
    r"(?!Py4J|Python)(?P<name>\w*(?:Error|Exception|Mismatch|Damaged)): (?P<said>\S.*)$",
    re.MULTILINE,
)
STREAM = re.compile(r"^\[STREAM_FAILED\] Query \[[^\]]*\] terminated with exception: ")
TOO_BUSY = ("Python worker failed to connect back", "CANNOT_OPEN_SOCKET")
"""Spark gives each bare Python it starts ten seconds, and no setting changes that (until 4.3 at least)."""
BUSY_S = 600
"""So long a machine may be too busy for Spark without a single batch."""
PAUSES_S = (2, 4, 8, 16, 32)
"""Before each further try on such a machine; the last one again and again. Spark's own pause is none."""


def reason(text: str) -> str:
    """The line of a long Spark failure that a person can use: what our Python raised, else Java's own last word."""
    errors = [match.groupdict("") for match in RAISED.finditer(text)]
    ours = [f"{line['name']}: {line['said']}" for line in errors if not line["java"] and "Spark" not in line["name"]]
    theirs = [line["said"] for line in errors if line["java"]]
    return STREAM.sub("", (ours or theirs or [text.strip().splitlines()[0]])[-1])


def worker_died(text: str) -> bool:
    """Whether a process that worked for Spark ended without a word: of a signal, or for want of memory."""
    return any(words in text for words in DIED) or STARTER_DIED.search(text) is not None


def disk_full(text: str) -> bool:
    """Whether there was no space for what was to be written: it is written once there is."""
    return any(words in text for words in FULL)


def too_busy(text: str) -> bool:
    """Whether Spark's timeout was too short for this machine: nothing is wrong with the batch."""
    return any(words in text for words in TOO_BUSY)


def batch_files(plan: Plan) -> str:
    """Those of the batch that runs, from the first to the last."""
    names = newest_files(plan.checkpoint)
    return f"{names[0]} to {names[-1]}" if len(names) > 1 else "".join(names)


def in_one_line(text: str, plan: Plan) -> str:
    """The failure and what to do, in one line. `text`: Spark's full message."""
    if full := next((words for words in FULL if words in text), None):
        return f"the query failed: {full}; free space for {plan.out} and {plan.checkpoint}, and start again"
    if too_busy(text):
        lasted = f"for {BUSY_S // 60} min"
        return f"the query failed: this machine was too busy to start Python {lasted}; free CPU, and start again"
    of_store = OF_STORE.search(text)
    if worker_died(text):
        fix = f"give it more memory, or move the files of that batch ({batch_files(plan)}) away, and start again"
        return f"the query failed: a worker died twice over one batch; {fix}"
    what = NOISE.sub("", of_store[1] if of_store else reason(text)).strip().rstrip(".")
    if not what or any(words in text for words in STATE):  # Java has no words for a file that ends too soon
        return f"{plan.checkpoint}: Spark cannot use it ({what or 'no reason given'}); {NEW}"
    return f"the query failed: {what}; fix that and restart: it continues where it stopped"
