"""How right verdicts are: captures with the truth beside them, and what is said of them.

A folder of a capture has `capture.pcap` or `capture.pcap.gz`, and `truth.json`, an object with at least one of

    hurt_clients   client IDs that got less done than they asked for, by their own counters and logs; of an application
                   with several, such as the threads of Streams, what they begin with. Without it clients are not
                   compared
    expect         {"must": findings that must be there, each its code, or an object with a code,
                    "may": codes of violations and anomalies that may be there besides; "*" is all of them}. Another one
                   is false, unless it names a hurt client. Without `may` none is

and optional

    brokers        [{"id": 1}, ...]: their own clients have these names, and are not judged
    dialects       names of drafts that its bytes are in, as of --dialect

Rule: a truth is written before anything judges the capture. A client that `hurt_clients` does not name is healthy.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wirecheck.client_ids import is_of_node
from wirecheck.session.session import InputError, Session, drafts
from wirecheck.wording import plural

if TYPE_CHECKING:
    from wirecheck.story.verdict import Verdict

CAPTURES = ("capture.pcap", "capture.pcap.gz", "capture.pcapng", "capture.pcapng.gz")
TRUTH = "truth.json"
HURT = frozenset({"stalled", "in part", "skipped"})
DOUBT = frozenset({"failing", "in doubt"})
FORMS = {
    "hurt_clients": "no list of client IDs",
    "dialects": "no list of drafts",
    "expect": "no object",
    "expect.must": "no list of codes",
    "expect.may": "no list of codes",
}
GRAVE = frozenset({"violation", "anomaly"})


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
    codes_found: tuple[str, ...] = ()
    """Those that are."""
    codes_false: tuple[str, ...] = ()
    """Of violations and anomalies that are there, and by the truth must not be."""

    @property
    def is_right(self) -> bool:
        return not (self.missed or self.false or self.codes_missed or self.codes_false)


@dataclass(frozen=True, slots=True)
class KindScore:
    """Findings of one code, or hurt clients, over all captures."""

    kind: str
    """A check's code, or CLIENTS."""
    expected: int
    """Captures that must have the finding; clients that are hurt."""
    found: int
    in_doubt: int
    """Of clients; 0 of findings."""
    missed: tuple[str, ...]
    """In which captures; clients, with their capture."""
    false: tuple[str, ...]
    """The same."""
    doubted: tuple[str, ...]
    """Healthy clients in doubt."""


CLIENTS = "hurt clients"


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
        truth = truth_of(folder)
        yield score(folder.name, truth, verdict_of(session, capture, truth.get("dialects", ())))


def truth_of(folder: Path) -> dict[str, Any]:
    """Raises InputError where it is no object of this form."""
    try:
        found = json.loads((folder / TRUTH).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{folder / TRUTH}: {error}") from error
    found = found if isinstance(found, dict) else {}
    expect = found.get("expect", {})
    lists = {"hurt_clients": found.get("hurt_clients", [] if "expect" in found else None)}
    lists |= {"dialects": found.get("dialects", []), "expect": [] if isinstance(expect, dict) else None}
    if isinstance(expect, dict):
        codes = [one.get("code") if isinstance(one, dict) else one for one in expect.get("must", ())]
        lists |= {"expect.must": codes, "expect.may": expect.get("may", [])}
    for name, items in lists.items():
        if not isinstance(items, list) or not all(isinstance(one, str) for one in items):
            raise InputError(f"{folder / TRUTH}: {name} is {FORMS[name]}; see docs/corpus.md")
    return found


def verdict_of(session: Session, capture: Path, dialects: Sequence[str]) -> "Verdict":
    from wirecheck.session.local_check import checked
    from wirecheck.streaming.steps.settings import Settings

    named = tuple(dict.fromkeys([*session.dialects, *drafts(tuple(dialects))]))
    run, _, _ = checked(session, [str(capture)], "default", Settings(dialects=named))
    return run.result().verdict()


def score(name: str, truth: dict[str, Any], verdict: "Verdict") -> Score:
    hurt = set(truth.get("hurt_clients", ()))
    called, doubted = clients_of(truth, verdict) if "hurt_clients" in truth else (set(), set())
    must = {str(one["code"] if isinstance(one, dict) else one) for one in truth.get("expect", {}).get("must", ())}
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
        tuple(sorted(must & codes)),
        tuple(sorted(false_codes(truth, verdict, must))),
    )


def clients_of(truth: dict[str, Any], verdict: "Verdict") -> tuple[set[str], set[str]]:
    """Those that a verdict calls hurt, and the others that it calls in doubt."""
    states: dict[str, set[str]] = {}
    for one in verdict.clients:
        if one.client_id and one.work is not None and not is_of_node(one.client_id):
            states.setdefault(application(one.client_id, set(truth["hurt_clients"])), set()).add(one.work.state)
    called = {client for client, known in states.items() if known & HURT}
    return called, {client for client, known in states.items() if known & DOUBT} - called


def false_codes(truth: dict[str, Any], verdict: "Verdict", must: set[str]) -> set[str]:
    """Of violations and anomalies that a truth with `may` does not allow. One that names a hurt client is true: its
    check may be younger than the truth.
    """
    may, hurt = truth.get("expect", {}).get("may"), set(truth.get("hurt_clients", ()))
    if may is None or "*" in may:
        return set()
    return {
        finding.code
        for finding in verdict.findings
        if finding.kind in GRAVE
        and finding.code not in must | {*may}
        and not hurt & {application(client, hurt) for client in finding.client_ids if client}
    }


def application(client_id: str, named: set[str]) -> str:
    """The name by which a truth knows a client: its own, or the beginning of it, as of the threads of Streams."""
    fitting = (one for one in named if client_id == one or client_id.startswith(f"{one}-"))
    return max(fitting, key=len, default=client_id)


def named(every: Sequence[Score], field: str) -> tuple[str, ...]:
    """What a field of all captures names, each with its capture."""
    return tuple(f"{score.capture}/{one}" for score in every for one in getattr(score, field))


def total(every: Sequence[Score]) -> Score:
    """All together; clients and codes are named with their capture."""
    return Score(
        plural(len(every), "capture"),
        sum(one.hurt for one in every),
        sum(one.found for one in every),
        sum(one.in_doubt for one in every),
        named(every, "missed"),
        named(every, "false"),
        named(every, "doubted"),
        sum(one.expected for one in every),
        named(every, "codes_missed"),
        named(every, "codes_found"),
        named(every, "codes_false"),
    )


def by_kind(every: Sequence[Score]) -> list[KindScore]:
    """Clients first, then each code that a truth expects or that is false somewhere."""
    whole = total(every)
    clients = KindScore(
        CLIENTS, whole.hurt, whole.found, whole.in_doubt, whole.missed, whole.false, whole.doubted
    )  # fmt: skip
    places: dict[str, dict[str, list[str]]] = {}
    for one in every:
        for field in ("codes_found", "codes_missed", "codes_false"):
            for code in getattr(one, field):
                places.setdefault(code, {}).setdefault(field, []).append(one.capture)
    return [clients, *(of_code(code, places[code]) for code in sorted(places))]


def of_code(code: str, places: dict[str, list[str]]) -> KindScore:
    found, missed, false = (places.get(field, []) for field in ("codes_found", "codes_missed", "codes_false"))
    return KindScore(code, len(found) + len(missed), len(found), 0, tuple(missed), tuple(false), ())
