"""What to do about a client that a Kafka release rejects: the first version of its library that works.

The table is client_upgrades.tsv, by library and API, with sources. The first version is that of Kafka's own baseline;
APIs refine it for older targets. A newer client is not asked to upgrade: its configuration chooses old versions. What
is recognized by versions alone, as Java clients before Kafka 2.4 (KIP-511), is a guess.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from wirecheck.story.seen import Client
from wirecheck.wording import rfc3339

JAVA = "apache-kafka-java"
BASELINE_LINE = (4, 0)
"""From this release on a client needs Kafka's baseline; before, only the APIs that are rejected."""
OLD_JAVA = {
    "0.9": {"Produce": 1, "Fetch": 1, "ListOffsets": 0, "Metadata": 0},
    "0.10.0": {"Produce": 2, "Fetch": 2, "ListOffsets": 0, "Metadata": 1},
    "0.10.1 or 0.10.2": {"Produce": 2, "Fetch": 3, "ListOffsets": 1, "Metadata": 2},
    "0.11": {"Produce": 3, "Fetch": 5, "ListOffsets": 2, "Metadata": 4},
    "1.0": {"Produce": 5, "Fetch": 6, "ListOffsets": 2, "Metadata": 5},
    "1.1": {"Produce": 5, "Fetch": 7, "ListOffsets": 2, "Metadata": 5},
    "2.0": {"Produce": 6, "Fetch": 8, "ListOffsets": 3, "Metadata": 6},
    "2.1": {"Produce": 7, "Fetch": 10, "ListOffsets": 4, "Metadata": 7},
    "2.2": {"Produce": 7, "Fetch": 10, "ListOffsets": 5, "Metadata": 7},
    "2.3": {"Produce": 7, "Fetch": 11, "ListOffsets": 5, "Metadata": 8},
}
"""The highest versions of each release line (kafka-clients, ApiKeys); a client sends these to a newer broker."""
PREFIX = re.compile(r"[^-._/:]+")
FOLDED = re.compile(r"\d+")


class Upgrade(NamedTuple):
    first: str
    setting: str
    source: str


@cache
def upgrades() -> dict[tuple[str, str], Upgrade]:
    """By library and API; * stands for Kafka's baseline."""
    lines = Path(__file__).with_name("client_upgrades.tsv").read_text("ascii").splitlines()[1:]
    return {(software, api): Upgrade(*rest) for software, api, *rest in (line.split("\t") for line in lines)}


def numbers(version: str) -> tuple[int, ...]:
    """`v1.61.1` and `2.16.1-rdkafka-2.16.0` as (1, 61, 1) and (2, 16, 1)."""
    found = re.match(r"v?(\d+(?:\.\d+)*)", version)
    return tuple(map(int, found[1].split("."))) if found else ()


def looks_like(client: Client) -> str | None:
    """Java clients of before 2.4 by their versions: `Java 0.11`, or a library of that time; None without evidence."""
    fits = old_releases(client)
    if not fits:
        return None
    return f"Java {fits[0] if len(fits) == 1 else f'{fits[0]} to {fits[-1]}'}"


def old_releases(client: Client) -> list[str]:
    """Of OLD_JAVA those whose versions a client without a stated library sends, the oldest first."""
    if client.software_name:
        return []
    highest = {api: max(versions) for api, versions in client.apis.items() if versions}
    return [
        release
        for release, known in OLD_JAVA.items()
        if "Metadata" in highest and all(highest[api] == version for api, version in known.items() if api in highest)
    ]


def is_below_baseline(client: Client, target: str) -> bool:
    """Whether a client is older than those that a release supports, by its library's version or its likeness; False
    where neither is known, and before Kafka 4.0.
    """
    library, fits = client.software_name or JAVA, old_releases(client)
    version = fits[-1] if fits else client.software_version or ""
    known = upgrades().get((library, "*"))
    if numbers(target)[:2] < BASELINE_LINE or known is None:
        return False
    mine = numbers(version)
    return mine < numbers(known.first)[: len(mine)]


def advice(client: Client, target: str) -> tuple[str | None, str]:
    """(first version of its library to move to, what to do); None where the table does not have the library."""
    refused = {api for api, _ in client.rejected_by_target or ()}
    software = client.software_name or (JAVA if looks_like(client) else "")
    needed = {"*"} if numbers(target)[:2] >= BASELINE_LINE else refused
    found = [known for api in sorted(needed) if (known := upgrades().get((software, api)))]
    if client.not_in_target and not refused:
        return None, "uses APIs that this release does not have"
    if not found:
        return None, "upgrade the client library; its first version that works is not known"
    best = max(found, key=lambda one: numbers(one.first))
    stated = numbers(client.software_version or "")
    if stated and stated >= numbers(best.first):
        return None, f"set {best.setting}" if best.setting else "check which protocol version it is configured for"
    also = f", and set {best.setting}" if best.setting else ""
    guess = "" if client.software_name else ", if it is the Java client"
    return best.first, f"upgrade to {best.first} or newer{also}{guess}"


def group_of(client: Client, by: str) -> str:
    """The group of a client: its client ID up to the first separator, its software, or its address."""
    if by == "host":
        return client.address
    if by == "software":
        stated = " ".join(filter(None, (client.software_name, client.software_version)))
        return stated or client.looks_like or "unknown software"
    found = PREFIX.match(client.client_id or "")
    return FOLDED.sub("*", found[0]) if found else "(no client ID)"


@dataclass(frozen=True, slots=True)
class ClientGroup:
    """Clients of one team, software or host: how many there are, how many are rejected, and what they do."""

    group: str
    """Its name."""
    clients: int
    """How many clients it has."""
    rejected: int
    """How many of them a release rejects."""
    rejected_versions: tuple[str, ...]
    """What they send and that release does not serve: `Fetch v3`."""
    upgrade_to: tuple[str, ...]
    """First versions of their libraries that work."""
    hosts: int
    """At how many addresses they are."""
    requests: int
    """Requests they sent."""
    first_ns: int
    """When the first was seen first."""
    last_ns: int
    """When the last was seen last."""


def groups(clients: Iterable[Client], by: str) -> list[ClientGroup]:
    """Those with most rejected clients first."""
    ordered = sorted((group_of(client, by), position, client) for position, client in enumerate(clients))
    found = []
    for name, members in groupby(ordered, key=lambda one: one[0]):
        every = [client for _, _, client in members]
        refused = [client for client in every if client.rejected]
        found.append(
            ClientGroup(
                group=name,
                clients=len(every),
                rejected=len(refused),
                rejected_versions=tuple(sorted({f"{api} v{one}" for each in refused for api, one in each.rejected})),
                upgrade_to=tuple(sorted({one.upgrade_to for one in refused if one.upgrade_to}, key=numbers)),
                hosts=len({client.address for client in every}),
                requests=sum(client.requests for client in every),
                first_ns=min(client.first_ns for client in every),
                last_ns=max(client.last_ns for client in every),
            )
        )
    return sorted(found, key=lambda one: (-one.rejected, -one.clients, one.group))


COLUMNS = ("cluster", "client_id", "address", "software", "rejected", "do", "requests", "first_seen", "last_seen")
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>
<style>body{{font:15px/1.5 system-ui,sans-serif;margin:2rem}}table{{border-collapse:collapse}}
td,th{{padding:.3rem .8rem;border-bottom:1px solid #ccc;text-align:left;vertical-align:top}}</style>
<h1>{title}</h1><p>{summary}</p>
<table><tr>{head}</tr>{rows}</table></html>
"""


def page(refused: Sequence[Client], every: Sequence[Client], target: str) -> str:
    """The rejected clients as one HTML page that loads nothing. Text from the wire must be harmless already."""
    seen_ns = sorted(ns for client in every for ns in (client.first_ns, client.last_ns))
    over = f"seen from {to_the_second(seen_ns[0])} to {to_the_second(seen_ns[-1])}" if seen_ns else "none seen"
    summary = f"{len(refused):,} of {len(every):,} clients are rejected by Kafka {target}; {over}."
    cells = [
        (client.cluster, client.client_id, client.address, group_of(client, "software"),
         ", ".join(f"{api} v{version}" for api, version in client.rejected), client.advice, client.requests,
         client.first_seen, client.last_seen)
        for client in refused
    ]  # fmt: skip
    return PAGE.format(
        title=escape(f"Upgrade to Kafka {target}"),
        summary=escape(summary),
        head="".join(f"<th>{name.replace('_', ' ')}</th>" for name in COLUMNS),
        rows="".join(f"<tr>{''.join(map(in_cell, row))}</tr>" for row in cells),
    )


def to_the_second(time_ns: int) -> str:
    return f"{rfc3339(time_ns)[:19]}Z"


def in_cell(value: Any) -> str:
    return f"<td>{escape(str(value or ''))}</td>"
