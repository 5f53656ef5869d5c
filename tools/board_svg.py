"""A board's JSON and the answers to its queries as one SVG, by the JSON's grid, units and thresholds.

Knows the overview's kinds of panels, and Grafana's grid of 24 columns. Refuses to know where answers come from.
Rule: the picture itself says that Grafana did not draw it; a panel without an answer says so, too.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from itertools import accumulate, pairwise
from typing import Any

Document = dict[str, Any]


@dataclass(frozen=True)
class Series:
    labels: Mapping[str, str]
    name: str
    values: Sequence[tuple[float, float]]
    """Seconds since 1970, value."""


Answers = Mapping[int, Sequence[Series]]
"""By the panel's id."""


@dataclass(frozen=True)
class Place:
    """Where a panel's content may be, in pixels, and the time that is shown, in seconds."""

    x: float
    y: float
    width: float
    height: float
    from_s: float
    to_s: float

    def at(self, at_s: float) -> float:
        return self.x + (at_s - self.from_s) / (self.to_s - self.from_s) * self.width


WIDTH, COLUMNS, UNIT, GAP = 1280, 24, 34, 6
"""Pixels: the picture's width, a row of the grid (Grafana's is 30 and a gap of 8), between two panels."""
COLOURS = {"green": "#73bf69", "red": "#f2495c", "orange": "#ff9830", "blue": "#5794f2", "purple": "#b877d9"}
PALETTE = ("#73bf69", "#fade2a", "#5794f2", "#ff9830", "#f2495c", "#b877d9", "#705da0", "#37872d", "#8ab8ff", "#e0b400")
STYLE = """
text { font: 12px Inter, Helvetica, Arial, sans-serif; fill: #24292e }
.back { fill: #f4f5f5 } .panel { fill: #fff; stroke: #dcdee0 } .quiet { fill: #6b7078 } .rule { stroke: #dcdee0 }
.title { font-weight: 600 } .head { font-size: 15px; font-weight: 600 } .big { font-size: 38px; font-weight: 600 }
@media (prefers-color-scheme: dark) {
text { fill: #ccccdc } .back { fill: #111217 } .panel { fill: #181b1f; stroke: #25272c } .quiet { fill: #8e8f99 }
.rule { stroke: #2c2e34 } }
"""
LONG_S = ((86400, "days"), (3600, "hours"), (60, "min"))
VALUE = "Value"
"""The column of a table that is no label: milliseconds since 1970."""
TRUTH = "Drawn from the board's JSON and a real Prometheus's answers by tools/board_picture.py, not by Grafana."


def shown(board: Document) -> list[Document]:
    """Its panels, without rows and what is folded in them."""
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def rows(board: Document) -> Iterator[tuple[Document, int]]:
    """Its panels, each with its row of the grid: Grafana moves up what is below a folded row."""
    moved, folded = 0, None
    for panel in board["panels"]:
        at = panel["gridPos"]["y"]
        moved += 0 if folded is None else at - folded - 1
        folded = at if panel.get("collapsed") else None
        yield panel, at - moved


def drawn(board: Document, answers: Answers, from_s: float, to_s: float) -> str:
    high = max(at + one["gridPos"]["h"] for one, at in rows(board)) * UNIT + 78
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {high}" width="{WIDTH}" height="{high}">',
        f'<style>{STYLE}</style><rect class="back" width="{WIDTH}" height="{high}"/>',
        words(14, 30, board["title"], "head"),
        words(WIDTH - 14, 30, f"{clock(from_s)} to {clock(to_s)} UTC", "quiet", anchor="end"),
    ]
    for panel, at in rows(board):
        grid = panel["gridPos"]
        x, y = grid["x"] / COLUMNS * (WIDTH - 16) + 8, at * UNIT + 46
        if panel["type"] == "row":
            parts.append(words(x + 6, y + 22, f"{'▸' if panel['collapsed'] else '▾'}  {panel['title']}", "title"))
            continue
        wide, tall = grid["w"] / COLUMNS * (WIDTH - 16) - GAP, grid["h"] * UNIT - GAP
        parts.append(f'<rect class="panel" x="{x:.0f}" y="{y:.0f}" width="{wide:.0f}" height="{tall:.0f}" rx="3"/>')
        parts.append(words(x + 10, y + 20, panel["title"], "title"))
        place = Place(x + 10, y + 32, wide - 20, tall - 42, from_s, to_s)
        parts += PANELS[panel["type"]](panel, place, answers.get(panel["id"], ())) or (nothing(panel, place),)
    parts.append(words(14, high - 12, TRUTH, "quiet"))
    return "\n".join([*parts, "</svg>\n"])


def stat(panel: Document, place: Place, found: Sequence[Series]) -> list[str]:
    """The last value in its threshold's colour, over its course."""
    if not found:
        return []
    last = found[0].values[-1][1]
    colour = by_threshold(panel, last)
    ceiling = max(1e-9, *(value for _, value in found[0].values))
    low = place.y + place.height
    top = [(place.at(at_s), low - value / ceiling * place.height * 0.4) for at_s, value in found[0].values]
    area = [(top[0][0], low), *top, (top[-1][0], low)]
    return [
        f'<polygon points="{points(area)}" fill="{colour}" opacity="0.2"/>',
        f'<polyline points="{points(top)}" fill="none" stroke="{colour}"/>',
        words(
            place.x + place.width / 2, place.y + place.height / 2 + 4, said(panel, last), "big", colour, anchor="middle"
        ),
    ]


def table(panel: Document, place: Place, found: Sequence[Series]) -> list[str]:
    organised = next(one["options"] for one in panel["transformations"] if one["id"] == "organize")
    columns = sorted(organised["indexByName"], key=organised["indexByName"].__getitem__)
    room = max(1, int(place.height // 22) - 1)
    edges = column_edges(panel, place, columns)
    places = [*zip(columns, edges, edges[1:], strict=False)]
    names = overridden(panel, "displayName")
    parts = [words(left, place.y + 14, names.get(name, name), "title") for name, left, _ in places]
    for line, one in enumerate(found[:room], start=1):
        y = place.y + 14 + line * 22
        parts.append(f'<line class="rule" x1="{place.x}" x2="{place.x + place.width}" y1="{y - 16}" y2="{y - 16}"/>')
        for name, left, right in places:
            value = ago(place.to_s - one.values[-1][1] / 1000) if name == VALUE else one.labels.get(name, "")
            parts.append(words(left, y, value, fits=right - left))
    if len(found) > room:
        parts[0] += words(place.x + place.width, place.y - 12, f"{len(found)} rows, scrolls", "quiet", anchor="end")
    return parts if found else []


def column_edges(panel: Document, place: Place, columns: Sequence[str]) -> list[float]:
    """Where columns begin, and where the last ends: overrides set widths, the others share what is left equally."""
    fixed = overridden(panel, "custom.width")
    others = (place.width - sum(fixed.values())) / max(1, len(columns) - len(fixed))
    return [*accumulate((fixed.get(name, others) for name in columns), initial=place.x)]


def overridden(panel: Document, name: str) -> dict[str, Any]:
    """What a panel's overrides set this property to, by column."""
    return {
        one["matcher"]["options"]: each["value"]
        for one in panel["fieldConfig"]["overrides"]
        for each in one["properties"]
        if each["id"] == name
    }


def ago(seconds: float) -> str:
    """As Grafana shows `dateTimeFromNow`."""
    least, unit = next((one for one in LONG_S if seconds >= one[0]), (1, "s"))
    return f"{seconds / least:.0f} {unit} ago"


def state_timeline(panel: Document, place: Place, found: Sequence[Series]) -> list[str]:
    """A line a series, coloured while it is there."""
    names = 210.0
    inner = Place(place.x + names, place.y, place.width - names, place.height - 18, place.from_s, place.to_s)
    tall = inner.height / max(1, len(found))
    parts = axis_of_time(inner) if found else []
    for number, one in enumerate(found):
        y = inner.y + tall * number
        parts.append(words(inner.x - 8, y + tall / 2 + 4, one.name, fits=names, anchor="end"))
        for begin_s, end_s in stretches(one):
            x, wide = inner.at(begin_s), max(2.0, inner.at(end_s) - inner.at(begin_s))
            colour = coloured(panel, one, number)
            size = f'y="{y + tall * 0.1:.1f}" width="{wide:.1f}" height="{tall * 0.8:.1f}"'
            parts.append(f'<rect x="{x:.1f}" {size} fill="{colour}" opacity="0.75"/>')
    return parts


def timeseries(panel: Document, place: Place, found: Sequence[Series]) -> list[str]:
    """Lines, or areas upon each other; below them the legend with the last value."""
    if not found:
        return []
    custom = panel["fieldConfig"]["defaults"]["custom"]
    upon = custom.get("stacking", {}).get("mode") == "normal"
    legend = min(len(found), 4)
    inner = Place(place.x + 34, place.y, place.width - 34, place.height - 22 - 17 * legend, place.from_s, place.to_s)
    tops = stacked(found) if upon else [dict(one.values) for one in found]
    ceiling = max([value for top in tops for value in top.values()] + [1.0]) * 1.1
    parts = [*axis_of_time(inner), *axis_of_values(panel, inner, ceiling)]
    low = inner.y + inner.height
    for number, one in reversed(list(enumerate(found))):
        colour = coloured(panel, one, number)
        for stretch in unbroken(sorted(tops[number].items()), one):
            line = [(inner.at(at_s), low - value / ceiling * inner.height) for at_s, value in stretch]
            filled = points([(line[0][0], low), *line, (line[-1][0], low)])
            parts.append(f'<polygon points="{filled}" fill="{colour}" opacity="{custom["fillOpacity"] / 100}"/>')
            parts.append(f'<polyline points="{points(line)}" fill="none" stroke="{colour}" stroke-width="2"/>')
    by_last = sorted(enumerate(found), key=lambda pair: -pair[1].values[-1][1])
    for line_number, (number, one) in enumerate(by_last[:legend]):
        y = place.y + place.height - 17 * (legend - line_number) + 15
        parts.append(f'<rect x="{place.x}" y="{y - 6}" width="14" height="4" fill="{coloured(panel, one, number)}"/>')
        parts.append(words(place.x + 20, y, one.name, fits=place.width - 120))
        summary = f"last {said(panel, one.values[-1][1])}, max {said(panel, max(v for _, v in one.values))}"
        parts.append(words(place.x + place.width, y, summary, "quiet", anchor="end"))
    if len(found) > legend:
        more = f"{len(found)} series, legend scrolls"
        parts.append(words(place.x + place.width, place.y - 12, more, "quiet", anchor="end"))
    return parts


def bargauge(panel: Document, place: Place, found: Sequence[Series]) -> list[str]:
    greatest = max((one.values[-1][1] for one in found), default=1.0) or 1.0
    tall = min(30.0, place.height / max(1, len(found)))
    names = 200.0
    parts = []
    for number, one in enumerate(found):
        last, y = one.values[-1][1], place.y + tall * number
        wide = last / greatest * (place.width - names - 60)
        colour = by_threshold(panel, last)
        size = f'y="{y + tall * 0.1:.1f}" width="{wide:.1f}" height="{tall * 0.8:.1f}"'
        parts.append(words(place.x + names - 8, y + tall / 2 + 4, one.name, fits=names, anchor="end"))
        parts.append(f'<rect x="{place.x + names}" {size} fill="{colour}" opacity="0.7"/>')
        parts.append(words(place.x + names + wide + 8, y + tall / 2 + 4, said(panel, last), "title"))
    return parts


PANELS: dict[str, Callable[[Document, Place, Sequence[Series]], list[str]]] = {
    "stat": stat,
    "table": table,
    "state-timeline": state_timeline,
    "timeseries": timeseries,
    "bargauge": bargauge,
}


def nothing(panel: Document, place: Place) -> str:
    """What Grafana says in a panel without an answer."""
    text = panel["fieldConfig"]["defaults"].get("noValue", "No data")
    return words(place.x + place.width / 2, place.y + place.height / 2, text, "quiet", anchor="middle")


def named(legend: str, labels: Mapping[str, str]) -> str:
    """A legend's {{label}} filled in, as Grafana does."""
    return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda found: labels.get(found[1], ""), legend).strip()


def by_threshold(panel: Document, value: float) -> str:
    steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
    return COLOURS[[one["color"] for one in steps if one["value"] is None or value >= one["value"]][-1]]


def coloured(panel: Document, one: Series, number: int) -> str:
    """Its override's colour, or the palette's next."""
    for override in panel["fieldConfig"]["overrides"]:
        if re.search(override["matcher"]["options"].strip("/"), one.name):
            return COLOURS[override["properties"][0]["value"]["fixedColor"]]
    return PALETTE[number % len(PALETTE)]


def said(panel: Document, value: float) -> str:
    """A value in the unit of its panel."""
    unit, decimals = map(panel["fieldConfig"]["defaults"].get, ("unit", "decimals"))
    if unit == "percentunit":
        return f"{value * 100:.{2 if decimals is None else decimals}f}%"
    for each_s, name in LONG_S if unit == "s" else ():
        if value >= each_s:
            return f"{value / each_s:.{1 if decimals is None else decimals}f} {name}"
    text = f"{value:.{2 if decimals is None else decimals}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) + (" s" if unit == "s" else "")


def stretches(one: Series) -> Iterable[tuple[float, float]]:
    """From when to when it was there, without a hole."""
    for stretch in unbroken(list(one.values), one):
        yield stretch[0][0], stretch[-1][0]


def unbroken(values: list[tuple[float, float]], one: Series) -> list[list[tuple[float, float]]]:
    """Cut where the series has no sample at its own shortest distance."""
    own = {at_s for at_s, _ in one.values}
    step = min((later - sooner for sooner, later in pairwise(sorted(own))), default=0)
    found: list[list[tuple[float, float]]] = []
    for at_s, value in values:
        if at_s not in own:
            continue
        if not found or at_s - found[-1][-1][0] > step * 1.5:
            found.append([])
        found[-1].append((at_s, value))
    return found


def stacked(found: Sequence[Series]) -> list[dict[float, float]]:
    """The upper edge of each: its value upon those before it."""
    below: dict[float, float] = {}
    tops = []
    for one in found:
        top = {at_s: value + below.get(at_s, 0.0) for at_s, value in one.values}
        below = below | top
        tops.append(top)
    return tops


def axis_of_time(place: Place) -> list[str]:
    every_s = next(one for one in (60, 120, 300, 600, 3600) if (place.to_s - place.from_s) / one <= place.width / 90)
    parts, low = [], place.y + place.height
    at_s = (place.from_s // every_s + 1) * every_s
    while at_s < place.to_s:
        x = place.at(at_s)
        parts.append(f'<line class="rule" x1="{x:.1f}" x2="{x:.1f}" y1="{place.y:.1f}" y2="{low:.1f}"/>')
        parts.append(words(x, low + 14, clock(at_s)[:5], "quiet", anchor="middle"))
        at_s += every_s
    return parts


def axis_of_values(panel: Document, place: Place, ceiling: float) -> list[str]:
    parts, low = [], place.y + place.height
    for share in (0.0, 1 / 3, 2 / 3):
        y = low - share * place.height
        parts.append(f'<line class="rule" x1="{place.x}" x2="{place.x + place.width}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(words(place.x - 6, y + 4, said(panel, round(ceiling * share, 1)), "quiet", anchor="end"))
    return parts


def clock(at_s: float) -> str:
    return f"{datetime.fromtimestamp(at_s, UTC):%H:%M:%S}"


def points(line: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in line)


def words(
    x: float, y: float, text: str, kind: str = "", colour: str = "", *, anchor: str = "start", fits: float = 0
) -> str:
    room = int(fits / 6.6) if fits else len(text)
    cut = text if len(text) <= room else text[: room - 1] + "…"
    style = f' style="fill: {colour}"' if colour else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}"{style}>{escape(cut)}</text>'
