"""A server program that speaks S3, on loopback, for runs in which a store goes away and comes back.

Knows: how moto's is started, with which keys and endpoint the stores' own conventions find it, and what it was asked.
Refuses to know: who asks.
Rule: it is a program of its own, out of a registry, in an environment of its own, and ends with the run.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from urllib.request import Request, urlopen

PORT = int(os.environ.get("STORE_PORT", "19195"))
PATIENCE_S = 400
SERVER = "moto[server]==5.2.5"
KEYS = {
    "AWS_ACCESS_KEY_ID": "cluster", "AWS_SECRET_ACCESS_KEY": "not-a-secret", "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1", "AWS_ENDPOINT_URL": f"http://127.0.0.1:{PORT}",
    "AWS_EC2_METADATA_DISABLED": "true",
}  # fmt: skip
ASKED = re.compile(r'"(GET|PUT|HEAD|DELETE|POST) (\S+) HTTP')


class Store:
    """A server program that speaks S3: moto's; if none is named, out of a registry, in an environment of its own."""

    def __init__(self, folder: Path, program: Path | None = None) -> None:
        self.words = folder / "store.log"
        if program is None:
            program = folder / "store" / "bin" / "moto_server"
            subprocess.run([sys.executable, "-m", "venv", str(folder / "store")], check=True)
            subprocess.run([str(program.with_name("pip")), "install", "-q", SERVER], check=True)
        with self.words.open("wb") as words:
            self.process = subprocess.Popen(
                [str(program), "-H", "127.0.0.1", "-p", str(PORT)], stdout=words, stderr=words
            )
        self.make("bucket")

    def make(self, bucket: str) -> None:
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                urlopen(Request(f"{KEYS['AWS_ENDPOINT_URL']}/{bucket}", method="PUT"), timeout=5).close()
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.5)
            else:
                return

    def away(self, seconds: float) -> None:
        """It takes connections and says nothing, as a store behind a broken network does."""
        self.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.process.send_signal(signal.SIGCONT)

    def asked(self) -> Counter[str]:
        """Requests by method and what they were about."""
        found: Counter[str] = Counter()
        for method, path in ASKED.findall(self.words.read_text(errors="replace")):
            about = next((name for name in ("frames", "checkpoint", "verdicts") if f"/{name}" in path), "listings")
            found[f"{method} {about}"] += 1
        return found
