"""What a monitor holds while it runs: checkpoint, port, signals, Spark's folder. All of it is refused before Spark
starts.

Nothing of it outlives the process. The query is not known here.
"""

import logging
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event, Thread
from types import FrameType

from wirecheck.http_server import serving
from wirecheck.judge.ledger.failures import described
from wirecheck.streaming.checkpoint import CheckpointRefused, committed, drop_unfinished, run_of
from wirecheck.streaming.run.metrics_page import Page
from wirecheck.streaming.run.plan import MonitorError, Plan, Say
from wirecheck.streaming.run.web_server import NO_RUNBOOKS, Front, is_this_machine, routes
from wirecheck.streaming.spark.memory import give_back
from wirecheck.streaming.store import compaction, result_folder
from wirecheck.streaming.store.lease import Lease
from wirecheck.streaming.store.storage import is_local, local
from wirecheck.wording import reason_of

ONE_SIGNAL_S = 1.0
"""timeout(1) sends its signal to the process, and then to the process's group: what comes so soon is no second one."""


@contextmanager
def served(plan: Plan, front: Front | None = None, runbooks: Mapping[str, str] = NO_RUNBOOKS) -> Iterator[Page]:
    """Metrics, at the plan's port if it has one, and the page for people where it may be shown. Raises MonitorError
    where that cannot be had.
    """
    where = f"{plan.metrics_address}:{plan.metrics_port}"
    page = Page(link(plan), principals=plan.principals, expect=plan.expect)
    places = {"frames": plan.frames, "out": plan.out, "checkpoint": plan.checkpoint}
    page.places = {name: local(place) for name, place in places.items() if is_local(place)}
    if plan.metrics_port is None:
        yield page
        return
    shown = front if plan.page or is_this_machine(plan.metrics_address) else None
    with ExitStack() as stack:
        try:
            stack.enter_context(
                serving(routes(page, shown, runbooks), plan.metrics_address, plan.metrics_port, plan.allowed_hosts)
            )
        except OSError as wrong:
            fix = "choose another --metrics-port, or another --metrics-address"
            raise MonitorError(f"metrics cannot be served at {where}: {reason_of(wrong)}; {fix}") from wrong
        yield page


def link(plan: Plan) -> str:
    """Under which address people reach the monitor; empty where that is not known."""
    return plan.external_url.rstrip("/") or loopback_url(plan)


def loopback_url(plan: Plan) -> str:
    """Empty at other addresses: they may have another name elsewhere, and 0.0.0.0 is none."""
    if not is_this_machine(plan.metrics_address):
        return ""
    host = f"[{plan.metrics_address}]" if ":" in plan.metrics_address else plan.metrics_address
    return f"http://{host}:{plan.metrics_port}"


def metrics_place(plan: Plan) -> str:
    """For the line at the start."""
    there = loopback_url(plan)
    return f"metrics at {there}/metrics" if there else f"metrics on port {plan.metrics_port} of {plan.metrics_address}"


def unlinked(plan: Plan) -> str:
    """What to say of a monitor that alerts cannot link to; empty otherwise."""
    if plan.metrics_port is None or link(plan):
        return ""
    return (
        f"alerts have no link to this monitor: --metrics-address {plan.metrics_address} is not the address that your "
        f"team uses; set --external-url, as http://HOST:{plan.metrics_port}"
    )


@contextmanager
def stop_signals() -> Iterator[Event]:
    """SIGTERM and SIGINT ask for an end after the batch that runs; a second one is obeyed at once."""
    stopping = Event()
    asked_s = 0.0

    def stop(_number: int, _: FrameType | None) -> None:
        nonlocal asked_s
        if not stopping.is_set():
            asked_s = time.monotonic()
        elif time.monotonic() - asked_s >= ONE_SIGNAL_S:
            logging.disable(logging.CRITICAL)  # py4j logs each sentence that is interrupted
            raise KeyboardInterrupt
        stopping.set()

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def workplace(checkpoint: str) -> Iterator[Path]:
    """What Spark leaves behind while it runs; beside a local checkpoint, so that the next start clears up a crash, and
    what that left unfinished within.

    Raises MonitorError where nothing can be written.
    """
    if not is_local(checkpoint):
        with tempfile.TemporaryDirectory(prefix="wirecheck-") as folder:
            yield Path(folder)
        return
    work = local(checkpoint) / ".work"
    shutil.rmtree(work, ignore_errors=True)
    try:
        work.mkdir(parents=True, exist_ok=True)
        drop_unfinished(checkpoint)
    except OSError as wrong:
        fix = "let this user write there, or name another --checkpoint"
        raise MonitorError(f"{checkpoint}: {reason_of(wrong)}; {fix}") from wrong
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


EVERY_S = 600
LAST_S = 5
"""So long an end waits for the pass that runs."""


@contextmanager
def table_maintenance(
    plan: Plan, say: Say, lease: Lease | None = None, cards: Callable[[], None] | None = None
) -> Iterator[None]:
    """Meanwhile; at the end of a monitor that judges what is there once more. `cards` writes the table of cards."""
    stopping = Event()
    work = [Thread(target=maintain_tables, args=(plan, say, stopping, lease), daemon=True, name="housekeeping")]
    if cards is not None:
        work.append(Thread(target=keep_cards, args=(cards, say, stopping, lease), daemon=True, name="cards"))
    for thread in work:
        thread.start()
    try:
        yield
    finally:
        stopping.set()
        for thread in work:
            thread.join(LAST_S)
    if plan.once and not lost(lease):
        tidy(plan, say)
        if cards is not None:
            write_cards(cards, say)


CARDS_EVERY_S, CARDS_PACE = 60, 10
"""The table of cards is made so often, in at most one part in so many of the time."""


def keep_cards(cards: Callable[[], None], say: Say, stopping: Event, lease: Lease | None) -> None:
    pause_s: float = CARDS_EVERY_S
    while not stopping.wait(pause_s) and not lost(lease):
        began_s = time.monotonic()
        write_cards(cards, say)
        pause_s = max(CARDS_EVERY_S, CARDS_PACE * (time.monotonic() - began_s))


def write_cards(cards: Callable[[], None], say: Say) -> None:
    try:
        cards()
    except LookupError:  # no batch yet
        return
    except Exception as failed:  # noqa: BLE001 - whatever foreign bytes can bring about
        problem = reason_of(failed) if isinstance(failed, OSError) else described(failed)
        say(f"the table of cards was not written: {problem}; tried again later")


def maintain_tables(plan: Plan, say: Say, stopping: Event, lease: Lease | None) -> None:
    while not stopping.wait(EVERY_S) and not lost(lease):
        tidy(plan, say)


def lost(lease: Lease | None) -> bool:
    """Whether the tables are another monitor's now."""
    return lease is not None and lease.lost


def tidy(plan: Plan, say: Say, now_s: float | None = None) -> None:
    """One pass over all tables, as at that time (default: now)."""
    try:
        run = run_of(plan.checkpoint)
        if run:
            excess = keep_small(plan, run, time.time_ns() / 1e9 if now_s is None else now_s)
            if excess:
                left = "what is left is recent, or never removed"
                say(f"results take {excess:,} bytes more than --retain-results-size: {left}")
    except (OSError, ValueError, CheckpointRefused) as failed:  # a disk that is full, a file that is damaged
        problem = failed if isinstance(failed, ValueError) else reason_of(failed)
        say(f"tables were not compacted: {problem}; tried again later")
    give_back()


def keep_small(plan: Plan, run: str, now_s: float) -> int:
    """By how many bytes the results exceed what they may take."""
    upto = committed(plan.checkpoint)
    before_s = None if plan.retain_results_s is None else now_s - plan.retain_results_s
    if result_folder.kind_of(plan.out) == result_folder.DELTA:
        from wirecheck.streaming.store import delta_upkeep

        terms = delta_upkeep.UpkeepTerms(now_s, plan.retain_s, before_s, plan.retain_results_bytes)
        return delta_upkeep.keep(plan.out, run, terms, upto)
    compaction.compact(plan.out, run, compaction.CompactionTerms(now_s, plan.retain_s), upto)
    if before_s is not None:
        compaction.retire(plan.out, run, before_s, upto)
    most_bytes = plan.retain_results_bytes
    return 0 if most_bytes is None else compaction.fit(plan.out, run, most_bytes, now_s, upto)
