"""A replay's result as lines for a person at a terminal.

The first screen is a card for each cause, worst harm first, and one line about what they rest on, with what was not
seen; everything else needs `-v`. Nothing is shown that is not in the JSON object of the replay or known of its check,
and everything a line claims can be looked up.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table
from rich.text import Text

from wirecheck.colours import AMBER, GREEN, KIND_STYLES, PURPLE, RED, shade
from wirecheck.dashboards.axis import Axis, axis_of
from wirecheck.dashboards.evidence_commands import commands
from wirecheck.dashboards.terminal_tables import put
from wirecheck.dashboards.verdict import (
    ShownCard,
    besides,
    blamed,
    by_kind,
    clusters_seen,
    counted,
    counted_once,
    cut_messages,
    first_cards,
    heading,
    mood,
    named_cluster,
    not_compared,
    not_read,
    overflow,
    sentence,
    shown_cards,
)
from wirecheck.judge.checks.listed_checks import LINES
from wirecheck.judge.checks.page import remedy
from wirecheck.story.entries import BLAMED, KINDS
from wirecheck.story.marks import MARK_SIGNS, marks_of
from wirecheck.story.reading_options import reading_options
from wirecheck.story.seen import Cluster, Coverage, Topic
from wirecheck.story.verdict import CardEntry, Entry, Finding, Side, Verdict
from wirecheck.wording import during, hex_id, plural

SIDES_SHOWN = 4
NAMES_SHOWN = 8
"""So many topics or clients of an entry are named, and so many rows of topics listed where there are more."""
WIDE = 110  # columns from which both forms of an id fit on one line
READ_ON = (
    "what a code means      wirecheck explain CODE\n"
    "see the messages       wirecheck decode INPUT --connection IP:PORT --api API\n"
    "frames, for a ticket   wirecheck evidence ID INPUT -o FILE.pcapng"
)

COMMANDS = ("wirecheck ", "tshark ")
NEXT = "  Next  "


@dataclass
class Shown:
    """What all entries of one result share while they are listed."""

    axis: Axis
    inputs: Sequence[str]
    """What was judged, where that is known; it stands in the head."""
    options: str
    """How it was read (`reading_options`)."""
    several: bool
    """Whether the evidence comes from more than one capture."""
    advised: set[str] = field(default_factory=set)
    """Advice that was printed, once for each check."""


def show(result: Verdict, console: Console, *, whole: bool = True) -> None:
    """Print a result: its first cards, or as a whole all of them, coverage, topics, clusters and findings."""
    show_first_screen(result, console, every=whole)
    if whole:
        console.print()
        show_details(result, console)


def show_details(result: Verdict, console: Console) -> None:
    axis = axis_of(result)
    hang(coverage_text(result.coverage), console, 10)
    if result.clusters:
        console.print(Text("Captured  ", style="bold").append(axis.span(), style="not bold"))
    for line in head_lines(result):
        hang(line, console, 10)
    for error in result.coverage.input_errors:
        console.print(Text(f"  not all was readable: {error}", style=shade(AMBER)))
    for cluster in result.clusters:
        hang(cluster_text(cluster, result.clusters), console, 10)
    if result.coverage.has_kafka:
        show_findings(result, axis, console)


def show_findings(result: Verdict, axis: Axis, console: Console) -> None:
    """Topics, and what was found."""
    console.print()
    if result.topics:
        many = len(result.clusters) > 1
        shown = worth_a_row(result)
        put(topics_table(shown, axis, many=many, wide=console.width >= WIDE), console)
        if left := len(result.topics) - len(shown):
            console.print(Text(f"and {left:,} more: wirecheck topics INPUT", style="dim"))
    for others in result.others:
        console.print(Text(f"and {overflow(others)}", style=shade(PURPLE)))
    console.print(tally_text(result.findings, result.coverage, result.not_listed or 0))
    list_entries(result, result.entries, axis, console)
    if result.findings:
        console.print(Text(f"\n{READ_ON}", style="dim"), soft_wrap=True)


def list_entries(result: Verdict, entries: Iterable[Entry], axis: Axis, console: Console) -> None:
    """What was found, each with its evidence and what is to be done about it."""
    by_id = result.by_id
    sources = {side.frame.source for one in by_id.values() for side in one.sides if side.frame}
    options = reading_options(result.keylogs, result.dialects)
    shown = Shown(axis, result.inputs, options, several=len(sources) > 1)
    for entry in entries:
        console.print()
        for line in entry_lines(entry, by_id, shown):
            hang(line, console)


def hang(line: Text, console: Console, indent: int | None = None, *, whole: bool = False) -> None:
    """Print a line; on a terminal too narrow for it words go on below, indented. Commands stay whole, to be copied."""
    text = line.plain
    lead = len(text) - len(text.lstrip())
    if not console.is_terminal or len(text) <= console.width or whole or text.lstrip().startswith(COMMANDS):
        console.print(line, soft_wrap=True)
        return
    further = indent if indent is not None else lead + (len(NEXT) - 2 if text[lead:].startswith(NEXT.strip()) else 2)
    first, *rest = line[lead:].wrap(console, max(console.width - lead, 20))
    console.print(Text(" " * lead).append(first), soft_wrap=True)
    if rest:
        left = line[lead:][len(first.plain) :]
        left = left[len(left.plain) - len(left.plain.lstrip()) :]
        for part in left.wrap(console, max(console.width - further, 20)):
            console.print(Text(" " * further).append(part), soft_wrap=True)


def head_lines(result: Verdict) -> Iterator[Text]:
    """What was judged, by which version, with which grace."""
    if about := result.about:
        yield Text("Input     ", style="bold").append(", ".join(about.inputs), style="not bold")
        grace = f"{about.grace_s.brokers} s for brokers, {about.grace_s.clients} s for clients"
        yield Text("Version   ", style="bold").append(f"{about.wirecheck}; grace {grace}", style="not bold")


def coverage_text(coverage: Coverage) -> Text:
    """One line: how much of the traffic the verdict rests on. It comes before any verdict."""
    text = Text("Coverage  ", style="bold")
    text.append(
        f"{plural(coverage.frames, 'frame')}, {plural(coverage.connections, 'connection')}, "
        f"{plural(coverage.messages, 'message')}; "
        f"decoded {coverage.decoded_messages:,} ({coverage.share})",
        style="not bold",
    )
    for words in [*not_read(coverage), *not_compared(coverage)]:
        text.append(f", {words}", style=f"not bold {shade(PURPLE)}")
    if copies := counted_once(coverage):
        text.append(f"; {copies}", style="not bold")
    return text


def cluster_text(cluster: Cluster, clusters: Iterable[Cluster]) -> Text:
    endpoints = cluster.endpoints
    shown = ", ".join(endpoints[:6])
    more = f" and {len(endpoints) - 6} more" if len(endpoints) > 6 else ""
    text = Text("Cluster   ", style="bold")
    text.append(f"{heading(cluster, clusters)} [{cluster.label}]  {shown}{more}", style="not bold")
    return text


def topics_table(topics: Iterable[Topic], axis: Axis, *, many: bool, wide: bool) -> Table:
    """One row per id, so that a name's earlier ids stand above the current one."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in [*(["cluster"] if many else []), "topic", "topic ID", "state", "first seen"]:
        table.add_column(column, no_wrap=column in {"topic ID", "state", "first seen"}, overflow="fold")
    for topic in topics:
        both = (topic.topic_id or "(no ID)", hex_id(topic.topic_id))
        cells = [named_cluster(topic.cluster)] if many else []
        cells += [topic.name or "(name unknown)", ("  " if wide else "\n").join(both).strip()]
        cells += [topic.state, clock(topic.first_ns, axis) if wide else to_the_second(topic.first_ns, axis)]
        table.add_row(*map(Text, cells), style=None if topic.state == "current" else "dim")
    return table


def to_the_second(time_ns: int, axis: Axis) -> str:
    """Where 80 columns hold a name, an id and no milliseconds; evidence has them."""
    return clock(time_ns, axis).partition(".")[0] + "Z"


def tally_text(findings: Iterable[Finding], coverage: Coverage, not_listed: int = 0) -> Text:
    counts = by_kind(findings)
    text = Text("\nFindings  ", style="bold")
    if not any(counts.values()) and not coverage.messages:
        return text.append("none: no Kafka message was read", style=f"not bold {shade(PURPLE)}")
    if not any(counts.values()) and not not_listed:
        return text.append("none", style=f"not bold {shade(GREEN)}")
    for kind in KINDS:
        if counts[kind]:
            text.append(f"{counted(kind, counts[kind])}  ", style=KIND_STYLES[kind])
    if not_listed:
        text.append(f"{not_listed:,} not listed, by what was asked for", style=f"not bold {shade(PURPLE)}")
    return text


def worth_a_row(result: Verdict) -> list[Topic]:
    """All topics, or of many those that findings are about, and as many as are read at a glance."""
    topics = list(result.topics)
    if len(topics) <= NAMES_SHOWN:
        return topics
    named = [name for entry in result.entries for name in entry.topics]
    first = sorted(topics, key=lambda row: named.index(row.name) if row.name in named else len(named))
    kept = {id(row) for row in first[:NAMES_SHOWN]}
    return [row for row in topics if id(row) in kept]


def entry_lines(entry: Entry, by_id: Mapping[str, Finding], shown: Shown) -> Iterator[Text]:
    """An entry with its evidence, what is to be done about it, and indented what follows from it."""
    yield from finding_lines(entry, by_id, shown.axis)
    yield from evidence_lines(by_id[entry.findings[0]], shown)
    yield from next_lines(entry, shown.advised)
    for under in entry.consequences:
        for line in (*finding_lines(under, by_id, shown.axis), *next_lines(under, shown.advised)):
            yield Text("    ").append(line)


def next_lines(entry: Entry, advised: set[str]) -> Iterator[Text]:
    """Once for each check; of what ends with its cause, nothing."""
    advice = remedy(entry.code)
    if advice and entry.own_next and advice not in advised:
        advised.add(advice)
        yield Text(NEXT, style="bold").append(advice, style="not bold")


def finding_lines(entry: Entry, by_id: Mapping[str, Finding], axis: Axis) -> Iterator[Text]:
    """What an entry says, and of whom else it says the same."""
    finding = by_id[entry.findings[0]]
    head = Text().append(f"{entry.code} {entry.name}", style=KIND_STYLES[entry.kind])  # only this has a colour
    seen = sum(by_id[name].count for name in entry.findings)
    head.append(f"  {entry.kind}  x{seen:,}  {clock(finding.first_ns, axis)}")
    yield head.append(f"  {finding.id}")
    yield Text("  " + entry.sentence, style="bold" if entry.consequences else "")
    if entry.consequences:
        yield Text("  " + finding.summary)
    for words in also(entry):
        yield Text("  " + words)
    if finding.possible_causes:
        yield Text(f"  May follow from {', '.join(named(by_id, finding.possible_causes))}; that is not certain.")
    if entry.follows_from:
        yield Text(f"  Follows from {entry.follows_from}")


def evidence_lines(finding: Finding, shown: Shown) -> Iterator[Text]:
    if finding.kind == "information":
        return
    sides = finding.sides[:SIDES_SHOWN]
    for side in sides:
        yield Text("    " + side_text(side, shown), style="dim")
    if len(finding.sides) > SIDES_SHOWN:
        yield Text(f"    and {len(finding.sides) - SIDES_SHOWN} more (--format json)", style="dim")
    if finding.kind in BLAMED:
        for command in commands(sides, shown.inputs, shown.options):
            yield Text(f"    {command}", style="dim")


def also(entry: Entry) -> Iterator[str]:
    """The topics, clients and brokers of an entry that stands for several findings."""
    brokers = tuple(map(str, entry.brokers))
    for what, names in (("topics", entry.topics), ("clients", entry.client_ids), ("brokers", brokers)):
        if entry.count > 1 and len(names) > 1:
            left = len(names) - NAMES_SHOWN
            shown = ", ".join(name or "(no client ID)" for name in names[:NAMES_SHOWN])
            yield f"{len(names):,} {what}: {shown}{f' and {left:,} more (--format json)' if left > 0 else ''}"


def named(by_id: Mapping[str, Finding], ids: Iterable[str]) -> Iterator[str]:
    for name in ids:
        yield f"{by_id[name].code} {name}" if name in by_id else name


def side_text(side: Side, shown: Shown) -> str:
    """A capture that is the only one stands in the head, and not again in every line."""
    where = ""
    if side.frame and side.frame.first:
        where = f"frame {side.frame.first}{f' of {side.frame.source}' if shown.several or not shown.inputs else ''}"
    api = f"{side.api} v{side.version}" if side.api else ""
    return "  ".join(filter(None, (clock(side.time_ns, shown.axis), side.claim, side.connection, api, where)))


def clock(time_ns: int, axis: Axis) -> str:
    """The time of day with milliseconds, its date where they differ."""
    return f"{axis.clock(time_ns)}Z"


INDENT = 12
LABELS = frozenset(
    {
        "expected",
        "note",
        "cluster",
        "cause",
        "impact",
        "before",
        "since",
        "failing",
        "fix",
        "look",
        "evidence",
        "not seen",
        "unknown",
        "not read",
        "nat",
        *LINES.values(),
    }
)
"""Of lines that go on below their text; the others go on at the margin."""
MARKS = {
    "violation": (MARK_SIGNS["violation"], shade(RED, bold=True)),
    "anomaly": (MARK_SIGNS["anomaly"], shade(AMBER, bold=True)),
    "visibility": (MARK_SIGNS["visibility"], shade(PURPLE, bold=True)),
    "clear": (MARK_SIGNS["clear"], shade(GREEN, bold=True)),
}


def first_screen(result: Verdict, *, every: bool = False) -> Iterator[Text]:
    """Lines in their order; those that begin with a label go on below it. `every`: with the cards of all causes."""
    cards = first_cards(result, every=every)
    if result.coverage.messages and not result.not_listed:
        yield from mark_lines(result)
    if cards:
        yield Text("")
    elif not result.coverage.messages or result.not_listed or expected(result):
        mark, colour = MARKS[mood(result)]
        yield Text(f" {mark} ", style=colour).append(sentence(result), style="not bold default")
    for card in cards:
        yield from card_lines(card)
        yield Text("")
    if (left := len(blamed(result)) - len(cards)) > 0:
        yield Text(f"   {plural(left, 'more cause')}: -v lists them")
    yield from basis_lines(result)


def mark_lines(result: Verdict) -> Iterator[Text]:
    """The two questions, each with its mark and what that rests on."""
    for question, one in marks_of(result).both:
        mark, colour = MARKS[one.mark]
        yield Text(f" {question:17}").append(mark, style=colour).append(f" {one.sentence}", style="not bold default")


def expected(result: Verdict) -> bool:
    return any(entry.expected for entry in result.entries)


def card_lines(card: ShownCard) -> Iterator[Text]:
    mark, colour = MARKS[card.mood]
    headline = Text(f" {mark} ", style=colour).append(card.headline, style="bold default")
    yield headline.append(f"   {card.since}" if card.since else "", style="not bold default")
    yield from (labelled(*row) for row in card.rows)


def labelled(name: str, text: str) -> Text:
    return Text(f"   {name:9}").append(text)


def basis_lines(result: Verdict) -> Iterator[Text]:
    coverage, counts = result.coverage, by_kind(result.findings)
    missing = not_read(coverage)
    if missing:
        yield labelled("not seen", ", ".join(missing))
    for words in not_compared(coverage):
        yield labelled("unknown", words)
    for error in coverage.input_errors:
        yield labelled("not read", error)
    if copies := counted_once(coverage):
        yield labelled("nat", copies)
    for label, text in besides(result):
        yield labelled(label, text)
    parts = [", ".join(counted(kind, count) for kind, count in counts.items() if count) or "no findings"]
    if result.not_listed:
        parts.append(f"{plural(result.not_listed, 'finding')} not listed")
    if coverage.messages:
        decoded = coverage.decoded_messages
        whole = decoded == coverage.messages
        share = "all decoded" if whole else f"{decoded:,} decoded"
        parts.append(f"{plural(coverage.messages, 'message')}, {share}{cut_messages(coverage)}")
    if len(clusters := clusters_seen(result)) > 1:
        parts.append(f"{len(clusters):,} clusters")
    if about := result.about:
        if about.captured:
            parts.append(during(about.captured.from_ns, about.captured.to_ns))
        parts.append("Spark engine" if about.engine == "spark" else f"{about.engine} engine")
    parts.append("details: -v")
    parts.append("page: --report FILE.html")
    yield Text("   " + " \u00b7 ".join(parts))


def show_card(entry: CardEntry, result: Verdict, console: Console) -> None:
    """One card of a result alone."""
    for card in shown_cards(result, [entry]):
        show_lines(card_lines(card), console)


def show_first_screen(result: Verdict, console: Console, *, every: bool = False) -> None:
    show_lines(first_screen(result, every=every), console)


def show_lines(lines: Iterable[Text], console: Console) -> None:
    for line in lines:
        text = line.plain
        indent = INDENT if text[3:INDENT].strip() in LABELS else 3
        hang(line, console, indent, whole=text[INDENT:].startswith("wirecheck "))
