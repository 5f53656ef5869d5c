"""Real Kafka clusters on loopback, from the jars of Maven Central.

Knows: how the jars of one release are fetched (once, into the user's cache or WIRECHECK_KAFKA), how two brokers are
started with ZooKeeper or as KRaft, how its tools are called. Refuses to know: what is captured and what it means.
Only processes started here are ever signalled.
"""

import os
import re
import shutil
import socket
import subprocess
import time
import zipfile
from pathlib import Path
from typing import Self

CACHE = Path(os.environ.get("WIRECHECK_KAFKA") or Path.home() / ".cache/wirecheck/kafka")
# A release whose tools are not published is spoken to with the tools of an older one.
TOOLS = {"4.4.0": "3.9.1"}
HOST = "127.0.0.1"
COMMON = {
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 3,
    "offsets.topic.replication.factor": 2,
    "num.network.threads": 2,
    "num.io.threads": 4,
    "log.cleaner.dedupe.buffer.size": 8_000_000,
}
LOG4J = """log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.SimpleLayout
"""
LOG4J2 = "rootLogger.level=warn\nrootLogger.appenderRef.c.ref=c\nappender.c.type=Console\nappender.c.name=c\n"
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>live</groupId><artifactId>kafka</artifactId><version>1</version><dependencies>{}</dependencies></project>"""


class Missing(Exception):  # noqa: N818 - reads as what happened
    """Java, Maven or the jars are not to be had; says which."""


def dependency(group: str, artifact: str, version: str, without: str = "") -> str:
    group_id, _, artifact_id = without.partition(":")
    one = f"<exclusion><groupId>{group_id}</groupId><artifactId>{artifact_id}</artifactId></exclusion>"
    left_out = f"<exclusions>{one}</exclusions>"
    return (
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
        f"{left_out if without else ''}</dependency>"
    )


def jars(version: str) -> Path:
    """Folder of all jars that a broker, ZooKeeper and the tools of this release need."""
    libs = CACHE / f"kafka-{version}/libs"
    if libs.is_dir():
        return libs
    for tool in ("java", "mvn"):
        if not shutil.which(tool):
            raise Missing(f"needs {tool}")
    needed = [dependency("org.apache.kafka", "kafka_2.13", version, "org.apache.kafka:kafka-tools-api")]
    if version not in TOOLS:
        tools = ("kafka-tools", "kafka-tools-api")
        needed += [dependency("org.apache.kafka", name, version, "*:*") for name in tools]
    needed += [
        dependency("net.sourceforge.argparse4j", "argparse4j", "0.7.0"),
        dependency("net.sf.jopt-simple", "jopt-simple", "5.0.4"),
        dependency("org.slf4j", "slf4j-simple", "1.7.36"),
    ]
    pom = CACHE / f"kafka-{version}/pom.xml"
    pom.parent.mkdir(parents=True, exist_ok=True)
    pom.write_text(POM.format("".join(needed)))
    copied = [f"-DoutputDirectory={libs}.new", "-DincludeScope=runtime", "dependency:copy-dependencies"]
    done = subprocess.run(["mvn", "-q", "-B", "-f", str(pom), *copied], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Missing(f"Maven did not bring Kafka {version}: {done.stdout.strip().splitlines()[:1]}")
    Path(f"{libs}.new").rename(libs)
    return libs


def free_port() -> int:
    with socket.create_server((HOST, 0)) as probe:
        return probe.getsockname()[1]


class Cluster:
    """Two brokers; `with` starts and ends them."""

    def __init__(self, version: str, folder: Path) -> None:
        self.version, self.folder = version, folder
        self.libs = jars(version)
        self.tools = jars(TOOLS.get(version, version))
        self.is_kraft = version.startswith("4.")
        self.ports = {number: free_port() for number in (1, 2)}
        self.own_port = free_port()  # ZooKeeper's or the controller's
        self.processes: list[subprocess.Popen] = []
        (folder / "log4j.properties").write_text(LOG4J)
        (folder / "log4j2.properties").write_text(LOG4J2)

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{HOST}:{port}" for port in self.ports.values())

    @property
    def captured_ports(self) -> list[int]:
        """Everything that speaks Kafka's protocol."""
        return [*self.ports.values(), *([self.own_port] if self.is_kraft else [])]

    def __enter__(self) -> Self:
        try:
            if self.is_kraft:
                self.format()
            else:
                self.start_zookeeper()
            for number in self.ports:
                self.start("kafka.Kafka", self.configured(number), f"broker-{number}")
            for number in self.ports:
                self.wait_for(self.ports[number], f"broker-{number}")
            self.until_it_answers()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self.processes):
            process.terminate()
        for process in reversed(self.processes):
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)

    def java(self, megabytes: int, libs: Path | None = None) -> list[str]:
        flags = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", f"-Xmx{megabytes}m"]
        logs = [
            f"-Dlog4j.configuration=file:{self.folder}/log4j.properties",
            f"-Dlog4j2.configurationFile={self.folder}/log4j2.properties",
        ]
        return ["java", *flags, *logs, "-cp", f"{libs or self.libs}/*"]

    def start(self, main: str, argument: Path, name: str) -> None:
        with (self.folder / f"{name}.log").open("wb") as log:
            command = [*self.java(384), main, str(argument)]
            self.processes.append(subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=self.folder))

    def start_zookeeper(self) -> None:
        config = self.folder / "zookeeper.properties"
        lines = (f"dataDir={self.folder}/zookeeper", f"clientPort={self.own_port}", f"clientPortAddress={HOST}")
        config.write_text("\n".join((*lines, "admin.enableServer=false", "tickTime=1000")) + "\n")
        self.start("org.apache.zookeeper.server.quorum.QuorumPeerMain", config, "zookeeper")
        self.wait_for(self.own_port, "zookeeper")

    def format(self) -> None:
        for number in self.ports:
            said = ["format", "-t", "wirecheckwirecheckwire", "-c", str(self.configured(number))]
            subprocess.run([*self.java(128), "kafka.tools.StorageTool", *said], check=True, capture_output=True)

    def configured(self, number: int) -> Path:
        listener = f"PLAINTEXT://{HOST}:{self.ports[number]}"
        own = COMMON | {"log.dirs": self.folder / f"data-{number}", "listeners": listener}
        if not self.is_kraft:
            own |= {"broker.id": number, "zookeeper.connect": f"{HOST}:{self.own_port}"}
        else:
            own |= {
                "node.id": number,
                "process.roles": "broker,controller" if number == 1 else "broker",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.voters": f"1@{HOST}:{self.own_port}",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            }
            if number == 1:
                own["listeners"] = f"{listener},CONTROLLER://{HOST}:{self.own_port}"
        path = self.folder / f"broker-{number}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in own.items()))
        return path

    def wait_for(self, port: int, name: str, seconds: float = 300) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                socket.create_connection((HOST, port), timeout=1).close()
            except OSError:
                if self.processes[-1].poll() is not None:
                    break
                time.sleep(0.3)
            else:
                return
        tail = (self.folder / f"{name}.log").read_text(errors="replace")[-2000:]
        raise RuntimeError(f"{name} does not listen: {tail}")

    def until_it_answers(self) -> None:
        for _ in range(10):
            done = self.tool("TopicCommand", "--list", check=False)
            if done.returncode == 0:
                return
            time.sleep(1)
        raise RuntimeError(f"the cluster does not answer: {done.stdout[-500:]} {done.stderr[-500:]}")

    def tool(self, name: str, *arguments: object, check: bool = True) -> subprocess.CompletedProcess:
        known = [] if "--bootstrap-server" in arguments else ["--bootstrap-server", self.bootstrap]
        command = [*self.java(192, self.tools), self.named(name), *known, *map(str, arguments)]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=300, check=check)

    def named(self, simple: str) -> str:
        """Full name of a class: the tools moved between packages from release to release."""
        for jar in sorted(self.tools.glob("kafka*.jar")):
            for name in zipfile.ZipFile(jar).namelist():
                if re.fullmatch(rf".*/{simple}\.class", name):
                    return name.removesuffix(".class").replace("/", ".")
        raise Missing(f"Kafka {self.version} has no {simple}")
