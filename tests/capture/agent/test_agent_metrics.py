"""The agent's metrics: their names, and that Prometheus' own checker has nothing to say."""

import re
import shutil
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from wirecheck.capture.agent import agent_metrics
from wirecheck.capture.agent.counts import DISK, KERNEL, Counts, TlsCounts
from wirecheck.capture.agent.spool_folder import Backlog

NAMES = {
    "agent_frames_total", "agent_bytes_total", "agent_kept_frames_total", "agent_left_out_bytes_total",
    "agent_lost_frames_total", "agent_skipped_frames_total", "agent_file_roll_seconds", "agent_files_total",
    "agent_ring_fill_ratio", "agent_connections", "agent_disk_bytes", "agent_last_frame_timestamp_seconds",
    "agent_build_info", "agent_compiled",
}  # fmt: skip
SHIPPING = {
    "shipped_files_total", "shipped_bytes_total", "ship_failures_total", "backlog_files",
    "backlog_oldest_timestamp_seconds",
}  # fmt: skip

TLS = {"tls_connections_total", "key_log_lines_total", "key_logs_unreadable"}


@pytest.fixture
def counts():
    counts = Counts(last_frame_ns=1_700_000_000_500_000_000, kept_frames=7, files=2)
    counts.frames["lo"] = 10
    counts.payload_bytes["lo"] = 1000
    counts.lost["lo", KERNEL] = 2
    counts.lost["eth0", DISK] = 1
    counts.skipped["fragment"] = 3
    counts.left_out_bytes = {"records": 900}
    counts.ring_fill["lo"] = 0.25
    for seconds in (0.003, 0.02, 99):
        counts.rolls.add(seconds)
    return counts


def page(counts):
    registry = CollectorRegistry()
    registry.register(agent_metrics.AgentCollector(counts))
    return generate_latest(registry).decode()


def test_an_agent_with_key_logs_says_what_became_of_tls(counts):
    shown = {line.split()[2] for line in page(counts).splitlines() if line.startswith("# TYPE")}
    counts.tls = TlsCounts(decrypted=5, without_keys=2, failed=1, secrets=30, strange=4, unreadable=1)
    text = page(counts)
    assert {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")} - shown == {
        f"wirecheck_agent_{name}" for name in TLS
    }
    for line in (
        'tls_connections_total{outcome="decrypted"} 5.0',
        'tls_connections_total{outcome="without_keys"} 2.0',
        'tls_connections_total{outcome="failed"} 1.0',
        'key_log_lines_total{kind="secret"} 30.0',
        'key_log_lines_total{kind="strange"} 4.0',
        "key_logs_unreadable 1.0",
    ):
        assert f"wirecheck_agent_{line}" in text


def test_an_agent_that_ships_says_what_waits(counts):
    shown = {line.split()[2] for line in page(counts).splitlines() if line.startswith("# TYPE")}
    counts.backlog = lambda: Backlog(3, 1_700_000_000.5)
    counts.shipped_files, counts.shipped_bytes, counts.ship_failures = 5, 900, 2
    text = page(counts)
    assert {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")} - shown == {
        f"wirecheck_agent_{name}" for name in SHIPPING
    }
    for line in (
        "shipped_files_total 5.0",
        "shipped_bytes_total 900.0",
        "ship_failures_total 2.0",
        "backlog_files 3.0",
        "backlog_oldest_timestamp_seconds 1.7000000005e+09",
    ):
        assert f"wirecheck_agent_{line}\n" in text


def test_every_metric_has_its_name_and_says_what_was_counted(counts):
    text = page(counts)
    assert {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")} == {
        f"wirecheck_{name}" for name in NAMES
    }
    for line in (
        'frames_total{interface="lo"} 10.0',
        'lost_frames_total{interface="lo",reason="kernel"} 2.0',
        'lost_frames_total{interface="lo",reason="disk"} 0.0',  # there before it counts: no rate shows a first value
        'lost_frames_total{interface="eth0",reason="disk"} 1.0',
        'left_out_bytes_total{reason="records"} 900.0',
        'ring_fill_ratio{interface="lo"} 0.25',
        "last_frame_timestamp_seconds 1.7000000005e+09",
        'file_roll_seconds_bucket{le="0.005"} 1.0',
        'file_roll_seconds_bucket{le="10.0"} 2.0',
        'file_roll_seconds_bucket{le="+Inf"} 3.0',
    ):
        assert f"wirecheck_agent_{line}\n" in text


@pytest.mark.skipif(not shutil.which("promtool"), reason="needs promtool (Debian: prometheus)")
@pytest.mark.parametrize("fresh", [True, False])
def test_promtool_finds_nothing_to_say(counts, fresh):
    text = page(Counts() if fresh else counts)
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_scrapes_are_answered_until_the_agent_ends(counts, unused_port):
    with agent_metrics.served(counts, "127.0.0.1", unused_port):
        url = f"http://127.0.0.1:{unused_port}/metrics"
        assert b"wirecheck_agent_frames_total" in urllib.request.urlopen(url, timeout=10).read()
        with (
            pytest.raises(OSError, match=f"127.0.0.1:{unused_port}"),
            agent_metrics.served(counts, "127.0.0.1", unused_port),
        ):
            pass
    with agent_metrics.served(counts, "127.0.0.1", unused_port):
        pass


def test_an_agent_is_healthy_while_its_loop_runs(counts, unused_port):
    assert agent_metrics.health(counts).status == 200
    counts.alive_s -= agent_metrics.HANGS_S + 1
    with agent_metrics.served(counts, "127.0.0.1", unused_port) as port:
        with pytest.raises(urllib.error.HTTPError, match="503") as unhealthy:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/-/healthy", timeout=10)
        assert unhealthy.value.read() == b"the capture loop has not run for 61 s\n"
        unhealthy.value.close()


def test_the_page_of_the_agent_lists_them_all():
    page = (Path(__file__).resolve().parents[3] / "docs/agent-reference.md").read_text()
    every = NAMES | {f"agent_{name}" for name in SHIPPING | TLS}
    assert set(re.findall(r"`wirecheck_(\w+)`", re.sub(r"(?m)^[^|].*", "", page))) == every
