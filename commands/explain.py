"""`wirecheck explain`: the page of one check.

Knows: how a page is put on a terminal. Refuses to know what a check finds (the catalogue) and what to do
about it (dashboards).
"""

import sys

import click

from commands.ending import Stop
from commands.screen import console


@click.command()
@click.argument("code")
def explain(code: str) -> None:
    """Say what a check finds, why it matters, when it is innocent and what to do.

    \b
    Example:
      wirecheck explain TID002
    """
    from dashboards.remedies import remedy
    from streaming.judge import catalogue

    try:
        page = catalogue.page(code.upper(), remedy(code.upper()))
    except KeyError:
        raise Stop(f"{code}: no such check; CHECKS.md lists them all") from None
    from rich.markdown import Markdown

    console().print(Markdown(page) if sys.stdout.isatty() else page, soft_wrap=True, markup=False, highlight=False)
