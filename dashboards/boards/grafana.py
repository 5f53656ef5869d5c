"""Boards as Grafana's JSON, written by Grafana's own SDK.

Knows: the SDK's builders, and how a panel's shape becomes a visualisation. Refuses to know what is asked.
Rule: the JSON is committed and in step (`make docs`), so that nobody needs the SDK to use a board; uids never change.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.builders import bargauge, common, dashboard, prometheus, stat, table, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as kinds
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from wirecheck.dashboards.boards import client_versions, health, overview, topic_identity
from wirecheck.dashboards.boards.panel import Board, Panel, Query, Variable

BOARDS = (overview.BOARD, topic_identity.BOARD, client_versions.BOARD, health.BOARD)
FOLDER = Path(__file__).resolve().parent.parent / "grafana" / "wirecheck"
SOURCE = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
KIND_COLOURS = {"violation": "red", "anomaly": "orange", "information": "blue", "visibility": "purple"}
"""The same as in the report, wherever a series is a kind of finding."""


def documents() -> dict[Path, str]:
    """Every board's file with its text."""
    return {FOLDER / f"{board.uid}.json": text(board) for board in BOARDS}


def text(board: Board) -> str:
    made = json.loads(JSONEncoder(sort_keys=True).encode(built(board).build()))
    for one in made["templating"]["list"]:
        for stray in ("auto", "auto_min", "auto_count"):  # the SDK writes them on every variable; they are of intervals
            one.pop(stray, None)
    return json.dumps(made, indent=1) + "\n"


def built(board: Board) -> dashboard.Dashboard:
    made = (
        dashboard.Dashboard(board.title)
        .uid(board.uid)
        .description(board.question)
        .tags(["wirecheck", "kafka"])
        .readonly()
        .refresh("30s")
        .time(board.span, "now")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .link(
            dashboard.DashboardLink("wirecheck")
            .type(models.DashboardLinkType.DASHBOARDS)
            .tags(["wirecheck"])
            .as_dropdown(True)
            .include_vars(True)
            .keep_time(True)
        )
        .with_variable(dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"))
    )
    for one in board.variables:
        made.with_variable(variable(one))
    number = 0
    for row in board.rows:
        number += 1
        made.with_row(dashboard.Row(row.title).id(number))
        for panel in row.panels:
            number += 1
            made.with_panel(visualisation(panel).id(number))
    return made


def variable(one: Variable) -> dashboard.QueryVariable:
    return (
        dashboard.QueryVariable(one.name)
        .label(one.label)
        .datasource(SOURCE)
        .query({"query": one.query, "refId": one.name})
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(models.VariableOption(selected=True, text="All", value="$__all"))
    )


def visualisation(panel: Panel) -> Any:
    made: Any = SHAPES[panel.shape](panel)
    made.title(panel.title).description(panel.question).unit(panel.unit).datasource(SOURCE)
    made.span(panel.wide).height(panel.high).thresholds(steps(panel.steps))
    if panel.decimals is not None:
        made.decimals(panel.decimals)
    if panel.upto is not None:
        made.max(panel.upto).min(0)
    for name, query in zip("ABCDEFGH", panel.queries, strict=False):
        made.with_target(target(name, query, tabular=panel.shape == "table"))
    return made


def target(name: str, query: Query, *, tabular: bool) -> prometheus.Dataquery:
    made = prometheus.Dataquery().ref_id(name).datasource(SOURCE).expr(query.expr).legend_format(query.legend)
    if query.instant:
        made.instant()
    else:
        made.range()
    return made.format(PromQueryFormat.TABLE if tabular else PromQueryFormat.TIME_SERIES)


def steps(colours: Sequence[tuple[float, str]]) -> dashboard.ThresholdsConfig:
    base = [] if colours and colours[0][0] == 0 else [models.Threshold(value=None, color="green")]
    first = [models.Threshold(value=None, color=colours[0][1])] if colours and colours[0][0] == 0 else []
    rest: Iterable[tuple[float, str]] = colours[1:] if first else colours
    found = [*base, *first, *(models.Threshold(value=value, color=colour) for value, colour in rest)]
    return dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(found)


def lines(panel: Panel) -> timeseries.Panel:
    """Lines over time, by far the most common."""
    made = (
        timeseries.Panel()
        .fill_opacity(8)
        .line_width(2)
        .show_points(kinds.VisibilityMode.NEVER)
        .legend(
            common.VizLegendOptions()
            .display_mode(kinds.LegendDisplayMode.LIST)
            .placement(kinds.LegendPlacement.BOTTOM)
            .show_legend(True)
        )
        .tooltip(common.VizTooltipOptions().mode(kinds.TooltipDisplayMode.MULTI).sort(kinds.SortOrder.DESCENDING))
        .axis_soft_min(0)
    )
    for kind in panel.kinds:
        fixed = {"mode": "fixed", "fixedColor": KIND_COLOURS[kind]}
        named = f"/(^| ){kind}$/"  # "violation", and "TID002 violation"
        made.override_by_regexp(named, [models.DynamicConfigValue(id_val="color", value=fixed)])
    return made


def stacked(panel: Panel) -> timeseries.Panel:
    return lines(panel).fill_opacity(30).stacking(common.StackingConfig().mode(kinds.StackingMode.NORMAL).group("A"))


def bars_over_time(panel: Panel) -> timeseries.Panel:
    return lines(panel).draw_style(kinds.GraphDrawStyle.BARS).fill_opacity(60)


def number(_: Panel) -> stat.Panel:
    return (
        stat.Panel()
        .color_mode(kinds.BigValueColorMode.VALUE)
        .graph_mode(kinds.BigValueGraphMode.AREA)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .no_value("no data")
    )


def bars(_: Panel) -> bargauge.Panel:
    return (
        bargauge.Panel()
        .orientation(kinds.VizOrientation.HORIZONTAL)
        .display_mode(kinds.BarGaugeDisplayMode.BASIC)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .no_value("nothing open")
    )


def rows(_: Panel) -> table.Panel:
    return table.Panel()


SHAPES = {
    "lines": lines,
    "stacked": stacked,
    "bars-over-time": bars_over_time,
    "number": number,
    "bars": bars,
    "table": rows,
}
