"""Boards as Grafana's JSON, written by Grafana's own SDK.

Knows: the SDK's builders, and how a panel's shape becomes a visualisation. Refuses to know what is asked.
Rule: the JSON is committed and in step (`make docs`), so that nobody needs the SDK to use a board; uids never change.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.builders import (
    bargauge,
    common,
    dashboard,
    heatmap,
    prometheus,
    stat,
    statetimeline,
    statushistory,
    table,
    timeseries,
)
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as kinds
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models import heatmap as heat
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from tools.boards import client_versions, health, overview, topic_identity
from tools.boards.panel import Board, Event, Link, Panel, Query, Row, Variable

BOARDS = (overview.BOARD, topic_identity.BOARD, client_versions.BOARD, health.BOARD)
FOLDER = Path(__file__).resolve().parents[2] / "dashboards" / "grafana" / "wirecheck"
SOURCE = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
RUNBOOKS = "http://127.0.0.1:9108/runbooks"
"""Where a monitor serves them, until the variable of the dashboard says another place."""
KIND_COLOURS = {"violation": "red", "anomaly": "orange", "information": "blue", "visibility": "purple"}
"""The same as in the report, wherever a series is a kind of finding."""
SENTENCE_PIXELS, SINCE_PIXELS = 640, 130
"""A sentence of 25 words nearly fits; of equal columns each would show its first two."""


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
    if any(panel.runbook for row in board.rows for panel in row.panels):
        made.with_variable(dashboard.TextBoxVariable("runbooks").label("Runbooks at").default_value(RUNBOOKS))
    for event in board.events:
        made.annotation(annotation(event))
    number = 0
    for row in board.rows:
        number = with_row(made, row, number)
    return made


def with_row(made: dashboard.Dashboard, row: Row, number: int) -> int:
    """Its panels stand below it, or, of a folded one, in it. The last number given to a panel."""
    head = dashboard.Row(row.title).id(number + 1)
    panels = [visualisation(panel).id(number + 2 + place) for place, panel in enumerate(row.panels)]
    if row.folded:
        for panel in panels:
            head.with_panel(panel)
        made.with_row(head)
    else:
        made.with_row(head)
        for panel in panels:
            made.with_panel(panel)
    return number + 1 + len(panels)


def annotation(event: Event) -> dashboard.AnnotationQuery:
    return (
        dashboard.AnnotationQuery()
        .name(event.name)
        .datasource(SOURCE)
        .expr(event.expr)
        .title_format(event.title)
        .step("60s")
        .icon_color(event.colour)
        .enable(True)
    )


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
    if panel.links:
        made.data_links([link(one) for one in panel.links])
    if panel.runbook:
        made.links([link(Link("What to do", f"${{runbooks}}/{panel.runbook}.md"))])
    for name, query in zip("ABCDEFGH", panel.queries, strict=False):
        made.with_target(target(name, query, FORMATS.get(panel.shape, PromQueryFormat.TIME_SERIES)))
    return made


def link(one: Link) -> dashboard.DashboardLink:
    return dashboard.DashboardLink(one.title).type(models.DashboardLinkType.LINK).url(one.url)


FORMATS = {"table": PromQueryFormat.TABLE, "heatmap": PromQueryFormat.HEATMAP}


def target(name: str, query: Query, form: PromQueryFormat) -> prometheus.Dataquery:
    made = prometheus.Dataquery().ref_id(name).datasource(SOURCE).expr(query.expr).legend_format(query.legend)
    if query.instant:
        made.instant()
    else:
        made.range()
    return made.format(form)


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
            .display_mode(kinds.LegendDisplayMode.TABLE)
            .placement(kinds.LegendPlacement.BOTTOM)
            .show_legend(True)
            .calcs(["lastNotNull", "max"])
            .sort_by("Last *")
            .sort_desc(True)
        )
        .tooltip(common.VizTooltipOptions().mode(kinds.TooltipDisplayMode.MULTI).sort(kinds.SortOrder.DESCENDING))
        .axis_soft_min(0)
    )
    if panel.steps:
        dashed = common.GraphThresholdsStyleConfig().mode(kinds.GraphThresholdsStyleMode.DASHED)
        made.thresholds_style(dashed)
    coloured(made, panel)
    return made


def coloured(made: Any, panel: Panel) -> None:
    """Every kind of finding in its colour."""
    for kind in panel.kinds:
        fixed = {"mode": "fixed", "fixedColor": KIND_COLOURS[kind]}
        named = f"/(^| ){kind}$/"  # "violation", and "TID002 violation"
        made.override_by_regexp(named, [models.DynamicConfigValue(id_val="color", value=fixed)])


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


def rows(panel: Panel) -> table.Panel:
    made = table.Panel()
    if panel.columns:
        order = {name: place for place, name in enumerate(panel.columns)}
        made.with_transformation(
            models.DataTransformerConfig(id_val="filterFieldsByName", options={"include": {"names": [*panel.columns]}})
        )
        made.with_transformation(
            models.DataTransformerConfig(id_val="organize", options={"indexByName": order, "excludeByName": {}})
        )
    if "Value" in panel.columns:
        properties = {"displayName": "since", "unit": "dateTimeFromNow", "custom.width": SINCE_PIXELS}
        values = [models.DynamicConfigValue(id_val=name, value=value) for name, value in properties.items()]
        made.override_by_name("Value", values)
    if "sentence" in panel.columns:
        width = models.DynamicConfigValue(id_val="custom.width", value=SENTENCE_PIXELS)
        made.override_by_name("sentence", [width])
    return made


def hot(_: Panel) -> heatmap.Panel:
    """Buckets of a histogram over time, as Prometheus counts them."""
    return (
        heatmap.Panel()
        .calculate(False)
        .cell_gap(1)
        .color(heatmap.HeatmapColorOptions().mode(heat.HeatmapColorMode.SCHEME).scheme("Oranges").steps(32))
        .filter_values(heatmap.FilterValueRange().le(1e-9))
        .y_axis(heatmap.YAxisConfig().unit("s"))
        .show_legend()
        .rows_frame(heatmap.RowsHeatmapOptions().layout(kinds.HeatmapCellLayout.AUTO))
    )


def timeline(panel: Panel) -> statetimeline.Panel:
    """A line a series, coloured while it is there."""
    made = (
        statetimeline.Panel()
        .merge_values(True)
        .show_value(kinds.VisibilityMode.NEVER)
        .row_height(0.8)
        .legend(common.VizLegendOptions().show_legend(False).display_mode(kinds.LegendDisplayMode.LIST))
    )
    coloured(made, panel)
    return made


def history(_: Panel) -> statushistory.Panel:
    return (
        statushistory.Panel()
        .show_value(kinds.VisibilityMode.NEVER)
        .row_height(0.8)
        .color_scheme(dashboard.FieldColor().mode(models.FieldColorModeId.THRESHOLDS))
        .legend(common.VizLegendOptions().show_legend(False).display_mode(kinds.LegendDisplayMode.LIST))
    )


SHAPES = {
    "lines": lines,
    "stacked": stacked,
    "bars-over-time": bars_over_time,
    "number": number,
    "bars": bars,
    "table": rows,
    "heatmap": hot,
    "timeline": timeline,
    "history": history,
}
