"""What captures show of each cluster apart, where there are several: equal names in two clusters are two things.

Which server is of which cluster is what the checks found (judge/topology). Servers of no known cluster are together.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from wirecheck.session.frame_tables import tables
from wirecheck.session.inputs import places
from wirecheck.session.session import Session
from wirecheck.wording import plural

if TYPE_CHECKING:
    import pyarrow as pa

    from wirecheck.decode.connection.exchanges import Exchanges
    from wirecheck.decode.show.message_lines import Accumulator
    from wirecheck.questions.group_rows import GroupRow, Groups
    from wirecheck.questions.subject import Subject
    from wirecheck.session.local_check import Check
    from wirecheck.streaming.steps.settings import Settings
    from wirecheck.streaming.store.run_result import Result

One = TypeVar("One", bound="Accumulator")
UNKNOWN = "unknown cluster"
MOST_APART = 32
"""So many clusters are kept apart, those with the most servers; a server can name as many as it likes."""


class Reading(NamedTuple):
    """What is read, and how."""

    session: Session
    inputs: Sequence[str]
    ports: Sequence[int] = ()


def read(reading: Reading, one: "Accumulator", frames: "Iterator[pa.Table]") -> "Result":
    """Let it read the frames of the inputs; what the checks find in these.

    Folders of frames are read again, as whose agents' they are has to be known first.
    """
    from wirecheck.session.local_check import Check

    if any(path.is_dir() for path in places(reading.inputs)):
        one.read(frames, reading.ports)
        return result_of(reading)
    check = Check(settings_of(reading))
    one.read(passing(frames, check), reading.ports)
    return check.checked(reading.session).run.result()


def settings_of(reading: Reading) -> "Settings":
    from wirecheck.streaming.steps.settings import Settings

    return Settings(dialects=reading.session.dialects, ports=frozenset(reading.ports))


def result_of(reading: Reading) -> "Result":
    """What the checks find in the inputs, read for that."""
    from wirecheck.session.local_check import checked

    return checked(reading.session, reading.inputs, "default", settings_of(reading)).run.result()


def passing(frames: "Iterator[pa.Table]", check: "Check") -> "Iterator[pa.Table]":
    for table in frames:
        check.add(table)
        yield table


def by_cluster(reading: Reading, result: "Result", make: Callable[[], One]) -> dict[str, One]:
    """By cluster ID what is made of its servers' exchanges alone, and of those of no known cluster; empty where fewer
    than two clusters are known. The inputs are read once more; of what is piped in, a line says that it cannot be.
    """
    from wirecheck.decode.show.message_lines import followed

    found = servers_of(result)
    if len(found) < 2 or is_once_only(reading, len(found)):
        return {}
    servers = apart(found)
    known = frozenset[str]().union(*servers.values())
    made = {name: make() for name in (*servers, UNKNOWN)}
    quiet = replace(reading.session, say=lambda _: None)
    for exchanges in followed(tables(quiet, places(reading.inputs), []), reading.ports):
        for name, one in made.items():
            one.add(only(exchanges, servers.get(name, known), inside=name in servers))
    return made


def subjects(reading: Reading, whole: "Subject", result: "Result", kind: str) -> "list[tuple[str | None, Subject]]":
    """The name in each cluster that has it, and under no cluster's name where one alone has it: equal names of others
    say nothing of it. What was read of the whole where none has it.
    """
    from wirecheck.questions.subject import Subject
    from wirecheck.questions.subject_facts import kinds_of

    made = by_cluster(reading, result, lambda: Subject(whole.name, whole.dialects))
    return shown_as([(name, one) for name, one in made.items() if kind in kinds_of(one)], whole)


def shown_as(found: "list[tuple[str, Subject]]", whole: "Subject") -> "list[tuple[str | None, Subject]]":
    """The parts of a name, by cluster, as they are shown."""
    return [*found] if len(found) > 1 else [(None, one) for _, one in found] or [(None, whole)]


def group_rows(reading: Reading, whole: "Groups") -> "list[GroupRow]":
    """Groups of each cluster; where one cluster is known, as they were read. Only where several were named, the inputs
    are checked: which server is of which.
    """
    from wirecheck.questions.group_rows import Groups

    if len(whole.cluster_ids) < 2 or is_once_only(reading, len(whole.cluster_ids)):
        return whole.rows()
    made = by_cluster(reading, result_of(reading), lambda: Groups(dialects=whole.dialects))
    for one in made.values():
        one.traffic.last_ns = whole.traffic.last_ns
    rows = [replace(row, cluster=name) for name, one in made.items() for row in one.rows()]
    return in_order(rows) if made else whole.rows()


def in_order(rows: "list[GroupRow]") -> "list[GroupRow]":
    from wirecheck.questions.group_rows import most_behind

    return sorted(rows, key=lambda row: (*most_behind(row), row.cluster))


def is_once_only(reading: Reading, clusters: int) -> bool:
    """Whether inputs cannot be read again; a line says so."""
    piped = any(map(is_piped, places(reading.inputs)))
    if piped:
        reading.session.say(f"there are {clusters} clusters; to keep equal names apart, read a file, not a pipe")
    return piped


def is_piped(path: Path) -> bool:
    """Whether it can be read only once."""
    return path.is_fifo() or path.is_socket() or path.is_char_device()


def apart(servers: dict[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """The clusters that differ in their servers, under the first of their IDs and how many more they have; at most
    `MOST_APART`, as each costs as much as reading what its servers sent.
    """
    names: dict[frozenset[str], list[str]] = {}
    for name, endpoints in sorted(servers.items()):
        names.setdefault(endpoints, []).append(name)
    largest = sorted(names, key=lambda endpoints: (-len(endpoints), names[endpoints]))[:MOST_APART]
    found = {under(names[endpoints]): endpoints for endpoints in largest}
    return dict(sorted(found.items()))


def under(names: list[str]) -> str:
    """The name of servers that state several cluster IDs."""
    return names[0] if len(names) == 1 else f"{names[0]} and {plural(len(names) - 1, 'other cluster ID')}"


def servers_of(result: "Result") -> dict[str, frozenset[str]]:
    """By cluster ID its endpoints."""
    found: dict[str, frozenset[str]] = {}
    for row in result.rows["clusters"]:
        if row["cluster_id"]:
            found[row["cluster_id"]] = found.get(row["cluster_id"], frozenset()) | frozenset(row["endpoints"])
    return found


def only(exchanges: "Exchanges", servers: frozenset[str], *, inside: bool) -> "Exchanges":
    """Those with these servers, or with others."""
    import numpy as np

    mine = np.array([(str(one.server) in servers) == inside for one in exchanges.connections], np.bool_)
    return exchanges.only(np.flatnonzero(mine[exchanges.connection[exchanges.first]])) if len(exchanges) else exchanges
