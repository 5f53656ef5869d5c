"""The report: a replay's result as one page that needs no network.

It is made from the replay's JSON object and what is attached to it. Every text passes jinja's escaping; style and
script are allowed by their hash, and nothing else runs or loads.
"""

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from wirecheck.dashboards import tickets, verdict
from wirecheck.dashboards.axis import Axis, Traffic, axis_of
from wirecheck.dashboards.report import courses, coverage_tiles, lanes, matrix, sequence
from wirecheck.judge.checks.page import remedy
from wirecheck.story.agreement import WORST, AgreementTable
from wirecheck.story.marks import MARK_SIGNS, marks_of
from wirecheck.story.seen import ConnectionRead, Statement
from wirecheck.story.verdict import Finding, Verdict
from wirecheck.wording import hex_id, plural, rfc3339

Row = Mapping[str, Any]
CLIENTS_SHOWN, TOPICS_SHOWN = 1000, 2000
OPEN_EVIDENCE = 8
"""As many findings show their evidence at once; the others on request."""
SIDES_SHOWN = 40
STATED_SHOWN = 500
IN_TICKET = 20
"""Findings that the page's Markdown has."""

LIMITS = {
    "clients": CLIENTS_SHOWN,
    "topics": TOPICS_SHOWN,
    "connections": coverage_tiles.CONNECTIONS_SHOWN,
    "sides": SIDES_SHOWN,
    "open": OPEN_EVIDENCE,
    "lanes": lanes.DRAWN,
    "folded": lanes.FOLDED,
    "rows": lanes.OPEN_ROWS,
    "stated": STATED_SHOWN,
}


@dataclass(frozen=True)
class JudgedAgent:
    """An agent, and how far its frames are judged."""

    cluster: str
    agent: str
    judged_ns: int


@dataclass(frozen=True)
class Attached:
    """What a page shows besides the replay's JSON object; without any of it the page is whole, and says less."""

    connections: Sequence[ConnectionRead] = ()
    statements: Sequence[Statement] = ()
    agreement: AgreementTable | None = None
    requests: Row | None = None
    """{"apis", "brokers": [{"name", "requests", "errors", "p50", "p99"}], "round_trip", "retransmitted"}"""
    traffic: Traffic | None = None
    courses: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    """By kind {"who", "what", "values": by slot of the traffic}"""
    brokers: Mapping[str, int] = field(default_factory=dict)
    """IDs by address."""
    exchanges: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    """By finding: {"connection", "api", "version", "correlation_id", "client_id", and "request", "response": lines}"""
    explanations: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By code the parts of its check's page: heading to text."""
    agents: Sequence[JudgedAgent] = ()
    """Of a monitor's page: how far each agent's frames are judged."""
    live: Row | None = None
    """Of a monitor's page: {"axis": {"since_ns", "until_ns"}, 0 for what is to be seen; "range": its name;
    "ranges": [(name, text)]; "updated": its age as text}
    """


NOTHING = Attached()


def page(result: Verdict, attached: Attached = NOTHING) -> str:
    """The whole page as text."""
    axis = axis_of(result, attached.traffic, **(attached.live["axis"] if attached.live else {}))
    style, script = asset("page.css"), asset("page.js")
    found = matrix.matrix(result)
    versions, drawn = matrix.picture(found), lanes.topics(result, attached.statements, axis)
    return (
        environment(axis)
        .get_template("page.html.j2")
        .render(
            **{column.name: getattr(result, column.name) for column in fields(result)},
            verdict=verdict.sentence(result),
            inputs=result.inputs,
            agents=attached.agents,
            style=style,
            script=script,
            policy=policy(style, script),
            mood=verdict.mood(result),
            marks=[(question, MARK_SIGNS[one.mark], one) for question, one in marks_of(result).both],
            shown_cards=verdict.first_cards(result),
            causes=len(verdict.blamed(result)),
            findings_by_id=result.by_id,
            counts=verdict.by_kind(result.findings),
            tiles=coverage_tiles.tiles(result.coverage),
            besides=list(verdict.besides(result)),
            live=attached.live,
            not_compared=verdict.not_compared(result.coverage),
            counted_once=verdict.counted_once(result.coverage),
            axis=axis,
            lanes=drawn,
            drawn=sum(one["odd"] or bool(one["blamed"]) for one in drawn) if versions else LIMITS["lanes"],
            versions_picture=versions,
            entry_lanes=lanes.entries(result, axis),
            errors=courses.errors(attached.courses),
            charts=list(courses.charts(result, attached.courses)),
            traffic=lanes.traffic(attached.traffic, axis),
            who=lanes.who_says(result, attached.statements),
            agreement=stated(attached.agreement),
            signs=MARK_SIGNS,
            exchanges=attached.exchanges,
            sequences=sequences(result, attached),
            explanations=explained(result, attached.explanations),
            ticket=ticket(result),
            names=len({(topic.cluster, topic.name) for topic in result.topics}),
            matrix=found,
            requests=attached.requests,
            endpoints=coverage_tiles.endpoints(attached.connections),
            incomplete=coverage_tiles.incomplete(attached.connections),
        )
    )


OF_TOPICS = ("Topic", "ID", "Stated by", "In", "Since", "Until", "Times")
OF_APIS = ("Server", "Release", "API", "Advertised", "Used", "Answered", "Rejected")


def stated(table: AgreementTable | None) -> Row | None:
    """The rows of the table of agreement, those that something contradicts first; of APIs those that were used."""
    if table is None:
        return None
    used = [row for row in table.apis if row[0].used or row[0].answered or row[0].rejected or row[0].release_has]
    of_topics = "Topic IDs", OF_TOPICS, sorted(table.topics, key=lambda row: WORST.index(row[1].mark))
    of_apis = "Versions by server", OF_APIS, sorted(used, key=lambda row: WORST.index(row[1].mark))
    return {"mark": table.mark, "tables": [of_topics, of_apis]}


def sequences(result: Verdict, attached: Attached) -> dict[str, Row]:
    """By finding its sequence diagram, of those that lead an entry."""
    names = sequence.names_of(attached.brokers, attached.statements)
    by_id = result.by_id
    leading = [entry.findings[0] for top in result.entries for entry, _ in lanes.flat(top)]
    drawn = {name: sequence.sequence(by_id[name], names, attached.exchanges.get(name, ())) for name in leading}
    return {name: found for name, found in drawn.items() if found is not None}


def explained(result: Verdict, explanations: Mapping[str, Mapping[str, str]]) -> dict[str, Row]:
    """Of the codes that findings have, in their order: name and parts."""
    names = {finding.code: finding.name for finding in result.findings}
    return {code: {"name": names[code], "parts": explanations[code]} for code in sorted(names) if code in explanations}


def ticket(result: Verdict) -> str:
    """The verdict as Markdown, as `--format markdown` has it, of the first findings; empty for an older result."""
    findings = result.findings
    if result.about is None or any(one.commands is None for one in findings):
        return ""
    first = [name for entry in result.entries for under, _ in lanes.flat(entry) for name in under.findings]
    by_id = result.by_id
    text = tickets.markdown(replace(result, findings=tuple(by_id[name] for name in first[:IN_TICKET])))
    left = len(findings) - IN_TICKET
    return text + (f"\n\nand {plural(left, 'more finding')} in the report" if left > 0 else "")


ERROR = r"errorCode: (?!0\b)-?\d+(?: [A-Z][A-Z_]+)?"
"""A field of a message that `decode` shows."""


def marked(lines: Sequence[str], finding: Finding) -> Markup:
    """A decoded message; errors in it, and the topic IDs of its finding, stand out."""
    decides = re.compile(f"({'|'.join([ERROR, *map(re.escape, finding.topic_ids)])})")
    parts = enumerate(decides.split("\n".join(lines)))
    return Markup().join(Markup("<mark>{}</mark>").format(part) if number % 2 else part for number, part in parts)


def environment(axis: Axis) -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("wirecheck.dashboards", "report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["limits"] = LIMITS
    made.filters |= {
        "clock": axis.clock,
        "written": rfc3339,
        "to_the_second": lambda time_ns: f"{rfc3339(time_ns)[:19]}Z",
        "hex": hex_id,
        "marked": marked,
        "remedy": remedy,
        "ranges": matrix.ranges,
        "file": lambda path: path.rpartition("/")[2],
        "plural": plural,
        "overflow": verdict.overflow,
        "cluster": verdict.named_cluster,
        "heading": verdict.heading,
        "size": verdict.size,
        "counted": lambda count, kind: verdict.counted(kind, count),
    }
    return made


def asset(name: str) -> Markup:
    """Style or script as it stands in the package: ours, hence not escaped."""
    return Markup(resources.files("wirecheck.dashboards.report").joinpath(name).read_text("utf-8"))  # noqa: S704 - our own file


def policy(style: str, script: str) -> str:
    """Content-Security-Policy: this style, this script, nothing else."""
    return (
        f"default-src 'none'; style-src '{digest(style)}'; script-src '{digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
