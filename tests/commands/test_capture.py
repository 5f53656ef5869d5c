"""`wirecheck capture -i`: what a user types, and the one line that says what is wrong and what to do."""

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tests import traffic as t
from tests.awaited import PATIENCE_S, await_line
from tests.capture.agent.test_live_agent import has_libpcap, may_listen
from wirecheck import cli
from wirecheck.capture import frames, frames_file
from wirecheck.capture.agent.offline_agent import Summary
from wirecheck.commands.capture import offline_line
from wirecheck.commands.units import duration, size

ROOT = Path(__file__).resolve().parents[2]
listens = pytest.mark.skipif(not may_listen(), reason="needs CAP_NET_RAW")


def run(*arguments):
    return CliRunner().invoke(cli.main, ["capture", *map(str, arguments)])


def start(*arguments, before=()):
    command = [*before, sys.executable, "-m", "wirecheck", "capture", *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize(("text", "expected"), [("64M", 64 << 20), ("10GiB", 10 << 30), ("1.5k", 1536), ("7", 7)])
def test_sizes(text, expected):
    assert size(text) == expected


@pytest.mark.parametrize(("text", "expected"), [("24h", 86400), ("500ms", 0.5), ("2", 2), ("7d", 604800), ("1.5m", 90)])
def test_durations(text, expected):
    assert duration(text) == expected


@pytest.mark.parametrize("text", ["", "M", "-1", "0", "1X", "1 2", "nan"])
def test_what_is_neither_says_how_to_write_it(text):
    for read in (size, duration):
        with pytest.raises(click.BadParameter, match="write it like"):
            read(text)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give -i IFACE or -r FILE, and not both"),
        (["-i", "lo", "-r", "x.pcap"], "give -i IFACE or -r FILE, and not both"),
        (["-i", "lo", "x.pcap"], "x.pcap: read files with -r, without -i"),
        (["-i", "lo", "--port", "9092", "--filter", "tcp"], "give --port or --filter, and not both"),
        (["-r", "x.pcap", "--retain", "3h"], "--retain goes with -i, not with -r"),
        (["-r", "x.pcap", "--port", "3"], "--port goes with -i, not with -r"),
        (["-i", "lo", "--max-disk", "lots"], "'lots' is not a size; write it like 64M or 10G"),
    ],
)
def test_options_that_do_not_go_together_are_a_usage_error(arguments, said, tmp_path):
    result = run(*arguments, "--out", tmp_path)
    assert (result.exit_code, said in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-i", "nosuch0"], "nosuch0: no such interface; there are lo"),
        pytest.param(
            ["-i", "lo", "--filter", "tcp and and"],
            "lo: filter 'tcp and and' is not valid: ",
            marks=pytest.mark.skipif(not has_libpcap(), reason="needs libpcap"),
        ),
        (["-i", "lo", "--agent", "a/b"], "agent name 'a/b': only letters"),
        (["-i", "lo", "--metrics-port", "9", "--metrics-address", "192.0.2.1"], "192.0.2.1:9: cannot assign"),
    ],
)
@listens
def test_what_cannot_be_listened_to_is_one_line(arguments, said, tmp_path):
    result = run(*arguments, "--out", tmp_path, "--duration", "1s")
    assert (result.exit_code, result.stderr.startswith(f"wirecheck: {said}"), result.stderr.count("\n")) == (2, True, 1)


def test_without_libpcap_a_filter_is_one_line_and_nothing_was_begun(tmp_path, monkeypatch):
    monkeypatch.setattr("ctypes.util.find_library", lambda _: None)
    monkeypatch.delitem(sys.modules, "scapy.libs.winpcapy", raising=False)
    result = run("-i", "lo", "--filter", "tcp port 9092", "--out", tmp_path / "out")
    said = "wirecheck: --filter needs libpcap: apt-get install libpcap0.8 (--port works without it)\n"
    assert (result.exit_code, result.stderr, list(tmp_path.iterdir())) == (2, said, [])


@listens
def test_without_libpcap_an_agent_of_ports_listens(tmp_path, monkeypatch):
    monkeypatch.setattr("ctypes.util.find_library", lambda _: None)
    monkeypatch.delitem(sys.modules, "scapy.libs.winpcapy", raising=False)
    result = run("-i", "lo", "--port", "9", "--port", "10", "--out", tmp_path, "--duration", "1s")
    assert (result.exit_code, "capturing 'tcp and (port 9 or port 10)' on lo into " in result.stderr) == (0, True)
    assert "scapy.libs.winpcapy" not in sys.modules


@listens
@pytest.mark.skipif(not shutil.which("setpriv"), reason="needs setpriv")
def test_without_the_right_the_line_says_how_to_give_it(tmp_path):
    before = ["setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw"]
    out, err = (agent := start("-i", "lo", "--out", tmp_path, before=before)).communicate(timeout=PATIENCE_S)
    assert (agent.returncode, out) == (2, "")
    assert err.startswith("wirecheck: lo: capturing needs the capability CAP_NET_RAW: setcap cap_net_raw+ep /")
    assert "AmbientCapabilities=CAP_NET_RAW" in err


@listens
def test_a_folder_that_cannot_be_used_is_one_line(tmp_path):
    (tmp_path / "file").touch()
    result = run("-i", "lo", "--out", tmp_path / "file/out")
    assert (result.exit_code, result.stderr) == (2, f"wirecheck: {tmp_path}/file/out: not a directory\n")


@listens
def test_an_agent_ends_in_order_and_keeps_a_second_one_out(tmp_path):
    agent = start("-i", "lo", "--port", "9", "--out", tmp_path, "--cluster", "prod", "--agent", "a")
    await_line(agent.stderr, agent, "wirecheck: capturing 'tcp and (port 9)' on lo into ")
    second = run("-i", "lo", "--out", tmp_path, "--agent", "a")
    assert (second.exit_code, second.stderr.count("\n")) == (2, 1)
    assert "another agent of this name is writing here; stop it, or choose another --out or --agent" in second.stderr
    time.sleep(0.3)
    agent.send_signal(signal.SIGTERM)
    out, err = agent.communicate(timeout=PATIENCE_S)
    said = f"0 frames in 1 file under {tmp_path}; 0 of 0 payload bytes kept; lost 0 in the kernel, 0 at the disk\n"
    assert (agent.returncode, out, err.splitlines(keepends=True)[-1]) == (0, "", said)
    (file,) = tmp_path.glob("a-*.parquet")
    table = frames_file.read(file)
    assert table["kind"].to_pylist() == [frames.STARTED, frames.ENDED, frames.PROGRESS]
    assert set(table["cluster"].to_pylist()) == {"prod"}
    assert file.stat().st_mode & 0o777 == 0o600


def test_files_end_with_what_is_no_frame_of_theirs(tmp_path):
    path, segments = tmp_path / "noise.pcap", t.Talk().open().close().segments
    path.write_bytes(t.pcap([t.Packet(0, t.ethernet(bytes(28), kind=0x0806)), *t.packets(segments)]))
    result = run("-r", path, "--out", tmp_path / "out")
    said = f"{len(segments)} frames in 1 file under {tmp_path}/out; skipped 1 not-ip\n"
    assert (result.exit_code, result.stderr) == (0, said)
    assert offline_line(Summary(dropped=1200), tmp_path).endswith("; lost 1,200 while it was captured")


def test_the_agent_s_path_imports_neither_spark_nor_pandas():
    code = (
        "import sys, wirecheck.commands.capture, wirecheck.commands.doctor, wirecheck.capture.agent.live_agent, "
        "wirecheck.capture.source.interface, wirecheck.capture.agent.agent_metrics, "
        "wirecheck.capture.agent.agent_requirements, scapy.arch.linux; "
        "print(sorted({'pyspark', 'pandas', 'wirecheck.streaming', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
