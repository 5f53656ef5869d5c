"""`wirecheck top`: current traffic, as one screen that is redrawn.

Bounded: traffic of a window, findings as a replay keeps them, frames in a folder that is emptied. Without a terminal it
prints once and ends.
"""

import os
import select
import shlex
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from wirecheck.commands import completion, options
from wirecheck.commands.ending import Stop
from wirecheck.commands.screen import console, legible
from wirecheck.session.frame_tables import opened
from wirecheck.session.inputs import arriving, files_in, holds_tables, places, readable
from wirecheck.session.local_check import frames_of
from wirecheck.wording import NS_PER_S, client_name, clock, plural

if TYPE_CHECKING:
    from wirecheck.dashboards.top_screen import Failed, Sample, Talk
    from wirecheck.questions.traffic import Traffic
    from wirecheck.story.seen import Client
    from wirecheck.story.verdict import Verdict

Row = dict[str, Any]
DRAW_S = 1.0
KEEP_BYTES = "256M"
"""Frames of an interface that are kept on disk at most."""
MOST_ERRORS = 50
P99 = 0.99
WRITTEN = "*/run=*", "*/_delta_log"
"""Folders of a monitor's results that change with each batch: Parquet's, Delta's."""
ESCAPES = {"\x1b[A": "up", "\x1b[B": "down", "\x1bOA": "up", "\x1bOB": "down", "\x1b": "escape"}
PLAIN = {"\r": "enter", "\n": "enter", "\x7f": "backspace", "\x08": "backspace"}


@click.command(cls=options.Sections, short_help="Show open findings, busy clients and recent errors live.")
@click.argument("inputs", nargs=-1, metavar="[INPUT...]", shell_complete=completion.path)
@options.interfaces("Listen on this interface (repeatable); needs CAP_NET_RAW.")
@options.ports
@click.option(
    "--window", type=click.IntRange(1, 3600), default=10, show_default=True, help="Interval for rates, in seconds."
)
@click.option("--once", is_flag=True, help="Print once, then exit (default without a terminal).")
@options.keylog
@options.dialect
@options.quiet
def top(
    inputs: tuple[str, ...], interfaces: tuple[str, ...], ports: tuple[int, ...], window: int, *, once: bool
) -> None:
    """Show open findings with their age, the busiest clients, and the last errors.

    INPUT is a capture that is being written, folders of frames, or the --out folder of a monitor. Without a terminal,
    or with --once, the view is printed once: for an interface after --window seconds, otherwise at the end of INPUT.

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
    with TemporaryDirectory(prefix="wirecheck-top-") as folder:
        scratch, window_s = Path(folder), None if once else window
        live = partial(Live, name=", ".join(inputs or interfaces), inputs=inputs, ports=ports, window_s=window_s)
        if any(map(holds_tables, given)):
            if len(given) > 1:
                raise click.UsageError("give one folder of a monitor alone")
            show(Results(given[0]), once=once)
        elif interfaces:
            with agent(interfaces, ports, scratch, window if once else None) as frames:
                show(live(new_files([frames], scratch, ends=once)), once=once)
        elif once:
            folders = frames_of(options.session(), inputs, scratch / "frames", "default", keep_records=False)
            show(live(new_files(folders, scratch, ends=True)), once=True)
        else:
            show(live(new_files(given, scratch, ends=False)), once=False)


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
        self,
        files: Iterator[list[Path]],
        *,
        name: str,
        inputs: tuple[str, ...],
        ports: tuple[int, ...],
        window_s: int | None,
    ) -> None:
        """`files`: as they appear. `inputs`: what commands to paste read; nothing of an interface."""
        from wirecheck.decode.connection.follower import Follower
        from wirecheck.questions.recent_traffic import RecentTraffic
        from wirecheck.streaming.run.local_replay import LocalReplay
        from wirecheck.streaming.steps.settings import Settings

        self._inputs, self._name = inputs, name
        self._follower = Follower(ports=frozenset(ports))
        self._recent = RecentTraffic(window_s, options.dialects())
        self._replay = LocalReplay(Settings(ports=frozenset(ports), dialects=options.dialects()))
        self._new = files
        self._frames = 0

    def look(self) -> bool:
        """Take what is new; whether more may be there at once."""
        from wirecheck.capture.frames import FRAME
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
        from wirecheck.dashboards.top_screen import Sample

        traffic, newest_ns = self._recent.traffic(), self._recent.newest_ns
        return Sample(
            self._name,
            f"{clock(newest_ns)} UTC  {self._frames:,} frames" if newest_ns else "",
            findings_of(self._replay.result().verdict(inputs=self._inputs), newest_ns) if self._frames else (),
            tuple(talks_of(traffic, self._recent.seconds, self._inputs)),
            tuple(errors_of(traffic)),
            "" if newest_ns else "no Kafka traffic yet",
        )


class Results:
    """What a monitor has written: findings, and clients with their requests."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._written_ns = -1
        self._sample: Sample | None = None
        self._before: dict[tuple[str | None, str], int] = {}
        self._looked_s = 0.0
        self._per_s: dict[tuple[str | None, str], float] = {}

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
        from wirecheck.dashboards.top_screen import Failed, Sample, Talk
        from wirecheck.streaming.store.run_result import SPANNED, Result

        try:
            result = Result.latest(self._out, SPANNED).verdict()
        except LookupError:
            return Sample(str(self._out), "", (), (), (), "no batch yet")
        newest_ns = max((one.last_ns for some in (result.clients, result.findings) for one in some), default=0)
        self._measure(result.clients)
        errors = sorted(legible(result.harms), key=lambda one: one.last_ns, reverse=True)
        talks = []
        for client in legible(result.clients):
            software = " ".join(filter(None, (client.software_name, client.software_version)))
            apis = ", ".join(f"{api} v{'/'.join(map(str, versions))}" for api, versions in client.apis.items())
            details = f"{client.requests:,} requests since {client.first_seen}", software, apis
            name, used = client_name(client.client_id), plural(len(client.apis), "API")
            per_s = self._per_s.get(client.key, 0.0)
            talks.append(Talk(name, client.address, used, per_s, 0.0, None, 0, 0.0, details, ()))
        return Sample(
            str(self._out),
            f"{clock(newest_ns)} UTC" if newest_ns else "",
            findings_of(result, newest_ns // NS_PER_S * NS_PER_S),
            tuple(talks),
            tuple(
                Failed(
                    clock(one.last_ns),
                    client_name(one.client_id or one.address),
                    one.api,
                    one.topic or one.topic_id or "",
                    ", ".join(one.errors),
                    one.count,
                )
                for one in errors[:MOST_ERRORS]
            ),
            "no latencies",
        )

    def _measure(self, clients: "Sequence[Client]") -> None:
        """Requests per second between two looks."""
        now = time.monotonic()
        requests = {client.key: client.requests for client in clients}
        if self._before and requests != self._before:
            passed = now - self._looked_s
            self._per_s = {name: (n - self._before.get(name, 0)) / passed for name, n in requests.items()}
        if requests != self._before:
            self._before, self._looked_s = requests, now


def new_files(inputs: list[Path], scratch: Path, *, ends: bool) -> Iterator[list[Path]]:
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

    with readable():
        for files in write_growing(inputs[0], scratch / "frames", options.key_logs()):
            yield files
            for file in files:  # they have been read
                file.unlink()


def show(source: Live | Results, *, once: bool) -> None:
    """Draw until the user quits, or once."""
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


def findings_of(result: "Verdict", now_ns: int) -> Any:
    """The cards of causes and of what stands alone, the worst harm first."""
    from wirecheck.dashboards.top_screen import KINDS, Finding

    opened_ns = {one.id: one.first_ns // NS_PER_S * NS_PER_S for one in result.findings}
    rows = []
    for entry in legible(result.entries):
        card, kinds = entry.card, [one.kind for one in entry.with_consequences]
        kind = min(kinds, key=KINDS.index)
        rows.append(
            Finding(
                "violation" if card.harm.clients else kind,
                entry.code,
                card.headline,
                (now_ns - opened_ns[entry.findings[0]]) / NS_PER_S,
                card.action.sentence,
                (*card.action.commands, card.evidence.command),
            )
        )
    return tuple(rows)


def talks_of(traffic: "Traffic", seconds: float, inputs: tuple[str, ...]) -> "Iterator[Talk]":
    """By client, host and API."""
    from wirecheck.dashboards.top_screen import Talk
    from wirecheck.questions.traffic import THROTTLED, gathered, quantile_ms

    servers: dict[tuple[str | None, str, str], Counter[str]] = defaultdict(Counter)
    for call, one in traffic.calls.items():
        servers[call.client_id, call.host, call.api][traffic.brokers.named(call.server)] += one.count
    errors, throttled = Counter[Any](), Counter[Any]()
    for failure, count in traffic.failures.items():
        counter = throttled if failure.error == THROTTLED else errors
        counter[failure.client_id, failure.host, failure.api] += count.count
    for key, calls in gathered(traffic.calls.items(), lambda call: (call.client_id, call.host, call.api)).items():
        client_id, host, api = key
        brokers = ", ".join(f"{server} ({count:,})" for server, count in servers[key].most_common(5))
        details = (
            f"versions {', '.join(map(str, sorted(calls.versions)))}",
            f"brokers {brokers}",
            f"{calls.count:,} requests, {errors[key]:,} errors, {throttled[key]:,} throttled in {seconds:.0f} s",
        )
        name = str(legible(client_id or ""))
        look = f"wirecheck decode {shlex.join(inputs)} --client {shlex.quote(name)} --api {api}"
        yield Talk(
            client_name(name),
            host,
            api,
            calls.count / seconds,
            errors[key] / seconds,
            quantile_ms(calls.latencies, P99),
            throttled[key],
            (calls.request_bytes + calls.response_bytes) / seconds,
            details,
            (look,) if name and inputs else (),
        )


def errors_of(traffic: "Traffic") -> "Iterator[Failed]":
    """The last first, of all brokers together."""
    from wirecheck.dashboards.top_screen import Failed

    latest = sorted(traffic.failures.items(), key=lambda item: -item[1].last_ns)
    for one, count in latest[:MOST_ERRORS]:
        name, topic = legible(client_name(one.client_id or one.host)), legible(one.topic)
        yield Failed(clock(count.last_ns), name, one.api, topic, one.error, count.count)
