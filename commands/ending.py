"""How a command ends: exit codes, and the one line that an error gets.

Knows: 0 clean, 1 findings at or above --fail-on (or whatever a gate was asked about), 2 usage error or nothing usable.
Refuses to know what was wrong: the room that noticed says it, in one line, with what and where.
"""

import sys
from typing import Any

import click

from commands.screen import legible

FOUND, UNUSABLE = 1, 2


class Stop(click.ClickException):
    """An end with one clear line on stderr and exit code 2."""

    exit_code = UNUSABLE

    def show(self, file: Any = None) -> None:
        click.echo(legible(f"wirecheck: {self.format_message()}"), file=file or sys.stderr)
