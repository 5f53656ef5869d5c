"""`wirecheck explain`: the page of one check.

Knows: how a page is put on a terminal. Refuses to know what a check finds (the catalogue) and what to do
about it (dashboards).
"""

import sys
from difflib import get_close_matches

import click

from wirecheck.commands import completion
from wirecheck.commands.ending import Stop
from wirecheck.commands.screen import console


@click.command(short_help="A check: what it finds, when it is innocent, what to do.")
@click.argument("code", required=False, shell_complete=completion.code)
def explain(code: str | None) -> None:
    """Say what a check finds, why it matters, when it is innocent and what to do; without CODE, which checks there are.

    CODE is a check's code or its name.

    \b
    Examples:
      wirecheck explain
      wirecheck explain TID002
      wirecheck explain topic-recreated
    """
    from wirecheck.dashboards.remedies import remedy
    from wirecheck.judge.checks import catalogue

    if code is None:
        for check in catalogue.CHECKS.values():
            click.echo(f"{check.code}  {check.kind:11}  {check.name}")
        return
    names = {check.name: check.code for check in catalogue.CHECKS.values()}
    wanted = names.get(code.lower(), code.upper())
    try:
        page = catalogue.page(wanted, remedy(wanted))
    except KeyError:
        close = get_close_matches(code.upper(), catalogue.CHECKS) + get_close_matches(code.lower(), names)
        hint = f"close to it: {', '.join(close)}" if close else "wirecheck explain, without a code, lists them all"
        raise Stop(f"{code}: no such check; {hint}") from None
    if sys.stdout.isatty():
        from rich.markdown import Markdown

        console().print(Markdown(page))
    else:
        click.echo(page)
