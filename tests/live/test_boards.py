"""The whole chain with a real Prometheus: frames arrive, an agent listens, and every panel and alert is asked.

Knows the boards and rules as committed. What a healthy chain leaves empty (tests/dashboards/quiet.py) is planted, too:
a lame capture, an unreadable file. Alerts that do not fire here are proven by dashboards/prometheus/test_rules.yml.
"""

import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path

import jsonschema
import pytest
import yaml

import wirecheck as wirecheck_library
from tests import traffic
from tests.dashboards.expressions import plain
from tools.boards.grafana import BOARDS
from wirecheck.capture.agent.offline_agent import write_frames

ROOT = Path(__file__).resolve().parents[2]
ROOM = ROOT / "dashboards/prometheus"
FIRST = ("zk28-healthy", "kraft-clients-zoo")
LATER = ("zk28-recreate", "zk28-lossy-network", "kraft4-wrong-cluster", "zk39-zombie-controller")
PLANTED = {
    "zk39-inconsistent-id": ("topic shipments", "broker 3"),
    "kraft4-stale-broker": ("topic tickets", "broker 4"),
}
"""Captures of examples/ and what an alert about each must name."""
WAIT_S = 600
"""What only a hang takes, on a busy machine too."""
PORT = {"prometheus": 19790, "monitor": 19791, "agent": 19792, "echo": 19793}

pytestmark = pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs prometheus (Debian: prometheus)")


STARTED = {}


def started(folder, name, *command):
    log = folder / f"{name}.log"
    with log.open("wb") as words:
        STARTED[log] = subprocess.Popen([*map(str, command)], cwd=ROOT, stdout=words, stderr=words)
    return STARTED[log]


def wirecheck(*words):
    return sys.executable, "-m", "wirecheck", *words


def get(port, path, **words):
    url = f"http://127.0.0.1:{PORT[port]}{path}?{urllib.parse.urlencode(words)}"
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def asked(expr):
    answer = json.loads(get("prometheus", "/api/v1/query", query=plain(expr, "2m", "10m")))
    assert answer["status"] == "success"
    return [row for row in answer["data"]["result"] if row["value"][1] != "NaN"]


def until(said, holds):
    end_s = time.monotonic() + WAIT_S
    while time.monotonic() < end_s:
        for log, process in STARTED.items():
            assert process.poll() is None, f"{said}: {log.stem} ended: {log.read_text(errors='replace')[-2000:]}"
        try:
            if holds():
                return
        except OSError:
            pass
        time.sleep(1)
    pytest.fail(f"waited {WAIT_S} s in vain: {said}")


def configured(folder):
    scraped = {"wirecheck-monitor": "monitor", "wirecheck-agent": "agent"}
    path = folder / "prometheus.yml"
    path.write_text(
        yaml.safe_dump(
            {
                "global": {"scrape_interval": "1s", "evaluation_interval": "2s"},
                "rule_files": [str(ROOM / "rules.yml"), str(ROOM / "alerts.yml")],
                "scrape_configs": [
                    {"job_name": job, "static_configs": [{"targets": [f"127.0.0.1:{PORT[port]}"]}]}
                    for job, port in scraped.items()
                ],
            }
        )
    )
    return path


def arrive(folder, captures):
    """Frames of captures, each its own cluster and agent, appear under the monitor's eyes."""
    for name in captures:
        place = "examples" if name in PLANTED else "tests/scenarios/captures"
        bring(ROOT / f"{place}/{name}/capture.pcap.gz", folder, name)


def bring(capture, folder, name):
    for file in write_frames([capture], folder / name, name, agent=name).files:
        file.rename(folder / "frames" / file.name)


def lame(folder):
    """A capture that lacks bytes and packets, and says so, with a version and a message that nobody can read."""
    talk = traffic.Talk().open()
    for number, version in enumerate((4, 4, 99, 4, 4)):
        talk.request(sized(struct.pack(">hhih", 18, version, number, 4) + b"lame" + b"\0\1\0\1\0\0" * (version == 4)))
        talk.response(sized(struct.pack(">ihi", number, 0, 1) + struct.pack(">hhh", 18, 0, 4)))
        if number == 3:
            talk.client_seq += 300  # of which no packet is there
    later_part = traffic.ipv4("10.0.0.1", "10.0.0.9", bytes(64), fragment=8)
    packets = [*traffic.packets(talk.close().segments), traffic.Packet(talk.ts_ns, traffic.ethernet(later_part))]
    capture = folder / "lame.pcapng"
    capture.write_bytes(traffic.pcapng(packets) + traffic.statistics_block(0, 7))
    bring(capture, folder, "lame")


def chatter(stop):
    """A client and a broker of few words, on the loopback interface for the agent to see: ApiVersions, every 50 ms."""
    with (
        socket.create_server(("127.0.0.1", PORT["echo"])) as server,
        socket.create_connection(server.getsockname()) as client,
        server.accept()[0] as broker,
    ):
        number = 0
        while not stop.wait(0.05):
            number += 1
            client.sendall(sized(struct.pack(">hhih", 18, 0, number, 4) + b"live"))
            broker.recv(500)
            broker.sendall(sized(struct.pack(">ihi", number, 0, 1) + struct.pack(">hhh", 18, 0, 4)))
            client.recv(500)


def sized(message):
    return struct.pack(">i", len(message)) + message


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chain")
    frames, stop = folder / "frames", threading.Event()
    frames.mkdir()
    monitor = wirecheck("monitor", "--frames", frames, "--out", folder / "out", "--metrics-port", PORT["monitor"])
    agent = wirecheck("capture", "-i", "lo", "--port", PORT["echo"], "--cluster", "live", "--agent", "lo")
    listens = (f"--web.listen-address=127.0.0.1:{PORT['prometheus']}", f"--storage.tsdb.path={folder / 'tsdb'}")
    ours = [
        started(folder, "monitor", *monitor),
        started(folder, "agent", *agent, "--out", frames, "--metrics-port", PORT["agent"]),
        started(folder, "prometheus", "prometheus", f"--config.file={configured(folder)}", *listens),
    ]
    talk = threading.Thread(target=chatter, args=(stop,))
    talk.start()
    try:
        arrive(folder, FIRST)
        until("the first captures are judged", lambda: len(asked("count by (cluster) (wirecheck_clients)")) >= 2)
        (frames / "broken-0000000001.parquet").write_bytes(b"PAR1 and nothing else")
        later = (*LATER, *PLANTED)
        arrive(folder, later)
        lame(folder)
        until("all are judged", lambda: len(asked("wirecheck_frames_total")) >= len((*FIRST, *later, "lame", "live")))
        until("rules are evaluated", lambda: asked("cluster:wirecheck_messages_decoded:ratio_rate5m"))
        yield folder
    finally:
        stop.set()
        talk.join()
        STARTED.clear()
        for process in ours:
            process.terminate()
        for process in ours:
            try:
                process.wait(timeout=120)
            except subprocess.TimeoutExpired:
                process.kill()


def test_every_panel_has_had_data_but_that_of_our_own_mistakes(chain):
    """Some speak for as long as a cluster changes, so all are asked until each has spoken."""
    panels = {panel.title: panel for board in BOARDS for row in board.rows for panel in row.panels}
    silent = panels.keys() - {"Checks that failed, by check"}  # which tests/dashboards/test_quiet.py makes speak

    def ask():
        silent.difference_update({name for name in silent if any(asked(query.expr) for query in panels[name].queries)})
        print("\n  panels without data:", sorted(silent))
        return not silent

    until("every panel has data", ask)


def test_every_rule_is_healthy_and_what_the_captures_hold_is_told(chain):
    groups = json.loads(get("prometheus", "/api/v1/rules"))["data"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert {rule["name"]: rule.get("lastError") for rule in rules if rule["health"] != "ok"} == {}
    due = {"WirecheckTopicIdViolation", "WirecheckVersionRejected", "WirecheckFileSetAside", "WirecheckTopicRecreated"}
    until("the alerts that are due", lambda: due <= alerts().keys())  # a group of rules has an interval of its own
    print("\n  pending or firing:", sorted(alerts()))
    assert not {"WirecheckMonitorDown", "WirecheckMonitorStalled"} & alerts().keys()


def alerts():
    alerts = json.loads(get("prometheus", "/api/v1/alerts"))["data"]["alerts"]
    return {alert["labels"]["alertname"]: alert for alert in alerts}


def test_every_event_that_happened_is_drawn(chain):
    drawn = {event.name for board in BOARDS for event in board.events if asked(event.expr)}
    print("\n  events:", sorted(drawn))
    assert drawn <= {event.name for board in BOARDS for event in board.events}


@pytest.mark.parametrize("cluster", PLANTED)
def test_an_alert_names_topic_and_broker_and_its_link_opens_the_page_with_that_finding(chain, cluster):
    def texts():
        alerts = json.loads(get("prometheus", "/api/v1/alerts"))["data"]["alerts"]
        of_it = [alert["annotations"] for alert in alerts if alert["labels"].get("cluster") == cluster]
        return [said["findings"] for said in of_it if "none is named" not in said.get("findings", "none is named")]

    until(f"an alert about {cluster}", texts)
    shown = texts()
    print("\n ", "\n  ".join(shown))
    assert any(all(name in text for name in PLANTED[cluster]) for text in shown)
    links = {link for text in shown for link in re.findall(r"http://127\.0\.0\.1:\d+/#(f-\w+)", text)}
    assert links
    until("the page has the findings", lambda: not [x for x in links if f'id="{x}"' not in get("monitor", "/")])


@pytest.mark.parametrize("cluster", PLANTED)
def test_one_card_has_the_same_words_everywhere(chain, cluster):
    """Terminal, JSON by its schema, ticket and library of a replay; metrics of the monitor; alerts of Prometheus."""
    capture = ROOT / f"examples/{cluster}/capture.pcap.gz"
    result = json.loads(printed(capture, "--format", "json"))
    jsonschema.validate(result, json.loads((ROOT / "docs/verdict.schema.json").read_text()))
    cards = [entry["card"] for entry in result["entries"]]
    assert [card.headline for card in wirecheck_library.replay(capture).cards] == [card["headline"] for card in cards]
    screen, ticket = printed(capture), printed(capture, "--format", "markdown").replace("\\", "")
    for text in (text for card in cards for text in (card["headline"], card["action"]["sentence"])):
        assert text in " ".join(screen.split())
        assert text in ticket
    headlines = {card["headline"] for card in cards}
    info = f'wirecheck_finding_info{{cluster="{cluster}"}}'
    until("metrics have the headlines", lambda: headlines == {row["metric"]["sentence"] for row in asked(info)})

    def summarized():
        of_alerts = {one.removeprefix(f"{cluster}: ") for one in summaries(cluster)}
        return bool(of_alerts) and of_alerts <= headlines

    until("summaries are headlines", summarized)


def summaries(cluster):
    """Of its alerts about findings, without how many there are of the check."""
    alerts = json.loads(get("prometheus", "/api/v1/alerts"))["data"]["alerts"]
    of_it = [alert for alert in alerts if alert["labels"].get("cluster") == cluster and "code" in alert["labels"]]
    return [re.sub(r" \((\d+ open \w+|open for an hour)\)$", "", alert["annotations"]["summary"]) for alert in of_it]


def printed(*words):
    """A replay of a capture as a terminal of 80 columns has it."""
    command = [*map(str, wirecheck("replay", *words, "--engine", "local"))]
    env = {**os.environ, "COLUMNS": "80"}
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize("port", ["monitor", "agent"])
def test_promtool_takes_the_page(chain, port):
    result = subprocess.run(
        ["promtool", "check", "metrics"], input=get(port, "/metrics"), capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stdout + result.stderr) == (0, "")
