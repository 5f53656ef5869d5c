"""What a monitor makes of its result tables: the table of its cards, and its page, of the last hour, the last day, or
of all.

Time is the agents' capture time: the last hour is the one before what was judged last.
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from wirecheck.commands.screen import legible
from wirecheck.session.verdict_document import for_programs, write_cards
from wirecheck.wording import NS_PER_S

if TYPE_CHECKING:
    from wirecheck.story.seen import Lasting
    from wirecheck.story.verdict import Verdict
    from wirecheck.streaming.run.metrics_page import JudgedAgent
    from wirecheck.streaming.run.plan import Plan
    from wirecheck.streaming.store.run_result import Result

Seen = TypeVar("Seen", bound="Lasting")


def live_page(plan: "Plan", agents: "list[JudgedAgent]", name: str) -> str:
    """The page of a range. Raises LookupError where no batch is written yet."""
    from wirecheck.dashboards.axis import Traffic
    from wirecheck.dashboards.report.page import Attached, JudgedAgent, page
    from wirecheck.dashboards.verdict import hurt_clients
    from wirecheck.judge.checks.page import explanations
    from wirecheck.streaming.run.request_rows import request_rows
    from wirecheck.streaming.run.web_server import AGE, DAY, RANGES
    from wirecheck.streaming.store.minute_lanes import lanes_in
    from wirecheck.streaming.store.run_result import IN_RESULT, Result

    run = written_run(plan)
    found = Result.read(plan.out, run, IN_RESULT)
    since_ns, until_ns = ends(found, agents, RANGES[name][1])
    result = verdict_since(since_ns, found, plan)

    def since(every: Iterable[Seen]) -> tuple[Seen, ...]:
        return tuple(one for one in every if one.last_ns >= since_ns)

    agreed = found.agreement(result)
    agreed = replace(agreed, topics=[row for row in agreed.topics if row[0].last_ns >= since_ns])
    result = replace(result, topics=since(result.topics), clients=since(result.clients), harms=since(result.harms))
    attached: dict[str, Any] = {
        "requests": request_rows(found.totals()),
        "statements": since(found.statements()),
        "agreement": agreed if agreed.topics or agreed.apis else None,
        "agents": [JudgedAgent(one.cluster, one.name, one.judged_ns) for one in agents],
    }
    # Of months nothing is drawn: the tables by minute would be read, each time that the page is asked for.
    is_short = since_ns > 0 or ends(found, agents, RANGES[DAY][1])[0] == 0
    lanes = lanes_in(plan.out, run, hurt_clients(result), since_ns) if is_short else None
    if lanes is not None:
        attached["traffic"] = Traffic(lanes.first_ns, lanes.last_ns, lanes.payload_bytes)
        attached["courses"] = {kind: [one._asdict() for one in every] for kind, every in lanes.courses.items()}
    codes = [finding.code for finding in result.findings]
    ranges = [(one, text) for one, (text, _) in RANGES.items()]
    live = {"axis": {"since_ns": since_ns, "until_ns": until_ns}, "range": name, "ranges": ranges, "updated": AGE}
    return page(legible(result), Attached(**legible(attached), explanations=explanations(codes), live=live))


def live_cards(plan: "Plan") -> None:
    """Write the table of all cards, but not among Delta tables. Raises LookupError where no batch is written yet."""
    from wirecheck.streaming.store.result_folder import DELTA, kind_of
    from wirecheck.streaming.store.run_result import Result
    from wirecheck.streaming.store.storage import is_local

    if not is_local(plan.out) or kind_of(plan.out) == DELTA:
        return
    run = written_run(plan)
    write_cards(Path(plan.out), run, verdict_since(0, Result.read(plan.out, run), plan))


def written_run(plan: "Plan") -> str:
    """The monitor's run. Raises LookupError where no batch of it is written."""
    from wirecheck.streaming import checkpoint

    run = checkpoint.run_of(plan.checkpoint)
    if run is None or checkpoint.committed(plan.checkpoint) < 0:
        raise LookupError("no batch is written")
    return run


def verdict_since(since_ns: int, found: "Result", plan: "Plan") -> "Verdict":
    from wirecheck.story.choice import Choice

    frames, tables = ("" if "://" in place else shown(place) for place in (plan.frames, plan.out))
    inputs = (frames,) if frames else ()  # commands name folders of this machine
    tables_in = tables if inputs else ""
    result = found.verdict(Choice(since_ns=since_ns), inputs, tables_in=tables_in, principals=plan.principals)
    return for_programs(result, inputs, tables_in)


def shown(place: str) -> str:
    """A folder by a path that holds in every shell of this machine; empty where there is none."""
    return str(Path(place).resolve()) if place else ""


def ends(found: "Result", agents: "list[JudgedAgent]", seconds: float) -> tuple[int, int]:
    """When a range of so many seconds begins and ends; 0 where that is before all, or nothing was judged."""
    from wirecheck.streaming.store.run_result import SPANNED

    times = [row[end] for name in SPANNED for row in found.rows[name] for end in ("first_seen", "last_seen")]
    seen_ns = [time for time in times if time] + [agent.judged_ns for agent in agents]
    if not seen_ns:
        return 0, 0
    last_ns, length_s = max(seen_ns), (max(seen_ns) - min(seen_ns)) / NS_PER_S
    return 0 if length_s <= seconds else last_ns - round(seconds * NS_PER_S), last_ns
