"""Panels that a healthy chain leaves empty, why, and which series make each of them speak.

Knows series as Prometheus stores them, one minute apart. `test_quiet.py` holds that each entry is true, by promtool;
`tests/live/test_boards.py` plants what makes all of them but one speak.
"""

from dataclasses import dataclass, field

FALLS = "0+60x180"
"""A counter that gains one a second."""
STANDS = "60x180"


@dataclass(frozen=True)
class Quiet:
    reason: str
    speaks: dict[str, str]
    """Series and their values."""
    says: tuple[dict[str, float], ...]
    """What each query of the panel makes of them after two hours: labels and value."""
    silent: dict[str, str] = field(default_factory=dict)
    """What a healthy chain has besides, and no query shows."""


def finding(code: str, kind: str, what: str = "findings") -> str:
    return f'wirecheck_{what}{{cluster="prod",code="{code}",kind="{kind}"}}'


QUIET = {
    "Stuck and rejected fetches": Quiet(
        "no capture here has a fetch that stands still",
        {finding("FET001", "violation"): "2x180", finding("FET003", "anomaly"): "1x180"},
        ({'{code="FET001", kind="violation"}': 2, '{code="FET003", kind="anomaly"}': 1},),
        {finding("TID002", "violation"): "1x180"},
    ),
    "Old IDs still in use, by code": Quiet(
        "clients noticed each recreation in time",
        {finding("TID005", "anomaly"): "3x180", finding("GRP001", "violation"): "1x180"},
        ({'{code="TID005"}': 3, '{code="GRP001"}': 1},),
        {finding("TID002", "violation"): "1x180"},
    ),
    "Versions between brokers": Quiet(
        "brokers tell each other such things when a cluster changes, and then for a moment",
        {'wirecheck_exchanges_total{cluster="prod",api="LeaderAndIsr",version="4"}': FALLS},
        ({'{api="LeaderAndIsr", version="4"}': 300},),
        {
            'wirecheck_exchanges_total{cluster="prod",api="LeaderAndIsr",version="3"}': STANDS,
            'wirecheck_exchanges_total{cluster="prod",api="Fetch",version="12"}': FALLS,
        },
    ),
    "Lost before or during capture": Quiet(
        "the captures were written without loss",
        {
            'wirecheck_dropped_frames_total{cluster="prod"}': FALLS,
            'wirecheck_skipped_frames_total{cluster="prod"}': "0+120x180",
        },
        ({'{cluster="prod"}': 300}, {'{cluster="prod"}': 600}),
    ),
    "Messages not decoded, by reason": Quiet(
        "all of their messages are decoded",
        {'wirecheck_undecoded_messages_total{cluster="prod",reason="unknown version"}': FALLS},
        ({'{reason="unknown version"}': 300},),
    ),
    "Checks that failed, by check": Quiet(
        "no check fails",
        {'wirecheck_check_failures_total{cluster="prod",check="CTL011"}': FALLS},
        ({'{check="CTL011"}': 300},),
    ),
    "Messages not read": Quiet(
        "the same",
        {'wirecheck_messages_total{cluster="prod",outcome="undecoded"}': FALLS},
        ({'{outcome="undecoded"}': 300},),
        {'wirecheck_messages_total{cluster="prod",outcome="decoded"}': FALLS},
    ),
    "Bytes never captured": Quiet(
        "every hole of the lossy capture is filled later",
        {'wirecheck_unseen_bytes_total{cluster="prod"}': FALLS},
        ({'{cluster="prod"}': 300},),
    ),
    "Input errors": Quiet(
        "all input can be read and comes in time, or the one that cannot came before anybody looked",
        {
            'wirecheck_input_errors_total{cluster="prod"}': "_x119 1x60",
            'wirecheck_quarantined_files_total{cluster="prod"}': FALLS,
            'wirecheck_late_frames_total{cluster="prod",agent="one"}': FALLS,
        },
        ({'{cluster="prod"}': 1}, {'{cluster="prod"}': 300}, {'{cluster="prod", agent="one"}': 300}),
        {'wirecheck_build_info{version="1"}': "1x180"},
    ),
    "Bytes lost before capture": Quiet(
        "the same",
        {'wirecheck_unseen_bytes_total{cluster="prod"}': FALLS},
        ({'{cluster="prod"}': 300},),
    ),
}
