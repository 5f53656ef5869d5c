"""`wirecheck topics`: the observed description of topics.

It selects topics and a format; how a description is made is streaming's, how it looks the dashboards'.
"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wirecheck.commands import completion, fields, names, options
from wirecheck.commands.ending import Stop
from wirecheck.commands.listing import answers_argument, options_of_answers, show_csv, show_fields, show_rows
from wirecheck.commands.screen import as_json, console, legible, warn_of
from wirecheck.commands.units import time
from wirecheck.document import document
from wirecheck.session.results import answers, need_whole, time_among
from wirecheck.session.subjects import unknown
from wirecheck.wording import hex_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirecheck.story.seen import Topic, TopicDescription


@click.command(cls=options.Sections, short_help="List topics with IDs, partitions, leaders and ISR.")
@answers_argument
@click.option("--topic", metavar="NAME", shell_complete=completion.topic, help="Only this topic, with its partitions.")
@click.option("--topic-id", metavar="ID", help="Only the topic with this ID: Kafka's base64 (may begin with -) or hex.")
@click.option("--at", type=time, metavar="TIME", help="Show the state at TIME, such as 00:20:03, not at the end.")
@click.option(
    "--ids", is_flag=True, help="Print only a map from topic IDs to names, replaced and deleted IDs included."
)
@options_of_answers
def topics(inputs: tuple[str, ...], out: Path | None, cluster: str, form: str, *, strict: bool, **chosen: Any) -> None:
    """Describe topics as they were observed: IDs, partitions, leaders, replicas, ISR, each with time and source.

    INPUT is one or more pcaps or folders of frames, or the --out folder of a replay or a monitor.

    \b
    Examples:
      wirecheck topics incident.pcapng
      wirecheck topics verdict/ --topic orders
      wirecheck topics verdict/ --topic-id -Q8sTnyhSWeBVvYdMbQyXA --format json
      wirecheck topics verdict/ --topic orders --at 2026-11-21T00:20:03Z
      wirecheck topics verdict/ --ids --format csv > topic-ids.csv
    """
    result = answers(options.session(), inputs, out, cluster)
    from wirecheck.dashboards import spreadsheets, terminal_tables
    from wirecheck.streaming.store.topics_at import FOREVER_NS, described

    others = result.not_kept("topics")
    warn_of(others)
    at_ns = time_among(chosen["at"], result.rows["topics"]) if chosen["at"] else FOREVER_NS
    found: Sequence[TopicDescription] = described(
        result, at_ns, lambda every: matching(every, chosen["topic"], chosen["topic_id"])
    )
    picked = fields.asked()
    found = picked.in_order(found, document)
    if chosen["ids"]:
        show_ids(found, form)
    elif form == "json":
        click.echo(
            as_json({"topics": picked.of_rows([*map(document, found)]), **({"others": others} if others else {})})
        )
    elif picked.columns:
        show_fields("topics", found, form)
    elif form == "csv":
        show_csv(spreadsheets.partition_rows(found))
    elif chosen["topic"] or chosen["topic_id"]:
        terminal_tables.show_topics(legible(names.in_words(found)), console())
    else:
        terminal_tables.list_topics([*map(listed, found)], console())
    need_whole(result.coverage(), strict=strict)


def listed(topic: "TopicDescription") -> "TopicDescription":
    """As a list has it, which shows no other words of theirs: there may be many topics, each with its partitions."""
    return replace(topic, **{name: legible(names.in_words(getattr(topic, name))) for name in ("cluster", "name")})


ID_COLUMNS = ("topic_id", "topic_id_hex", "name", "cluster", "state", "first_seen", "last_seen")


def show_ids(found: "Sequence[TopicDescription]", form: str) -> None:
    """A map for tools that see only IDs, as Fetch has them since version 13: one line for each ID with a name."""
    rows = [
        {column: getattr(topic, column) for column in ID_COLUMNS} for topic in found if topic.topic_id and topic.name
    ]
    if form == "text":
        for row in rows:
            click.echo(legible(f"{row['topic_id']}  {row['topic_id_hex']}  {row['name']}  {row['state']}"))
    else:
        show_rows(rows, form)


def matching(every: "Sequence[Topic]", name: str | None, topic_id: str | None) -> "Sequence[Topic]":
    """All, or those asked for. Stop names what comes close where there are none."""
    if name is None and topic_id is None:
        return every
    found = every
    for text, column in ((name, "name"), (topic_id and topic_id.rstrip("="), "topic_id")):
        if text is not None:
            match = [one for one in found if text in {getattr(one, column), one.topic_id, hex_id(one.topic_id) or None}]
            if not match:
                raise Stop(unknown("topic", text, {given for one in found if (given := getattr(one, column))}))
            found = match
    return found
