"""A server program that speaks S3, on loopback, for runs in which a store goes away and comes back.

Knows: how moto is served, by gunicorn (its own `moto_server` answers `Expect: 100-continue` twice: clients that do not
wait for it by Apache's library take the second for the answer), with which keys and endpoint the stores' own
conventions find it, and what it was asked.
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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote
from urllib.request import Request, urlopen

PORT = int(os.environ.get("STORE_PORT", "19195"))
PATIENCE_S = 400
SERVER = "moto[server]==5.2.5"
PROGRAM = "gunicorn==27.0.1"
APPLICATION = """\
from moto.server import DomainDispatcherApplication, create_backend_app
application = DomainDispatcherApplication(create_backend_app)
"""
THREADS = 16
KEYS = {
    "AWS_ACCESS_KEY_ID": "cluster", "AWS_SECRET_ACCESS_KEY": "not-a-secret", "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1", "AWS_ENDPOINT_URL": f"http://127.0.0.1:{PORT}",
    "AWS_EC2_METADATA_DISABLED": "true",
}  # fmt: skip
ASKED = re.compile(r'"(GET|PUT|HEAD|DELETE|POST) (\S+) HTTP')
BATCH = re.compile(r"/verdicts/(\w+)/run=[^/]+/(?:_commits/(\d+)\.json|batch_id=(\d+)/)")


class Store:
    """A server program that speaks S3. `program`: gunicorn, beside which moto is installed; if none is named, both come
    out of a registry, into an environment of their own.
    """

    def __init__(self, folder: Path, program: Path | None = None) -> None:
        self.words = folder / "store.log"
        if program is None:
            program = folder / "store" / "bin" / "gunicorn"
            subprocess.run([sys.executable, "-m", "venv", str(folder / "store")], check=True)
            subprocess.run([str(program.with_name("pip")), "install", "-q", SERVER, PROGRAM], check=True)
        (folder / "s3_application.py").write_text(APPLICATION)
        command = [str(program), "--chdir", str(folder), "--bind", f"127.0.0.1:{PORT}", "--access-logfile", "-"]
        command += ["--workers", "1", "--threads", str(THREADS), "--timeout", "0", "s3_application"]
        with self.words.open("wb") as words:
            self.process = subprocess.Popen(command, stdout=words, stderr=words, start_new_session=True)
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

    @contextmanager
    def away(self, seconds: float) -> Iterator[None]:
        """It takes connections and says nothing, as a store behind a broken network does, for so long at least."""
        os.killpg(self.process.pid, signal.SIGSTOP)
        began = time.monotonic()
        yield
        time.sleep(max(0, began + seconds - time.monotonic()))
        os.killpg(self.process.pid, signal.SIGCONT)

    def end(self) -> None:
        """With all that it holds: it keeps everything in memory."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def asked(self) -> Counter[str]:
        """Requests by method and what they were about."""
        found: Counter[str] = Counter()
        for method, path in ASKED.findall(self.words.read_text(errors="replace")):
            about = next((name for name in ("frames", "checkpoint", "verdicts") if f"/{name}" in path), "listings")
            found[f"{method} {about}"] += 1
        return found

    def per_batch(self) -> Counter[int]:
        """How many batches of a table were written by so many requests."""
        of: Counter[tuple[str, int]] = Counter()
        for method, path in ASKED.findall(self.words.read_text(errors="replace")):
            found = BATCH.search(unquote(path))
            if found and method in {"PUT", "POST"}:
                of[found[1], int(found[2] or found[3])] += 1
        return Counter(of.values())
