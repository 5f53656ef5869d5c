"""Writes the pages that are generated from the code: CHECKS.md, docs/metrics.md.

Knows where each page lives and which room says its text. `make docs` writes them; a test fails when one is stale.
Refuses to hold any text of its own.
"""

from pathlib import Path

from streaming import measured
from streaming.judge import catalogue

ROOT = Path(__file__).resolve().parent.parent


def documents() -> dict[Path, str]:
    return {
        ROOT / "CHECKS.md": catalogue.document(),
        ROOT / "docs" / "metrics.md": measured.document(),
    }


if __name__ == "__main__":
    for path, text in documents().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
