"""The first screen of a replay: a card for each cause, worst harm first, and one line of what it rests on.

Knows: the JSON object of a result, and how a card stands on a terminal. Does not know how a card was made.
Rule: the words are the card's own. What was not seen is one line of this screen; everything else needs `-v`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from wirecheck.dashboards.verdict import blamed, by_kind, counted, mood, not_compared, not_read, plural, sentence
from wirecheck.story.cards import clients_seen, impact, state

Row = Mapping[str, Any]
INDENT = 12
MOST_CARDS = 5
MARKS = {
    "violation": ("\u2717", "bold red"),
    "anomaly": ("\u2717", "bold red"),
    "visibility": ("?", "bold magenta"),
    "clear": ("\u2713", "bold green"),
}


def first_screen(result: Row) -> Iterator[Text]:
    """Lines in their order; those that begin with a label go on below it."""
    cards = [entry["card"] for entry in blamed(result)] if result["coverage"]["messages"] else []
    if not cards:
        mark, colour = MARKS[mood(result)]
        yield Text(f" {mark} ", style=colour).append(sentence(result), style="not bold default")
    for card in cards[:MOST_CARDS]:
        yield from card_lines(card, clients_seen(result["clients"]))
        yield Text("")
    if (left := len(cards) - MOST_CARDS) > 0:
        yield Text(f"   {plural(left, 'more cause')}: -v lists them")
    yield from basis_lines(result)


def card_lines(card: Row, clients: int) -> Iterator[Text]:
    mark, colour = MARKS["violation"]
    yield Text(f" {mark} ", style=colour).append(card["headline"], style="bold default").append(f"   {state(card)}")
    if card["cause"]["sentence"] != card["headline"]:
        yield labelled("cause", card["cause"]["sentence"])
    yield labelled("impact", impact(card, clients))
    if card["action"]["sentence"]:
        yield labelled("fix", card["action"]["sentence"])
    for command in card["action"]["commands"]:
        yield labelled("look", command)
    yield labelled("evidence", card["evidence"]["command"])


def labelled(name: str, text: str) -> Text:
    return Text(f"   {name:9}").append(text)


def basis_lines(result: Row) -> Iterator[Text]:
    coverage, counts = result["coverage"], by_kind(result["findings"])
    missing = not_read(coverage)
    if missing:
        yield labelled("not seen", ", ".join(missing))
    for words in not_compared(coverage):
        yield labelled("unknown", words)
    for error in coverage["input_errors"]:
        yield labelled("not read", error)
    parts = [", ".join(counted(kind, count) for kind, count in counts.items() if count) or "no findings"]
    if result.get("not_listed"):
        parts.append(f"{plural(result['not_listed'], 'finding')} not listed")
    if coverage["messages"]:
        decoded = coverage["decoded_messages"]
        whole = decoded == coverage["messages"]
        share = "all decoded" if whole else f"{decoded:,} decoded"
        parts.append(f"{plural(coverage['messages'], 'message')}, {share}")
    if captured := result.get("captured"):
        parts.append(f"{captured['from'][11:19]} to {captured['to'][11:19]} UTC")
    if engine := result.get("engine"):
        parts.append("Spark engine" if engine == "spark" else f"{engine} engine")
    parts += ["details: -v", "page: --report FILE.html"]
    yield Text("   " + " \u00b7 ".join(parts))


def show_first_screen(result: Row, console: Console) -> None:
    for line in first_screen(result):
        put(line, console)


def put(line: Text, console: Console) -> None:
    """A command stays whole, to be copied; other words go on below themselves."""
    text = line.plain
    command = text[INDENT:].startswith("wirecheck ")
    if not console.is_terminal or len(text) <= console.width or command:
        console.print(line, soft_wrap=True)
        return
    indent = INDENT if text[3:4] != " " and text.startswith("   ") and text[3:INDENT].strip() else 3
    first, *rest = line.wrap(console, console.width)
    console.print(first, soft_wrap=True)
    if rest:
        left = line[len(first.plain) :]
        left = left[len(left.plain) - len(left.plain.lstrip()) :]
        for part in left.wrap(console, max(console.width - indent, 20)):
            console.print(Text(" " * indent).append(part), soft_wrap=True)
