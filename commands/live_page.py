"""The monitor's page: what its result tables hold now, of the last hour, the last day, or of all.

Time is the agents' capture time: the last hour is the one before what was judged last.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wirecheck.commands.screen import legible
from wirecheck.wording import NS_PER_S, TimeSpan, ns_of, utc

if TYPE_CHECKING:
    from wirecheck.streaming.run.metrics_page import JudgedAgent
    from wirecheck.streaming.run.plan import Plan
    from wirecheck.streaming.store.run_result import Result

Row = Mapping[str, Any]
IN_RANGE = ("topics", "clients")
"""Lists of a result whose rows leave the page when they were last seen before its range."""


def live_page(plan: "Plan", agents: "list[JudgedAgent]", name: str) -> str:
    """The page of a range. Raises LookupError where no batch is written yet."""
    from wirecheck.dashboards.report.page import Attached, page
    from wirecheck.judge.checks.page import explanations
    from wirecheck.story.choice import Choice
    from wirecheck.streaming import checkpoint
    from wirecheck.streaming.run.request_rows import request_rows
    from wirecheck.streaming.run.web_server import AGE, RANGES
    from wirecheck.streaming.store.run_result import Result

    run = checkpoint.run_of(plan.checkpoint)
    if run is None or checkpoint.committed(plan.checkpoint) < 0:
        raise LookupError("no batch is written")
    found = Result.read(plan.out, run)
    since_ns, until_ns = ends(found, agents, RANGES[name][1])
    result = with_commands(found, plan, Choice(since_ns=since_ns))
    result |= {listed: [row for row in result[listed] if is_since(row, since_ns)] for listed in IN_RANGE}
    result["harms"] = [harm for harm in result["harms"] if harm.last_ns >= since_ns]
    result |= {"agents": [{"cluster": a.cluster, "agent": a.name, "judged": moment(a.judged_ns)} for a in agents]}
    codes = [finding.code for finding in result["findings"]]
    statements = [row for row in found.statements() if is_since(row, since_ns)]
    attached = {"requests": request_rows(found.totals()), "statements": statements}
    ranges = [(one, text) for one, (text, _) in RANGES.items()]
    live = {"axis": {"since_ns": since_ns, "until_ns": until_ns}, "range": name, "ranges": ranges, "updated": AGE}
    return page(legible(result), Attached(**legible(attached), explanations=explanations(codes), live=live))


def with_commands(found: "Result", plan: "Plan", choice: Any) -> dict[str, Any]:
    """The result, with commands that name the monitor's own folders, where these are on this machine."""
    from wirecheck.dashboards.evidence_commands import every_command
    from wirecheck.story.reading_options import reading_options

    frames, tables = ("" if "://" in place else place for place in (plan.frames, plan.out))
    inputs = (shown(frames),) if frames else ()
    tables_in = shown(tables) if tables and inputs else ""
    result = found.verdict(choice, inputs, tables_in=tables_in, principals=plan.principals)
    read_with = reading_options((), result["dialects"])
    findings = [
        replace(one, commands=tuple(every_command(one, inputs, read_with, tables_in))) for one in result["findings"]
    ]
    return {**result, "findings": findings}


def is_since(row: Row, since_ns: int) -> bool:
    return row["last_seen"] is None or ns_of(row["last_seen"]) >= since_ns


def shown(place: str) -> str:
    """A folder by a path that holds in every shell of this machine."""
    return str(Path(place).resolve())


def ends(found: "Result", agents: "list[JudgedAgent]", seconds: float) -> tuple[int, int]:
    """When a range of so many seconds begins and ends; 0 where that is before all, or nothing was judged."""
    from wirecheck.streaming.store.run_result import SPANNED

    times = [row[end] for name in SPANNED for row in found.rows[name] for end in ("first_seen", "last_seen")]
    seen_ns = [TimeSpan.of(time).ns for time in times if time] + [agent.judged_ns for agent in agents]
    if not seen_ns:
        return 0, 0
    last_ns, length_s = max(seen_ns), (max(seen_ns) - min(seen_ns)) / NS_PER_S
    return 0 if length_s <= seconds else last_ns - round(seconds * NS_PER_S), last_ns


def moment(ns: int) -> str:
    """As the tables' times are printed, to the second."""
    return utc(ns).strftime("%Y-%m-%dT%H:%M:%SZ")
