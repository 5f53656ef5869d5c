"""What a release is made of: a bill of materials (CycloneDX, JSON) and a list of licences, from an installed release.

Knows: an environment that holds wirecheck and all it needs, and cyclonedx-py, which reads it and holds its own bill
against CycloneDX's schema. Refuses to know what a licence means.
Rule: cyclonedx-py lives in an environment of its own (requirements.lock): it is no part of what it describes.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tools import lock

ROOT = Path(__file__).resolve().parent.parent
BILL, LICENCES = "wirecheck.cdx.json", "LICENCES.txt"
UNSAID = "not said"


def written(python: Path, scratch: Path, dist: Path, since: str) -> list[Path]:
    """Both files, of the environment of this Python."""
    own = scratch / "bill"
    run([sys.executable, "-m", "venv", str(own)])
    run([str(own / "bin/python"), lock.__file__, "release", "install", "--quiet"])
    return of(own / "bin/cyclonedx-py", python, dist, since)


def of(cyclonedx: Path, python: Path, dist: Path, since: str) -> list[Path]:
    bill, licences = dist / BILL, dist / LICENCES
    words = [str(cyclonedx), "environment", "--pyproject", str(ROOT / "pyproject.toml"), "--output-reproducible"]
    run([*words, "--validate", "--of", "JSON", "-o", str(bill), str(python)], SOURCE_DATE_EPOCH=since)
    document = json.loads(bill.read_text(encoding="utf-8"))
    rows = sorted((part["name"].lower(), part["version"], licence(part)) for part in document["components"])
    if not rows:
        sys.exit(f"{python}: nothing is installed there")
    licences.write_text("".join(f"{name} {version}: {said}\n" for name, version, said in rows), encoding="utf-8")
    return [bill, licences]


def licence(part: dict[str, Any]) -> str:
    """As a package says it: an SPDX expression, else the ids or names it gives."""
    found = [
        said
        for one in part.get("licenses", ())
        if (said := one.get("expression") or one["license"].get("id") or one["license"].get("name"))
    ]
    short = [said.strip().splitlines()[0] for said in found if said.strip()]
    return ", ".join(dict.fromkeys(short)) or UNSAID


def run(words: list[str], **more: str) -> None:

    result = subprocess.run(words, env={**os.environ, **more}, capture_output=True, text=True, check=False)
    if result.returncode:
        sys.exit(f"{' '.join(words)} ended with {result.returncode}:\n{result.stdout[-2000:]}{result.stderr[-2000:]}")
