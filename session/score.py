"""How right verdicts are: captures with the truth beside them, and what is said of them.

A folder of a capture has `capture.pcap` or `capture.pcap.gz`, and `truth.json`, an object with

    hurt_clients   client IDs that got less done than they asked for, by their own counters and logs; of an application
                   with several, such as the threads of Streams, what they begin with
    brokers        [{"id": 1}, ...]: their own clients have these names, and are not judged
    expect         {"must": findings that must be there, each its code, or an object with a code}; optional

Rule: a truth is written before anything judges the capture. A client that it does not name is healthy.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wirecheck.session.session import InputError, Session

if TYPE_CHECKING:
    from wirecheck.story.verdict import Verdict

CAPTURES = ("capture.pcap", "capture.pcap.gz", "capture.pcapng", "capture.pcapng.gz")
TRUTH = "truth.json"
HURT = frozenset({"stalled", "in part", "skipped"})
DOUBT = frozenset({"failing", "in doubt"})


@dataclass(frozen=True, slots=True)
class Score:
    """One capture, or all together."""

    capture: str
    hurt: int
    """Clients that are hurt by the truth."""
    found: int
    """Of these, those that the verdict calls hurt."""
    in_doubt: int
    """Of these, those that it calls in doubt."""
    missed: tuple[str, ...]
    """The others."""
    false: tuple[str, ...]
    """Clients that it calls hurt, and the truth does not."""
    doubted: tuple[str, ...]
    """Clients that it calls in doubt, and the truth does not call hurt."""
    expected: int
    """Codes of findings that must be there."""
    codes_missed: tuple[str, ...]
    """Those that are not."""

    @property
    def is_right(self) -> bool:
        return not (self.missed or self.false or self.codes_missed)


def folders_in(roots: Sequence[Path]) -> list[Path]:
    """The folders with a truth, in each of these or below. Raises InputError where there is none."""
    found = sorted({path.parent for root in roots for path in root.rglob(TRUTH)})
    if not found:
        raise InputError(f"{', '.join(map(str, roots))}: no folder with a {TRUTH}")
    return found


def scores(session: Session, roots: Sequence[Path]) -> Iterator[Score]:
    """One after the other, as they are judged. Raises InputError."""
    for folder in folders_in(roots):
        capture = next((folder / name for name in CAPTURES if (folder / name).is_file()), None)
        if capture is None:
            raise InputError(f"{folder}: has a {TRUTH}, and no capture")
        yield score(folder.name, truth_of(folder), verdict_of(session, capture))


def truth_of(folder: Path) -> dict[str, Any]:
    """Raises InputError where it is no object of this form."""
    try:
        found = json.loads((folder / TRUTH).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{folder / TRUTH}: {error}") from error
    hurt = found.get("hurt_clients") if isinstance(found, dict) else None
    if not isinstance(hurt, list) or not all(isinstance(one, str) for one in hurt):
        raise InputError(f"{folder / TRUTH}: hurt_clients is no list of client IDs")
    return dict(found)


def verdict_of(session: Session, capture: Path) -> "Verdict":
    from wirecheck.session.local_check import checked
    from wirecheck.streaming.steps.settings import Settings

    run, _, _ = checked(session, [str(capture)], "default", Settings(dialects=session.dialects))
    return run.result().verdict()


def score(name: str, truth: dict[str, Any], verdict: "Verdict") -> Score:
    hurt = set(truth["hurt_clients"])
    states: dict[str, set[str]] = {}
    for one in verdict.clients:
        if one.client_id and one.work is not None:
            states.setdefault(application(one.client_id, hurt), set()).add(one.work.state)
    nodes = {str(broker["id"]) for broker in truth.get("brokers", ())}
    called = {client for client, known in states.items() if known & HURT} - nodes
    doubted = {client for client, known in states.items() if known & DOUBT} - nodes - called
    every = truth.get("expect", {}).get("must", ())
    must = {str(one["code"] if isinstance(one, dict) else one) for one in every}
    codes = {finding.code for finding in verdict.findings}
    return Score(
        name,
        len(hurt),
        len(hurt & called),
        len(hurt & doubted),
        tuple(sorted(hurt - called - doubted)),
        tuple(sorted(called - hurt)),
        tuple(sorted(doubted - hurt)),
        len(must),
        tuple(sorted(must - codes)),
    )


def application(client_id: str, named: set[str]) -> str:
    """The name by which a truth knows a client: its own, or the beginning of it, as of the threads of Streams."""
    fitting = (one for one in named if client_id == one or client_id.startswith(f"{one}-"))
    return max(fitting, key=len, default=client_id)


def total(every: Sequence[Score]) -> Score:
    """All together; clients are named with their capture."""

    def named(lists: Iterator[tuple[str, tuple[str, ...]]]) -> tuple[str, ...]:
        return tuple(f"{capture}/{one}" for capture, found in lists for one in found)

    return Score(
        f"{len(every)} captures",
        sum(one.hurt for one in every),
        sum(one.found for one in every),
        sum(one.in_doubt for one in every),
        named((one.capture, one.missed) for one in every),
        named((one.capture, one.false) for one in every),
        named((one.capture, one.doubted) for one in every),
        sum(one.expected for one in every),
        named((one.capture, one.codes_missed) for one in every),
    )
