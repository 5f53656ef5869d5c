"""The agents' part of the board about health: what each sees, keeps, loses and writes, in the order that bytes flow.

Knows the metrics of agents. Refuses to know what becomes of their frames but when the monitor heard of them last.
Rule: each place where something can be lost has a panel, and says what the loss does to the verdict.
"""

from tools.boards.panel import AGENT, LAG, LOSS_STEPS, ON, RATE, Panel, Query, spread

AGENTS = (
    Panel(
        "Packets seen",
        "Does each interface see traffic? At zero, the agent captures the wrong interface, or the broker is down.",
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
        "Does redaction work? Records and other protocols are redacted before anything is written. Most bytes are.",
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
        "Which agent loses packets? kernel: the ring was full. disk: writing was too slow. Both leave gaps.",
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
        "How close is the agent to losing packets? At 100 % the kernel drops them.",
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
        "What happens to packets? Skipped ones are not readable TCP, such as fragments.",
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
        "Is the disk fast enough? The time to publish a file adds to the age of every result.",
        "s",
        spread("wirecheck_agent_file_roll_seconds", f"{{{AGENT}}}"),
        "heatmap",
    ),
    Panel(
        "Time between files",
        "How often does an agent publish a file? Frames in an open file are not checked yet.",
        "s",
        (Query(f"1 / (sum by (instance) (rate(wirecheck_agent_files_total{{{AGENT}}}{RATE})) > 0)", "{{instance}}"),),
    ),
    Panel(
        "Disk used by frames",
        "Does the agent's directory approach its limit?",
        "bytes",
        (Query(f"sum by (instance) (wirecheck_agent_disk_bytes{{{AGENT}}})", "{{instance}}"),),
    ),
    Panel(
        "Connections followed by agents",
        "How much state do agents hold? One entry per open connection, for redaction.",
        "short",
        (Query(f"sum by (instance) (wirecheck_agent_connections{{{AGENT}}})", "{{instance}}"),),
    ),
    Panel(
        "Silence at the interface",
        "How long has an agent seen no packet? Brokers always talk; minutes of silence mean the wrong interface.",
        "s",
        (
            Query(
                f"time() - (max by (instance) (wirecheck_agent_last_frame_timestamp_seconds{{{AGENT}}}) > 0)",
                "{{instance}}",
            ),
        ),
    ),
    Panel(
        "Silence of agents at the monitor",
        "Which agent's frames stopped arriving, and when? After 60 s, an agent counts as lost.",
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
