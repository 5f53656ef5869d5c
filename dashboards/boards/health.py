"""Is everything captured, read and judged in time, and where is it lost?

Knows the metrics of agents and of the pipeline, in the order that bytes flow. Refuses to judge Kafka. Rule: each
place where something can be lost has a panel, and says what the loss does to the verdict.
"""

from wirecheck.dashboards.boards.panel import (
    AGENT,
    AGENT_RESTARTED,
    ALERTED,
    CLUSTER,
    MONITOR_RESTARTED,
    ON,
    RATE,
    Board,
    Panel,
    Query,
    Row,
    Variable,
    number,
)

WHO = Variable("agent", "Agent", "label_values(wirecheck_agent_frames_total, instance)")


def quantile(share: float, metric: str, by: str = "", where: str = "") -> str:
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({share}, sum by ({labels}) (rate({metric}_bucket{where}{RATE})))"


def spread(metric: str, where: str = "") -> tuple[Query, ...]:
    """A histogram's buckets, by how many each gained."""
    return (Query(f"sum by (le) (increase({metric}_bucket{where}{RATE}))", "{{le}}"),)


LAG = ((60, "orange"), (300, "red"))
LOSS_STEPS = ((1, "orange"), (100, "red"))
NOW = (
    number(
        "Behind by",
        "How old is the newest judged frame of the cluster that is worst? A silent one ages: leave it out above.",
        "s",
        f"max(wirecheck_judged_lag_seconds{{{ON}}})",
        steps=((60, "orange"), (300, "red")),
        decimals=0,
    ),
    number(
        "Frame to verdict, p95",
        "How long from the wire to a judged frame? 10 s is the promise at 20 000 frames/s on two cores.",
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
        "Is the query alive? Seconds since it finished a batch; it makes one only when files come.",
        "s",
        "time() - max(wirecheck_last_batch_timestamp_seconds)",
        steps=((120, "orange"), (600, "red")),
        decimals=0,
    ),
    number(
        "Packets lost at capture",
        "Do agents lose packets? Share of all packets over the last 5 minutes.",
        "percentunit",
        "sum(rate(wirecheck_agent_lost_frames_total[5m])) / sum(rate(wirecheck_agent_frames_total[5m]))"
        " or sum(rate(wirecheck_agent_frames_total[5m])) * 0",
        steps=((0.0001, "orange"), (0.01, "red")),
        decimals=3,
    ),
    number(
        "Files set aside",
        "Could a file not be read, in this range? It stays where it is; log and coverage table name it.",
        "short",
        f"sum(increase(wirecheck_quarantined_files_total{{{ON}}}[$__range]))",
        steps=((1, "orange"),),
        decimals=0,
        runbook="WirecheckFileSetAside",
    ),
)
AGENTS = (
    Panel(
        "Packets seen",
        "Does each interface see traffic? An agent at zero watches the wrong interface or a broker that is down.",
        "pps",
        (
            Query(
                f"sum by (instance, interface) (rate(wirecheck_agent_frames_total{{{AGENT}}}{RATE}))",
                "{{instance}} {{interface}}",
            ),
        ),
    ),
    Panel(
        "Payload seen, and redacted by reason",
        "Does trimming work? Records and foreign protocols are redacted before anything is written; most bytes are.",
        "Bps",
        (
            Query(f"sum by (instance) (rate(wirecheck_agent_bytes_total{{{AGENT}}}{RATE}))", "seen {{instance}}"),
            Query(
                f"sum by (reason) (rate(wirecheck_agent_left_out_bytes_total{{{AGENT}}}{RATE}))", "redacted: {{reason}}"
            ),
        ),
    ),
    Panel(
        "Packets lost, by reason",
        "Who loses packets? kernel: the ring was full, the agent too slow. disk: writing was too slow. Gaps follow.",
        "pps",
        (
            Query(
                f"sum by (instance, reason) (rate(wirecheck_agent_lost_frames_total{{{AGENT}}}{RATE}))",
                "{{instance}} {{reason}}",
            ),
        ),
        steps=LOSS_STEPS,
        runbook="WirecheckCaptureLoss",
    ),
    Panel(
        "Ring fill",
        "How close is the agent to losing packets? At 100 % the kernel drops.",
        "percentunit",
        (
            Query(
                f"max by (instance, interface) (wirecheck_agent_ring_fill_ratio{{{AGENT}}})",
                "{{instance}} {{interface}}",
            ),
        ),
        upto=1,
        steps=((0.5, "orange"), (0.8, "red")),
        runbook="WirecheckRingNearlyFull",
    ),
    Panel(
        "Packets kept and skipped",
        "What becomes of packets? Skipped ones are no TCP that can be read; fragments and other ports belong there.",
        "pps",
        (
            Query(f"sum by (instance) (rate(wirecheck_agent_kept_frames_total{{{AGENT}}}{RATE}))", "kept {{instance}}"),
            Query(
                f"sum by (reason) (rate(wirecheck_agent_skipped_frames_total{{{AGENT}}}{RATE}))", "skipped: {{reason}}"
            ),
        ),
    ),
    Panel(
        "Time to roll a file",
        "Is the disk fast enough? The time until a rolled file can be read adds to every verdict's age.",
        "s",
        spread("wirecheck_agent_file_roll_seconds", f"{{{AGENT}}}"),
        "heatmap",
    ),
    Panel(
        "Time between files",
        "How often does an agent hand over a file? What lies in an open file is not judged yet.",
        "s",
        (Query(f"1 / (sum by (instance) (rate(wirecheck_agent_files_total{{{AGENT}}}{RATE})) > 0)", "{{instance}}"),),
    ),
    Panel(
        "Disk used by frames",
        "Will the agent's folder outgrow its limit?",
        "bytes",
        (Query(f"sum by (instance) (wirecheck_agent_disk_bytes{{{AGENT}}})", "{{instance}}"),),
    ),
    Panel(
        "Connections followed by agents",
        "How much state do agents hold? One entry per open connection, in order to leave records out.",
        "short",
        (Query(f"sum by (instance) (wirecheck_agent_connections{{{AGENT}}})", "{{instance}}"),),
    ),
    Panel(
        "Silence at the interface",
        "Since when did an agent see no packet? A broker always talks; minutes of silence mean the wrong place.",
        "s",
        (
            Query(
                f"time() - (max by (instance) (wirecheck_agent_last_frame_timestamp_seconds{{{AGENT}}}) > 0)",
                "{{instance}}",
            ),
        ),
    ),
    Panel(
        "Silence of agents, as judged",
        "Whose frames stopped arriving at the monitor, and when? A cell a time; after 60 s an agent counts as lost.",
        "s",
        (
            Query(
                f"time() - max by (cluster, agent) (wirecheck_agent_judged_timestamp_seconds{{{ON}}})",
                "{{cluster}} {{agent}}",
            ),
        ),
        "history",
        steps=LAG,
        runbook="WirecheckAgentSilent",
    ),
)
PIPELINE = (
    Panel(
        "Verdict is behind by",
        "Is there a backlog, and of what age?",
        "s",
        (Query(f"max by (cluster) (wirecheck_judged_lag_seconds{{{ON}}})", "{{cluster}}"),),
        steps=LAG,
        runbook="WirecheckFallingBehind",
    ),
    Panel(
        "Frame to verdict",
        "How does the delay spread over frames? A second band above is work that waits.",
        "s",
        spread("wirecheck_frame_to_judged_seconds", f"{{{ON}}}"),
        "heatmap",
    ),
    Panel(
        "Backlog",
        "Does work pile up? Bytes of frames files that wait.",
        "bytes",
        (Query("sum(wirecheck_backlog_bytes)", "waiting"),),
    ),
    Panel(
        "Batch time",
        "Is a batch slower than the files that come meanwhile?",
        "s",
        spread("wirecheck_batch_duration_seconds"),
        "heatmap",
    ),
    Panel(
        "State",
        "Does state stay bounded? It follows the number of connections and topics, and levels off.",
        "bytes",
        (Query("sum by (step) (wirecheck_state_bytes)", "{{step}}"),),
        "stacked",
    ),
    Panel(
        "Frames judged",
        "How much arrives at the monitor? Compare with what agents keep.",
        "pps",
        (Query(f"sum by (cluster) (rate(wirecheck_frames_total{{{ON}}}{RATE}))", "{{cluster}}"),),
    ),
)
LOSS = (
    Panel(
        "Lost before or during capture",
        "What is missing from what arrived? Dropped: agents say so. Skipped: no readable TCP.",
        "pps",
        (
            Query(f"sum by (cluster) (rate(wirecheck_dropped_frames_total{{{ON}}}{RATE}))", "dropped {{cluster}}"),
            Query(f"sum by (cluster) (rate(wirecheck_skipped_frames_total{{{ON}}}{RATE}))", "skipped {{cluster}}"),
        ),
    ),
    Panel(
        "Bytes never captured",
        "How large are the gaps inside connections? What lies in a gap is judged by nobody and blamed on nobody.",
        "Bps",
        (Query(f"sum by (cluster) (rate(wirecheck_unseen_bytes_total{{{ON}}}{RATE}))", "{{cluster}}"),),
        steps=LOSS_STEPS,
    ),
    Panel(
        "Messages not decoded, by reason",
        "Why could a message not be read? An unknown version asks for a newer wirecheck.",
        "cps",
        (Query(f"sum by (reason) (rate(wirecheck_undecoded_messages_total{{{ON}}}{RATE}))", "{{reason}}"),),
    ),
    Panel(
        "Input errors",
        "Is input damaged? Files that could not be read to their end, and files set aside, as they came.",
        "short",
        (
            Query(
                f"sum by (cluster) (increase(wirecheck_input_errors_total{{{ON}}}{RATE}))", "input errors {{cluster}}"
            ),
            Query(
                f"sum by (cluster) (increase(wirecheck_quarantined_files_total{{{ON}}}{RATE}))", "set aside {{cluster}}"
            ),
        ),
        "bars-over-time",
    ),
    Panel(
        "Checks that failed, by check",
        "Did a check end with an exception? It is our mistake (VIS006); what it had told stands, the rest is judged.",
        "short",
        (Query(f"sum by (check) (increase(wirecheck_check_failures_total{{{ON}}}{RATE}))", "{{check}}"),),
        "bars-over-time",
    ),
    Panel(
        "Versions of wirecheck",
        "Do agents and monitor run the same release? Frames of a newer agent may not be read by an older monitor.",
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
    "Is everything captured, read and judged in time, and where is it lost?",
    (
        Row("Now", NOW),
        Row("Agents", AGENTS),
        Row("Monitor", PIPELINE, folded=True),
        Row("What is missing", LOSS, folded=True),
    ),
    (CLUSTER, WHO),
    events=(MONITOR_RESTARTED, AGENT_RESTARTED, ALERTED),
)
