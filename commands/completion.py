"""`wirecheck completion`: what a shell needs to complete subcommands, options and their values; and the values.

The shell waits for an answer, so no capture is read for one. What a shell completes itself, such as files, stays.
"""

import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import BashComplete, CompletionItem, get_completion_class

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirecheck.story.verdict import Verdict

SHELLS = ("bash", "zsh", "fish")
LEGAL = re.compile(r"[a-zA-Z0-9._-]{1,249}")
"""Kafka's org.apache.kafka.common.internals.Topic."""


class Bash(BashComplete):
    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """Bash makes three words of `--option=value`: click takes the middle one for the value."""
        return super().get_completions(args[:-1] if args[-1:] == ["="] else args, incomplete)


def path(_ctx: click.Context, _param: click.Parameter, begun: str) -> list[CompletionItem]:
    """Of words that may be a path, or - or the address of a store: the shell knows its files."""
    return [CompletionItem(begun, type="file")]


def code(_ctx: click.Context, _param: click.Parameter, begun: str) -> list[CompletionItem]:
    """Codes and names of checks, each with what it finds."""
    from wirecheck.judge.checks.listed_checks import LISTED

    found = {name: check.name for check in LISTED.values() for name in (check.code, check.name)}
    return [
        CompletionItem(name, help=means)
        for name, means in found.items()
        if name.startswith((begun.upper(), begun.lower())) and (begun or name != means)
    ]


def api(_ctx: click.Context, _param: click.Parameter, begun: str) -> list[CompletionItem]:
    from wirecheck.decode.api_names import names

    return [CompletionItem(name) for name in sorted(names().values()) if name.lower().startswith(begun.lower())]


def topic(ctx: click.Context, _param: click.Parameter, begun: str) -> list[CompletionItem]:
    """Those that Kafka permits: a shell writes them into the line as they are, and runs what stands in $(...)."""
    names = {topic.name or "" for result in _named(ctx) for topic in result.topics}
    return [CompletionItem(name) for name in sorted(names) if LEGAL.fullmatch(name) and name.startswith(begun)]


def finding(ctx: click.Context, _param: click.Parameter, begun: str) -> list[CompletionItem]:
    """Ids of findings, each with what it says."""
    every = [finding for result in _named(ctx) for finding in result.findings]
    return [
        CompletionItem(finding.id, help=f"{finding.code} {finding.summary}")
        for finding in every
        if finding.id.startswith(begun)
    ]


def _named(ctx: click.Context) -> "Iterator[Verdict]":
    """What the result tables hold that the line names before; a shell waits for this, so no capture is judged."""
    words = [*(ctx.params.get("inputs") or ()), *ctx.args, *filter(None, (ctx.params.get("out"),))]
    for folder in (path for path in map(Path, words) if path.is_dir()):
        from wirecheck.streaming.store.run_result import Result

        with suppress(LookupError):
            yield Result.latest(folder).verdict()


def interface(_ctx: click.Context, _param: click.Parameter, begun: str) -> list[CompletionItem]:
    from socket import if_nameindex

    return [CompletionItem(name) for _, name in if_nameindex() if name.startswith(begun)]


@click.command(short_help="Print a shell completion script.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a completion script for subcommands, options, their values and files.

    \b
    Examples:
      wirecheck completion bash >> ~/.bashrc
      wirecheck completion zsh >> ~/.zshrc
      wirecheck completion fish > ~/.config/fish/completions/wirecheck.fish
    """
    served = get_completion_class(shell)
    assert served is not None
    click.echo(served(ctx.find_root().command, {}, "wirecheck", "_WIRECHECK_COMPLETE").source())
