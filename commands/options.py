"""Options that several subcommands share, declared once so that they mean the same everywhere.

Knows: names, choices, defaults and help texts. Refuses to know what a command does with them.
"""

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from wirecheck.commands import completion
from wirecheck.commands.ending import Stop
from wirecheck.commands.screen import be_quiet, progress, tell
from wirecheck.commands.units import duration, need_order, time
from wirecheck.session.inputs import expectations
from wirecheck.session.session import Session, drafts
from wirecheck.session.subjects import unknown
from wirecheck.wording import span_of

if TYPE_CHECKING:
    from wirecheck.story.choice import Choice
    from wirecheck.story.verdict import Verdict

FINDINGS = ("violation", "anomaly", "information", "visibility")
HARM = "harm"
FAIL_ON = (HARM, *FINDINGS, "never")
DIALECTS = ("kafka", "kip516-draft", "kip4-draft")
ENGINES = ("auto", "spark", "local")
"""auto is local. 23 November 2026, two quiet cores, captures of records, wall time: 100 MB 1.5 s locally and 13.9 s by
Spark, 1 GB 3.5 and 14.1, 4 GB 9.6 and 26.6. Each further GB costs 2 s locally and 4 s by Spark."""
SECTIONS = {
    "Input": (
        "from", "interfaces", "first", "frames", "config", "keylog", "names", "cluster", "agent", "dialect",
        "hex", "follow", "strict", "promiscuous", "buffer-mb",
    ),
    "Selection": (
        "port", "filter", "api", "version", "side", "connection", "topic", "topic-id", "client", "group",
        "type", "object", "error", "failed", "ongoing", "frame", "only", "code",
        "since", "until", "at", "limit", "last", "all", "brokers", "target", "group-by", "window",
    ),
    "Output": (
        "out", "output", "ids", "tree", "report", "format", "fail-on", "grace", "expect", "keep-records", "with-keys",
        "no-principals", "quiet", "verbose", "roll-mb", "roll-s", "max-disk", "retain", "ship",
        "retain-results", "tables", "exchanges", "checkpoint",
    ),
    "Server": (
        "metrics-port", "metrics-address", "page", "allowed-host", "external-url", "log-format",
    ),
}  # fmt: skip
"""Options by what they are for, named by their first long name, or by their parameter; others come last."""
SECTION_OF = {name: section for section, names in SECTIONS.items() for name in names}
Decorator = Callable[[Any], Any]
PATH = click.Path(path_type=Path)


class Sections(click.Command):
    """A command whose help lists its options in sections."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows: dict[str, list[tuple[str, str]]] = {section: [] for section in (*SECTIONS, "Other options")}
        for param in self.get_params(ctx):
            if (record := param.get_help_record(ctx)) and record[1]:
                long = [name.removeprefix("--") for name in param.opts if name.startswith("--")]
                rows[SECTION_OF.get((long or [str(param.name)])[0], "Other options")].append(record)
        for section, records in rows.items():
            if records:
                with formatter.section(section):
                    formatter.write_dl(records)


def no_link(value: str | None) -> None:
    """Refuse a place to write to that is a symbolic link: who could put it there would say where our user writes.

    Folders on the way to it may be links, as /var/run is. Raises click.BadParameter.
    """
    name = str(value).rstrip("/") if value is not None else ""
    if Path(name).is_symlink():
        raise click.BadParameter(f"{name} is a symbolic link to {Path(name).readlink()}: name that instead")


class Target(click.Path):
    """A file or folder that is written."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = super().convert(value, param, ctx)
        no_link(str(found))
        return found


TARGET = Target(path_type=Path)


def place_or_uri(_: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    """What is written may lie elsewhere, too: then it has no links."""
    no_link(value.removeprefix("file://") if value else None)
    return value


DIALECTS_NAMED = "wirecheck.dialects"
KEY_LOGS = "wirecheck.key_logs"
"""Where the context keeps what `--keylog` named."""


def _keep_key_logs(ctx: click.Context, param: click.Parameter, value: tuple[Path, ...]) -> None:
    """One that only the environment names may be missing: who set it may have meant another program."""
    is_typed = ctx.get_parameter_source(str(param.name)) is not ParameterSource.ENVIRONMENT
    ctx.meta[KEY_LOGS] = [(path, is_typed) for path in value]


def key_logs(*, missing: bool = False) -> list[Path]:
    """What `--keylog` of the command that runs named; `missing`: also what only the environment names, there or not."""
    ctx = click.get_current_context(silent=True)
    named = ctx.meta.get(KEY_LOGS, []) if ctx is not None else []
    return [path for path, is_typed in named if is_typed or missing or path.exists()]


def _keep_dialects(ctx: click.Context, _param: click.Parameter, value: tuple[str, ...]) -> None:
    ctx.meta[DIALECTS_NAMED] = drafts(value)


def dialects() -> tuple[str, ...]:
    """The drafts that `--dialect` of the command that runs named."""
    ctx = click.get_current_context(silent=True)
    return ctx.meta.get(DIALECTS_NAMED, ()) if ctx is not None else ()


def session() -> Session:
    """What the command that runs was given, with the terminal to report to."""
    return Session(tuple(key_logs()), dialects(), progress, lambda line: tell(f"wirecheck: {line}"))


cluster = click.option(
    "--cluster",
    envvar="WIRECHECK_CLUSTER",
    default="default",
    show_default=True,
    metavar="LABEL",
    help="Label of the captured cluster.",
)
keylog = click.option(
    "--keylog",
    multiple=True,
    type=PATH,
    metavar="FILE",
    envvar="SSLKEYLOGFILE",
    expose_value=False,
    callback=_keep_key_logs,
    help="Decrypt TLS with this key log file (NSS format; repeatable).  [default: $SSLKEYLOGFILE]",
)
tables = click.option("--from", "out", type=PATH, metavar="OUT", help="The --out folder of a replay or a monitor.")
dialect = click.option(
    "--dialect",
    "dialects",
    multiple=True,
    envvar="WIRECHECK_DIALECT",
    type=click.Choice(DIALECTS),
    expose_value=False,
    callback=_keep_dialects,
    help="Read what no Kafka release has by this draft's layouts (repeatable).  [default: $WIRECHECK_DIALECT]",
)
engine = click.option(
    "--engine",
    envvar="WIRECHECK_ENGINE",
    type=click.Choice(ENGINES),
    default="auto",
    hidden=True,
    help="Check with Spark, or in this process (local). auto is local: it is faster at every size that was measured.",
)
ports = click.option(
    "--port",
    "ports",
    multiple=True,
    metavar="PORT",
    type=click.IntRange(1, 65535),
    help="Only connections with this port (repeatable).",
)


def graces(_context: click.Context, _parameter: click.Parameter, text: str | None) -> dict[str, int]:
    """`30s,300s`: the settings of the judge."""
    if text is None:
        return {}
    brokers, comma, clients = text.partition(",")
    if not comma:
        raise click.BadParameter(f"{text!r} is not BROKER,CLIENT, such as 5s,20s")
    return {"broker_grace_s": max(1, round(duration(brokers))), "client_grace_s": max(1, round(duration(clients)))}


grace = click.option(
    "--grace",
    metavar="BROKER,CLIENT",
    callback=graces,
    help="How long brokers and clients may take to agree on a change.  [default: 30s,300s]",
)


expect = click.option(
    "--expect",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    default=None,
    callback=lambda _context, _parameter, path: expectations(path),
    help="Known and accepted findings: lines of CODE CLIENT TOPIC UNTIL REASON. They count in no exit status or alert.",
)
principals = click.option(
    "--no-principals",
    is_flag=True,
    envvar="WIRECHECK_NO_PRINCIPALS",
    help="Omit principals, and addresses of clients that changed a topic; client IDs stay.",
)
since = click.option("--since", type=time, metavar="TIME", help="Only minutes from TIME on (00:20:03); of results.")
until = click.option("--until", type=time, metavar="TIME", help="Only minutes that began by TIME; of results.")
brokers = click.option("--brokers", is_flag=True, help="Also print rows of brokers and controllers.")
min_seen = click.option(
    "--min-seen",
    type=click.IntRange(0, 100),
    metavar="PERCENT",
    envvar="WIRECHECK_MIN_SEEN",
    help="Exit with status 2 if less was seen: messages decoded, bytes captured or connections not encrypted.",
)
strict = click.option("--strict", is_flag=True, help="Exit with status 2 if part of the input could not be read.")
quiet = click.option(
    "-q",
    "--quiet",
    is_flag=True,
    expose_value=False,
    callback=lambda _ctx, _param, value: be_quiet(quiet=value),
    help="Hide progress and notes; still print errors.",
)


VERDICT_FORMS = ("json", "markdown", "junit", "sarif")
"""Besides text; those of `dashboards/tickets.py` among them."""


def form(*choices: str) -> Decorator:
    """`--format`, text by default."""
    kinds = ("text", *choices)
    return click.option(
        "--format",
        "form",
        envvar="WIRECHECK_FORMAT",
        type=click.Choice(kinds),
        default="text",
        show_default=True,
        help="Output format.",
    )


def interfaces(what: str) -> Decorator:
    return click.option(
        "-i", "interfaces", multiple=True, metavar="IFACE", shell_complete=completion.interface, help=what
    )


class Code(click.ParamType[str]):
    """The code or the name of a check."""

    name = "CODE"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        from wirecheck.judge.checks.listed_checks import LISTED

        codes = {name: check.code for check in LISTED.values() for name in (check.code, check.name)}
        found = codes.get(value.upper()) or codes.get(value.lower())
        if found is None:
            close = get_close_matches(value.upper(), codes, n=3, cutoff=0.5) or sorted(LISTED)[:3]
            self.fail(
                f"there is no check {value}; there are {', '.join(close)}, and wirecheck explain lists all", param, ctx
            )
        return found


CHOICE = (
    click.option(
        "--only",
        "kinds",
        multiple=True,
        type=click.Choice(FINDINGS),
        help="Only findings of this kind (repeatable).",
    ),
    click.option(
        "--code",
        "codes",
        multiple=True,
        type=Code(),
        shell_complete=completion.code,
        help="Only findings of this check (repeatable).",
    ),
    click.option(
        "--topic",
        "topics",
        multiple=True,
        metavar="NAME",
        shell_complete=completion.topic,
        help="Only findings about this topic name or topic ID (repeatable).",
    ),
    click.option("--since", type=time, metavar="TIME", help="Only findings still active at or after TIME (00:20:03)."),
    click.option("--until", type=time, metavar="TIME", help="Only findings that began at or before TIME."),
)


def choice(command: Any) -> Any:
    """Which findings are listed: `choice_of` takes what this adds."""
    return decorated(command, CHOICE)


def decorated(command: Any, options: Iterable[Decorator]) -> Any:
    """A command with these options, in this order."""
    for option in reversed(list(options)):
        command = option(command)
    return command


def choice_of(asked: dict[str, Any]) -> "Callable[[int], Choice]":
    """Takes what `choice` added out of a command's arguments; a time of day needs a day to be complete."""
    from wirecheck.story.choice import Choice

    kinds, codes, topics = (frozenset(asked.pop(name)) for name in ("kinds", "codes", "topics"))
    since, until = asked.pop("since"), asked.pop("until")
    need_order(since, until)

    def on_day(first_ns: int) -> Choice:
        """`first_ns`: a time of that day; 0 where nothing was captured."""
        begin, end = span_of(since, until, first_ns)
        need_order(begin, end)
        return Choice(kinds, codes, topics, begin.ns if begin else None, end.last_ns if end else None)

    return on_day


def need_topics(names: Iterable[str], result: "Verdict") -> None:
    """Stop if one of these topics, by name or ID, is neither listed in a result nor the topic of a finding."""
    known = {text for topic in result.topics for text in (topic.name, topic.topic_id) if text}
    for finding in result.findings:
        known.update(filter(None, (finding.topic, *finding.topic_ids)))
    missing = sorted(set(names) - known)
    if missing:
        names = {topic.name for topic in result.topics if topic.name}
        lines = [f"{unknown('topic', name, names)}{not_listed(result)}" for name in missing]
        raise Stop("\n".join(lines))


def not_listed(result: "Verdict") -> str:
    """How many topics a result does not list, because their number is limited."""
    more = sum(others.count for others in result.others if others.table == "topics")
    return f"; {more:,} more topics were seen and are not listed" if more else ""
