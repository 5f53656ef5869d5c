"""What a verdict says of itself, and what programs read of it besides."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wirecheck.story.verdict import Engine, Verdict

SCHEMA_VERSION = 1
"""Of the JSON object: raised when a name goes or means something else (docs/verdict.schema.json)."""


def with_about(
    result: "Verdict",
    inputs: Sequence[str],
    key_logs: Sequence[Path],
    asked: Mapping[str, int],
    *,
    engine: "Engine" = "local",
    captured: tuple[int, int] | None = None,
) -> "Verdict":
    """With its sentence, the form of its JSON, what judged which inputs, and with which grace."""
    import wirecheck
    from wirecheck.dashboards.verdict import sentence
    from wirecheck.judge.thresholds import Settings
    from wirecheck.story.marks import marks_of
    from wirecheck.story.verdict import About, Captured, Grace

    grace = Settings(**asked)
    about = About(
        engine=engine,
        captured=captured and Captured(*captured),
        verdict=sentence(result),
        marks=marks_of(result),
        schema_version=SCHEMA_VERSION,
        wirecheck=wirecheck.__version__,
        inputs=tuple(inputs),
        keylogs=tuple(map(str, key_logs)),
        grace_s=Grace(grace.broker_grace_s, grace.client_grace_s),
    )
    return replace(result, about=about)


def for_programs(result: "Verdict", inputs: Sequence[str], tables_in: str = "") -> "Verdict":
    """With what a person reads beside a finding, as values: what to do, which commands show it. `tables_in`: where
    findings can be read.
    """
    from wirecheck.dashboards.evidence_commands import every_command
    from wirecheck.dashboards.listed_cards import listed_cards
    from wirecheck.story.entries import remedies_of
    from wirecheck.story.reading_options import reading_options

    read_with = reading_options(result.keylogs, result.dialects)
    remedies = remedies_of(result.findings)
    findings = tuple(
        replace(one, next=remedies[one.id], commands=tuple(every_command(one, inputs, read_with, tables_in)))
        for one in result.findings
    )
    return replace(result, findings=findings, cards=listed_cards(result))


def write_cards(out: Path, run: str, result: "Verdict") -> None:
    """Beside the tables of a run, in place of those that it had: no judge of one cluster label has all of a card."""
    from wirecheck.dashboards.listed_cards import card_rows
    from wirecheck.streaming.store.batches import Folders, write
    from wirecheck.streaming.store.result_tables import table_of

    place = Folders(f"{out}/cards/run={run}")
    if result.cards or place.numbers():
        write(table_of("cards", card_rows(result)), place, 0)
