"""The processes of an incident: ZooKeeper, brokers, controllers, Kafka's own tools, and a forwarder that can go deaf.

Knows: how a release is started from its jars, and how its classes are called. Refuses to know what is captured and why.
Rule: only what was started here is ever signalled, by its own process id.
"""

import contextlib
import re
import select
import signal
import socket
import subprocess
import threading
import time
import zipfile
from pathlib import Path

FLAGS = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Dzookeeper.sasl.client=false"]
LOG4J = """log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %m%n
"""
STARTED = r"\[Kafka ?Server (id=)?\d+\],? started|Kafka Server started"


class Release:
    """The jars of one release, as get-kafka.sh lays them out."""

    def __init__(self, jars: Path, version: str) -> None:
        self.version = version
        found = sorted((jars / f"kafka-{version}/libs").glob("*.jar"))
        if not found:
            raise SystemExit(f"No jars of Kafka {version} in {jars}: get-kafka.sh {jars} {version} fetches them.")
        bound = any(re.match(r"slf4j-(log4j12|reload4j)", jar.name) for jar in found)
        self.jars = [jar for jar in found if not (bound and jar.name.startswith("slf4j-simple"))]

    def java(self, megabytes: int, folder: Path, *flags: str) -> list[str]:
        (folder / "log4j.properties").write_text(LOG4J)
        log = f"-Dlog4j.configuration=file:{folder}/log4j.properties"
        return ["java", f"-Xmx{megabytes}m", *FLAGS, log, *flags, "-cp", ":".join(map(str, self.jars))]

    def named(self, simple: str) -> str:
        """Full name of a class: tools moved between packages from release to release."""
        for jar in self.jars:
            if jar.name.startswith(("kafka", "zookeeper")):
                for name in zipfile.ZipFile(jar).namelist():
                    if name.endswith(f"/{simple}.class"):
                        return name.removesuffix(".class").replace("/", ".")
        raise SystemExit(f"Kafka {self.version} has no {simple}.")


class Process:
    """A program that runs until it is told to end; its output is a log file."""

    def __init__(self, name: str, folder: Path, command: list[str]) -> None:
        self.name, self.folder, self.command = name, folder, command
        self.log = folder / f"{name}.log"
        self.process: subprocess.Popen | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=self.folder
            )

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def signal(self, number: int) -> None:
        if self.is_alive:
            self.process.send_signal(number)

    def stop(self, seconds: float = 40, *, kill: bool = False) -> None:
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGKILL if kill else signal.SIGTERM)
        if self.process:
            try:
                self.process.wait(seconds)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(10)

    def lines(self, pattern: str, since: int = 0) -> list[str]:
        text = self.log.read_bytes()[since:].decode(errors="replace")
        return [line for line in text.splitlines() if re.search(pattern, line)]

    def wait_for(self, pattern: str, since: int = 0, seconds: float = 120) -> None:
        deadline = time.monotonic() + seconds
        while not self.lines(pattern, since):
            if not self.is_alive or time.monotonic() > deadline:
                raise SystemExit(f"{self.name} did not say {pattern!r}: see {self.log}")
            time.sleep(0.2)


class Node(Process):
    """A broker or controller. `release` and `config` may be changed while it is down."""

    def __init__(self, number: int, release: Release, folder: Path, config: dict[str, object]) -> None:
        super().__init__(f"node-{number}", folder, [])
        self.number, self.release, self.config = number, release, config
        self.data = folder / f"data-{number}"
        self.flags: list[str] = []
        config["log.dirs"] = self.data

    def configure(self) -> Path:
        path = self.folder / f"{self.name}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in self.config.items()))
        return path

    def start(self) -> None:
        since = self.log.stat().st_size if self.log.exists() else 0
        self.start_alone()
        self.wait_for(STARTED, since)

    def start_alone(self) -> None:
        """Starts it, and does not wait until it says so."""
        self.command = [*self.release.java(448, self.folder, *self.flags), "kafka.Kafka", str(self.configure())]
        super().start()

    def topic_ids(self) -> dict[str, str]:
        """Folder of a partition: the topic id that its partition.metadata holds."""
        found = {}
        for path in sorted(self.data.glob("*/partition.metadata")):
            found[path.parent.name] = re.search(r"topic_id: (\S+)", path.read_text())[1]
        return found


class Forwarder(threading.Thread):
    """Carries connections from one port to another, until it is deaf: to all of them, or to those whose first request
    holds a word, as a client id is in every request.
    """

    def __init__(self, address: tuple[str, int], target: tuple[str, int]) -> None:
        super().__init__(daemon=True)
        self.server, self.target = socket.create_server(address), target
        self.deaf_to: bytes | None = None
        self.ended = False

    def run(self) -> None:
        while not self.ended:
            if select.select([self.server], [], [], 0.2)[0]:
                client, _ = self.server.accept()
                threading.Thread(target=self.carry, args=(client,), daemon=True).start()
        self.server.close()

    def carry(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client, socket.create_connection(self.target, 5) as server:
            first = b""
            while not self.ended:
                ready = select.select([client, server], [], [], 0.2)[0]
                if self.deaf_to is not None and self.deaf_to in first:
                    time.sleep(0.2)  # what was sent is taken by nobody, as behind a filter
                    continue
                for source in ready:
                    data = source.recv(65536)
                    if not data:
                        return
                    if source is client and len(first) < 4096:
                        first += data
                    (server if source is client else client).sendall(data)
