"""`wirecheck run`: capture while a command runs, and check what was captured when it ends.

The capture is a process of its own, which keeps CAP_NET_RAW; under sudo the command runs as the user who called. It
ends with the command's own exit status, unless that is 0. Nothing is judged here.
"""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from types import FrameType
from typing import Any, NoReturn

import click

from wirecheck.commands import options
from wirecheck.commands.ending import Stop, in_one_line
from wirecheck.commands.replay import FAIL_ON, check
from wirecheck.commands.screen import tell

DRAIN_S = 1.0
"""After the command's end: packets that the kernel still holds, and answers that are on their way."""
START_S, END_S, POLL_S = 30.0, 60.0, 0.02
ANY = "any"
IFF_UP = 1
"""Linux, include/uapi/linux/if.h."""
ROLL_S = "5"
PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
COMMAND_NOT_FOUND, CANNOT_EXECUTE, BY_SIGNAL = 127, 126, 128
"""Exit statuses of a shell."""


@click.command(
    cls=options.Sections,
    short_help="Capture while a command runs, then check.",
    context_settings={"allow_interspersed_args": False},
)
@click.option("-i", "interfaces", multiple=True, default=(ANY,), show_default=True, metavar="IFACE",
              help="Interface to capture on (repeatable); any: all.")  # fmt: skip
@options.ports
@click.option("--keep", type=options.TARGET, metavar="FILE", help="Keep the captured packets as pcapng.")
@click.option("--report", type=options.TARGET, metavar="HTML", help="Also write a self-contained HTML report.")
@FAIL_ON
@options.grace
@options.expect
@options.strict
@options.min_seen
@options.form(*options.VERDICT_FORMS)
@options.choice
@options.quiet
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND...")
def run(
    interfaces: tuple[str, ...], ports: tuple[int, ...], keep: Path | None, command: tuple[str, ...], **choices: Any
) -> None:
    """Capture Kafka traffic while COMMAND runs, such as an integration test, and check it when the command ends.

    Exit status: that of COMMAND if it is not 0; else as `wirecheck replay`. 2 if nothing can be captured: then COMMAND
    is not started. 127 if there is no COMMAND, 126 if it cannot be started: then nothing is captured. It needs
    CAP_NET_RAW; under sudo, COMMAND runs as the user who called sudo.

    \b
    Examples:
      sudo wirecheck run -- pytest tests/integration
      sudo wirecheck run -i lo --port 9092 --grace 5s,20s -- ./gradlew test
      sudo wirecheck run --keep test.pcapng -- ./smoke-test.sh
    """
    need_command(command[0])
    with tempfile.TemporaryDirectory(prefix="wirecheck-") as scratch, winning() as ended:
        frames = Path(scratch) / "frames"
        with capturing(interfaces, ports, frames):
            ended.status = status_of(command)
            sleep(DRAIN_S)
        if keep is not None:
            write_packets(frames, keep)
        shown_as = (str(keep),) if keep is not None else ()
        check((str(frames),), shown_as, ports=ports, **choices)


@dataclass
class Ended:
    """What the command ended with; 0 before its end."""

    status: int = 0


@contextmanager
def winning() -> Iterator[Ended]:
    """The command's status is the status, whatever becomes of the capture and of its check; unless it is 0."""
    ended = Ended()
    try:
        with in_one_line():
            yield ended
    except SystemExit as end:
        raise SystemExit(ended.status or end.code) from None
    except click.ClickException as error:
        if not ended.status:
            raise
        tell(f"wirecheck: {error.format_message()}")
        raise SystemExit(ended.status) from None
    except Exception:
        if not ended.status:
            raise
        traceback.print_exc()
        raise SystemExit(ended.status) from None


def need_command(name: str) -> None:
    """End as a shell does where there is no such command, or it cannot be started, before anything is captured."""
    found = name if os.sep in name and Path(name).exists() else shutil.which(name, os.F_OK)
    if not found:
        not_started(name, "no such command", COMMAND_NOT_FOUND)
    if Path(found).is_dir() or not os.access(found, os.X_OK):
        not_started(name, "is a folder" if Path(found).is_dir() else "is not executable", CANNOT_EXECUTE)


def not_started(name: str, why: str, status: int) -> NoReturn:
    tell(f"wirecheck: {name}: {why}")
    raise SystemExit(status)


@contextmanager
def capturing(interfaces: tuple[str, ...], ports: tuple[int, ...], out: Path) -> Iterator[None]:
    """An agent that captures into a folder; Stop with its own words where it cannot."""
    arguments = [option for name in named(interfaces) for option in ("-i", name)]
    arguments += [option for port in ports for option in ("--port", str(port))]
    agent = [sys.executable, "-m", "wirecheck", "capture", *arguments, "--out", str(out), "--roll-s", ROLL_S]
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(  # noqa: S603 - our own command
            agent, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
        try:
            await_begin(process, output)
            yield
        finally:
            if process.poll() is None:
                process.terminate()
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    if process.returncode:
        raise Stop(f"the capture ended with status {process.returncode}")


def named(interfaces: tuple[str, ...]) -> list[str]:
    """`any`: all that are there now. A packet that passes two of them counts once."""
    return [one for name in interfaces for one in (all_interfaces() if name == ANY else [name])]


def all_interfaces() -> list[str]:
    """Those that are up."""
    return [name for _, name in socket.if_nameindex() if is_up(name)]


def is_up(name: str) -> bool:
    with suppress(OSError):
        return bool(int(Path("/sys/class/net", name, "flags").read_text("ascii"), 16) & IFF_UP)
    return False


def await_begin(process: "subprocess.Popen[bytes]", output: Any) -> None:
    from wirecheck.capture.agent.live_agent import BEGUN

    until_s = monotonic() + START_S
    while monotonic() < until_s:
        output.seek(0)
        text = output.read().decode(errors="replace")
        if f"wirecheck: {BEGUN}" in text:
            return
        if process.poll() is not None:
            raise Stop(
                text.strip().removeprefix("wirecheck: ") or f"the capture ended with status {process.returncode}"
            )
        sleep(POLL_S)
    raise Stop(f"the capture did not begin within {START_S:.0f} s")


def status_of(command: tuple[str, ...]) -> int:
    """Run it, and pass signals on that do not reach it of themselves. Its exit status as a shell has it."""
    try:
        process = subprocess.Popen(command, **caller())  # noqa: S603 - what the user asked for
    except FileNotFoundError:
        not_started(command[0], "no such command", COMMAND_NOT_FOUND)
    except OSError as error:
        not_started(command[0], str(error.strerror).lower(), CANNOT_EXECUTE)

    def pass_on(number: int, _: FrameType | None) -> None:
        if number != signal.SIGINT or not in_foreground():
            process.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in PASSED_ON}
    try:
        status = process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return status if status >= 0 else BY_SIGNAL - status


def in_foreground() -> bool:
    """Whether the terminal sends Ctrl-C to all of this process group, so also to the command."""
    with suppress(OSError), Path(os.ctermid()).open("rb", buffering=0) as terminal:
        return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    return False


def caller() -> dict[str, Any]:
    """Under sudo, how the command becomes a process of the user who called; else nothing."""
    uid = os.environ.get("SUDO_UID", "")
    if os.geteuid() != 0 or not uid.isdecimal() or uid == "0":
        return {}
    gid = int(os.environ.get("SUDO_GID", "") or uid)
    try:
        name = pwd.getpwuid(int(uid))
        folder, groups = name.pw_dir, os.getgrouplist(name.pw_name, gid)
    except KeyError:
        folder, groups = "/", [gid]
    user = os.environ.get("SUDO_USER", "")
    environment = {**os.environ, "HOME": folder, "USER": user, "LOGNAME": user}
    return {"user": int(uid), "group": gid, "extra_groups": groups, "env": environment}


def write_packets(frames: Path, target: Path) -> None:
    """All that was captured as pcapng, without records and secrets as always."""
    from wirecheck.capture.evidence import pcapng_export
    from wirecheck.commands.outputs import writable

    files = sorted(frames.glob("*.parquet"))
    label = "default"
    pairs = set(pcapng_export.connections(files, label))
    with writable(target):
        pcapng_export.write(target, pcapng_export.selected(files, label, pairs), "wirecheck run", {})
