"""Which versions do clients use, and which would Kafka 4.0 reject?

Knows exchanges by API and version, and the findings about versions. Refuses to name clients: `wirecheck clients` does.
Rule: what brokers speak among themselves stands apart from what clients speak; a roll shows in the first.
"""

from tools.boards.panel import (
    ALERTED,
    CLUSTER,
    ON,
    RATE,
    Board,
    Panel,
    Query,
    Row,
    Variable,
    gained,
    number,
    or_zero,
)

BETWEEN = 'api=~"LeaderAndIsr|UpdateMetadata|StopReplica|AlterPartition|BrokerHeartbeat|FetchSnapshot|Vote"'
API = Variable("api", "API", "label_values(wirecheck_exchanges_total, api)")

GATE = (
    number(
        "Clients seen",
        "How many clients are covered? Clients that sent nothing are not.",
        "short",
        or_zero(f"sum(wirecheck_clients{{{ON}}})"),
        wide=6,
    ),
    number(
        "Clients that 4.0 rejects",
        "Which clients must be updated first? `wirecheck clients --target 4.0` lists them with software and address.",
        "short",
        or_zero(f"sum(wirecheck_clients_on_removed_versions{{{ON}}})"),
        steps=((1, "orange"),),
        wide=6,
        runbook="WirecheckClientsBlockUpgrade",
    ),
    number(
        "Share ready for 4.0",
        "How far is the preparation? 100 % over a week that includes every batch job is a safe gate.",
        "percentunit",
        f"1 - sum(wirecheck_clients_on_removed_versions{{{ON}}}) / (sum(wirecheck_clients{{{ON}}}) > 0)",
        steps=((0, "red"), (0.9, "orange"), (1, "green")),
        decimals=1,
        upto=1,
        wide=6,
    ),
    number(
        "Versions rejected",
        "Are clients rejected now? A broker closes the connection instead of answering (VER001).",
        "short",
        or_zero(f'sum(wirecheck_findings{{{ON}, code=~"VER001|VER002"}})'),
        steps=((1, "red"),),
        wide=6,
    ),
)
CLIENTS = (
    Panel(
        "Clients that 4.0 rejects, over time",
        "Does the number fall as clients are updated?",
        "short",
        (
            Query(f"sum by (cluster) (wirecheck_clients_on_removed_versions{{{ON}}})", "rejected {{cluster}}"),
            Query(f"sum by (cluster) (wirecheck_clients{{{ON}}})", "all {{cluster}}"),
        ),
    ),
    Panel(
        "Findings about versions",
        "Which versions are unusual? VER003: a mix that no single release uses; VER005: gone in 4.0; WIR005: newer "
        "than this release of wirecheck reads.",
        "short",
        (Query(f'sum by (code, kind) (wirecheck_findings{{{ON}, code=~"VER.+|WIR005"}})', "{{code}} {{kind}}"),),
        kinds=("violation", "anomaly", "information", "visibility"),
    ),
    Panel(
        "Versions of the chosen API",
        "Which versions do clients use, and does the old one fade? Choose APIs above.",
        "reqps",
        (
            Query(
                f'sum by (api, version) (rate(wirecheck_exchanges_total{{{ON}, api=~"$api"}}{RATE})) > 0',
                "{{api}} v{{version}}",
            ),
        ),
        "stacked",
    ),
    Panel(
        "All APIs and versions, in this range",
        "Which versions are used? One line per API and version; sort by a column.",
        "short",
        (
            Query(
                gained("wirecheck_exchanges_total", "api, version", "$__range") + " > 0",
                "",
                instant=True,
            ),
        ),
        "table",
    ),
)
BROKERS = (
    Panel(
        "Versions between brokers",
        "How far is the upgrade? During one, brokers use two versions of an API; after an hour it is a finding.",
        "short",
        (
            Query(
                gained("wirecheck_exchanges_total", "api, version", "$__rate_interval", f", {BETWEEN}") + " > 0",
                "{{api}} v{{version}}",
            ),
        ),
        wide=12,
    ),
    Panel(
        "New and changed version findings per hour",
        "When did brokers change? VER008 reports that a broker's versions changed, VER003 that versions stay mixed.",
        "short",
        (
            Query(
                gained("wirecheck_finding_revisions_total", "code", "1h", ', code=~"VER.+"') + " > 0",
                "{{code}}",
            ),
        ),
        "bars-over-time",
        wide=12,
    ),
)
BOARD = Board(
    "wirecheck-versions",
    "wirecheck / Versions and upgrade",
    "Which versions do clients use, and which would Kafka 4.0 reject?",
    (Row("Upgrade gate", GATE), Row("Clients", CLIENTS), Row("Brokers among themselves", BROKERS, folded=True)),
    (CLUSTER, API),
    "now-24h",
    (ALERTED,),
)
