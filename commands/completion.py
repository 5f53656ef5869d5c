"""`wirecheck completion`: what a shell needs to complete subcommands, options and their values; and the values.

The shell waits for an answer, so no capture is read for one. What a shell completes itself, such as files, stays.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from click.shell_completion import BashComplete, CompletionItem, FishComplete, ZshComplete, add_completion_class

SHELLS = ("bash", "zsh", "fish")
LEGAL = re.compile(r"[a-zA-Z0-9._-]{1,249}")
"""Kafka's org.apache.kafka.common.internals.Topic."""


class Bash(BashComplete):
    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """Bash makes three words of `--option=value`: click takes the middle one for the value."""
        return super().get_completions(args[:-1] if args[-1:] == ["="] else args, incomplete)


class Zsh(ZshComplete):
    """Of each value three lines: a type, the value, what it means. What stands before `=` is not compared."""

    source_template = """\
#compdef %(prog_name)s

%(complete_func)s() {
    local -a plain described answer
    local kind value means line="${words[*]}"
    (( $+commands[%(prog_name)s] )) || return 1
    answer=("${(@f)$(env COMP_WORDS="$line" COMP_CWORD=$((CURRENT-1)) %(complete_var)s=zsh_complete %(prog_name)s)}")
    [[ $PREFIX == --*=* ]] && compset -P 1 '*='
    for kind value means in $answer; do
        case $kind in
            dir) _path_files -/ ;;
            file) _path_files -f ;;
            plain) if [[ $means == _ ]]; then plain+=("$value"); else described+=("$value:$means"); fi ;;
        esac
    done
    (( $#described )) && _describe -V unsorted described -U -i "$IPREFIX"
    (( $#plain )) && compadd -U -i "$IPREFIX" -V unsorted -a plain
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    %(complete_func)s "$@"
else
    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
    compdef %(complete_func)s %(prog_name)s
fi
"""


class Fish(FishComplete):
    """Its lines: a type, what stands before the value, the value with a tab and what it means."""

    source_template = """\
function %(complete_func)s
    for line in (env %(complete_var)s=fish_complete COMP_WORDS=(commandline -cp | string collect) \
COMP_CWORD=(commandline -t) %(prog_name)s)
        set -l answer (string split --max 2 , -- $line)
        switch $answer[1]
            case dir
                printf '%%s\\n' $answer[2](__fish_complete_directories $answer[3])
            case file
                printf '%%s\\n' $answer[2](__fish_complete_path $answer[3])
            case plain
                printf '%%s\\n' $answer[2]$answer[3]
        end
    end
end

complete --no-files --command %(prog_name)s --arguments "(%(complete_func)s)"
"""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        option, behind, _ = incomplete.partition("=")
        self.before = option + behind if behind and option.startswith("--") else ""
        return super().get_completions(args, incomplete)

    def format_completion(self, item: CompletionItem) -> str:
        kind, comma, value = super().format_completion(item).partition(",")
        return f"{kind}{comma}{self.before}{comma}{value}"


def serve_shells() -> None:
    """Before click answers a shell, or says how one asks."""
    for served in (Bash, Zsh, Fish):
        add_completion_class(served)


def path(_ctx: click.Context, _param: click.Parameter, begun: str) -> list[CompletionItem]:
    """Of words that may be a path, or - or the address of a store: the shell knows its files."""
    return [CompletionItem(begun, type="file")]


def code(_ctx: click.Context, _param: click.Parameter, begun: str) -> list[CompletionItem]:
    """Codes and names of checks, each with what it finds."""
    from wirecheck.judge.checks.catalogue import CHECKS

    found = {name: check.name for check in CHECKS.values() for name in (check.code, check.name)}
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
    names = {topic["name"] or "" for result in _named(ctx) for topic in result["topics"]}
    return [CompletionItem(name) for name in sorted(names) if LEGAL.fullmatch(name) and name.startswith(begun)]


def finding(ctx: click.Context, _param: click.Parameter, begun: str) -> list[CompletionItem]:
    """Ids of findings, each with what it says."""
    every = [finding for result in _named(ctx) for finding in result["findings"]]
    return [
        CompletionItem(finding["id"], help=f"{finding['code']} {finding['summary']}")
        for finding in every
        if finding["id"].startswith(begun)
    ]


def _named(ctx: click.Context) -> Iterator[dict[str, Any]]:
    """What the result tables hold that the line names before; a shell waits for this, so no capture is judged."""
    words = [*(ctx.params.get("inputs") or ()), *ctx.args, *filter(None, (ctx.params.get("out"),))]
    for folder in (path for path in map(Path, words) if path.is_dir()):
        from wirecheck.capture.arrow_alone import arrow_alone

        arrow_alone()
        from wirecheck.streaming.store.run_result import Result

        with suppress(LookupError):
            yield Result.latest(folder).json()


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
    from click.shell_completion import get_completion_class

    serve_shells()
    served = get_completion_class(shell)
    assert served is not None
    click.echo(served(ctx.find_root().command, {}, "wirecheck", "_WIRECHECK_COMPLETE").source())
