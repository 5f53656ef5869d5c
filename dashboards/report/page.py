"""The report: a replay's result as one page that needs no network.

Knows: jinja2, the template and its style and script, and that all three are one file in the end. Refuses to know
Spark, packets and how a finding was made: it reads the replay's JSON object and, if given, the coverage of each
connection.
Rule: every text passes jinja's escaping; style and script are allowed by their hash, and nothing else runs or loads.
"""

import base64
import hashlib
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from wirecheck.dashboards import verdict
from wirecheck.dashboards.remedies import remedy
from wirecheck.dashboards.report import coverage_tiles, matrix, timeline
from wirecheck.dashboards.topic_id import hex_id

Row = Mapping[str, Any]
CLIENTS_SHOWN, TOPICS_SHOWN = 1000, 2000
OPEN_EVIDENCE = 8
"""As many findings show their evidence at once; the others on request."""
SIDES_SHOWN = 40


def page(result: Row, connections: Iterable[Row] = ()) -> str:
    """The whole page as text. `connections`: {"connection": "ip:port>ip:port", "protocol", measure: count}."""
    counted = list(connections)
    axis = timeline.axis_of(result)
    told = {finding["id"]: finding for finding in result["findings"]}
    style, script = asset("page.css"), asset("page.js")
    return (
        environment(axis)
        .get_template("page.html.j2")
        .render(
            **{
                "others": [],
                "engine": "",
                "not_listed": 0,
                "agents": [],
                **result,
                "verdict": verdict.sentence(result),
            },
            style=style,
            script=script,
            policy=policy(style, script),
            mood=verdict.mood(result),
            told=told,
            counts=verdict.by_kind(result["findings"]),
            tallied=verdict.tally_sentence(result),
            tiles=coverage_tiles.tiles(result["coverage"]),
            axis=axis,
            timeline=timeline.rows(result, axis),
            names=len({(topic["cluster"], topic["name"]) for topic in result["topics"]}),
            matrix=matrix.matrix(result),
            endpoints=coverage_tiles.endpoints(counted),
            incomplete=coverage_tiles.incomplete(counted),
            limits={
                "clients": CLIENTS_SHOWN,
                "topics": TOPICS_SHOWN,
                "connections": coverage_tiles.CONNECTIONS_SHOWN,
                "sides": SIDES_SHOWN,
                "open": OPEN_EVIDENCE,
            },
        )
    )


def environment(axis: timeline.Axis) -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("wirecheck.dashboards", "report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "clock": axis.clock,
        "hex": hex_id,
        "remedy": remedy,
        "ranges": matrix.ranges,
        "file": lambda path: path.rpartition("/")[2],
        "plural": verdict.plural,
        "beyond": verdict.beyond,
        "cluster": verdict.named_cluster,
        "heading": verdict.heading,
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
