"""Checks captured Kafka traffic: topic IDs, protocol versions, and what went wrong between clients and brokers.

    import wirecheck

    verdict = wirecheck.replay("incident.pcapng")          # what is wrong, with evidence
    verdict.sentence, verdict.findings, verdict.topics, verdict.clients
    messages = wirecheck.messages("incident.pcapng")       # every request and response
    messages.to_pandas(); messages.to_polars(); duckdb.sql("from messages"); next(iter(messages)).body
    wirecheck.topics("incident.pcapng", at="2026-11-21T00:20:03Z")
    wirecheck.clients("incident.pcapng", target="4.0")
    wirecheck.changes("incident.pcapng")

`help(wirecheck.Message)` and so on say what each field means; docs/python.md has more.

For people who change it. Knows: that the packages at the top of the repository (capture, decode, judge, story,
streaming, dashboards, session, commands) are this package's; each is linked here. Some modules may be compiled
(extension_modules.py), which is decided before any is imported. Refuses to know what they do.
Rule: a package is imported by this name only, `wirecheck.decode`. What takes time to find out is found out when it is
asked for: a command that prints its help asks for nothing.
"""

from typing import TYPE_CHECKING, Any

from wirecheck import extension_modules

extension_modules.PLAIN = extension_modules.insisted(extension_modules.choose())

if TYPE_CHECKING:
    from wirecheck.decode.kafka_error import KafkaError
    from wirecheck.frame import Frame
    from wirecheck.judge.results.agreement_rows import ApiVersions, TopicStatement
    from wirecheck.library import (
        agreement,
        changes,
        clients,
        diff,
        errors,
        groups,
        latency,
        messages,
        replay,
        timeline,
        topics,
        why,
    )
    from wirecheck.library_values import (
        Card,
        Message,
        Messages,
        Table,
        Values,
        Verdict,
    )
    from wirecheck.questions.changes import Change
    from wirecheck.questions.error_rows import ErrorRow
    from wirecheck.questions.group_rows import GroupRow
    from wirecheck.questions.latency_rows import LatencyRow
    from wirecheck.questions.subject_facts import Fact
    from wirecheck.questions.timeline import Event
    from wirecheck.questions.traffic_diff import Difference
    from wirecheck.session.session import InputError
    from wirecheck.story.seen import Activity, Client, Recreation, Topic, TopicDescription
    from wirecheck.story.verdict import Finding, Side

__version__: str
__all__ = [
    "Activity",
    "ApiVersions",
    "Card",
    "Change",
    "Client",
    "Difference",
    "ErrorRow",
    "Event",
    "Fact",
    "Finding",
    "Frame",
    "GroupRow",
    "InputError",
    "KafkaError",
    "LatencyRow",
    "Message",
    "Messages",
    "Recreation",
    "Side",
    "Table",
    "Topic",
    "TopicDescription",
    "TopicStatement",
    "Values",
    "Verdict",
    "__version__",
    "agreement",
    "changes",
    "clients",
    "diff",
    "errors",
    "groups",
    "latency",
    "messages",
    "replay",
    "timeline",
    "topics",
    "why",
]


ELSEWHERE = {
    "KafkaError": "wirecheck.decode.kafka_error",
    "Change": "wirecheck.questions.changes",
    "Activity": "wirecheck.story.seen",
    "Recreation": "wirecheck.story.seen",
    "ApiVersions": "wirecheck.judge.results.agreement_rows",
    "Client": "wirecheck.story.seen",
    "Difference": "wirecheck.questions.traffic_diff",
    "ErrorRow": "wirecheck.questions.error_rows",
    "Event": "wirecheck.questions.timeline",
    "Fact": "wirecheck.questions.subject_facts",
    "Finding": "wirecheck.story.verdict",
    "Frame": "wirecheck.frame",
    "GroupRow": "wirecheck.questions.group_rows",
    "InputError": "wirecheck.session.session",
    "LatencyRow": "wirecheck.questions.latency_rows",
    "Side": "wirecheck.story.verdict",
    "Topic": "wirecheck.story.seen",
    "TopicDescription": "wirecheck.story.seen",
    "TopicStatement": "wirecheck.judge.results.agreement_rows",
}
"""Values that commands use, too."""


def __getattr__(name: str) -> Any:
    """PEP 562: `__version__` is in the package's metadata, and reading those takes as long as all of `--help`."""
    if name != "__version__":
        if name in ELSEWHERE:
            from importlib import import_module

            return getattr(import_module(ELSEWHERE[name]), name)
        if name in __all__:
            from wirecheck import library, library_values

            return getattr(library, name, None) or getattr(library_values, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("wirecheck")
    except PackageNotFoundError:  # a checkout that nobody installed
        return "0+unknown"


def __dir__() -> list[str]:
    """What completion offers in a notebook."""
    return sorted(__all__)
