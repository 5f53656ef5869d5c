"""Who sends which versions of which API: one row per software, one column per API.

Only versions that a check found are marked. Clients that never stated their software have rows of their own, because
they are the ones an upgrade breaks.
"""

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

from wirecheck.judge.checks.listed_checks import LISTED
from wirecheck.story.seen import Client
from wirecheck.story.verdict import Finding, Verdict

Key = tuple[str, str | None, int | None]
"""Client ID, API and version."""
ROWS_SHOWN = 150
MARKING = {code: check.version_mark for code, check in LISTED.items() if check.version_mark}
"""Checks whose sides name an API and a version that a client should leave, and how its cell is marked."""


def matrix(result: Verdict) -> dict[str, Any]:
    """Columns (most used first) and rows with one cell per column: the versions as text, and the mark or None."""
    marks = marked(result.findings)
    rows: dict[tuple[str, ...], list[Client]] = {}
    for client in result.clients:
        rows.setdefault(who(client), []).append(client)
    used: dict[str, int] = {}
    for client in result.clients:
        for api in client.apis:
            used[api] = used.get(api, 0) + 1
    apis = sorted(used, key=lambda api: (-used[api], api))
    made = [line(key, clients, apis, marks) for key, clients in sorted(rows.items())]
    made.sort(key=lambda row: not any(cell and cell["mark"] for cell in row["cells"]))
    return {"apis": apis, "rows": made[:ROWS_SHOWN], "left": max(len(made) - ROWS_SHOWN, 0)}


PICTURE_ROWS, PICTURE_APIS = 12, 12


def picture(found: Mapping[str, Any]) -> dict[str, Any] | None:
    """The rows and columns of a matrix that have a marked cell; None where none has."""
    rows = [row for row in found["rows"] if any(cell and cell["mark"] for cell in row["cells"])]
    columns = [
        number
        for number in range(len(found["apis"]))
        if any(row["cells"][number] and row["cells"][number]["mark"] for row in rows)
    ][:PICTURE_APIS]
    if not rows:
        return None
    return {
        "apis": [found["apis"][number] for number in columns],
        "rows": [row | {"cells": [row["cells"][number] for number in columns]} for row in rows[:PICTURE_ROWS]],
        "left": len(rows) - PICTURE_ROWS,
    }


def who(client: Client) -> tuple[str, ...]:
    """Software with its version if reported, else the client ID."""
    if client.software_name:
        return ("software", client.software_name, client.software_version or "")
    return ("unsaid", client.client_id or "(empty client ID)")


def line(key: tuple[str, ...], clients: list[Client], apis: Iterable[str], marks: Mapping[Any, str]) -> dict[str, Any]:
    cells = []
    for api in apis:
        versions = sorted({version for client in clients for version in client.apis.get(api, ())})
        found = {marks.get((client.client_id, api, v)) for client in clients for v in client.apis.get(api, ())}
        mark = "refused" if "refused" in found else "removed" if "removed" in found else None
        cells.append({"versions": ranges(versions), "mark": mark} if versions else None)
    return {
        "name": " ".join(part for part in key[1:] if part),
        "stated": key[0] == "software",
        "clients": len(clients),
        "cells": cells,
    }


def marked(findings: Iterable[Finding]) -> dict[Key, str]:
    """(client id, API, version) to its mark; being refused is worse than being removed later."""
    marks: dict[Key, str] = {}
    for finding in findings:
        if mark := MARKING.get(finding.code):
            for client, side in product(finding.client_ids, finding.sides):
                key = client, side.api, side.version
                if side.api != "ApiVersions" and marks.get(key) != "refused":
                    marks[key] = mark
    return marks


def ranges(versions: Iterable[int]) -> str:
    """Versions as people write them: 0-3, 9, 11-13."""
    runs: list[list[int]] = []
    for version in versions:
        if runs and version == runs[-1][1] + 1:
            runs[-1][1] = version
        else:
            runs.append([version, version])
    return ", ".join(f"{first}" if first == last else f"{first}\u2013{last}" for first, last in runs)
