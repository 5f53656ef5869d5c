"""What a board is made of: rows of panels, each with a question, a unit and queries.

Knows: plain values, and the selectors that every query of a board shares. Refuses to know Grafana's JSON: `grafana.py`
writes it.
Rule: a panel that has no question has no place; its description is the question and how to read the answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass

ON = 'cluster=~"$cluster"'
"""Selector of every metric of the monitor."""
AGENT = 'instance=~"$agent"'
"""Selector of every metric of an agent."""
RATE = "[$__rate_interval]"


@dataclass(frozen=True)
class Query:
    expr: str
    legend: str = ""
    instant: bool = False


@dataclass(frozen=True)
class Link:
    title: str
    url: str
    """May name labels and fields of the value, as Grafana does: ${__field.labels.cluster}."""


@dataclass(frozen=True)
class Event:
    """A moment that is drawn through all panels of a board."""

    name: str
    expr: str
    title: str
    """Labels as {{label}}."""
    colour: str


@dataclass(frozen=True)
class Panel:
    title: str
    question: str
    """Asked in words, then how to read the answer."""
    unit: str
    """A unit id of Grafana's: short, percentunit, s, bytes, reqps."""
    queries: Sequence[Query]
    shape: str = "lines"
    """lines, stacked, bars-over-time, number, bars, table, heatmap, timeline (states) or history (a cell a time)."""
    wide: int = 12
    """Columns of 24."""
    high: int = 8
    steps: Sequence[tuple[float, str]] = ()
    """Values from which a colour holds, ascending; green below the first."""
    decimals: int | None = None
    upto: float | None = None
    """The greatest value there can be, where there is one."""
    kinds: Sequence[str] = ()
    """Kinds of finding that its series can be, where their names end with one: each has its colour."""
    links: Sequence["Link"] = ()
    """Where a click on a value leads."""
    runbook: str = ""
    """The page that says what to do, by the name of its alert."""
    columns: Sequence[str] = ()
    """Of a table: the labels that it shows, in order; none for all."""


@dataclass(frozen=True)
class Row:
    title: str
    panels: Sequence[Panel]
    folded: bool = False
    """Whether it opens on a click; its panels ask nothing before."""


@dataclass(frozen=True)
class Variable:
    name: str
    label: str
    query: str


CLUSTER = Variable("cluster", "Cluster", "label_values(wirecheck_frames_total, cluster)")


@dataclass(frozen=True)
class Board:
    uid: str
    title: str
    question: str
    rows: Sequence[Row]
    variables: Sequence[Variable] = (CLUSTER,)
    span: str = "now-6h"
    events: Sequence[Event] = ()


def number(title: str, question: str, unit: str, expr: str, **more: object) -> Panel:
    """One value, read from across the room."""
    settings = {"wide": 4, "high": 5, **more}
    return Panel(title, question, unit, (Query(expr, instant=False),), "number", **settings)  # type: ignore[arg-type]


def or_zero(expr: str) -> str:
    """Zero where nothing is counted, but only while the monitor speaks: silence is not health."""
    return f"{expr} or sum(wirecheck_frames_total{{{ON}}}) * 0"


def onto(uid: str, title: str) -> Link:
    """To another board, with the clusters and the time chosen here."""
    return Link(title, f"/d/{uid}?${{cluster:queryparam}}&${{__url_time_range}}")


def gained(metric: str, by: str, reach: str, where: str = "") -> str:
    """How much a counter gained; of one that was born while its monitor was watched, all that it has.

    `by` and the cluster are all its labels. A counter whose first value is not 0, as of a code that was never told
    before, has no increase yet: it counts whole where Prometheus asked its monitor before it was there, and no
    instance of the monitor had it when the reach began.
    """
    counter = f"{metric}{{{ON}{where}}}"
    labels = ", ".join(sorted({"cluster", *by.split(", ")}))
    monitor = f"max by (instance) (count_over_time(wirecheck_build_info[{reach}]))"
    younger = f"min by ({labels}, instance) (count_over_time({counter}[{reach}])) < on (instance) group_left {monitor}"
    born = f"(sum by ({labels}, instance) ({counter}) unless on ({labels}) ({counter} offset {reach})) and ({younger})"
    return f"sum by ({by}) (({born}) or sum by ({labels}, instance) (increase({counter}[{reach}])))"


FINDING = Link("This finding, with its evidence", "http://${__data.fields.instance}/#f-${__data.fields.id}")
"""Of a row that has both as columns: the page of the monitor that told it."""
RECREATED = Event(
    "Recreated topics",
    gained("wirecheck_topics_recreated_total", "cluster", "1m") + " > 0",
    "topics recreated in {{cluster}}",
    "blue",
)
MONITOR_RESTARTED = Event(
    "Monitor restarts",
    "sum by (instance) (resets(wirecheck_batch_duration_seconds_count[2m])) > 0",
    "monitor {{instance}} restarted",
    "purple",
)
AGENT_RESTARTED = Event(
    "Agent restarts",
    "sum by (instance) (resets(wirecheck_agent_frames_total[2m])) > 0",
    "agent {{instance}} restarted",
    "purple",
)
ALERTED = Event(
    "Alerts", 'ALERTS{alertname=~"Wirecheck.+", alertstate="firing"}', "{{alertname}} {{cluster}} {{code}}", "red"
)


def worst(title: str, question: str, which: str = "") -> Panel:
    """Open findings that these matchers choose, information only if a client is hurt: a row for each card, whose
    findings share its sentence, with the time of the first one and a link to its evidence; the newest first.
    """
    same = "on (instance, cluster, id)"
    found, hurt = f"wirecheck_finding_info{{{ON}{which}", f"wirecheck_finding_affected_clients{{{ON}}} > 0"
    findings = f'({found}, kind=~"violation|anomaly"}} or {found}}} and {same} {hurt})'
    since_ms = f"wirecheck_finding_first_seen_timestamp_seconds{{{ON}}} * 1000"
    first = f"bottomk by (cluster, sentence) (1, {since_ms} * {same} group_right () {findings})"
    query = Query(f"sort_desc({first})", instant=True)
    columns = ("sentence", "Value", "topic", "broker", "cluster", "code", "kind", "id", "instance")
    return Panel(title, question, "short", (query,), "table", wide=24, columns=columns, links=(FINDING,))


def by_code(title: str, question: str, which: str = "", high: int = 8, links: tuple[Link, ...] = ()) -> Panel:
    """Since when findings of each code that these matchers choose are open."""
    query = Query(f"sum by (code, kind) (wirecheck_findings{{{ON}{which}}}) > 0", "{{code}} {{kind}}")
    kinds = ("violation", "anomaly", "information", "visibility")
    return Panel(title, question, "short", (query,), "timeline", wide=24, high=high, kinds=kinds, links=links)


def spread(metric: str, where: str = "") -> tuple[Query, ...]:
    """A histogram's buckets, by how many each gained."""
    return (Query(f"sum by (le) (increase({metric}_bucket{where}{RATE}))", "{{le}}"),)


LAG = ((60, "orange"), (300, "red"))
"""Seconds; as the alerts on lag have them."""
LOSS_STEPS = ((1, "orange"), (100, "red"))
