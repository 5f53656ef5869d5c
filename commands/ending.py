"""How a command ends: exit codes, and one line per error.

0 clean, 1 findings at or above --fail-on (or what a gate was asked about), 2 usage error, nothing usable, or a fault of
wirecheck's own (with a traceback), 130 interrupted, 141 the reader of the output has gone (128 and the signal's number,
as shells count).
"""

import _thread
import errno
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import click

from wirecheck.commands.screen import worded
from wirecheck.session.inputs import denied
from wirecheck.session.session import ArgumentError, InputError

FOUND, UNUSABLE, INTERRUPTED, UNREAD = 1, 2, 130, 141


EXTRAS = {
    "scapy": "capture",
    "prometheus_client": "capture,monitor",
    "pandas": "monitor",
    "deltalake": "delta",
}
"""What a package that is not there is part of; all others are what judging needs."""


DISK_FAULTS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS}
"""What is reported of a disk that is full, or fails."""


class Stop(click.ClickException):
    """An end with one clear line on stderr and exit code 2."""

    exit_code = UNUSABLE

    def show(self, file: Any = None) -> None:
        click.echo(worded(f"wirecheck: {self.format_message()}"), file=file or sys.stderr)


@contextmanager
def in_one_line() -> Iterator[None]:
    """Wrong use gets a line like every other error, not click's block: what is wrong, and where to read on.

    So does a program that was installed for less than it is asked for, a place that this user may not look into, and a
    disk that is full.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package, dot, _ = str(error.name).partition(".")
        if dot:  # the package is there, and is another version
            need_fitting()
        extra = EXTRAS.get(package, "monitor")
        raise Stop(f"{package} is not installed: install wirecheck's wheel with [{extra}]") from error
    except ImportError:  # a package that has not what is taken from it
        need_fitting()
        raise
    except PermissionError as error:
        if error.filename is None:
            raise
        raise Stop(denied(error.filename)) from error
    except OSError as error:
        if error.errno not in DISK_FAULTS:
            raise
        if error.filename is None:
            drop_output()
        raise Stop(f"{error.filename or 'the output'}: {error.strerror}") from error
    except ArgumentError as error:
        ctx = click.get_current_context(silent=True)
        command = f"{ctx.command_path} {ctx.invoked_subcommand or ''}".rstrip() if ctx else "wirecheck"
        raise Stop(f"{error}; see {command} --help") from error
    except InputError as error:
        raise Stop(str(error)) from error
    except ValueError as error:
        from wirecheck.streaming.store.result_damage import DamagedResultError

        if isinstance(error, DamagedResultError):
            raise Stop(str(error)) from error
        raise
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.UsageError as wrong:
        text = " ".join(one_option(wrong).split()).rstrip(".")
        raise Stop(f"{text}; see {wrong.ctx.command_path} --help" if wrong.ctx else text) from wrong


def one_option(wrong: click.UsageError) -> str:
    """What click says of wrong use; of an option that does not exist only the closest that does."""
    if isinstance(wrong, click.NoSuchOption) and wrong.possibilities:
        return f"{wrong.message.rstrip('.')}; did you mean {wrong.possibilities[0]}?"
    return wrong.format_message()


def need_fitting() -> None:
    """Stop where a package that judging needs is of another version than it was made for."""
    from wirecheck.streaming.run.query_requirements import packages

    for package in packages():
        if package.state == "fail":
            raise Stop(f"{package.name} {package.text}: {package.fix}")


@contextmanager
def orderly() -> Iterator[None]:
    """Ctrl-C is one line, a reader that has gone is none; whatever was opened inside has been closed by then."""
    try:
        with interruptible():
            yield
    except KeyboardInterrupt:
        click.echo("wirecheck: interrupted", err=True)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        drop_output()
        sys.exit(UNREAD)


def drop_output() -> None:
    """What is still buffered could not be written either: Python would try again as it ends."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C ends the work wherever it comes: libraries neither write about it on the terminal nor swallow it."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler or not main_thread():
        yield  # somebody else has an end of their own in mind
        return
    hook = sys.unraisablehook

    def quiet(unraisable: Any) -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            _thread.interrupt_main()  # a callback of C code cannot raise: it is said again to who can
        else:
            hook(unraisable)

    def stop(_signal: int, _frame: Any) -> None:
        logging.disable(logging.CRITICAL)  # py4j logs a traceback for the call that was cut off
        sys.unraisablehook = quiet
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
