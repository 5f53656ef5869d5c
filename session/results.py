"""Results of a replay or a monitor, from their tables or found out here; and what an answer does not rest on."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wirecheck.session.inputs import NOT_BOTH, holds_tables, places, result_folder
from wirecheck.session.local_check import checked
from wirecheck.session.session import ArgumentError, InputError, Session

if TYPE_CHECKING:
    from wirecheck.questions.changes import Changes
    from wirecheck.questions.traffic import Traffic
    from wirecheck.questions.traffic_diff import Difference
    from wirecheck.story.seen import Coverage
    from wirecheck.streaming.store.run_result import Result
    from wirecheck.wording import TimeSpan

Row = dict[str, Any]


def answers(
    session: Session, inputs: tuple[str, ...], out: Path | None, cluster: str, *, agreement: bool = False
) -> "Result":
    """What a replay or a monitor has found out, from its tables; of pcaps and frames, found out here. `agreement`:
    with who states what.

    Raises InputError where there is nothing of Kafka.
    """
    if out is not None and inputs:
        raise ArgumentError(NOT_BOTH)
    if (folder := out or result_folder(inputs)) is not None:
        if not agreement:
            return results_in(session, folder)
        from wirecheck.streaming.store.run_result import IN_RESULT

        found = results_in(session, folder, tables=IN_RESULT)
        need_kept(folder, "api_versions", found)
        return found
    if not inputs:
        raise ArgumentError("give pcaps, folders of frames, or the --out folder of a replay or a monitor")
    places(inputs)
    from wirecheck.judge.thresholds import Settings as JudgeSettings
    from wirecheck.streaming.steps.settings import Settings

    settings = Settings(dialects=session.dialects, judge=JudgeSettings(agreement_rows=int(agreement)))
    run, _, ports = checked(session, inputs, cluster, settings)
    found = run.result()
    say_unread(session, found, busy(found, lambda: ports))
    return found


def results_in(session: Session, folder: Path, ports: Iterable[int] = (), tables: tuple[str, ...] = ()) -> "Result":
    """The result tables, or these, of the run that wrote last. Raises InputError where there are none. Results are not
    kept by port, so a choice of ports is refused.
    """
    if ports:
        raise ArgumentError("--port takes pcaps and folders of frames")
    try:
        found = latest(session, folder, tables)
    except LookupError as error:
        raise InputError(str(error)) from error
    say_unread(session, found)
    return found


def need_kept(folder: Path, table: str, found: "Result") -> None:
    """Raises InputError where clients were seen and nothing of this table was kept: an answer would be "none"."""
    if found.rows["clients"] and not (folder / table).is_dir():
        raise InputError(f"{folder}: has no table {table}: an earlier version of wirecheck wrote it; ask the capture")


def latest(session: Session, out: Path, tables: tuple[str, ...] = ()) -> "Result":
    """The result tables, or these, of the run that wrote last. Raises LookupError where there are none."""
    with session.progress("reading"):
        from wirecheck.streaming.store.run_result import USUAL, Result

        found = Result.latest(out, tables or USUAL)
    if {*(tables or USUAL)} >= {*USUAL} and not found.rows["coverage"] and any(found.rows[name] for name in USUAL):
        from wirecheck.streaming.store.result_damage import DamagedResultError

        raise DamagedResultError(f"{out}/coverage", "the table has no rows, while others have")
    return found


def say_unread(session: Session, found: "Result", busy_ports: str = "") -> None:
    """What an answer does not rest on. Raises InputError where it rests on nothing."""
    from wirecheck.dashboards.verdict import not_read

    coverage = found.coverage()
    for line in coverage.input_errors:
        session.say(line)
    if missing := not_read(coverage):
        session.say(f"not included: {', '.join(missing)}")
    need_kafka(coverage, busy_ports)


def need_kafka(coverage: "Coverage", busy_ports: str = "") -> None:
    """Raises InputError where there was none: then nothing is well, and nothing was looked at."""
    if not coverage.has_kafka:
        from wirecheck.dashboards.verdict import nothing_of_kafka

        raise InputError("; ".join(filter(None, (nothing_of_kafka(coverage), busy_ports))))


def need_whole(coverage: "Coverage", *, strict: bool) -> None:
    """Raises InputError where that was asked for and some of the input could not be read; the lines that say what went
    before.
    """
    if strict and not coverage.is_whole:
        raise InputError(NOT_WHOLE)


def need_seen(coverage: "Coverage", percent: int | None) -> None:
    """Raises InputError where less was seen than was asked for."""
    if percent is not None and coverage.seen_percent < percent:
        raise InputError(f"{coverage.seen_percent:g} % was seen, which is less than {percent} % (--min-seen)")


NOT_WHOLE = "part of the input could not be read (--strict)"


def busy(found: "Result", busiest: Callable[[], list[tuple[int, int]]], ports: tuple[int, ...] = ()) -> str:
    """Where there is no Kafka traffic: on which ports there was any, and whether only some were looked at."""
    coverage = found.coverage()
    if coverage.has_kafka:
        return ""
    busy_ports = ", ".join(f"{port} ({count:,} frames)" for port, count in busiest())
    looked = f"only port {', '.join(map(str, ports))} was checked" if ports else ""
    if not busy_ports:
        packets = coverage.frames or coverage.parts("skipped_frames")
        return looked if packets else "the input has no packets"
    return "; ".join(filter(None, (looked, f"busy ports: {busy_ports}")))


# --- questions about results


def changes_of(session: Session, folder: Path, ports: Sequence[int]) -> "tuple[Changes, Coverage]":
    """The changes that a replay or a monitor has kept, and its coverage. Raises InputError where there is nothing."""
    from wirecheck.streaming.store.change_rows import changes_in

    result = results_in(session, folder, ports, ("coverage", "totals", "clusters", "findings"))
    return changes_in(folder, result), result.coverage()


def traffic_of(
    session: Session, folder: Path, ports: Sequence[int], times: "tuple[TimeSpan | None, TimeSpan | None]"
) -> "tuple[Traffic, Coverage]":
    """What a replay or a monitor has counted of clients' requests, between two times, and its coverage. Raises
    InputError where there is nothing.
    """
    from wirecheck.streaming.store.window_rows import traffic_in
    from wirecheck.wording import span_of

    tables = ("coverage", "totals", "clusters", "clients", "topics", "findings")
    result = results_in(session, folder, ports, tables)
    need_kept(folder, "requests_by_minute", result)
    first_ns = min((row["first_seen"] for row in result.rows["clients"]), default=0)
    since, until = span_of(*times, first_ns)
    span = (since.ns if since else 0, until.last_ns if until else 1 << 62)
    return traffic_in(folder, result, span), result.coverage()


def note_other_clusters(session: Session, before: Iterable[str], after: Iterable[str]) -> None:
    """A line where two inputs have no cluster in common: then a name that both have is of two things."""
    first, second = sorted(before), sorted(after)
    if first and second and not {*first} & {*second}:
        both = f"{', '.join(first)} before, {', '.join(second)} after"
        session.say(f"different clusters ({both}): what has one name in both is two things")


def differences_of(
    session: Session,
    before: str,
    after: str | None,
    times: "tuple[TimeSpan, ...]",
    ports: Sequence[int],
    *,
    strict: bool,
) -> "tuple[list[Difference], tuple[str, ...]]":
    """Differences, and what each of the two rests on. Raises InputError where there are no results."""
    from wirecheck.streaming.store.result_diff import Side, at_times, differences
    from wirecheck.wording import clock, plural

    names = [name for name in (before, after) if name]
    if not all(holds_tables(Path(name)) for name in names) or (len(names), len(times)) not in {(2, 0), (1, 2)}:
        raise ArgumentError(WRONG_USE)
    results = [results_in(session, Path(name), ports) for name in names]
    for result in results:
        need_whole(result.coverage(), strict=strict)
    if not times:
        ids = ({row["cluster_id"] for row in result.rows["clusters"]} - {None} for result in results)
        note_other_clusters(session, *ids)
        counts = (plural(result.coverage().messages, "message") for result in results)
        return differences(*map(Side, results)), tuple(counts)
    begin_ns, end_ns = (time_among(one, results[0].rows["clients"]) for one in times)
    if begin_ns >= end_ns:
        raise ArgumentError("the second --at is not later than the first")
    notes = (f"{clock(time_ns, dated=True)} UTC" for time_ns in (begin_ns, end_ns))
    return differences(*at_times(results[0], begin_ns, end_ns)), tuple(notes)


WRONG_USE = "give two captures, or the results of two runs, or the results of one with --at TIME --at TIME"


def time_among(time: "TimeSpan", rows: Iterable[Row]) -> int:
    """In nanoseconds; a time of day is of the day on which the first of these rows of a result table was seen."""
    return time.on_day_of(min((row["first_seen"] for row in rows), default=0)).ns
