"""Groups, and one name, of the results of a replay or a monitor: what `groups` and `why` show without the capture.

Rule: only what tables keep is known. What they do not keep of a name has a line that says so.
"""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from wirecheck.session.results import need_kept, results_in
from wirecheck.session.session import ArgumentError, Session

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from wirecheck.questions.group_lag import Lives
    from wirecheck.questions.group_rows import GroupRow, Groups
    from wirecheck.questions.subject import Subject
    from wirecheck.story.seen import Coverage
    from wirecheck.streaming.store.group_tables import Kept
    from wirecheck.streaming.store.run_result import Result

OF_CAPTURE = {
    "topic": "how each broker describes its partitions",
    "client": "connections and how they ended",
    "broker": "registrations",
}
"""By what a name is, what no table keeps of it."""


class KeptGroups(NamedTuple):
    rows: "list[GroupRow]"
    names: set[str]
    others: int
    """Groups and partitions beyond the bounds."""
    last_ns: int
    coverage: "Coverage"


def groups_of(session: Session, folder: Path, ports: "Sequence[int]" = ()) -> KeptGroups:
    """Groups of a folder of results, of each cluster where there are several. Raises InputError where there is
    nothing.
    """
    from dataclasses import replace

    from wirecheck.questions.group_rows import Groups
    from wirecheck.session.cluster_readings import UNKNOWN, apart, in_order, servers_of

    tables = ("coverage", "totals", "clusters", "clients", "topics", "findings", "harms")
    result = results_in(session, folder, ports, tables)
    need_groups(folder, result)
    kept, last_ns = kept_in(folder, result), result.last_ns()
    every = servers_of(result)
    servers = apart(every)
    if len(servers) < 2:
        one = filled(Groups(lives=lives_in(result)), kept, last_ns)
        return KeptGroups(one.rows(), {*one.groups}, one.others, last_ns, result.coverage())
    known = frozenset[str]().union(*servers.values())
    made = {
        name: filled(Groups(lives=lives_in(result, ids_of(own, every))), of_servers(kept, own, inside=True), last_ns)
        for name, own in servers.items()
    }
    made[UNKNOWN] = filled(Groups(lives=lives_in(result)), of_servers(kept, known, inside=False), last_ns)
    rows = in_order([replace(row, cluster=name) for name, one in made.items() for row in one.rows()])
    names = {name for one in made.values() for name in one.groups}
    return KeptGroups(rows, names, sum(one.others for one in made.values()), last_ns, result.coverage())


def need_groups(folder: Path, result: "Result") -> None:
    """Raises InputError where requests of members were counted and none was kept: that version had no such table."""
    from wirecheck.questions.group_messages import COMMITS, STATED
    from wirecheck.streaming.store.group_tables import GROUPS

    apis = {use["api"] for row in result.rows["clients"] for use in row["apis"]}
    if apis & {*STATED, *COMMITS}:
        need_kept(folder, GROUPS, result)


def kept_in(folder: Path, result: "Result", group: str | None = None) -> "Kept":
    """What members and brokers said, without what a proxy sent on; of one group alone where it is named."""
    from wirecheck.streaming.store.change_rows import ways_of
    from wirecheck.streaming.store.group_tables import groups_in
    from wirecheck.streaming.store.result_folder import latest_run
    from wirecheck.streaming.store.run_result import names_of_ids

    ways = {(way.host, way.server) for way in ways_of(result)}
    named = partial(names_of_ids, result)
    return groups_in(folder, latest_run(folder), named, lambda host, server: (host, server) not in ways, group)


def lives_in(result: "Result", clusters: "Collection[str] | None" = None) -> "Lives":
    """The topics that a name had, also those that are gone; of some cluster IDs, or of all."""
    from wirecheck.questions.group_lag import Lives

    lives = Lives()
    for row in result.rows["topics"]:
        if row["topic_id"] and row["name"] and (clusters is None or row["cluster"] in clusters):
            lives.add(row["topic_id"].encode(), row["name"], row["first_seen"])
    return lives


def filled(groups: "Groups", kept: "Kept", last_ns: int) -> "Groups":
    groups.traffic.last_ns = last_ns
    for step in kept.steps:
        groups.see_step(step)
    for one in kept.commits:
        groups.see_commit(one)
    for name, _, time_ns in kept.acknowledged:
        groups.see_acknowledged(name, time_ns)
    for _, end in kept.ends:
        groups.see_end(end)
    return groups


def of_servers(kept: "Kept", servers: frozenset[str], *, inside: bool) -> "Kept":
    """What was said with these servers, or with others."""
    return kept._replace(
        steps=[one for one in kept.steps if (one.call.server in servers) == inside],
        commits=[one for one in kept.commits if (one.call.server in servers) == inside],
        acknowledged=[one for one in kept.acknowledged if (one[1].server in servers) == inside],
        ends=[one for one in kept.ends if (one[0] in servers) == inside],
    )


# --- one name


def subject_of(session: Session, folder: Path, name: str, ports: "Sequence[int]" = ()) -> "tuple[Subject, Result]":
    """What a folder of results keeps of a topic, a client, a group or a broker, and the results. Raises InputError
    where there is nothing.
    """
    result = results_in(session, folder, ports)
    need_kept(folder, "requests_by_minute", result)
    need_groups(folder, result)
    return kept_of(name, folder, result, Part()), result


def kept_subjects(
    folder: Path, whole: "Subject", result: "Result", kind: str
) -> "list[tuple[str | None, Subject]] | None":
    """The name in each cluster that has it, as of captures. None where an earlier version wrote the tables, which do
    not say in which cluster a topic was used.
    """
    from wirecheck.questions.subject_facts import kinds_of
    from wirecheck.session.cluster_readings import UNKNOWN, apart, servers_of, shown_as

    every = servers_of(result)
    servers = apart(every)
    if len(servers) < 2:
        return [(None, whole)]
    if not names_servers(folder):
        return None
    parts = {name: Part(own, ids_of(own, every), is_known=True) for name, own in servers.items()}
    parts[UNKNOWN] = Part(frozenset[str]().union(*servers.values()), frozenset(every))
    made = [(name, kept_of(whole.name, folder, result, part)) for name, part in parts.items()]
    return shown_as([(cluster, one) for cluster, one in made if kind in kinds_of(one)], whole)


def names_servers(folder: Path) -> bool:
    """Whether uses of topics are kept with the servers that were asked."""
    from wirecheck.streaming.store.result_folder import latest_run, read
    from wirecheck.streaming.store.window_rows import USES

    return all("servers" in part.column_names for part in read(folder, USES, latest_run(folder)))


class Part(NamedTuple):
    """What is read of a folder: everything, a cluster, or what is of no known one."""

    servers: frozenset[str] = frozenset()
    """Of the cluster; of all known ones for what is of none."""
    ids: frozenset[str] = frozenset()
    """Its cluster IDs, which are several where its servers state several; all known ones for what is of none."""
    is_known: bool = False

    def counts(self, server: str) -> bool:
        return (server in self.servers) == self.is_known

    def is_of(self, row: dict[str, Any]) -> bool:
        """Whether a row counts that names its cluster."""
        return (row["cluster"] in self.ids) == self.is_known


def ids_of(servers: frozenset[str], every: "Mapping[str, frozenset[str]]") -> frozenset[str]:
    """The cluster IDs of just these servers."""
    return frozenset(name for name, own in every.items() if own == servers)


def kept_of(name: str, folder: Path, result: "Result", part: Part) -> "Subject":
    from wirecheck.questions.subject import Subject
    from wirecheck.streaming.store.change_rows import changes_in
    from wirecheck.streaming.store.group_tables import memberships
    from wirecheck.streaming.store.result_folder import latest_run
    from wirecheck.streaming.store.run_result import last, revisions
    from wirecheck.streaming.store.window_rows import EVER, software_of, traffic_in

    subject = Subject(name)
    subject.traffic = traffic_in(folder, result, EVER, part.counts)
    subject.changes = changes_in(folder, result, part.counts)
    subject.traffic.last_ns = result.last_ns()
    subject.lives = lives_in(result, part.ids if part.is_known else None)
    subject.traffic.software = software_of(row for row in result.rows["clients"] if part.is_of(row))
    kept = of_servers(kept_in(folder, result, name), part.servers, inside=part.is_known)
    for step in kept.steps:
        subject.see_step(step)
    for one in kept.commits:
        subject.see_commit(one)
    for _, end in kept.ends:
        subject.see_end(end)
    subject.groups |= memberships(folder, latest_run(folder), name, part.counts)
    for row in last(revisions(folder, "topic_statements", latest_run(folder), topic=name, api="Metadata")):
        if row["topic_id"] and part.is_of(row):
            add_id(subject.ids, row)
    return subject


def add_id(ids: dict[str, list[int]], row: dict[str, Any]) -> None:
    """Without how often: what tables count of IDs are statements of each broker, not responses."""
    first_ns, last_ns = row["first_seen"], row["last_seen"]
    seen = ids.setdefault(row["topic_id"], [first_ns, last_ns, 0])
    seen[:2] = min(seen[0], first_ns), max(seen[1], last_ns)


def need_no_time(folder: Path, at: object) -> None:
    """Raises ArgumentError where a topic is to be described as of a time: no table keeps that."""
    if at is not None:
        raise ArgumentError(f"{folder}: has no descriptions by broker and time; --at takes pcaps and folders of frames")
