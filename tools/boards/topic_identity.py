"""Do all brokers and clients agree on topic IDs?

Knows the checks about topic ids and who they blame: controllers, brokers, clients. Refuses to name topics: names are
in the findings table, never in labels. Rule: recreations stand beside contradictions, because one explains the other.
"""

from tools.boards.panel import (
    ALERTED,
    ON,
    RECREATED,
    Board,
    Panel,
    Query,
    Row,
    by_code,
    gained,
    number,
    or_zero,
    worst,
)

IDENTITY = 'code=~"TID.+|LOG.+|CLU.+"'
STALE = 'code=~"TID005|TID017|GRP.+"'

STATE = (
    number(
        "Contradictions open",
        "Do two sources use different IDs for one topic, or does a broker reject an ID? Each one is broken now.",
        "short",
        or_zero(f'sum(wirecheck_findings{{{ON}, {IDENTITY}, kind="violation"}})'),
        steps=((1, "red"),),
        runbook="WirecheckTopicIdViolation",
    ),
    number(
        "Stuck on an ID",
        "Does a consumer or follower fetch nothing because its ID is rejected (FET001)? It needs a restart.",
        "short",
        or_zero(f'sum(wirecheck_findings{{{ON}, code="FET001"}})'),
        steps=((1, "red"),),
        runbook="WirecheckReplicationStuck",
    ),
    number(
        "Old IDs still in use",
        "Does any client or broker use a topic that ended? Brokers (TID017) are worse than clients (TID005).",
        "short",
        or_zero(f"sum(wirecheck_findings{{{ON}, {STALE}}})"),
        steps=((1, "orange"),),
    ),
    number(
        "Current topics",
        "How many names have one current ID?",
        "short",
        or_zero(f'sum(wirecheck_topics{{{ON}, state="current"}})'),
    ),
    number(
        "IDs without a name",
        "Are IDs used without a known name? Normal when a capture begins; later, Metadata is not captured.",
        "short",
        or_zero(f'sum(wirecheck_topics{{{ON}, state="unresolved"}})'),
        steps=((1, "purple"),),
    ),
    number(
        "Recreated, in this range",
        "How many topics were deleted and recreated? Expect stale clients for five minutes after each.",
        "short",
        f"sum({gained('wirecheck_topics_recreated_total', 'cluster', '$__range')})",
        decimals=0,
    ),
)
HISTORY = (
    worst(
        "Which topics, which brokers",
        "Whose IDs contradict each other? A click opens the monitor's report with the evidence.",
        f", {IDENTITY}",
    ),
    by_code(
        "Codes about identity over time",
        "Which contradiction came first? Compare with the annotated recreations.",
        f", {IDENTITY}",
    ),
    Panel(
        "Contradictions by code",
        "Which rule is broken, and since when? TID002: a broker's disk has another ID; TID006, TID007: requests or "
        "brokers disagree; LOG001: a broker disagrees with the metadata log.",
        "short",
        (Query(f'sum by (code) (wirecheck_findings{{{ON}, {IDENTITY}, kind="violation"}})', "{{code}}"),),
        "stacked",
    ),
    Panel(
        "Topics recreated, per hour",
        "Did the fault begin with a recreation? Compare the times.",
        "short",
        (Query(gained("wirecheck_topics_recreated_total", "cluster", "1h"), "{{cluster}}"),),
        "bars-over-time",
    ),
    Panel(
        "Old IDs still in use, by code",
        "Who still uses an old ID? It should decrease to zero within metadata.max.age.ms (5 minutes).",
        "short",
        (Query(f"sum by (code) (wirecheck_findings{{{ON}, {STALE}}})", "{{code}}"),),
    ),
    Panel(
        "Topics by state",
        "Is the set of topics steady? Replaced and deleted IDs are kept for a day of capture time.",
        "short",
        (Query(f"sum by (state) (wirecheck_topics{{{ON}}})", "{{state}}"),),
    ),
    Panel(
        "Controllers, leaders and replicas",
        "Are there two controllers or leaders? CTL001: two controllers are active; CTL002: two leaders in one epoch.",
        "short",
        (Query(f'sum by (code, kind) (wirecheck_findings{{{ON}, code=~"CTL.+"}})', "{{code}} {{kind}}"),),
        wide=12,
        kinds=("violation", "anomaly", "information"),
    ),
    Panel(
        "Stuck and rejected fetches",
        "Who reads nothing? FET001 is stuck on an ID, FET008 waits for a transaction; the others end by themselves.",
        "short",
        (Query(f'sum by (code, kind) (wirecheck_findings{{{ON}, code=~"FET.+"}})', "{{code}} {{kind}}"),),
        wide=12,
        kinds=("violation", "anomaly", "information"),
    ),
)
BOARD = Board(
    "wirecheck-topic-identity",
    "wirecheck / Topic identity",
    "Do all brokers and clients agree on topic IDs?",
    (Row("Now", STATE), Row("History", HISTORY)),
    span="now-24h",
    events=(RECREATED, ALERTED),
)
