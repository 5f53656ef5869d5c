"""Groups, and one name, of the results of a replay or a monitor: what `groups` and `why` show without the capture.

Rule: only what tables keep is known. What they do not keep of a name has a line that says so.
"""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from wirecheck.session.results import need_kept, results_in
from wirecheck.session.session import ArgumentError, Session

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    from wirecheck.session.cluster_readings import UNKNOWN, in_order, servers_of

    tables = ("coverage", "totals", "clusters", "clients", "topics", "findings", "harms")
    result = results_in(session, folder, ports, tables)
    need_groups(folder, result)
    kept, last_ns = kept_in(folder, result), result.last_ns()
    servers = servers_of(result)
    if len(servers) < 2:
        one = filled(Groups(lives=lives_in(result)), kept, last_ns)
        return KeptGroups(one.rows(), {*one.groups}, one.others, last_ns, result.coverage())
    known = frozenset[str]().union(*servers.values())
    made = {
        name: filled(Groups(lives=lives_in(result, name)), of_servers(kept, own, inside=True), last_ns)
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


def lives_in(result: "Result", cluster: str | None = None) -> "Lives":
    """The topics that a name had, also those that are gone; of one cluster, or of all."""
    from wirecheck.questions.group_lag import Lives

    lives = Lives()
    for row in result.rows["topics"]:
        if row["topic_id"] and row["name"] and cluster in {None, row["cluster"]}:
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
    from wirecheck.questions.subject import Subject
    from wirecheck.streaming.store.change_rows import changes_in
    from wirecheck.streaming.store.group_tables import memberships
    from wirecheck.streaming.store.result_folder import latest_run
    from wirecheck.streaming.store.run_result import last, revisions
    from wirecheck.streaming.store.window_rows import traffic_in

    result = results_in(session, folder, ports)
    need_kept(folder, "requests_by_minute", result)
    need_groups(folder, result)
    subject = Subject(name)
    subject.traffic, subject.changes = traffic_in(folder, result), changes_in(folder, result)
    subject.traffic.last_ns = result.last_ns()
    subject.lives = lives_in(result)
    kept = kept_in(folder, result, name)
    for step in kept.steps:
        subject.see_step(step)
    for one in kept.commits:
        subject.see_commit(one)
    for _, end in kept.ends:
        subject.see_end(end)
    subject.groups |= memberships(folder, latest_run(folder), name)
    for row in last(revisions(folder, "topic_statements", latest_run(folder), topic=name, api="Metadata")):
        if row["topic_id"]:
            add_id(subject.ids, row)
    return subject, result


def add_id(ids: dict[str, list[int]], row: dict[str, Any]) -> None:
    """Without how often: what tables count of IDs are statements of each broker, not responses."""
    first_ns, last_ns = row["first_seen"], row["last_seen"]
    seen = ids.setdefault(row["topic_id"], [first_ns, last_ns, 0])
    seen[:2] = min(seen[0], first_ns), max(seen[1], last_ns)


def need_no_time(folder: Path, at: object) -> None:
    """Raises ArgumentError where a topic is to be described as of a time: no table keeps that."""
    if at is not None:
        raise ArgumentError(f"{folder}: has no descriptions by broker and time; --at takes pcaps and folders of frames")
