"""The first board: is anything wrong, and can the answer be believed?

Knows the monitor's metrics and the order in which a person on call reads. Refuses to explain causes: the other boards
do. Rule: a verdict is never shown without what it rests on beside it.
"""

from tools.boards.panel import (
    ALERTED,
    MONITOR_RESTARTED,
    ON,
    RATE,
    RECREATED,
    Board,
    Panel,
    Query,
    Row,
    by_code,
    gained,
    number,
    onto,
    or_zero,
    worst,
)


def p99(histogram: str, by: str) -> str:
    """The 99th percentile of a histogram, by a label."""
    return f"histogram_quantile(0.99, sum by (le, {by}) (rate({histogram}_bucket{{{ON}}}{RATE})))"


BAD = ((1, "red"),)
ODD = ((1, "orange"),)

VERDICT = (
    number(
        "Clients affected",
        "Is a client refused, or without an answer, right now? The table below names the clients.",
        "short",
        or_zero(f"sum(wirecheck_clients_affected{{{ON}}})"),
        steps=BAD,
        runbook="WirecheckClientsAffected",
    ),
    number(
        "Open violations",
        "Is a rule of Kafka broken right now? Each is a contradiction with evidence; the table below names the codes.",
        "short",
        or_zero(f'sum(wirecheck_findings{{{ON}, kind="violation"}})'),
        steps=BAD,
        links=(onto("wirecheck-topic-identity", "Which IDs contradict each other"),),
        runbook="WirecheckTopicIdViolation",
    ),
    number(
        "Open anomalies",
        "Is something legal but unusual? Look at it in working hours.",
        "short",
        or_zero(f'sum(wirecheck_findings{{{ON}, kind="anomaly"}})'),
        steps=ODD,
    ),
    number(
        "Blind spots",
        "What did the monitor not see? Gaps, encryption, and connections that were joined late.",
        "short",
        or_zero(f'sum(wirecheck_findings{{{ON}, kind="visibility"}})'),
        steps=((1, "purple"),),
    ),
    number(
        "Messages decoded",
        "How much of the traffic do results rest on? Share of completely decoded messages.",
        "percentunit",
        f'sum(rate(wirecheck_messages_total{{{ON}, outcome="decoded"}}{RATE}))'
        f" / (sum(rate(wirecheck_messages_total{{{ON}}}{RATE})) > 0)",  # a quiet minute has no share
        steps=((0, "red"), (0.98, "orange"), (0.999, "green")),
        decimals=2,
        upto=1,
        links=(onto("wirecheck-health", "What is not decoded, and why"),),
        runbook="WirecheckDecodedShareLow",
    ),
    number(
        "Results are behind by",
        "How old is the newest checked frame of the slowest cluster? Deselect silent clusters above.",
        "s",
        f"max(wirecheck_judged_lag_seconds{{{ON}}})",
        steps=((60, "orange"), (300, "red")),
        decimals=0,
        links=(onto("wirecheck-health", "Where it is behind"),),
        runbook="WirecheckFallingBehind",
    ),
)
FINDINGS = (
    worst(
        "Worst open findings",
        "What is wrong, and since when? A row for each cause; a click opens the monitor's report with the evidence.",
    ),
    by_code(
        "Findings over time, by code",
        "Since when is each code open, and did it recur? A bar lasts while the check has an open finding.",
        high=9,
        links=(onto("wirecheck-topic-identity", "Which IDs contradict each other"),),
    ),
    Panel(
        "Open findings by kind",
        "Since when is something wrong? Violations first; information and visibility can wait until morning.",
        "short",
        (Query(f"sum by (kind) (wirecheck_findings{{{ON}}})", "{{kind}}"),),
        "stacked",
        kinds=("violation", "anomaly", "information", "visibility"),
    ),
    Panel(
        "Open findings by code",
        "What exactly is open? `wirecheck explain CODE` explains a code and its false positives.",
        "short",
        (
            Query(
                f"sort_desc(sum by (code, kind, role) (wirecheck_findings{{{ON}}}) > 0)",
                "{{code}} {{kind}} {{role}}",
                instant=True,
            ),
        ),
        "bars",
    ),
    Panel(
        "New and changed findings per hour",
        "Is it getting worse? Every new or changed finding counts once.",
        "short",
        (Query(gained("wirecheck_finding_revisions_total", "code", "1h") + " > 0", "{{code}}"),),
    ),
    Panel(
        "Topics recreated, per hour",
        "Were topics deleted and recreated? Then old IDs may stay in use.",
        "short",
        (Query(gained("wirecheck_topics_recreated_total", "cluster", "1h"), "{{cluster}}"),),
    ),
)
REQUESTS = (
    Panel(
        "Errors by API",
        "Which requests are answered with which errors? The top ten, per second.",
        "reqps",
        (
            Query(
                f"topk(10, sum by (api, error) (rate(wirecheck_request_errors_total{{{ON}}}{RATE})))",
                "{{api}} {{error}}",
            ),
        ),
    ),
    Panel(
        "Errors by broker",
        "Does one broker answer with more errors than the others? Per second.",
        "reqps",
        (Query(f"sum by (broker) (rate(wirecheck_broker_errors_total{{{ON}}}{RATE}))", "broker {{broker}}"),),
    ),
    Panel(
        "Duration by API (p99)",
        "Which requests are slow? From a request's last byte to its response's first; Fetch waits by design.",
        "s",
        (Query(p99("wirecheck_request_duration_seconds", "api"), "{{api}}"),),
    ),
    Panel(
        "Duration by broker (p99)",
        "Is one broker slower than the others? Without requests that wait for data or members.",
        "s",
        (Query(p99("wirecheck_broker_request_duration_seconds", "broker"), "broker {{broker}}"),),
    ),
    Panel(
        "Network round trip (p99)",
        "Is the network slow? From the client to the broker and back, by the TCP handshake of each connection.",
        "s",
        (Query(p99("wirecheck_network_round_trip_seconds", "cluster"), "{{cluster}}"),),
    ),
)
TRAFFIC = (
    Panel(
        "Exchanges by API",
        "Which APIs are busiest? The top ten, in exchanges per second.",
        "reqps",
        (Query(f"topk(10, sum by (api) (rate(wirecheck_exchanges_total{{{ON}}}{RATE})))", "{{api}}"),),
    ),
    Panel(
        "Messages not read",
        "What is missing from results? Undecoded: an unknown layout. Malformed: bytes that break a known one.",
        "short",
        (
            Query(
                gained("wirecheck_messages_total", "outcome", "$__rate_interval", ', outcome!="decoded"'), "{{outcome}}"
            ),
        ),
    ),
    Panel(
        "Connections by transport",
        "How much traffic is encrypted? It is counted but not checked.",
        "cps",
        (Query(f"sum by (transport) (rate(wirecheck_connections_total{{{ON}}}{RATE}))", "{{transport}}"),),
    ),
    Panel(
        "Frames checked per second",
        "Does traffic arrive? A cluster at zero is silent, or its agents are.",
        "pps",
        (Query(f"sum by (cluster) (rate(wirecheck_frames_total{{{ON}}}{RATE}))", "{{cluster}}"),),
    ),
    Panel(
        "Bytes lost before capture",
        "Are packets lost before they are captured? Lost bytes leave gaps.",
        "bytes",
        (Query(gained("wirecheck_unseen_bytes_total", "cluster", "$__rate_interval"), "{{cluster}}"),),
        steps=((1, "orange"),),
        runbook="WirecheckCaptureLoss",
    ),
)
GROUPS = (
    Panel(
        "Lag by group",
        "Which groups are behind? Records between commits and the ends of partitions, as far as both were captured.",
        "short",
        (Query(f"topk(10, sum by (group) (wirecheck_group_lag_records{{{ON}}}) > 0)", "{{group}}"),),
    ),
    Panel(
        "Oldest record that waits, by group",
        "How long has a record been there that the group has not committed? A line that rises is a group that stopped.",
        "s",
        (
            Query(
                f"topk(10, time() - min by (group) (wirecheck_group_waiting_since_timestamp_seconds{{{ON}}}))",
                "{{group}}",
            ),
        ),
    ),
)
BOARD = Board(
    "wirecheck-overview",
    "wirecheck / Overview",
    "Is anything wrong, and is the data complete?",
    (
        Row("Verdict", VERDICT),
        Row("Findings", FINDINGS),
        Row("Consumer groups", GROUPS, folded=True),
        Row("Requests, errors and duration", REQUESTS, folded=True),
        Row("Traffic and coverage", TRAFFIC, folded=True),
    ),
    events=(RECREATED, MONITOR_RESTARTED, ALERTED),
)
