"""The rules and alerts as an object of the Prometheus Operator: deploy/kubernetes-prometheus-operator/rules.yaml.

Knows: the form of that object. What a rule says is in dashboards/prometheus.
"""

from pathlib import Path

import yaml

FOLDER = Path(__file__).resolve().parent.parent / "dashboards/prometheus"
HEAD = "# Made by `make docs` of dashboards/prometheus/rules.yml and alerts.yml.\n"
WIDTH = 1 << 16
"""No text is folded: a template is one line."""


class WithoutAliases(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - every value is written where it stands
        return True


def page() -> str:
    groups = [
        group
        for name in ("rules.yml", "alerts.yml")
        for group in yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))["groups"]
    ]
    made = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {
            "name": "wirecheck",
            "namespace": "wirecheck",
            "labels": {"app.kubernetes.io/part-of": "wirecheck"},
        },
        "spec": {"groups": groups},
    }
    return HEAD + yaml.dump(made, Dumper=WithoutAliases, sort_keys=False, width=WIDTH, allow_unicode=True)
