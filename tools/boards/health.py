"""Is everything captured, decoded and checked in time, and where is it lost?

Knows the metrics of agents and of the pipeline, in the order that bytes flow. Refuses to judge Kafka. Rule: each
place where something can be lost has a panel, and says what the loss does to the verdict.
"""

from tools.boards.agent_panels import AGENTS
from tools.boards.panel import (
    AGENT_RESTARTED,
    ALERTED,
    CLUSTER,
    LAG,
    LOSS_STEPS,
    MONITOR_RESTARTED,
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
    spread,
)

WHO = Variable("agent", "Agent", "label_values(wirecheck_agent_frames_total, instance)")


def quantile(share: float, metric: str, where: str = "") -> str:
    return f"histogram_quantile({share}, sum by (le) (rate({metric}_bucket{where}{RATE})))"


NOW = (
    number(
        "Behind by",
        "How old is the newest checked frame of the slowest cluster? Deselect silent clusters above.",
        "s",
        f"max(wirecheck_judged_lag_seconds{{{ON}}})",
        steps=((60, "orange"), (300, "red")),
        decimals=0,
    ),
    number(
        "Frame to result, p95",
        "How long does a frame take from the wire to its check? The target is 10 s at 20,000 frames/s on two cores.",
        "s",
        quantile(0.95, "wirecheck_frame_to_judged_seconds", where=f"{{{ON}}}"),
        steps=((10, "orange"), (60, "red")),
        decimals=1,
    ),
    number(
        "Files waiting",
        "Does the monitor keep up? Steady is fine, growing is not.",
        "short",
        "sum(wirecheck_backlog_files)",
        steps=((100, "orange"), (1000, "red")),
    ),
    number(
        "Last batch",
        "Is the query running? Seconds since its last batch; it runs one only when files arrive.",
        "s",
        "time() - max(wirecheck_last_batch_timestamp_seconds)",
        steps=((120, "orange"), (600, "red")),
        decimals=0,
    ),
    number(
        "Packets lost at capture",
        "Do agents lose packets? Share of all packets over the last 5 minutes.",
        "percentunit",
        "sum(rate(wirecheck_agent_lost_frames_total[5m])) / (sum(rate(wirecheck_agent_frames_total[5m])) > 0)"
        " or sum(rate(wirecheck_agent_frames_total[5m])) * 0",
        steps=((0.0001, "orange"), (0.01, "red")),
        decimals=3,
    ),
    number(
        "Files set aside",
        "Were files unreadable since the run began? They stay in place; log and coverage table name them.",
        "short",
        or_zero(f"sum(wirecheck_quarantined_files_total{{{ON}}})"),
        steps=((1, "orange"),),
        runbook="WirecheckFileSetAside",
    ),
)
PIPELINE = (
    Panel(
        "Results are behind by",
        "Is there a backlog, and how old is it?",
        "s",
        (Query(f"max by (cluster) (wirecheck_judged_lag_seconds{{{ON}}})", "{{cluster}}"),),
        steps=LAG,
        runbook="WirecheckFallingBehind",
    ),
    Panel(
        "Frame to result",
        "How is the delay distributed over frames? A second band above is a backlog.",
        "s",
        spread("wirecheck_frame_to_judged_seconds", f"{{{ON}}}"),
        "heatmap",
    ),
    Panel(
        "Backlog",
        "Is there a backlog? Bytes of waiting frames files.",
        "bytes",
        (Query("sum(wirecheck_backlog_bytes)", "waiting"),),
    ),
    Panel(
        "Batch time",
        "Is a batch slower than the files that arrive in the meantime?",
        "s",
        spread("wirecheck_batch_duration_seconds"),
        "heatmap",
    ),
    Panel(
        "State",
        "Is state bounded? It follows the number of connections and topics, and levels off.",
        "bytes",
        (Query("sum by (step) (wirecheck_state_bytes)", "{{step}}"),),
        "stacked",
    ),
    Panel(
        "Frames checked",
        "How much arrives at the monitor? Compare with what agents keep.",
        "pps",
        (Query(f"sum by (cluster) (rate(wirecheck_frames_total{{{ON}}}{RATE}))", "{{cluster}}"),),
    ),
)
LOSS = (
    Panel(
        "Lost before or during capture",
        "What is missing? Dropped: lost by agents. Skipped: not readable TCP.",
        "short",
        (
            Query(gained("wirecheck_dropped_frames_total", "cluster", "$__rate_interval"), "dropped {{cluster}}"),
            Query(gained("wirecheck_skipped_frames_total", "cluster", "$__rate_interval"), "skipped {{cluster}}"),
        ),
    ),
    Panel(
        "Bytes never captured",
        "How large are the gaps inside connections? Nothing in a gap is checked, and gaps cause no findings.",
        "bytes",
        (Query(gained("wirecheck_unseen_bytes_total", "cluster", "$__rate_interval"), "{{cluster}}"),),
        steps=LOSS_STEPS,
    ),
    Panel(
        "Messages not decoded, by reason",
        "Why were messages not decoded? An unknown version needs a newer wirecheck.",
        "short",
        (Query(gained("wirecheck_undecoded_messages_total", "reason", "$__rate_interval"), "{{reason}}"),),
    ),
    Panel(
        "Input errors",
        "Is input damaged or late? Truncated files, skipped files, and late frames.",
        "short",
        (
            Query(gained("wirecheck_input_errors_total", "cluster", "$__rate_interval"), "input errors {{cluster}}"),
            Query(gained("wirecheck_quarantined_files_total", "cluster", "$__rate_interval"), "set aside {{cluster}}"),
            Query(gained("wirecheck_late_frames_total", "cluster, agent", "$__rate_interval"), "late frames {{agent}}"),
        ),
        "bars-over-time",
    ),
    Panel(
        "Checks that failed, by check",
        "Did a check raise an exception? It is a bug (VIS006). Earlier findings remain; the rest is checked.",
        "short",
        (Query(gained("wirecheck_check_failures_total", "check", "$__rate_interval"), "{{check}}"),),
        "bars-over-time",
    ),
    Panel(
        "Versions of wirecheck",
        "Do agents and monitor run the same release? An older monitor may not read frames of a newer agent.",
        "short",
        (
            Query("count by (version) (wirecheck_build_info)", "monitor {{version}}"),
            Query("count by (version) (wirecheck_agent_build_info)", "agents {{version}}"),
        ),
    ),
)
BOARD = Board(
    "wirecheck-health",
    "wirecheck / Capture and pipeline health",
    "Is everything captured, decoded and checked in time, and where is it lost?",
    (
        Row("Now", NOW),
        Row("Agents", AGENTS),
        Row("Monitor", PIPELINE, folded=True),
        Row("What is missing", LOSS, folded=True),
    ),
    (CLUSTER, WHO),
    events=(MONITOR_RESTARTED, AGENT_RESTARTED, ALERTED),
)
