"""Who says which id: a row per disputed topic, a column per speaker, the odd one out marked.

Knows: statements, and which findings are about a speaker. Refuses to know who is right: what is marked was found by a
check, and the mark leads to it.
Rule: a cell has what its speaker said last; a refusal outlasts what the same broker says otherwise.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from wirecheck.dashboards.report.lanes import SHORT, called, is_about
from wirecheck.dashboards.verdict import BLAMED, named_cluster

Row = Mapping[str, Any]
ROWS, CLIENTS = 60, 8
"""Topics, and columns of clients, at most."""
FOLDED = 12
"""Rows that stand open; the others on request."""


def who_says(result: Row, statements: Iterable[Row]) -> dict[str, Any]:
    """Columns in order (metadata log, controllers as one, brokers, clients) and rows with a cell for each."""
    said = list(statements)
    blamed = [one for kind in BLAMED for one in result["findings"] if one["kind"] == kind and one["topic"]]
    by_topic: dict[tuple[str | None, str | None], list[Row]] = {}
    for row in said:
        by_topic.setdefault((row["cluster"], row["name"]), []).append(row)
    about: dict[tuple[str | None, str | None], list[Row]] = {}
    for finding in blamed:
        about.setdefault((finding["cluster"], finding["topic"]), []).append(finding)
    current = {(t["cluster"], t["name"]): t["topic_id"] for t in result["topics"] if t["state"] == "current"}
    columns = columns_of(said, {client for finding in blamed for client in finding["client_ids"]})
    made = [
        row_of(key, rows, columns, about.get(key, []), current.get(key))
        for key, rows in sorted(by_topic.items(), key=lambda item: (item[0][1] or "~", str(item[0][0])))
    ]
    made.sort(key=lambda row: not any(cell and cell["finding"] for cell in row["cells"]))
    clients = {row["who"] for row in said if row["speaker"] == "client"}
    return {
        "columns": columns,
        "rows": made[:ROWS],
        "left": max(len(made) - ROWS, 0),
        "clients_left": len(clients - {column for kind, column in columns if kind == "client"}),
    }


def columns_of(said: Iterable[Row], named: set[str]) -> list[tuple[str, str]]:
    """(kind, name) of each; of clients those that findings name first."""
    found: dict[tuple[int, Any], tuple[str, str]] = {}
    clients: set[str] = set()
    for row in said:
        kind, name = column_of(row)
        if kind == "client":
            clients.add(name)
        else:
            number = row["broker"] if row["broker"] is not None else 1 << 31
            found[("log", "controller", "broker").index(kind), (number, name)] = (kind, name)
    chosen = sorted(clients, key=lambda name: (name not in named, name))[:CLIENTS]
    return [found[key] for key in sorted(found)] + [("client", name) for name in chosen]


def column_of(row: Row) -> tuple[str, str]:
    if row["speaker"] == "metadata-log":
        return "log", "metadata log"
    if row["speaker"] == "controller":
        return "controller", "controller"
    return row["speaker"], called(row) if row["speaker"] == "broker" else row["who"]


def row_of(
    key: tuple[str | None, str | None],
    said: list[Row],
    columns: Iterable[tuple[str, str]],
    about: list[Row],
    current: str | None,
) -> dict[str, Any]:
    by_column: dict[tuple[str, str], list[Row]] = {}
    for row in said:
        by_column.setdefault(column_of(row), []).append(row)
    ids = list(dict.fromkeys(row["topic_id"] for row in sorted(said, key=lambda row: row["first_seen"])))
    cells = [cell(by_column[column], ids, about, current) if column in by_column else None for column in columns]
    return {"cluster": named_cluster(key[0]), "name": key[1], "current": current, "cells": cells}


def cell(said: list[Row], ids: list[str], about: list[Row], current: str | None) -> dict[str, Any]:
    refusing = [row for row in said if row["does"] == "refuses" and any(is_about(one, row) for one in about)]
    last = max(refusing or said, key=lambda row: (row["last_seen"], ids.index(row["topic_id"])))
    odd = bool(refusing) or last["topic_id"] != current
    finding = next((one for one in about if odd and is_about(one, last)), None)
    return {
        "topic_id": last["topic_id"],
        "short": last["topic_id"][:SHORT],
        "does": last["does"],
        "number": ids.index(last["topic_id"]),
        "current": last["topic_id"] == current,
        "finding": finding["id"] if finding else None,
        "code": finding["code"] if finding else None,
        "kind": finding["kind"] if finding else None,
    }
