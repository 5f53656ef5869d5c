"""Claims of which levels of features each node is registered with, and of updates of levels that were rejected for it.

Rule: a registration holds until the node registers again, or is unregistered: also that of a node that is gone
(KAFKA-20295). Updates are rare, so they are looked at one by one.
"""

import re
from collections.abc import Iterator

import numpy as np

from wirecheck.decode.log.metadata_tables import LogTable
from wirecheck.judge.claims.batch import Batch, Lines
from wirecheck.judge.claims.extract.servers import Endpoint
from wirecheck.judge.claims.reduce import Column, Ints, Rows, constant, texts

MS = 1_000_000
"""Nanoseconds."""
INVALID_UPDATE_VERSION, UNANSWERED = 95, -2
BROKER, CONTROLLER = "broker", "controller"
REQUESTS = (
    ("BrokerRegistration", "features", "broker_id", BROKER),
    ("ControllerRegistration", "features", "controller_id", CONTROLLER),
)
ENDS = (("UnregisterBroker", "", "broker_id", BROKER), ("UnregisterController", "", "controller_id", CONTROLLER))
RECORDS = (("RegisterBrokerRecord", "broker_id", BROKER), ("RegisterControllerRecord", "controller_id", CONTROLLER))
END_RECORDS = (
    ("UnregisterBrokerRecord", "broker_id", BROKER),
    ("UnregisterControllerRecord", "controller_id", CONTROLLER),
)
RANGE = ("name", "min_supported_version", "max_supported_version")
REASON = re.compile(
    r"\b(Broker|Controller) (\d{1,10}) (?:only supports versions (\d{1,5})(?:-(\d{1,5}))?|does not support)"
)
"""FeatureControlManager.reasonNotSupported: a range of one level is that number."""


def claims(batch: Batch) -> Iterator[Rows]:
    for _, features, node, role in batch.each("request", REQUESTS):
        good = features.other("error_code", absent=-1) == 0
        key = ["@endpoint", node, f"={role}", *RANGE]
        yield features.states("node_feature", key, good, peak={"written": features.ts_ns // MS})
    for _, header, node, role in batch.each("request", ENDS):
        good = header.other("error_code", absent=-1) == 0
        yield header.states("unregistered", ["@endpoint", node, f"={role}"], good, peak={"written": header.ts_ns // MS})
    if asked := batch.lines("UpdateFeatures", "request", "feature_updates"):
        yield from updates(batch, asked)


def in_log(found: dict[str, LogTable], message: Ints, endpoint: Endpoint) -> Iterator[Rows]:
    """The same out of records of the metadata log; `message` of each of its entries."""
    for record, node, role in RECORDS:
        if record in found:
            log, features = found[record], found[record].inner("features")
            name, low, high = (features[column] for column in RANGE)
            rows, seen = features.parent, message[found[record].entry[features.parent]]
            key = [
                endpoint(seen),
                Column(log[node][rows]),
                constant(role, len(rows)),
                texts(name),
                Column(low),
                Column(high),
            ]
            yield Rows("node_feature", key, seen, peak={"written": log.timestamp_ms[rows]})
    if "FeatureLevelRecord" in found:
        log, seen = found["FeatureLevelRecord"], message[found["FeatureLevelRecord"].entry]
        key = [endpoint(seen), texts(log["name"]), Column(log["feature_level"])]
        yield Rows("log_feature", key, seen, peak={"written": log.timestamp_ms})
    for record, node, role in END_RECORDS:
        if record in found:
            log, seen = found[record], message[found[record].entry]
            key = [endpoint(seen), Column(log[node]), constant(role, len(log))]
            yield Rows("unregistered", key, seen, peak={"written": log.timestamp_ms})


def updates(batch: Batch, asked: Lines) -> Iterator[Rows]:
    """Updates that were rejected because a node does not support the level, or for a reason that was not captured, and
    those that were accepted: by the answer about the feature, or by that about the request.
    """
    answered: dict[tuple[int, str | None], tuple[int, str | None]] = {}
    for path in ("", "results"):
        lines = batch.lines("UpdateFeatures", "response", path)
        if lines and len(lines):
            rows = np.arange(len(lines))
            names = lines.column("feature").at(rows) if path else [None] * len(lines)
            reasons = lines.column("error_message").at(rows)
            for row, name in enumerate(names):
                answered[int(lines.partner[row]), name] = int(lines["error_code"][row]), reasons[row]
    rows = np.arange(len(asked))
    answers = [
        answered.get((message, name)) or answered.get((message, None), (UNANSWERED, None))
        for message, name in zip(asked.message.tolist(), asked.column("feature").at(rows), strict=True)
    ]
    errors = np.array([error for error, _ in answers], np.int64)
    reasons = [reason_of(text) for _, text in answers]
    unique = [*dict.fromkeys(reasons)]
    codes = Column(np.array([unique.index(one) for one in reasons], np.int64), unique)
    rejected = errors == INVALID_UPDATE_VERSION
    yield asked.states("feature_rejected", ["@who", "feature", "max_version_level", codes], rejected)
    done = {"done": (asked["/validate_only"] == 0).astype(np.int64)}
    yield asked.states("feature_accepted", ["@endpoint", "feature", "max_version_level"], errors == 0, peak=done)


def reason_of(text: str | None) -> str | None:
    """The node and its range, as controller 5:1-20; the rest of the text is not read."""
    found = REASON.search(text or "")
    if found is None:
        return None
    role, node, low, high = found.groups()
    return f"{role.lower()} {node}:{low or 0}-{high or low or 0}"
