"""Forks the Pythons that Spark starts on this machine, warm: in milliseconds, where each would import for a second.

Knows: that Spark starts one Python per stateful step, to ask for the names of its state, and waits ten seconds for it;
that it starts another which forks its workers; and how `launch.py`, which Spark takes for its Python, hands over what
it was started with. Refuses to know what those Pythons do.
Rule: it is never needed and changes no result. Where nobody answers, `launch.py` starts a bare Python.
"""

import json
import os
import select
import shlex
import signal
import socket
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen

import wirecheck

PACKAGES = Path(wirecheck.__file__).resolve().parent.parent
STEPS, WORKERS = "pyspark.sql.streaming.transform_with_state_driver_worker", "wirecheck.streaming.spark.worker_daemon"
"""The modules that Spark asks for; a socket each."""
LAUNCHER = '#!/bin/sh\nexec {python} -I -S {launch} {folder} {python} "$@"\n'
LENGTH = struct.Struct(">i")
Forks = Popen[bytes]


def start_forks(work: Path) -> tuple[Path, Forks | None]:
    """What Spark is to take for Python, and the process that forks; ended by `end_forks`, or when this process ends."""
    if not Path("/proc/self/fd").exists():  # not Linux
        return Path(sys.executable), None
    folder = work / "forks"
    folder.mkdir(mode=0o700, exist_ok=True)  # whoever may connect may have things run
    words = {"python": sys.executable, "launch": PACKAGES / "wirecheck/streaming/spark/launch.py", "folder": folder}
    launcher = folder / "python"
    launcher.write_text(LAUNCHER.format(**{name: shlex.quote(str(word)) for name, word in words.items()}))
    launcher.chmod(0o700)
    listening = [listen(folder, module) for module in (STEPS, WORKERS)]
    handles = [each.fileno() for each in listening]
    paths = os.pathsep.join([str(PACKAGES), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1"}
    with (work / "spark.log").open("ab") as log:
        process = Popen(  # noqa: S603 - this Python
            [sys.executable, "-m", "wirecheck.streaming.spark.forks", *map(str, handles)],
            stdin=PIPE, stdout=DEVNULL, stderr=log, env=environment, pass_fds=handles, process_group=0,
        )  # fmt: skip
    for each in listening:
        each.close()
    return launcher, process


def end_forks(process: Forks) -> None:
    """At once. What it has forked for Spark ends with Java."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def listen(folder: Path, module: str) -> socket.socket:
    """By a path of any length: the kernel takes a hundred bytes."""
    (folder / module).unlink(missing_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(f"/proc/self/fd/{handle}/{module}")
        listening.listen()
    finally:
        os.close(handle)
    return listening


def serve(listening: socket.socket, module: str, work: Callable[[], object]) -> None:
    """Fork for whoever connects, until stdin ends."""
    while True:
        ready, _, _ = select.select([listening.fileno(), 0], [], [])
        if 0 in ready:
            return
        connection, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            become(connection, module)
            code = 1
            try:
                work()
                code = 0
            except SystemExit as said:
                code = said.code if isinstance(said.code, int) else 1
            finally:
                sys.stdout.flush()
                os._exit(code)
        connection.close()


def become(connection: socket.socket, module: str) -> None:
    """The process that was to be started: its streams, environment, folder and words. The connection lasts as long."""
    head, handles, _, _ = socket.recv_fds(connection, LENGTH.size, 3)
    with connection.makefile("rb") as file:
        arguments, environment, folder = json.loads(file.read(*LENGTH.unpack(head)))
    for number, handle in enumerate(handles):
        os.dup2(handle, number)
        os.close(handle)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = [module, *arguments]
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    connection.sendall(LENGTH.pack(os.getpid()))
    connection.detach()


def ask_step() -> None:
    from pyspark.sql.streaming.transform_with_state_driver_worker import main as ask
    from pyspark.worker_util import get_sock_file_to_executor

    with get_sock_file_to_executor() as file:
        ask(file, file)


def main() -> None:
    """Steps are answered at once, workers once all they need is loaded."""
    steps, workers = (socket.socket(fileno=int(handle)) for handle in sys.argv[1:])
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    import pyspark.sql.streaming.transform_with_state_driver_worker  # noqa: F401 - to be there after the fork

    import wirecheck.streaming.spark.operators  # noqa: F401 - the same

    if os.fork():
        workers.close()
        serve(steps, STEPS, ask_step)
    else:
        steps.close()
        from wirecheck.streaming.spark import worker_daemon

        worker_daemon.get_ready()
        serve(workers, WORKERS, worker_daemon.manager)


if __name__ == "__main__":
    main()
