"""The events of inputs, or of kept results: what was seen, and what the checks conclude of it, in one order of time.

Rule: of results, only what their tables keep is known: changes, groups, clients, findings and who is hurt.
"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from wirecheck.client_ids import is_of_node
from wirecheck.wording import NS_PER_S, client_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from wirecheck.questions.timeline import Event, Timeline
    from wirecheck.session.cluster_readings import Reading
    from wirecheck.story.verdict import Finding, HurtClient, Verdict
    from wirecheck.streaming.store.run_result import Result


def of_inputs(reading: "Reading", frames: "Iterator[pa.Table]", *, principals: bool) -> "tuple[list[Event], Timeline]":
    """Events of captures and folders of frames, read once; with what was read."""
    from wirecheck.questions.timeline import Timeline, merged
    from wirecheck.session.cluster_readings import read

    seen = Timeline(dialects=reading.session.dialects, principals=principals)
    result = read(reading, seen, frames)
    return merged(seen.events(), of_verdict(result.verdict(principals=principals))), seen


def of_results(folder: Path, result: "Result", *, principals: bool) -> "list[Event]":
    """Events of the tables of a replay or a monitor."""
    from wirecheck.questions.timeline import Timeline, merged
    from wirecheck.session.kept_subjects import kept_in
    from wirecheck.streaming.store.change_rows import changes_in
    from wirecheck.streaming.store.group_tables import GROUPS
    from wirecheck.streaming.store.window_rows import traffic_in

    seen = Timeline(principals=principals)
    seen.changes = changes_in(folder, result)
    if (folder / GROUPS).is_dir():  # an earlier version kept neither groups nor requests
        seen.traffic = traffic_in(folder, result)
        for step in kept_in(folder, result).steps:
            seen.see_step(step)
    return merged(seen.events(), of_verdict(result.verdict(principals=principals)))


def of_verdict(verdict: "Verdict") -> "Iterator[Event]":
    """When each finding began, and when each client that is hurt stopped getting on, and got on again."""
    yield from of_findings(verdict.findings)
    for entry in verdict.entries:
        for one in entry.card.harm.clients:
            yield from of_hurt_client(one, entry.cluster)


def of_findings(findings: "Iterable[Finding]") -> "Iterator[Event]":
    """One event each; of blind spots of one kind one, with how many there are."""
    blind: dict[tuple[str, str | None], list[Finding]] = {}
    for one in findings:
        if one.kind == "visibility":
            blind.setdefault((one.code, one.cluster), []).append(one)
        else:
            yield of_finding(one)
    for found in blind.values():
        event = of_finding(min(found, key=lambda one: one.first_ns))
        more = f" ({len(found) - 1:,} more like it)" if len(found) > 1 else ""
        yield replace(event, text=f"{event.text}{more}")


def of_finding(finding: "Finding") -> "Event":
    from wirecheck.questions.timeline import Event

    nodes = [f"broker {one}" for one in finding.brokers]
    clients = [one for one in finding.client_ids if one and not is_of_node(one)]
    subject = finding.topic or next(iter([*clients, *nodes]), "")
    return Event(finding.first_ns, "finding", subject, finding.summary, finding.last_ns, finding.code, finding.cluster)


def of_hurt_client(one: "HurtClient", cluster: str | None) -> "Iterator[Event]":
    from wirecheck.questions.timeline import Event

    who = f"{client_name(one.client_id)} ({one.address})" if one.address else client_name(one.client_id)
    what = f"{one.api} {one.topic or ''}".strip()
    until_ns = None if one.ongoing else one.last_ns
    often = f", {one.count:,} times" if one.count > 1 else ""
    yield Event(one.first_ns, "hurt", who, f"{what}: {one.error}{often}", until_ns, cluster=cluster)
    if until_ns is not None and until_ns - one.first_ns > NS_PER_S:
        yield Event(until_ns, "hurt", who, f"{what}: {one.error} for the last time", cluster=cluster)


class Asked(NamedTuple):
    """Which events are to be listed; all where nothing is given."""

    about: str | None = None
    """A topic, client, group or broker that they name."""
    kinds: frozenset[str] = frozenset()
    since_ns: int = 0
    until_ns: int = 1 << 63

    def fits(self, event: "Event") -> bool:
        of_kind = not self.kinds or event.kind in self.kinds
        named = self.about is None or self.about in event.subject or self.about in event.text
        end_ns = event.time_ns if event.until_ns is None else event.until_ns
        return of_kind and named and event.time_ns <= self.until_ns and end_ns >= self.since_ns
