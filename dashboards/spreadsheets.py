"""Topics and clients as flat rows, and rows as CSV.

A cell is empty where the capture holds no value for it. Text that a terminal must not get is escaped by the command.
"""

import csv
import io
import re
from collections.abc import Iterable, Mapping
from typing import Any

from wirecheck.document import document
from wirecheck.story.seen import Client, TopicDescription

Row = Mapping[str, Any]
FORMULA = re.compile(r"[=+@\-\uff1d\uff0b\uff20\uff0d](?![\d.]*$)")
"""First characters of a cell that a spreadsheet would calculate; a number is not one."""


def partition_rows(topics: Iterable[TopicDescription]) -> list[Row]:
    """One flat row per partition, and one for a topic that has none described."""
    columns = ("cluster", "name", "topic_id", "topic_id_hex", "state", "internal")
    empty = dict.fromkeys(
        ("partition", "leader", "leader_epoch", "replicas", "isr", "offline_replicas", "time", "source", "connection")
    )
    return [
        {**{column: getattr(topic, column) for column in columns}, **empty, **row}
        for topic in topics
        for row in document(topic.partitions) or [{}]
    ]


LISTS = ("apis", "rejected_by_target", "not_in_target")
"""Fields of a client that are lists of an API and a version, or of versions."""


def client_row(client: Client) -> dict[str, Any]:
    """One flat row."""
    versions = ((api, version) for api, used in client.apis.items() for version in used)
    lists = (versions, client.rejected_by_target or (), client.not_in_target or ())
    return {
        **{name: cell for name, cell in document(client).items() if name not in LISTS},
        **{name: [f"{api}:{version}" for api, version in pairs] for name, pairs in zip(LISTS, lists, strict=True)},
    }


def csv_of(rows: list[Row]) -> str:
    """Rows with a heading; lists are separated by spaces, what is not known is empty. Clients choose names: one that a
    spreadsheet would calculate begins with an apostrophe, which makes it text there.
    """
    out = io.StringIO()
    if rows:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(rows[0])
        for row in rows:
            texts = (" ".join(map(str, value)) if isinstance(value, list) else value for value in row.values())
            writer.writerow(f"'{text}" if isinstance(text, str) and FORMULA.match(text) else text for text in texts)
    return out.getvalue()
