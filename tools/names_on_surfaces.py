"""Hurt clients of captures, and whether every surface names them: a row of Markdown each.

    python -m tools.names_on_surfaces FOLDER ...      folders that hold NAME/capture.pcap or NAME/capture.pcap.gz

Also runs every command that a first card prints, as it is printed. The exit status is 1 if a surface lacks a name, or a
command fails or prints nothing.
"""

import html
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from click.testing import CliRunner

from wirecheck.cli import main as wirecheck
from wirecheck.story.severity import names
from wirecheck.streaming.run.metrics_page import Page
from wirecheck.streaming.store import result_folder
from wirecheck.streaming.store.batches import Folders
from wirecheck.streaming.store.result_tables import TABLES
from wirecheck.streaming.store.run_result import Result

SURFACES = ("card", "page", "JSON", "Markdown", "findings", "metrics, alert", "commands")
NAMED = 3
"""So many clients are named in one sentence."""


def run(*arguments: object) -> str:
    return CliRunner().invoke(wirecheck, [str(one) for one in arguments]).output


def info_clients(out: Path) -> list[str]:
    """The label `clients` of all wirecheck_finding_info: what alerts print."""
    page, run_id = Page(), result_folder.latest_run(out)
    page.take({name: rows for name in TABLES for rows in [Folders(out / name / f"run={run_id}").rows(0)] if rows})
    page.cards.refresh()
    return [labels[-1] for labels in page.samples()["finding_info"]]


def works(command: str, folder: Path) -> bool:
    words = [sys.executable, "-m", *shlex.split(command)]
    result = subprocess.run(words, cwd=folder, env={**os.environ}, capture_output=True, check=False)
    return result.returncode == 0 and bool(result.stdout or result.stderr)


def row_of(capture: Path, folder: Path) -> tuple[str, dict[str, bool]] | None:
    """Who is hurt, and by surface whether it says so; None without a hurt client."""
    out, page = folder / "out", folder / "page.html"
    card = run("replay", capture, "--out", out, "--report", page)
    found = Result.latest(out).verdict(inputs=[str(capture)])
    entries = [entry for entry in found.entries if entry.card.harm.clients]
    if not entries:
        return None
    first = [hurt.client_id for entry in entries for hurt in entry.card.harm.clients[:NAMED]]
    first = list(dict.fromkeys(filter(None, first)))
    commands = {command for entry in entries for command in entry.card.action.commands}
    commands |= {entry.card.evidence.command for entry in entries}
    json_entries = json.loads(run("replay", capture, "--format", "json"))["entries"]
    labels = info_clients(out)
    texts = {
        "card": card,
        "page": html.unescape(page.read_text(encoding="utf-8")),
        "JSON": json.dumps([entry["card"]["headline"] for entry in json_entries]),
        "Markdown": run("replay", capture, "--format", "markdown"),
        "findings": run("findings", out),
    }
    shown = {surface: all(one in text for one in first) for surface, text in texts.items()}
    shown["metrics, alert"] = all(names(entry) in labels for entry in entries)
    shown["commands"] = all(works(command, folder) for command in sorted(commands))
    return "; ".join(names(entry) for entry in entries), shown


def main(folders: list[Path]) -> int:
    print(f"| capture | who is hurt | {' | '.join(SURFACES)} |")
    print(f"|{'---|' * (len(SURFACES) + 2)}")
    good = True
    for capture in sorted(path for folder in folders for path in folder.glob("*/capture.pcap*")):
        with TemporaryDirectory(prefix="wirecheck-") as scratch:
            row = row_of(capture.resolve(), Path(scratch))
        if row is not None:
            who, shown = row
            cells = ["yes" if shown[surface] else "NO" for surface in SURFACES]
            good = good and all(shown.values())
            print(f"| {capture.parent.name} | {who} | {' | '.join(cells)} |", flush=True)
    return not good


if __name__ == "__main__":
    sys.exit(main([Path(name) for name in sys.argv[1:]]))
