"""Topics and clients as tables for a terminal. What is out of order stands out.

Nothing is shown that is not in the replay's JSON object; a cell without a value is empty or says why. Text that a
terminal must not get is escaped by the command.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from textwrap import wrap

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from wirecheck.colours import AMBER, GREEN, RED, shade
from wirecheck.dashboards.client_upgrades import ClientGroup
from wirecheck.dashboards.verdict import CARD_HEADINGS, named_cluster, size
from wirecheck.story.marks import STATES
from wirecheck.story.seen import Client, Partition, StatedBy, TopicDescription
from wirecheck.wording import plural, rfc3339, short_id

WIDEST = 1000
MANY = 200
"""Rows of a table from which on it is printed line by line."""
FOLDING = {
    "cluster": 8,
    "group": 12,
    "who is hurt": 12,
    "what": 20,
    "cause": 20,
    "topic": 12,
    "client ID": 12,
    "software": 8,
    "problem": 8,
    "remarks": 8,
    "rejected versions": 12,
    "reported by": 10,
}
"""Columns that fold on narrow terminals, and from where; all others stay whole: whoever copies an id wants it so."""


def table(*headings: str) -> Table:
    made = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        folds = heading in FOLDING
        made.add_column(heading, overflow="fold", no_wrap=not folds, min_width=FOLDING.get(heading))
    return made


def put(made: RenderableType, console: Console) -> None:
    """Print a table whole: on a terminal that is too narrow its lines go on below, where rich would drop columns."""
    if isinstance(made, Table) and made.row_count > MANY:
        put_lines(made, console)
        return
    width = console.width
    try:
        console.width = max(width, minimum(made, console))
        console.print(made, crop=False)
    finally:
        console.width = width


def put_lines(made: Table, console: Console) -> None:
    """The same of very many rows, without folding a cell: rich takes a millisecond for each."""
    wide = [*widths(made)]
    head, *rows = zip(*texts(made), strict=True)
    for line in zip(*(cell.split("\n") for cell in head), strict=True):
        console.print(Text(padded(line, wide), style=made.header_style), soft_wrap=True)
    if not console.is_terminal:
        console.file.writelines(f"{padded(row, wide)}\n" for row in rows)
        return
    for style, some in groupby(zip(made.rows, rows, strict=True), key=lambda pair: pair[0].style):
        lines = "\n".join(padded(row, wide) for _, row in some)
        console.print(Text(lines, style=style or ""), soft_wrap=True)


def texts(made: Table) -> Iterator[list[str]]:
    """Of each column its heading and its cells, without styles."""
    for column in made.columns:
        yield [cell.plain if isinstance(cell, Text) else str(cell) for cell in (column.header, *column.cells)]


def widths(made: Table) -> Iterator[int]:
    """Columns that each column of a table takes."""
    for column in texts(made):
        yield max(map(width_of, dict.fromkeys(column)))


def width_of(cell: str) -> int:
    if cell.isascii() and cell.isprintable():  # as almost all is
        return len(cell)
    return max(map(cell_len, cell.split("\n")))


def padded(cells: Iterable[str], wide: list[int]) -> str:
    return "  ".join(map(padded_to, cells, wide)).rstrip()


def padded_to(cell: str, width: int) -> str:
    return cell.ljust(width) if cell.isascii() and cell.isprintable() else set_cell_size(cell, width)


def keep_whole(made: Table, console: Console) -> None:
    """Columns that do not fold take what their longest cell does; rich would cut them where the others end."""
    options = console.options.update(width=WIDEST)
    for column in made.columns:
        if column.no_wrap:
            cells = (column.header, *column.cells)
            column.min_width = max(Measurement.get(console, options, cell).maximum for cell in cells)


def minimum(made: RenderableType, console: Console) -> int:
    """The columns that it takes at least."""
    return Measurement.get(console, console.options.update(width=WIDEST), made).minimum


def fits(made: Table, console: Console) -> bool:
    """Whether no cell of it has to fold."""
    if made.row_count > MANY:
        return sum(widths(made)) + 2 * (len(made.columns) - 1) <= console.width
    return Measurement.get(console, console.options.update(width=WIDEST), made).maximum <= console.width


def widest(forms: Iterable[Table], console: Console) -> Table:
    """The first that fits, else the last; those behind it are not made."""
    for made in forms:
        if fits(made, console):
            break
    return made


def list_topics(topics: Sequence[TopicDescription], console: Console) -> None:
    """A day that all were last seen on is said once, where that keeps their names from folding; where even that does
    not, bytes are left out, then when they were last seen, and then leaders and ISR.
    """
    if not topics:
        console.print("no topic was seen")
        return
    day = one_day(topics)
    forms = ((more, of_day) for more in MORE_OF_TOPICS for of_day in ("", day))
    made = widest((topics_table(topics, of_day, more) for more, of_day in forms), console)
    put(made, console)
    hint(made, MORE_OF_TOPICS[0], console)


def hint(made: Table, more: Iterable[str], console: Console) -> None:
    """One line about the columns that a table lacks because the terminal is narrow."""
    shown = {str(column.header).partition("\n")[0] for column in made.columns}
    if missing := [name for name in more if name not in shown]:
        console.print(Text(f"too narrow for: {', '.join(missing)}; --format json has them", style="dim"))


LEADERS_SHOWN = 4


def leaders(partitions: Sequence[Partition]) -> str:
    """The brokers that lead partitions: 1,2,3."""
    found = sorted({row.leader for row in partitions if row.leader >= 0})
    more = f" and {len(found) - LEADERS_SHOWN}" if len(found) > LEADERS_SHOWN else ""
    return ",".join(map(str, found[:LEADERS_SHOWN])) + more


def least_isr(partitions: Sequence[Partition]) -> str:
    """Of the partition that lacks the most replicas: `2 of 3`."""
    if not partitions:
        return ""
    worst = max(partitions, key=lambda row: len(row.replicas) - len(row.isr))
    return f"{len(worst.isr)} of {len(worst.replicas)}"


MORE_OF_TOPICS: tuple[tuple[str, ...], ...] = (
    ("leaders", "least ISR", "written", "read", "last seen"),
    ("leaders", "least ISR", "last seen"),
    ("leaders", "least ISR"),
    ("last seen",),
)
"""Columns that a list of topics has where they fit, the widest form first."""


def topics_table(topics: Sequence[TopicDescription], day: str, more: Sequence[str]) -> Table:
    """`more`: of MORE_OF_TOPICS; no column of remarks where there are none. That a topic is internal is left out before
    leaders are.
    """
    many, remarks_of = several(topics), remarks if "last seen" in more else troubles
    has_remarks = any(map(remarks_of, topics))
    made = table(*many, "topic", "topic ID", "state", "parts", *more, *["remarks"] * has_remarks)
    for column in made.columns if day and "last seen" in more else ():
        column.header = f"{column.header}\n{day if column.header == 'last seen' else ''}"
    of_cell: Callable[[str], Text | str] = Text if len(topics) <= MANY else str
    for topic in topics:
        cell_of = {
            "leaders": leaders(topic.partitions),
            "least ISR": least_isr(topic.partitions),
            "written": volume(topic.written_bytes),
            "read": volume(topic.read_bytes),
            "last seen": clock(topic.last_ns).removeprefix(f"{day} "),
        }
        cells = (
            *(named_cluster(topic.cluster) for _ in many),
            topic.name or "(name unknown)",
            topic.topic_id or "(no ID)",
            topic.state,
            str(len(topic.partitions) or ""),
            *(cell_of[name] for name in more),
            *[remarks_of(topic)] * has_remarks,
        )
        made.add_row(*map(of_cell, cells), style=None if topic.state == "current" else "dim")
    return made


def remarks(topic: TopicDescription) -> str:
    return ", ".join(filter(None, ("internal" if topic.internal else "", troubles(topic))))


def volume(*parts: int | None) -> str:
    """Bytes together; empty where a table of an earlier release does not have them."""
    known = [part for part in parts if part is not None]
    return size(sum(known)) if len(known) == len(parts) else ""


def clock(time_ns: int) -> str:
    """To the second, without its year: 11-21 00:20:25Z."""
    time = rfc3339(time_ns)
    return f"{time[5:10]} {time[11:19]}Z"


def one_day(rows: Sequence[Client | TopicDescription]) -> str:
    """The day, as in `clock`, on which all were last seen; empty where there are several."""
    days = {clock(row.last_ns)[:5] for row in rows}
    return days.pop() if len(days) == 1 else ""


def several(rows: Sequence[Client | TopicDescription]) -> list[str]:
    """The heading of a column of clusters, where there are several."""
    return ["cluster"] if len({row.cluster for row in rows}) > 1 else []


def troubles(topic: TopicDescription) -> str:
    """What is wrong with partitions now; of a topic that is gone they are as they were when it went."""
    partitions = topic.partitions if topic.state == "current" else []
    leaderless = sum(row.leader < 0 for row in partitions)
    short = sum(len(row.isr) < len(row.replicas) for row in partitions)
    counts = ((leaderless, "without leader"), (short, "under-replicated"))
    return ", ".join(f"{count} {words}" for count, words in counts if count)


def show_topics(topics: Sequence[TopicDescription], console: Console) -> None:
    for number, topic in enumerate(topics):
        if number:
            console.print()
        for name, value in heading(topic):
            show_line(name, value, console)
        if topic.partitions:
            put(partitions_table(topic.partitions), console)
        else:
            console.print("  no partitions were described")


def show_line(name: str, value: Text, console: Console) -> None:
    """On a terminal a long value is folded below itself; in a file or a pipe it is one line."""
    if not name or not console.is_terminal:
        console.print(Text(f"  {name:13}  " if name else "").append_text(value), soft_wrap=True)
        return
    lines = Table.grid(padding=(0, 2))
    lines.add_column(no_wrap=True, min_width=13)
    lines.add_column(overflow="fold")
    lines.add_row(name, value)
    console.print(Padding(lines, (0, 0, 0, 2)))


def heading(topic: TopicDescription) -> Iterable[tuple[str, Text]]:
    """Lines by their names; the first has none."""
    yield (
        "",
        Text(topic.name or "(name unknown)", style="bold").append(
            f"  {topic.state}  {'' if topic.cluster is None else 'cluster '}{named_cluster(topic.cluster)}",
            style="not bold",
        ),
    )
    yield "id", Text(f"{topic.topic_id}  {topic.topic_id_hex}" if topic.topic_id else "none seen")
    if topic.earlier_ids:
        yield "earlier IDs", Text(" ".join(topic.earlier_ids))
    yield "seen", Text(f"{topic.first_seen} to {topic.last_seen}")
    yield "internal", Text(f"{word(topic.internal)}{by(topic.internal_claim)}")
    operations = topic.authorized_operations
    named = "not requested" if operations is None else ", ".join(operations)
    yield "authorized", Text(f"{named}{by(topic.authorized_operations_claim)}")


def word(value: bool | None) -> str:
    return "not sent" if value is None else "yes" if value else "no"


def by(claim: StatedBy | None) -> str:
    return f"  ({claim.source}, {clock(claim.time_ns)}, {claim.connection})" if claim else ""


def partitions_table(partitions: Sequence[Partition]) -> Table:
    """Offline replicas have a column where there are some."""
    offline = any(row.offline_replicas for row in partitions)
    headings = [
        "partition",
        "leader",
        "epoch",
        "replicas",
        "isr",
        *(["offline"] if offline else []),
        "since",
        "reported by",
    ]
    made = table(*headings)
    for row in partitions:
        short = len(row.isr) < len(row.replicas) or row.leader < 0
        lists = (row.replicas, row.isr, *((row.offline_replicas,) if offline else ()))
        cells = (
            str(row.partition),
            str(row.leader) if row.leader >= 0 else "none",
            str(row.leader_epoch) if row.leader_epoch >= 0 else "",
            *map(numbers, lists),
            clock(row.time_ns),
            row.source,
        )
        made.add_row(*map(Text, cells), style=shade(AMBER) if short else None)
    return made


def list_cards(every: Iterable[Sequence[str]], console: Console) -> None:
    """One line each, in the order in which they come; on a narrow terminal without the cause."""
    rows = [(age, short_id(cluster), *more) for age, cluster, *more in every]
    without = {"" if console.width >= WIDE else "cause", "" if any(cells[1] for cells in rows) else "cluster"}
    shown = [place for place, name in enumerate(CARD_HEADINGS) if name not in without]
    made = table(*(CARD_HEADINGS[place] for place in shown))
    for cells in rows:
        made.add_row(*(Text(cells[place]) for place in shown))
    put(made, console)


def list_clients(every: Sequence[Client], console: Console, *, brokers: bool = False) -> None:
    """One line each, those whose work is stalled first."""
    clients = [client for client in every if brokers or not client.between_brokers]
    clients.sort(key=by_state)
    if clients:
        day = one_day(clients)
        how = (False, True) if console.width >= WIDE else (True,)
        forms = (
            clients_table(clients, several(every), day, more, short=short) for short in how for more in MORE_OF_CLIENTS
        )
        made = widest(forms, console)
        put(made, console)
        known = any(client.principals for client in clients)
        hint(made, (name for name in MORE_OF_CLIENTS[0] if known or name != "principal"), console)
        of_day = f"times of {day}; " if day else ""
        console.print(Text(f"{of_day}API versions of each client: --format csv or json", style="dim"))
    else:
        console.print("no client was seen")
    if left := len(every) - len(clients):
        what = "broker or controller is" if left == 1 else "brokers and controllers are"
        console.print(Text(f"{left:,} {what} not listed; --brokers lists them", style="dim"))


def by_state(client: Client) -> tuple[int, int]:
    work = client.work
    return (STATES.index(work.state), work.since_ns or 0) if work is not None else (len(STATES), 0)


MORE_OF_CLIENTS: tuple[tuple[str, ...], ...] = (
    ("software", "requests", "bytes", "security", "principal", "last seen", "since"),
    ("software", "requests", "security", "principal", "last seen", "since"),
    ("software", "requests", "security", "last seen", "since"),
    ("software", "requests", "last seen", "since"),
    ("software", "last seen", "since"),
    ("last seen", "since"),
    ("since",),
    (),
)
"""Columns that a list of clients has where they fit, the widest form first."""


def clients_table(clients: Sequence[Client], many: list[str], day: str, more: Sequence[str], *, short: bool) -> Table:
    """`more`: of MORE_OF_CLIENTS; no column of principals where none is known. `short`: of `how` the API alone."""
    proxied = [through] if any(map(through, clients)) else []
    state_columns = ("state", *(["since"] if "since" in more else []), "how")
    principals = any(client.principals for client in clients)
    more = [name for name in more if name != "since" and (name != "principal" or principals)]
    made = table(*many, "client ID", "address", *more, *["through"] * len(proxied), *state_columns)
    for client in clients:
        cells = (*(named_cluster(client.cluster) for _ in many), *client_cells(client, day, more))
        style = "dim" if client.between_brokers else ""
        by = [Text(one(client)) for one in proxied]
        cell_of = state_cells(client, day, short=short)
        state = (Text(cell_of[name]) for name in state_columns)
        made.add_row(*map(Text, cells), *by, *state, style=style)
    return made


def state_cells(client: Client, day: str, *, short: bool) -> dict[str, str]:
    """Its state, since when, and how, by column."""
    work = client.work
    if work is None:
        return {"state": "", "since": "", "how": ""}
    since = "" if work.since_ns is None else clock(work.since_ns).removeprefix(f"{day} ")
    return {"state": work.state, "since": since, "how": work.how.split(" ")[0].rstrip(":") if short else work.how}


def through(client: Client) -> str:
    """The proxy that sends on what the client requests: its address, or its host if it has a port for each broker."""
    ends = client.through
    return ", ".join(ends if len(ends) == 1 else sorted({end.rpartition(":")[0] for end in ends}))


WIDE = 110
"""So many columns may have room for the names of errors."""


def client_cells(client: Client, day: str, more: Iterable[str]) -> tuple[str, ...]:
    cells = {
        "software": software(client),
        "requests": f"{client.requests:,}",
        "bytes": volume(client.request_bytes, client.response_bytes),
        "security": ", ".join(client.security_protocols),
        "principal": ", ".join(client.principals),
        "last seen": clock(client.last_ns).removeprefix(f"{day} "),
    }
    return name(client), client.address, *(cells[name] for name in more)


def show_gate(refused: Sequence[Client], every: Sequence[Client], target: str, console: Console) -> None:
    """Clients that a release rejects, of every client that was seen."""
    many, seen = several(every), sum(not client.between_brokers for client in every)
    if not refused:
        console.print(
            Text(f"{plural(seen, 'client')} seen, none sends a version that {target} rejects", style=shade(GREEN))
        )
        return
    verb = "sends" if len(refused) == 1 else "send"
    sentence = f"{len(refused)} of {plural(seen, 'client')} {verb} versions that {target} rejects"
    console.print(Text(sentence, style=shade(RED, bold=True)))
    made = gate_table(refused, many)
    if not many or fits(made, console):
        put(made, console)
    else:
        for cluster in dict.fromkeys(client.cluster for client in refused):  # no room for a column
            console.print(Text(f"\ncluster {named_cluster(cluster)}:", style="bold"))
            put(gate_table([client for client in refused if client.cluster == cluster], []), console)
    for advice in dict.fromkeys(client.advice for client in refused if client.advice):
        clients = [name(client) for client in refused if client.advice == advice]
        console.print(Text.assemble(f"\n{advice[:1].upper()}{advice[1:]}: ", (", ".join(clients), "bold")))


def show_aged(aged: Sequence[Client], target: str, console: Console) -> None:
    """Clients below Kafka's baseline whose versions a release accepts."""
    if aged:
        verb = "is" if len(aged) == 1 else "are"
        why = f"older than the clients that {target} supports (KIP-896), but {target} accepts their versions"
        names = ", ".join(f"{name(client)} ({software(client)})" for client in aged)
        console.print(Text(f"\n{len(aged):,} more {verb} {why}: {names}", style="dim"))


def show_denied(clients: Sequence[Client], console: Console) -> None:
    """Clients that a release rejects, too, and that are granted nothing now: an upgrade takes nothing from them."""
    if clients:
        names = ", ".join(f"{name(client)} ({client.address})" for client in clients)
        verbs = "sends such versions and is" if len(clients) == 1 else "send such versions and are"
        console.print(Text(f"{len(clients):,} more {verbs} granted nothing now: {names}", style="dim"))


def gate_table(refused: Sequence[Client], many: list[str]) -> Table:
    made = table(*many, "client ID", "address", "software", "rejected versions", "last seen")
    for client in refused:
        words = (*(named_cluster(client.cluster) for _ in many), name(client), client.address, software(client))
        made.add_row(*map(Text, words), Items(versions_of(client)), Text(clock(client.last_ns)))
    return made


def show_groups(groups: Sequence[ClientGroup], console: Console) -> None:
    """Clients of one team, software or host together."""
    made = table("group", "clients", "rejected", "rejected versions", "upgrade to", "last seen")
    for one in groups:
        counts = (one.group, str(one.clients), str(one.rejected))
        last = (", ".join(one.upgrade_to), clock(one.last_ns))
        made.add_row(*map(Text, counts), Items(one.rejected_versions), *map(Text, last))
    keep_whole(made, console)
    put(made, console)


def versions_of(client: Client) -> list[str]:
    by_api: dict[str, list[str]] = {}
    for api, version in client.rejected:
        by_api.setdefault(api, []).append(f"v{version}")
    return [f"{api} {' '.join(versions)}" for api, versions in by_api.items()]


def name(client: Client) -> str:
    return client.client_id or "(no client ID)"


def software(client: Client) -> str:
    parts = ((client.software_name or "").removeprefix("apache-kafka-"), client.software_version)
    return " ".join(part for part in parts if part) or (
        f"like {client.looks_like}" if client.looks_like else "not sent"
    )


def numbers(values: Sequence[int] | None) -> str:
    return "" if values is None else ",".join(map(str, values))


GLUE = "\u00a0"
"""A space at which textwrap does not break."""


class Items:
    """A list with commas that wraps between its items: no version stands on another line than its API."""

    def __init__(self, items: Iterable[str]) -> None:
        self.text = ", ".join(item.replace(" ", GLUE) for item in items)

    def __rich_measure__(self, _console: Console, options: ConsoleOptions) -> Measurement:
        longest = max(map(len, self.text.split(" ")), default=0)
        return Measurement(min(longest, options.max_width), min(len(self.text), options.max_width))

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> Iterator[Text]:
        lines = wrap(self.text, max(options.max_width, 1), break_on_hyphens=False)
        yield Text("\n".join(lines).replace(GLUE, " "))
