"""`wirecheck capture`: packets of interfaces or files into the frames table.

It checks which options go together and turns errors into one line each; reading and writing is the capture package's.
"""

import errno
import platform
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from wirecheck.commands import completion, options
from wirecheck.commands.ending import Stop
from wirecheck.commands.screen import note, tell
from wirecheck.commands.units import duration, size
from wirecheck.session.inputs import places
from wirecheck.session.local_check import write_frames
from wirecheck.session.results import NOT_WHOLE
from wirecheck.wording import plural

if TYPE_CHECKING:
    from wirecheck.capture.agent.counts import Counts
    from wirecheck.capture.agent.offline_agent import Summary

SPOOL_BYTES = 10 << 30
"""Default limit of the bytes that wait to be shipped."""
OF_FILES = {"first", "more", "out", "cluster", "keep_records", "strict"}


@click.command(cls=options.Sections, short_help="Run the capture agent, or convert captures to frames.")
@options.interfaces("Capture on this interface (repeatable).")
@click.option(
    "-r", "first", multiple=True, metavar="FILE...", shell_complete=completion.path,
    help="Read these captures: pcap or pcapng, also compressed, or - for standard input.",
)  # fmt: skip
@click.argument("more", nargs=-1, metavar="", shell_complete=completion.path)
@click.option("--out", required=True, type=options.TARGET, help="Directory for the frames files.")
@options.cluster
@options.keylog
@click.option("--agent", metavar="NAME", help="Name of this agent and its files.  [default: the host's name]")
@options.ports
@click.option("--filter", "bpf", metavar="BPF", help="tcpdump filter, instead of --port; needs libpcap.")
@options.strict
@options.quiet
@click.option("--keep-records", is_flag=True, help="Do not redact records, secrets and unrecognized data.")
@click.option(
    "--roll-mb",
    type=click.FloatRange(0.1, 512),
    default=64,
    show_default=True,
    help="Start a new file at this size (MiB).",
)
@click.option(
    "--roll-s",
    type=duration,
    metavar="DURATION",
    default=2,
    show_default=True,
    help="Start a new file after this time (s).",
)
@click.option(
    "--max-disk", type=size, metavar="SIZE", help="Stop writing while this agent's files have this size, such as 10G."
)
@click.option(
    "--retain", type=duration, metavar="DURATION", help="Remove this agent's files after this time, such as 24h."
)
@click.option(
    "--ship",
    metavar="URI",
    shell_complete=completion.path,
    help="Send complete files to a URI (s3://bucket/frames) or directory. --out is then the spool (10G by default).",
)
@click.option("--metrics-port", type=click.IntRange(1, 65535), help="Serve Prometheus metrics on this port.")
@click.option("--metrics-address", default="127.0.0.1", show_default=True, help="Address for the metrics server.")
@click.option(
    "--buffer-mb", type=click.IntRange(2), default=128, show_default=True, help="Ring buffer per interface (MiB)."
)
@click.option(
    "--duration", type=duration, metavar="DURATION", help="Stop after this time, such as 30s.  [default: never]"
)
@click.option("--promiscuous", is_flag=True, help="Also capture packets of other hosts.")
@click.pass_context
def capture(ctx: click.Context, /, interfaces: tuple[str, ...], **choices: Any) -> None:
    """Capture Kafka traffic as frames files (Parquet), for replay and monitor.

    With -i, the capture agent runs until SIGTERM, Ctrl-C or --duration; SIGHUP starts a new file. It needs CAP_NET_RAW
    and nothing else; `wirecheck doctor` shows what is missing. Its last line, metrics and files show lost packets.

    \b
    Examples:
      wirecheck capture -i eth0 --port 9092 --out frames/ --cluster prod
      wirecheck capture -i eth0 --port 9092 --out spool/ --ship s3://bucket/frames
      wirecheck capture -i eth0 --filter 'not port 22' --out frames/
      wirecheck capture -i eth0 --port 9093 --keylog keys.log --out frames/
      wirecheck capture -r incident.pcapng --out frames/
    """
    first, more = choices.pop("first"), choices.pop("more")
    if bool(interfaces) == bool(first):
        raise click.UsageError("give -i IFACE or -r FILE, and not both")
    if interfaces and more:
        raise click.UsageError(f"{more[0]}: read files with -r, without -i")
    strict = choices.pop("strict")
    if interfaces and strict:
        raise click.UsageError("--strict goes with -r, not with -i")
    if choices["ports"] and choices["bpf"]:
        raise click.UsageError("give --port or --filter, and not both")
    if choices["ship"] is not None and choices["retain"] is not None:
        raise click.UsageError(
            "--retain does not go with --ship: files leave when they are shipped; --max-disk bounds them"
        )
    if interfaces:
        live(interfaces, **choices)
        return
    for name in choices.keys() - OF_FILES:
        if ctx.get_parameter_source(name) not in {ParameterSource.DEFAULT, None}:
            raise click.UsageError(f"{flag(ctx, name)} goes with -i, not with -r")
    files(first + more, choices["out"], choices["cluster"], keep_records=choices["keep_records"], strict=strict)


def flag(ctx: click.Context, name: str) -> str:
    return next(param.opts[-1] for param in ctx.command.params if param.name == name)


def files(names: tuple[str, ...], out: Path, cluster: str, *, keep_records: bool, strict: bool) -> None:
    given = places(names)
    from wirecheck.capture.agent.offline_agent import OFFLINE

    if any(out.glob(f"{OFFLINE}-*.parquet")):
        tell(f"wirecheck: {out} already holds frames of an earlier `capture -r`; messages in both count twice")
    summary = write_frames(options.session(), given, out, cluster, keep_records=keep_records)
    for line in summary.input_errors:
        tell(f"wirecheck: {line}")
    note(offline_line(summary, out))
    if strict and summary.input_errors:
        raise Stop(NOT_WHOLE)


def offline_line(summary: "Summary", out: Path) -> str:
    """`1,234 frames in 5 files under DIR; lost 7 while it was captured; skipped 3 not-ip`."""
    parts = [f"{summary.frames:,} frames in {plural(len(summary.files), 'file')} under {out}"]
    if summary.dropped:
        parts.append(f"lost {summary.dropped:,} while it was captured")
    return "; ".join([*parts, *skipped(summary.skipped)])


def skipped(packets: Mapping[str, int]) -> list[str]:
    """Packets that are no frames, by reason, in a few words; empty without any."""
    reasons = ", ".join(f"{n:,} {reason}" for reason, n in sorted(packets.items()))
    return [f"skipped {reasons}"] if reasons else []


def live(interfaces: tuple[str, ...], out: Path, cluster: str, agent: str | None, **choices: Any) -> None:
    """Capture until a signal or `--duration`; then print one line with the counts."""
    with one_line_errors(out):
        from wirecheck.capture.agent.counts import Counts
        from wirecheck.capture.agent.live_agent import Listening, listen
        from wirecheck.capture.agent.spool_folder import Limits
        from wirecheck.capture.frames import Stamp

        if ship := choices["ship"]:
            from wirecheck.capture.agent.shipper import Destination
        what = Listening(
            tuple(dict.fromkeys(interfaces)),
            choices["ports"],
            choices["bpf"],
            promiscuous=choices["promiscuous"],
            buffer_bytes=choices["buffer_mb"] << 20,
            roll_bytes=int(choices["roll_mb"] * (1 << 20)),
            roll_s=choices["roll_s"],
            duration_s=choices["duration"],
            limits=Limits(choices["max_disk"], choices["retain"])
            if ship is None
            else Limits(choices["max_disk"] or SPOOL_BYTES, ships=True),
            destination=None if ship is None else Destination(ship),
            keep_records=choices["keep_records"],
            key_logs=tuple(options.key_logs(missing=True)),
        )
        stamp, counts = Stamp(cluster, agent or host_name()), Counts()
        with served(counts, choices["metrics_address"], choices["metrics_port"]):
            listen(what, out, stamp, lambda line: tell(f"wirecheck: {line}"), counts, begun=begun)
    (tell if any(counts.lost.values()) else note)(summary_line(counts, out))


def begun(line: str) -> None:
    note(f"wirecheck: {line}")


def summary_line(counts: "Counts", out: Path) -> str:
    """`1,234 frames in 5 files under DIR; 1,000 of 9,000 payload bytes kept; lost 0 in the kernel, 0 at the disk`."""
    parts = [
        f"{counts.kept_frames:,} frames in {plural(counts.files, 'file')} under {out}",
        f"{counts.kept_bytes:,} of {sum(counts.payload_bytes.values()):,} payload bytes kept",
        f"lost {counts.lost_by('kernel'):,} in the kernel, {counts.lost_by('disk'):,} at the disk",
    ]
    if counts.backlog is not None:
        parts.append(
            f"{plural(counts.shipped_files, 'file')} shipped, {counts.lost_by('spool'):,} frames lost in the spool"
        )
    if counts.tls is not None:
        tls = counts.tls
        parts.append(
            f"TLS connections: {tls.decrypted:,} decrypted, {tls.without_keys:,} without keys, {tls.failed:,} failed"
        )
    return "; ".join([*parts, *skipped(counts.skipped)])


def served(counts: "Counts", address: str, port: int | None) -> Any:
    if port is None:
        return nullcontext()
    from wirecheck.capture.agent import agent_metrics

    return agent_metrics.served(counts, address, port)


def host_name() -> str:
    """Of this host, as a file can be called."""
    return re.sub(r"[^A-Za-z0-9_.-]", "-", platform.node()).lstrip("-_.") or "agent"


@contextmanager
def one_line_errors(out: Path) -> Iterator[None]:
    from wirecheck.capture.refusal import AgentNameError, DestinationError, ListenError
    from wirecheck.capture.tls.key_log import KeyLogError

    try:
        yield
    except (ListenError, AgentNameError, DestinationError, KeyLogError) as error:
        raise Stop(str(error)) from error
    except OSError as error:
        raise Stop(f"{error.filename or out}: {str(error.strerror or error).lower()}{fix(error, out)}") from error


def fix(error: OSError, out: Path) -> str:
    """What to do about it, where that is known; EAGAIN is the folder's lock."""
    match error.errno:
        case errno.EAGAIN:
            return "; stop it, or choose another --out or --agent"
        case errno.EACCES | errno.EPERM:
            return f"; let the agent's user write there: chown USER {out}"
        case errno.EROFS:
            return f"; in a systemd unit: ReadWritePaths={out.absolute()}"
        case errno.EADDRINUSE:
            return "; choose another --metrics-port"
        case _:
            return ""
