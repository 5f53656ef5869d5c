"""Writes the pages that are generated from the code: CHECKS.md, docs/metrics.md, docs/tables.md, docs/redaction.md,
docs/verdict.schema.json, wirecheck(1), boards and the picture of one, the rules as a PrometheusRule, the outputs of the
notebook.

Knows where each page lives and which room says its text. `make docs` writes them; a test fails when one is stale.
Refuses to hold any text of its own.
"""

from pathlib import Path

from tools import board_picture, man_page, prometheus_rule, reference_pages, run_notebook, verdict_schema
from tools.boards import grafana
from wirecheck.judge.checks import listed_checks

ROOT = Path(__file__).resolve().parent.parent


def documents() -> dict[Path, str]:
    return {
        ROOT / "CHECKS.md": listed_checks.document(),
        ROOT / "docs" / "metrics.md": reference_pages.metrics(),
        ROOT / "docs" / "tables.md": reference_pages.tables(),
        ROOT / "docs" / "redaction.md": reference_pages.redaction(),
        verdict_schema.SCHEMA: verdict_schema.page(),
        ROOT / "docs" / "man" / "wirecheck.1": man_page.page(),
        ROOT / "deploy" / "kubernetes-prometheus-operator" / "rules.yaml": prometheus_rule.page(),
        **grafana.documents(),
        board_picture.PICTURE: board_picture.picture(),
    }


if __name__ == "__main__":
    for path, text in documents().items():
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)
    notebook = ROOT / "examples" / "first-look.ipynb"
    notebook.write_text(run_notebook.text_of(run_notebook.run(notebook)), encoding="utf-8")
