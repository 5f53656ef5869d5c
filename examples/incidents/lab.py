"""One incident on this machine: a cluster is started, captured, broken, and judged by `wirecheck replay`.

Knows: how clusters with ZooKeeper and with KRaft are configured for it, and when the capture begins and ends. Refuses
to know any incident: each is a script beside this one. Rule: what an incident shows is said by wirecheck alone; what
was done is printed as it is done, with its time.
"""

import argparse
import base64
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Self

from nodes import Forwarder, Node, Process, Release

NET, ZOOKEEPER_PORT, CONTROLLER_PORT, BROKER_PORT = "127.0.9", 21181, 21100, 21090
PORTS = "tcp and portrange 21000-21179"
COMMON = {
    "auto.create.topics.enable": "false", "delete.topic.enable": "true", "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 3, "transaction.state.log.num.partitions": 3, "transaction.state.log.min.isr": 1,
    "num.network.threads": 2, "num.io.threads": 4, "log.cleaner.dedupe.buffer.size": 8_000_000,
    "controlled.shutdown.max.retries": 1,
}  # fmt: skip
JSON_LINE = re.compile(r"^\{.*\}$", re.MULTILINE)


class Lab:
    """What one incident works with. Leaving it ends everything that it started."""

    def __init__(self, name: str, given: argparse.Namespace) -> None:
        self.given, self.out, self.work = given, given.out / name, Path(tempfile.mkdtemp(prefix=f"{name}-"))
        shutil.rmtree(self.out, ignore_errors=True)
        self.out.mkdir(parents=True)
        self.nodes: dict[int, Node] = {}
        self.zookeeper: Process | None = None
        self.clients: list[Process] = []
        self.forwarders: list[Forwarder] = []
        self.capture: Process | None = None
        words = (base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=") for _ in range(99))
        self.cluster_id = next(word for word in words if not word.startswith("-"))  # which would be an option

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in [*self.clients, *self.nodes.values(), *filter(None, [self.zookeeper, self.capture])]:
            process.stop(15, kill=process is not self.capture)
        for forwarder in self.forwarders:
            forwarder.ended = True

    def event(self, what: str) -> None:
        print(f"{time.strftime('%H:%M:%S')} {what}", flush=True)

    def release(self, version: str) -> Release:
        return Release(self.given.kafka, version)

    # clusters

    def brokers_with_zookeeper(self, version: str, protocol: str, count: int = 3, **config: object) -> None:
        """As many brokers, captured from before their start."""
        path = self.work / "zookeeper.properties"
        path.write_text(
            f"dataDir={self.work}/zookeeper\nclientPort={ZOOKEEPER_PORT}\nclientPortAddress={NET}.100\n"
            "admin.enableServer=false\nmaxClientCnxns=0\ntickTime=1000\nminSessionTimeout=2000\nmaxSessionTimeout=60000\n"
        )
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        java = self.release(version).java(256, self.work)
        self.zookeeper = Process("zookeeper", self.work, [*java, main, str(path)])
        self.zookeeper.start()
        self.zookeeper.wait_for("binding to port")
        for number in range(1, count + 1):
            own = {
                "broker.id": number, "zookeeper.connect": f"{NET}.100:{ZOOKEEPER_PORT}",
                "zookeeper.session.timeout.ms": 6000, "inter.broker.protocol.version": protocol,
                "listeners": f"PLAINTEXT://{self.address(number)}", "offsets.topic.replication.factor": count,
            }  # fmt: skip
            self.nodes[number] = Node(number, self.release(version), self.work, COMMON | own | config)

    def raft_node(self, number: int, version: str, roles: str, voters: str | None = None) -> Node:
        """One node of KRaft, formatted; the first controller is node 1 if no voters are named."""
        listeners = [f"PLAINTEXT://{self.address(number)}"] if "broker" in roles else []
        listeners += [f"CONTROLLER://{self.controller(number)}"] if "controller" in roles else []
        own = {
            "node.id": number, "process.roles": roles, "listeners": ",".join(listeners),
            "controller.listener.names": "CONTROLLER", "controller.quorum.voters": voters or f"1@{self.controller(1)}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "offsets.topic.replication.factor": 1, "transaction.state.log.replication.factor": 1,
        }  # fmt: skip
        self.nodes[number] = Node(number, self.release(version), self.work, COMMON | own)
        return self.nodes[number]

    def format(self, node: Node, cluster_id: str | None = None) -> None:
        where = ["format", "-t", cluster_id or self.cluster_id, "-c", str(node.configure())]
        command = [*node.release.java(128, self.work), "kafka.tools.StorageTool", *where]
        subprocess.run(command, check=True, capture_output=True)

    @staticmethod
    def address(number: int) -> str:
        return f"{NET}.{number}:{BROKER_PORT + number}"

    @staticmethod
    def controller(number: int) -> str:
        return f"{NET}.{number}:{CONTROLLER_PORT + number}"

    def bootstrap(self, *numbers: int) -> str:
        running = [
            n for n, node in self.nodes.items() if node.is_alive and "PLAINTEXT" in str(node.config["listeners"])
        ]
        return ",".join(self.address(number) for number in numbers or running)

    def start(self, *numbers: int) -> None:
        if self.capture is None:
            self.start_capture()
        for number in numbers or self.nodes:
            self.event(f"node {number} starts, Kafka {self.nodes[number].release.version}")
            self.nodes[number].start()

    def stop(self, number: int) -> None:
        self.event(f"node {number} stops")
        self.nodes[number].stop()

    # the capture

    def start_capture(self) -> None:
        if self.given.agent:
            command = [
                sys.executable,
                "-m",
                "wirecheck",
                "capture",
                "-i",
                "lo",
                "--out",
                str(self.seen),
                "--filter",
                PORTS,
            ]
        else:
            command = ["tcpdump", "-i", "lo", "-s", "0", "-U", "-n", "-Z", "root", "-w", str(self.seen), PORTS]
        self.capture = Process("capture", self.work, command)
        self.capture.start()
        self.capture.wait_for("listening|capturing|Capturing|writing")
        time.sleep(0.5)

    @property
    def seen(self) -> Path:
        return self.out / ("frames" if self.given.agent else "capture.pcap")

    def judge(self, code: str) -> int:
        """0 if the first cause that wirecheck names is the incident's."""
        time.sleep(1)
        self.capture.signal(signal.SIGINT)
        self.capture.process.wait(30)
        self.event("capture ends")
        command = ["replay", str(self.seen), "--engine", "local", "--format", "json", "--fail-on", "never"]
        command = [sys.executable, "-m", "wirecheck", *command]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(done.stderr)
            return 2
        found = json.loads(done.stdout)
        (self.out / "verdict.json").write_text(done.stdout)
        coverage = found["coverage"]
        print(f"{coverage['decoded_messages']:,} of {coverage['messages']:,} messages decoded")
        for entry in found["entries"]:
            print(f"  {entry['code']} {entry['role']}: {entry['sentence']}")
            for below in entry["consequences"]:
                print(f"    {below['code']}: {below['sentence']}")
        print(f"Verdict   {found['verdict']}")
        first = [entry for entry in found["entries"] if entry["sentence"] in found["verdict"]] or found["entries"]
        return 0 if [entry["code"] for entry in first[:1]] == [code] else 1

    # tools and clients

    def tool(self, version: str, name: str, *arguments: object, check: bool = True, seconds: float = 180) -> str:
        release = self.release(version)
        command = [*release.java(192, self.work), release.named(name), *map(str, arguments)]
        done = subprocess.run(command, cwd=self.work, capture_output=True, text=True, timeout=seconds, check=False)
        if check and done.returncode:
            raise SystemExit(f"{name}: {done.stdout[-800:]}{done.stderr[-800:]}")
        return done.stdout

    def create(self, version: str, topic: str, placed: str, *bootstrap: int) -> None:
        """placed: the replicas of each partition, as 1:2,2:3."""
        self.event(f"topic {topic} is created on {placed}")
        where = ("--bootstrap-server", self.bootstrap(*bootstrap))
        self.tool(version, "TopicCommand", *where, "--create", "--topic", topic, "--replica-assignment", placed)

    def delete(self, version: str, topic: str, *bootstrap: int) -> None:
        self.event(f"topic {topic} is deleted")
        where = ("--bootstrap-server", self.bootstrap(*bootstrap))
        self.tool(version, "TopicCommand", *where, "--delete", "--topic", topic)

    def client(self, version: str, name: str, *arguments: object) -> Process:
        """A tool of Kafka's that runs on: VerifiableProducer, ConsoleConsumer."""
        release = self.release(version)
        command = [*release.java(128, self.work), release.named(name), *map(str, arguments)]
        return self.program(f"{name}-{len(self.clients)}", command)

    def program(self, name: str, command: list[str]) -> Process:
        process = Process(name, self.work, command)
        process.start()
        self.clients.append(process)
        return process

    def producer(self, version: str, topic: str, a_second: int = 5, *bootstrap: int) -> Process:
        flag = "--broker-list" if version.startswith(("1.", "2.", "0.")) else "--bootstrap-server"
        own = (flag, self.bootstrap(*bootstrap), "--topic", topic, "--throughput", a_second)
        return self.client(version, "VerifiableProducer", *own)

    def forward(self, address: tuple[str, int], target: tuple[str, int]) -> Forwarder:
        self.forwarders.append(Forwarder(address, target))
        self.forwarders[-1].start()
        return self.forwarders[-1]

    # ZooKeeper, as an operator reaches it

    zookeeper_address = f"{NET}.100:{ZOOKEEPER_PORT}"

    def zk(self, version: str, *words: str) -> str:
        return self.tool(version, "ZooKeeperMain", "-server", self.zookeeper_address, *words, check=False)

    def zk_node(self, version: str, path: str) -> dict:
        lines = JSON_LINE.findall(self.zk(version, "get", path))
        return json.loads(lines[-1]) if lines else {}

    def leading_controller(self, version: str) -> int:
        for _ in range(30):
            if found := self.zk_node(version, "/controller"):
                return int(found["brokerid"])
            time.sleep(1)
        raise SystemExit("no controller")


def reproduce(incident: Callable[[Lab], None], code: str) -> None:
    """The command line of each incident's script; ends with 0 where wirecheck names the cause."""
    name = Path(sys.argv[0]).stem
    parser = argparse.ArgumentParser(prog=name, description=incident.__doc__)
    default = os.environ.get("WIRECHECK_KAFKA")
    jars = "folder of jars (get-kafka.sh), or $WIRECHECK_KAFKA"
    parser.add_argument("--kafka", type=Path, default=default, required=not default, help=jars)
    parser.add_argument("--out", type=Path, default=Path("incidents"), help="folder for captures and verdicts")
    parser.add_argument("--agent", action="store_true", help="capture with wirecheck's agent in place of tcpdump")
    parser.add_argument("--client", help="a program that the incident needs, where its page says so")
    given = parser.parse_args()
    given.kafka, given.out = given.kafka.resolve(), given.out.resolve()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends what was started, as every other way out does
    with Lab(name, given) as lab:
        incident(lab)
        ended = lab.judge(code)
    if ended == 0:
        shutil.rmtree(lab.work)
    else:
        print(f"Logs and data: {lab.work}")
    sys.exit(ended)
