"""The command line: one command whose subcommands are modules of `commands`, each imported when it is used.

So the agent starts without Spark, and `--help` starts at once. Nothing is decided here.
"""

import atexit
import gc
import os
import sys
import traceback
from importlib import import_module
from typing import Any

import click

from wirecheck import extension_modules
from wirecheck.commands.ending import UNUSABLE, in_one_line, orderly

GROUPS = {
    "Check captures": (
        "replay",
        "run",
        "decode",
        "topics",
        "clients",
        "why",
        "timeline",
        "errors",
        "latency",
        "groups",
        "changes",
        "agreement",
        "diff",
        "explain",
    ),
    "Get evidence": ("evidence", "anonymize", "score"),
    "Monitor a cluster": ("top", "capture", "monitor", "findings"),
    "Set up": ("demo", "doctor", "completion"),
}
"""Subcommands by what they are for, in the order people need them."""
COMMANDS = tuple(command for commands in GROUPS.values() for command in commands)

COLLECT_RARELY = 200_000, 10, 10
"""What is imported and read at a start stays: searching it for garbage again and again is a tenth of a replay."""


class CommandGroup(click.Group):
    """Subcommands by name: `replay` is `commands.replay.replay`."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = dict.fromkeys(COMMANDS, click.Command(None))  # only their names: for "did you mean"

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's shape
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> Any:  # noqa: ARG002 - click's shape
        return getattr(import_module(f"wirecheck.commands.{cmd_name}"), cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """In groups, each with a heading of its own."""
        widest = max(map(len, COMMANDS))
        for heading, commands in GROUPS.items():
            with formatter.section(heading):
                rows = [(name.ljust(widest), self.get_command(ctx, name).get_short_help_str(100)) for name in commands]
                formatter.write_dl(rows)

    def invoke(self, ctx: click.Context) -> Any:
        from wirecheck.capture.arrow_alone import process_is_ours

        process_is_ours()
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy would start one for each core; there is no algebra
        gc.set_threshold(*COLLECT_RARELY)
        atexit.register(gc.freeze)  # a process that ends need not look for cycles once more
        with orderly(), in_one_line():
            return super().invoke(ctx)

    def main(self, *arguments: Any, **extra: Any) -> Any:
        if "_WIRECHECK_COMPLETE" in os.environ:
            from click.shell_completion import add_completion_class

            from wirecheck.commands.completion import Bash

            add_completion_class(Bash)
        try:
            return super().main(*arguments, **extra)
        except Exception:
            if not extra.get("standalone_mode", True):
                raise
            traceback.print_exc()
            sys.exit(UNUSABLE)  # Python's own 1 would mean that something was found

    def make_context(self, *arguments: Any, **extra: Any) -> click.Context:
        with in_one_line():
            return super().make_context(*arguments, **extra)


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(package_name="wirecheck", message=f"wirecheck %(version)s, {extension_modules.running()}")
def main() -> None:
    """Find disagreements between Kafka brokers and clients in captured traffic: topic IDs, metadata, versions.

    \b
    Examples:
      wirecheck replay incident.pcapng
      wirecheck decode incident.pcapng --api Metadata --limit 5
      wirecheck explain TID002
    """
