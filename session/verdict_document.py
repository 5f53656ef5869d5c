"""The object that a verdict is: as `replay --format json` prints it, and as the library has it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from wirecheck.wording import rfc3339

Row = dict[str, Any]
SCHEMA_VERSION = 1
"""Of the JSON object: raised when a name goes or means something else (docs/verdict.schema.json)."""


def captured_of(between: tuple[int, int] | None) -> Row | None:
    """From when to when there are frames; whether they are Kafka's or not."""
    return {"from": rfc3339(between[0]), "to": rfc3339(between[1])} if between else None


def about(result: Row, inputs: Sequence[str], key_logs: Sequence[Path], asked: Mapping[str, int]) -> Row:
    """What a verdict says of itself: its sentence, the form of its JSON, who judged what, with which grace."""
    import wirecheck
    from wirecheck.dashboards.verdict import sentence
    from wirecheck.judge.thresholds import Settings

    grace = Settings(**asked)
    return {
        "verdict": sentence(result),
        "schema_version": SCHEMA_VERSION,
        "wirecheck": wirecheck.__version__,
        "inputs": list(inputs),
        "keylogs": list(map(str, key_logs)),
        "grace_s": {"brokers": grace.broker_grace_s, "clients": grace.client_grace_s},
    }


def for_programs(result: Row, inputs: tuple[str, ...]) -> Row:
    """What a person reads beside a finding, as values: what to do, which commands show it."""
    from wirecheck.dashboards.evidence_commands import every_command
    from wirecheck.story.entries import remedies_of
    from wirecheck.story.reading_options import reading_options

    read_with = reading_options(result.get("keylogs", ()), result["dialects"])
    remedies = remedies_of(result["findings"])
    findings = [
        replace(one, next=remedies[one.id], commands=tuple(every_command(one, inputs, read_with)))
        for one in result["findings"]
    ]
    return {"findings": findings}
