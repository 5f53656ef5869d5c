"""Captures as a worse network shows them: `python -m tools.damages FOLDER ... [--base BASE]` (make damages).

    make damages FOLDERS="captures field" [BASE=../base]      FOLDERS: NAME/capture.pcap*; BASE: as of make same

Each capture is damaged in seven ways (bench/damage.py) and judged. Listed is each violation, anomaly and hurt client
that the whole capture does not show: loss alone must not accuse anybody. With BASE, each line of the canonical text
that differs from what BASE concludes of the same damaged bytes.
What exchanges claim is kept in build/damages by digest of the capture and of the source that reads it, so that another
run costs judging only. Exit status: 0 where nothing is listed, else 1.
"""

import gzip
import pickle
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from bench.damage import DAMAGE, Capture
from tools.canonical_text import canonical
from tools.same import ROOT, Texts, captures, digest, report, texts_of

KEPT = ROOT / "build/damages"
READERS = ("capture", "decode", "judge/claims", "decode/releases.py", "streaming/steps")
"""The source on which claims depend, and some more."""
BATCH_BYTES = 12 << 20
Document = dict[str, Any]


class Kept(NamedTuple):
    """What a capture claims, before it is judged."""

    labels: list[tuple[str, list[Any]]]
    """By label its rows, in their order, in cells."""
    captured: tuple[int, int] | None


def source_digest() -> str:
    files = sorted(
        file for name in READERS for file in ([ROOT / name] if name.endswith(".py") else (ROOT / name).rglob("*.py"))
    )
    tables = sorted(file for name in READERS for file in (ROOT / name).rglob("*.tsv"))
    return digest(*(file.read_bytes() for file in (*files, *tables)))


def damaged(path: Path) -> list[Path]:
    """The capture damaged in each way, as files that another checkout can read, too."""
    with tempfile.TemporaryDirectory() as scratch:
        plain = Path(scratch) / "capture.pcap"
        plain.write_bytes(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes())
        whole = Capture.read(plain)
    found = []
    for name, shares in DAMAGE.items():
        target = KEPT / f"{path.parent.name}.{name.replace(' ', '-').replace('%', '')}.pcap"
        whole.damaged(*shares, bursts="bursts" in name).write(target)
        found.append(target)
    return found


def claimed(path: Path, readers: str) -> Kept:
    """From the kept ones, or of the capture."""
    kept = KEPT / f"{digest(readers.encode(), path.read_bytes())}.claims"
    if kept.exists():
        found: Kept = pickle.loads(kept.read_bytes())
        return found
    from wirecheck.capture.agent import offline_agent
    from wirecheck.capture.traffic import Seen
    from wirecheck.streaming.run.local_replay import Following

    following, seen = Following(settings()), Seen()
    for table in offline_agent.read_frames([path], "default", offline_agent.OFFLINE, BATCH_BYTES):
        seen.add(table, with_ports=False)
        following.add(table)
    labels = []
    for name, label in following.labels.items():
        label.claim()
        labels.append((name, [closed(name, row) for row in label.taken()]))
    found = Kept(labels, seen.ends)
    part = kept.with_suffix(".part")
    part.write_bytes(pickle.dumps(found))
    part.rename(kept)
    return found


def settings() -> Any:
    from wirecheck.streaming.steps.settings import Settings

    return Settings(buckets=1)


def closed(label: str, row: Any) -> Any:
    """A row with its value as bytes, as the query passes it on."""
    from wirecheck.streaming.steps.cells import to_cell
    from wirecheck.streaming.steps.decode_step import Claimed
    from wirecheck.streaming.steps.tagged import CLAIMS, Tagged

    value = Claimed.of(row.value) if row.route == CLAIMS else row.value
    return Tagged(label, row.bucket, row.route, to_cell(value))


def concluded(path: Path, readers: str) -> tuple[Document, int]:
    """The JSON object and the exit status of a replay."""
    from wirecheck.dashboards.verdict import failing
    from wirecheck.document import document
    from wirecheck.session.verdict_document import for_programs, with_about
    from wirecheck.streaming.steps.judge_step import LabelJudge, opened
    from wirecheck.streaming.store.result_tables import from_ipc
    from wirecheck.streaming.store.run_result import LatestRows

    kept, latest, names = claimed(path, readers), LatestRows(), [str(path)]
    for label, rows in kept.labels:
        for row in LabelJudge(label, settings()).judged(map(opened, rows)):
            latest.add(row.route, from_ipc(row.cell))
    verdict = with_about(latest.result().verdict(inputs=names), names, [], {}, captured=kept.captured)
    status = int(bool(failing(verdict)))
    return document(for_programs(verdict, names)), status


def accused(found: Document) -> set[tuple[str, str]]:
    """What it reports: violations and anomalies, of clients by their IDs, and clients that are hurt."""
    findings = {
        (one["code"], ", ".join(one["client_ids"]) or one["id"])
        for one in found["findings"]
        if one["kind"] in {"violation", "anomaly"}
    }
    return findings | {("hurt", one["client_id"] or "") for one in found["harms"] if one["level"] == "hurt"}


class Run(NamedTuple):
    capture: str
    damage: str
    path: Path
    lines: list[str]
    alleged: list[tuple[str, str]]
    """Not shown by the whole capture."""
    missed: int
    """Shown by the whole capture only."""


def runs(path: Path, readers: str) -> list[Run]:
    KEPT.mkdir(parents=True, exist_ok=True)
    whole = accused(concluded(path, readers)[0])
    found = []
    for file in damaged(path):
        document, status = concluded(file, readers)
        here = accused(document)
        name = file.name.removeprefix(f"{path.parent.name}.").removesuffix(".pcap")
        lines = canonical(file, document, status)
        found.append(Run(path.parent.name, name, file, lines, sorted(here - whole), len(whole - here)))
    return found


def every_run(paths: list[Path]) -> Iterator[Run]:
    readers = source_digest()
    with ProcessPoolExecutor(2) as pool:
        for found in pool.map(runs, paths, [readers] * len(paths)):
            yield from found


def main() -> int:
    parser = ArgumentParser()
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--base", type=Path)
    options = parser.parse_args()
    found = [*every_run(captures(options.folders))]
    for run in found:
        for code, subject in run.alleged:
            print(f"{run.capture}, {run.damage}: {code} {subject} is not in the whole capture")
    alleged, missed = sum(len(run.alleged) for run in found), sum(run.missed for run in found)
    print(f"{len(found)} damaged runs: {alleged} alleged, {missed} not found again")
    if options.base is None:
        return int(bool(alleged))
    here: Texts = {str(run.path): run.lines for run in found}
    return report(texts_of(options.base.resolve(), [run.path for run in found]), here)


if __name__ == "__main__":
    sys.exit(main())
