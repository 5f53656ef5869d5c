"""`wirecheck monitor`: frames checked as they come. A flag overrides the --config file, which overrides the default.

It reads options and nothing else; streaming/run/monitor.py runs the job.
"""

import json
import time
import tomllib
from collections.abc import Iterable
from dataclasses import fields
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

import click

from wirecheck.commands import completion, options
from wirecheck.commands.ending import DISK_FAULTS, Stop, need_fitting
from wirecheck.commands.live_page import live_cards, live_page
from wirecheck.commands.outputs import for_its_user_alone
from wirecheck.commands.screen import inside
from wirecheck.commands.units import duration, size

REPEATABLE = {"ports": "port", "allowed_hosts": "allowed_host", "dialects": "dialect"}
"""Parameters whose flag may be given several times, and the flag. In a file it is one value or a list."""


def from_file(ctx: click.Context, _: click.Parameter, path: Path | None) -> Path | None:
    """What the file says become the defaults of the flags; its table [judge] those of --judge."""
    if path is None:
        return None
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as wrong:
        raise Stop(f"{path}: {getattr(wrong, 'strerror', None) or wrong}") from wrong
    judge = values.pop("judge", {})
    known = {parameter.name: parameter for parameter in ctx.command.params}
    names = {REPEATABLE.get(str(name), name) for name in known} - {"config", "help", "judge", None}
    strange = sorted(values.keys() - names)
    if strange or not isinstance(judge, dict):
        what = no_setting(strange[0], names) if strange else "[judge] is a table"
        raise Stop(f"{path}: {what}; there are {', '.join(sorted(map(str, names)))} and the table [judge]")
    repeated = {many: values.pop(one) for many, one in REPEATABLE.items() if one in values}
    repeated = {many: value if isinstance(value, list) else [value] for many, value in repeated.items()}
    ctx.default_map = {**values, **repeated, "judge": [f"{name}={value}" for name, value in judge.items()]}
    ctx.meta["judge"] = ctx.default_map["judge"]
    return path


@click.command(cls=options.Sections, short_help="Continuously check frames from agents.")
@click.option(
    "--frames", required=True, metavar="DIR", shell_complete=completion.path,
    help="Directory that the agents write to: a path or a URI.",
)  # fmt: skip
@click.option(
    "--out",
    default="verdicts",
    show_default=True,
    metavar="DIR",
    callback=options.place_or_uri,
    shell_complete=completion.path,
    help="Directory of the result tables: a path or a URI.",
)
@click.option(
    "--checkpoint", metavar="DIR", callback=options.place_or_uri, shell_complete=completion.path,
    help="Directory for the state between starts.  [default: OUT/_checkpoint]",
)  # fmt: skip
@click.option("--once", is_flag=True, help="Check the existing frames, then exit.")
@click.option(
    "--interval",
    type=duration,
    default="2s",
    show_default=True,
    help="Minimum time between batches while files wait, else half of it.",
)
@click.option(
    "--max-batch-bytes",
    type=size,
    default="32M",
    show_default=True,
    help="Maximum size of the frames files in one batch.",
)
@click.option("--retain", type=duration, default="1h", show_default=True, help="How long to keep superseded revisions.")
@click.option(
    "--retain-results", type=duration, metavar="AGE", help="Remove results after this time.  [default: keep all]"
)
@click.option(
    "--retain-results-size",
    type=size,
    metavar="SIZE",
    help="Remove the oldest results above this total size. Findings stay.  [default: keep all]",
)
@click.option("--heap", type=size, default="1G", show_default=True, help="Maximum size of the Java heap.")
@click.option("--metrics-port", type=click.IntRange(1, 65535), metavar="P", help="Serve /metrics on this port.")
@click.option(
    "--metrics-address", default="127.0.0.1", show_default=True, metavar="A", help="Address for the metrics server."
)
@click.option(
    "--page", is_flag=True, help="Serve the report (/) also at addresses that other hosts reach; see SECURITY.md."
)
@click.option(
    "--allowed-host", "allowed_hosts", multiple=True, metavar="NAME",
    help="Also serve the report under this host name (repeatable).",
)  # fmt: skip
@click.option(
    "--external-url", default="", metavar="URL",
    help="Address of this monitor in alerts, as http://monitor:9108.  [default: a loopback metrics address and port]",
)  # fmt: skip
@click.option(
    "--log-format", type=click.Choice(("text", "json")), default="text", show_default=True, help="Format of log lines.",
)  # fmt: skip
@options.ports
@options.dialect
@click.option(
    "--buckets",
    type=click.IntRange(1, 256),
    default=8,
    hidden=True,
    help="Number of partitions of the connections.",
)
@options.principals
@options.expect
@click.option(
    "--judge", multiple=True, hidden=True, metavar="NAME=N", help="Set a grace period or threshold of the checks.",
)  # fmt: skip
@click.option(
    "--tables", type=click.Choice(("parquet", "delta")),
    help="Format of the result tables.  [default: parquet on disk, delta on object stores]",
)  # fmt: skip
@click.option("--exchanges", is_flag=True, hidden=True, help="Also write one row per exchange.")
@click.option(
    "--config", type=options.PATH, is_eager=True, expose_value=False, callback=from_file, metavar="FILE.toml",
    help="Read settings with the names of these options; options override the file.",
)  # fmt: skip
@click.option("-v", "--verbose", is_flag=True, help="Show Spark's log output.")
@click.pass_context
def monitor(
    ctx: click.Context, /, frames: str, out: str, checkpoint: str | None, interval: float, **choices: Any
) -> None:
    """Continuously check frames from agents. Stops cleanly on SIGTERM and resumes on restart.

    \b
    Examples:
      wirecheck monitor --frames frames/ --out verdicts/ --metrics-port 9108
      wirecheck monitor --frames frames/ --out verdicts/ --once
      wirecheck monitor --config monitor.toml
    """
    need_fitting()
    from wirecheck.streaming.run import monitor as job
    from wirecheck.streaming.run.plan import MonitorError, Plan
    from wirecheck.streaming.steps.settings import Settings

    words = {**dict(map(pair, ctx.meta.get("judge", ()))), **dict(map(pair, choices.pop("judge")))}
    choices["principals"] = not choices.pop("no_principals")
    words |= {} if choices["principals"] else {"principals": "0"}
    log = LOGS[choices.pop("log_format")]
    switches = {name: choices.pop(name) for name in ("buckets", "exchanges", "verbose")}
    switches |= {"ports": frozenset(choices.pop("ports")), "dialects": options.dialects()}
    settings = Settings(judge=judge_settings(words), live=True, by_minute=True, **switches)
    checkpoint = checkpoint or f"{out.rstrip('/')}/_checkpoint"
    ages = {"retain_s": choices.pop("retain"), "retain_results_s": choices.pop("retain_results")}
    ages["retain_results_bytes"] = choices.pop("retain_results_size")
    plan = Plan(frames, out, checkpoint, interval_s=interval, heap_bytes=choices.pop("heap"), **ages, **choices)
    try:
        with for_its_user_alone():
            page, cards = partial(live_page, plan), partial(live_cards, plan)
            job.run(plan, settings, log, page, runbooks=runbooks(), cards=cards)
    except MonitorError as error:
        raise Stop(str(error)) from error


def in_text(line: str) -> None:
    logged(f"wirecheck: {inside(str(line))}")  # a name with a newline begins no line of its own


def in_json(line: str) -> None:
    now = datetime.fromtimestamp(time.time(), UTC)  # noqa: TID251 - of the log line, not of what was captured
    fields = {"time": now.isoformat(timespec="milliseconds"), "message": str(line)}
    logged(json.dumps(fields | getattr(line, "fields", {})))


def logged(line: str) -> None:
    """A log whose disk is full does not end the monitor."""
    try:
        click.echo(line, err=True)
    except OSError as error:
        if error.errno not in DISK_FAULTS:
            raise


LOGS = {"text": in_text, "json": in_json}


def runbooks() -> dict[str, str]:
    """By file name."""
    import wirecheck.dashboards

    folder = Path(wirecheck.dashboards.__path__[0]) / "runbooks"
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.md"))}


def no_setting(name: str, names: Iterable[str | None]) -> str:
    close = get_close_matches(name, list(filter(None, names)), 1)
    return f"{name} is not a setting" + (f", did you mean {close[0]}?" if close else "")


def pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise Stop(f"--judge {text}: write NAME=N, as broker_grace_s=60")
    return name, value


def judge_settings(words: dict[str, str]) -> Any:
    from wirecheck.judge.thresholds import Settings

    names = [field.name for field in fields(Settings)]
    for name, value in words.items():
        if name not in names:
            raise Stop(f"judge: {no_setting(name, names)}; there are {', '.join(names)}")
        if not value.isdigit():
            raise Stop(f"judge: {name} must be a number of at least 0, not {value}")
    return Settings(**{name: int(value) for name, value in words.items()})
