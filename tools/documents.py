"""Writes the pages that are generated from the code: CHECKS.md, docs/metrics.md, docs/tables.md, Grafana's boards.

Knows where each page lives and which room says its text. `make docs` writes them; a test fails when one is stale.
Refuses to hold any text of its own.
"""

from pathlib import Path

from dashboards.boards import grafana
from dashboards.remedies import remedies
from streaming import measured, tables
from streaming.judge import catalogue

ROOT = Path(__file__).resolve().parent.parent


def documents() -> dict[Path, str]:
    return {
        ROOT / "CHECKS.md": catalogue.document(remedies()),
        ROOT / "docs" / "metrics.md": measured.document(),
        ROOT / "docs" / "tables.md": tables.document(),
        **grafana.documents(),
    }


if __name__ == "__main__":
    for path, text in documents().items():
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)
