"""`wirecheck top`: current traffic, as one screen that is redrawn.

Bounded: traffic of a window, findings as a replay keeps them, frames in a folder that is emptied. Without a terminal it
prints once and ends.
"""

import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from wirecheck.commands import completion, options
from wirecheck.commands.ending import Stop
from wirecheck.commands.inputs import arriving, files_in, frames_of, holds_tables, places
from wirecheck.commands.screen import console, legible
from wirecheck.commands.units import rfc3339

if TYPE_CHECKING:
    from wirecheck.dashboards.top_screen import Sample
    from wirecheck.decode.show.recent_traffic import Talker

Row = dict[str, Any]
NS_PER_S = 1_000_000_000
DRAW_S = 1.0
KEEP_BYTES = "256M"
"""Frames of an interface that are kept on disk at most."""
MOST_ERRORS = 50
WRITTEN = "*/run=*", "*/_delta_log"
"""Folders of a monitor's results that change with each batch: Parquet's, Delta's."""
ESCAPES = {"\x1b[A": "up", "\x1b[B": "down", "\x1bOA": "up", "\x1bOB": "down", "\x1b": "escape"}
PLAIN = {"\r": "enter", "\n": "enter", "\x7f": "backspace", "\x08": "backspace"}


@click.command(short_help="Show open findings, busy clients and recent errors live.")
@click.argument("inputs", nargs=-1, metavar="[INPUT...]", shell_complete=completion.path)
@options.interfaces("Listen on this interface (repeatable); needs CAP_NET_RAW.")
@options.ports
@click.option(
    "--window", type=click.IntRange(1, 3600), default=10, show_default=True, help="Interval for rates, in seconds."
)
@click.option("--once", is_flag=True, help="Print once, then exit (default without a terminal).")
@options.keylog
@options.quiet
def top(
    inputs: tuple[str, ...], interfaces: tuple[str, ...], ports: tuple[int, ...], window: int, *, once: bool
) -> None:
    """Show open findings with their age, who talks (requests, errors, latency, throttling), and the last errors.

    INPUT is a capture that is being written, folders of frames, or the --out folder of a monitor. Without a terminal,
    or with --once, the view is printed once: of an interface after --window seconds, of all else at its end.

    Keys: q quit, / filter, s sort, arrows select, Enter open, Esc back, p pause.

    \b
    Examples:
      wirecheck top -i eth0 --port 9092
      wirecheck top growing.pcap
      wirecheck top verdicts/
    """
    if bool(inputs) == bool(interfaces):
        raise click.UsageError("give inputs, or interfaces with -i")
    once = once or not (sys.stdin.isatty() and sys.stdout.isatty())
    given = places(inputs)
    with TemporaryDirectory(prefix="wirecheck-top-") as scratch:
        if any(map(holds_tables, given)):
            if len(given) > 1:
                raise click.UsageError("give one folder of a monitor alone")
            show(Results(given[0]), once=once)
        elif interfaces:
            with agent(interfaces, ports, Path(scratch), window if once else None) as frames:
                show(Live([frames], ports, None if once else window, ", ".join(interfaces)), once=once)
        elif once:
            with frames_of(inputs, Path(scratch) / "frames", "default", keep_records=False) as frames:
                frames.wait()
                show(Live(frames.all_folders, ports, None, ", ".join(inputs)), once=True)
        else:
            show(Live(given, ports, window, ", ".join(inputs), Path(scratch)), once=False)


@contextmanager
def agent(interfaces: tuple[str, ...], ports: tuple[int, ...], scratch: Path, duration_s: int | None) -> Iterator[Path]:
    """An agent of our own, in a process beside this one. Stop where it cannot listen."""
    frames = scratch / "frames"
    words = [sys.executable, "-m", "wirecheck", "capture", "--out", str(frames), "--roll-s", "1", "-q"]
    words += [word for name in interfaces for word in ("-i", name)]
    words += [word for port in ports for word in ("--port", str(port))]
    words += ["--max-disk", KEEP_BYTES, "--retain", "60s"] if duration_s is None else ["--duration", f"{duration_s}s"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:  # noqa: S603 - our own words
        try:
            while not any(frames.glob("*.parquet")):
                if process.poll() is not None:
                    lines = process.stderr.read().strip() if process.stderr else ""
                    raise Stop(lines.removeprefix("wirecheck: ") or "the agent ended")
                time.sleep(0.1)
            if duration_s is not None:
                process.wait()
            yield frames
        finally:
            process.terminate()


class Live:
    """Frames as they come: their traffic, and what the checks say of them."""

    def __init__(
        self, inputs: list[Path], ports: tuple[int, ...], window_s: int | None, name: str, scratch: Path | None = None
    ) -> None:
        from wirecheck.capture.arrow_alone import arrow_alone

        arrow_alone()
        from wirecheck.decode.connection.follower import Follower
        from wirecheck.decode.show.recent_traffic import RecentTraffic
        from wirecheck.streaming.run.local_replay import LocalReplay
        from wirecheck.streaming.steps.settings import Settings

        self._name, self._window_s = name, window_s
        self._follower = Follower(ports=frozenset(ports))
        self._recent = RecentTraffic(window_s)
        self._replay = LocalReplay(Settings(ports=frozenset(ports)))
        self._new = new_files(inputs, scratch, ends=window_s is None)
        self._frames = 0

    def look(self) -> bool:
        """Take what is new; whether more may be there at once."""
        from wirecheck.capture.frames import FRAME
        from wirecheck.commands.frame_tables import opened
        from wirecheck.decode.connection.segments import segments

        files = next(self._new, None)
        if files is None:
            return False
        for file in files:
            table = opened(file, [])
            if table is not None:
                self._frames += int((table["kind"].to_numpy() == FRAME).sum())
                rows = segments(table)
                if len(rows):
                    self._recent.add(self._follower.receive(rows))
        if files:
            self._replay.judge(files)
        return bool(files)

    def end(self) -> None:
        """Nothing more comes."""
        while self.look():
            pass
        self._recent.add(self._follower.drain())

    def sample(self) -> "Sample":
        from wirecheck.dashboards.top_screen import Failed, Sample

        recent, newest_ns = self._recent, self._recent.newest_ns
        errors = [
            Failed(
                rfc3339(one.last_ns)[11:19],
                text_of(one.client_id or one.host),
                one.api,
                text_of(one.topic),
                one.error,
                one.times,
            )
            for one in recent.errors()[:MOST_ERRORS]
        ]
        return Sample(
            self._name,
            f"{rfc3339(newest_ns)[11:19]} UTC  {self._frames:,} frames" if newest_ns else "",
            findings_of(self._replay.result().json(inputs=(self._name,)), newest_ns) if self._frames else (),
            tuple(talk_of(one, self._name) for one in recent.talkers()),
            tuple(errors),
            "" if newest_ns else "no Kafka traffic yet",
        )


class Results:
    """What a monitor has written: findings, and clients with their requests."""

    def __init__(self, out: Path) -> None:
        from wirecheck.capture.arrow_alone import arrow_alone

        arrow_alone()
        self._out = out
        self._written_ns = -1
        self._sample: Sample | None = None
        self._before: dict[tuple[str, str], int] = {}
        self._looked_s = 0.0
        self._per_s: dict[tuple[str, str], float] = {}

    def look(self) -> bool:
        return False

    def end(self) -> None:
        pass

    def sample(self) -> "Sample":
        """Of what is written; it is read again only where that changed."""
        written_ns = max((path.stat().st_mtime_ns for found in WRITTEN for path in self._out.glob(found)), default=0)
        if self._sample is None or written_ns != self._written_ns:
            self._sample, self._written_ns = self._read(), written_ns
        return self._sample

    def _read(self) -> "Sample":
        from wirecheck.dashboards.top_screen import Sample, Talk
        from wirecheck.story.cards import plural
        from wirecheck.streaming.store.run_result import SPANNED, Result

        try:
            result = Result.latest(self._out, SPANNED).json()
        except LookupError:
            return Sample(str(self._out), "", (), (), (), "no batch yet")
        newest = max((row["last_seen"] for row in (*result["clients"], *result["findings"])), default="")
        self._measure(result["clients"])
        errors = sorted(legible(result["harms"]), key=lambda one: one["last_seen"], reverse=True)
        talks = []
        for client in legible(result["clients"]):
            name = str(client["client_id"] or "(no client ID)"), client["address"]
            software = " ".join(filter(None, (client["software_name"], client["software_version"])))
            apis = ", ".join(f"{api} v{'/'.join(map(str, versions))}" for api, versions in client["apis"].items())
            details = f"{client['requests']:,} requests since {client['first_seen']}", software, apis
            used, per_s = plural(len(client["apis"]), "API"), self._per_s.get(name, 0.0)
            talks.append(Talk(*name, used, per_s, 0.0, None, 0, 0.0, details, ()))
        return Sample(
            str(self._out),
            newest[11:19] + " UTC" if newest else "",
            findings_of(result, ns_of(newest)),
            tuple(talks),
            tuple(failed_of(one) for one in errors[:MOST_ERRORS]),
            "no latencies",
        )

    def _measure(self, clients: list[Row]) -> None:
        """Requests per second between two looks."""
        now = time.monotonic()
        requests = {(str(c["client_id"] or "(no client ID)"), c["address"]): c["requests"] for c in clients}
        if self._before and requests != self._before:
            passed = now - self._looked_s
            self._per_s = {name: (n - self._before.get(name, 0)) / passed for name, n in requests.items()}
        if requests != self._before:
            self._before, self._looked_s = requests, now


def new_files(inputs: list[Path], scratch: Path | None, *, ends: bool) -> Iterator[list[Path]]:
    """Files of frames as they appear, an empty list where nothing is new; it ends if `ends`, where a capture does."""
    folders = [path for path in inputs if path.is_dir()]
    if folders:
        if len(folders) < len(inputs):
            raise Stop("top reads one capture, or folders of frames")
        yield from [files_in(folders)] if ends else arriving(folders, lambda _why: None)
        return
    if len(inputs) > 1:
        raise Stop("top reads one capture, or folders of frames")
    from wirecheck.capture.agent.offline_agent import write_growing
    from wirecheck.capture.source import pcap
    from wirecheck.capture.tls.key_log import KeyLogError

    assert scratch is not None
    try:
        for files in write_growing(inputs[0], scratch / "frames", options.key_logs()):
            yield files
            for file in files:  # they have been read
                file.unlink()
    except (pcap.InputError, KeyLogError) as error:
        raise Stop(str(error)) from error


def show(source: Live | Results, *, once: bool) -> None:
    """Draw until somebody quits; or once."""
    from wirecheck.dashboards.top_screen import Screen

    screen = Screen(still=once)
    if once:
        source.end()
        shown = console()
        shown.print(screen.draw(source.sample(), shown.width, 10_000))
        return
    from rich.live import Live as Drawn

    shown = console()
    with pressed() as keys, Drawn(console=shown, screen=True, auto_refresh=False) as drawn:
        sample = source.sample()
        while not screen.over:
            if not screen.paused:
                until = time.monotonic() + DRAW_S
                while source.look() and time.monotonic() < until:
                    pass
                sample = source.sample()
            drawn.update(screen.draw(sample, shown.width, shown.height), refresh=True)
            until = time.monotonic() + DRAW_S
            while not screen.over and (left := until - time.monotonic()) > 0:
                for key in keys(left):  # each shows at once, though what is shown is of the last look
                    screen.press(key)
                    drawn.update(screen.draw(sample, shown.width, shown.height), refresh=True)


@contextmanager
def pressed() -> Iterator[Callable[[float], list[str]]]:
    """Give what waits for keys, so many seconds at most; the terminal is as before at the end."""
    import termios
    import tty

    file = sys.stdin.fileno()
    before = termios.tcgetattr(file)
    tty.setcbreak(file)

    def keys(seconds: float) -> list[str]:
        with suppress(InterruptedError):
            if select.select([file], [], [], seconds)[0]:
                return names_of(os.read(file, 64).decode(errors="replace"))
        return []

    try:
        yield keys
    finally:
        termios.tcsetattr(file, termios.TCSADRAIN, before)


def names_of(text: str) -> list[str]:
    """Keys in what a terminal sent; it is over where nothing can be read any more."""
    if not text:
        return ["q"]
    found = []
    while text:
        escape = next((code for code in ESCAPES if text.startswith(code)), None)
        found.append(ESCAPES[escape] if escape else PLAIN.get(text[0], text[0]))
        text = text[len(escape) if escape else 1 :]
    return found


def findings_of(result: Row, now_ns: int) -> Any:
    """The cards of causes and of what stands alone, the worst harm first."""
    from wirecheck.dashboards.top_screen import Finding

    opened = {one["id"]: one["first_seen"] for one in result["findings"]}
    rows = []
    for entry in legible(result["entries"]):
        card, kinds = entry["card"], [row["kind"] for row in (entry, *entry["consequences"])]
        kind = min(kinds, key=["violation", "anomaly", "visibility", "information"].index)
        rows.append(
            Finding(
                "violation" if card["harm"]["clients"] else kind,
                entry["code"],
                card["headline"],
                (now_ns - ns_of(opened[entry["findings"][0]])) / NS_PER_S,
                card["action"]["sentence"],
                (*card["action"]["commands"], card["evidence"]["command"]),
            )
        )
    return tuple(rows)


def failed_of(harm: Row) -> Any:
    """A row of the table of harms, as one of the last errors."""
    from wirecheck.dashboards.top_screen import Failed

    who, about = harm["client_id"] or harm["address"], harm["topic"] or harm["topic_id"] or ""
    return Failed(harm["last_seen"][11:19], who, harm["api"], about, ", ".join(harm["errors"]), harm["count"])


def talk_of(one: "Talker", source: str) -> Any:
    from wirecheck.dashboards.top_screen import Talk

    client = text_of(one.client_id) if one.client_id else "(no client ID)"
    brokers = ", ".join(f"{server} ({count:,})" for server, count in one.servers.most_common(5))
    details = (
        f"versions {', '.join(map(str, sorted(one.versions)))}",
        f"brokers {brokers}",
        f"{one.requests:,} requests, {one.errors:,} errors, {one.throttled:,} throttled in {one.seconds:.0f} s",
    )
    look = f"wirecheck decode {source} --client {client} --api {one.api}"
    return Talk(
        client, one.host, one.api, one.requests_per_s, one.errors_per_s, one.p99_ms, one.throttled,
        one.bytes / one.seconds, details, (look,) if one.client_id else (),
    )  # fmt: skip


def text_of(text: str) -> str:
    return str(legible(text))


def ns_of(time_text: str) -> int:
    import datetime as dt

    return int(dt.datetime.fromisoformat(time_text).timestamp()) * NS_PER_S if time_text else 0
