"""What Spark takes for its Python: hands over what it was started with to `forks.py`, and ends when that ends.

Knows: the socket of the module it is told to run. Imports little, and is run without site packages: it is started
instead of a Python that would import for a second.
Rule: where nobody answers, it becomes the Python that it was taken for.
"""

import json
import os
import signal
import socket
import struct
import sys

LENGTH = struct.Struct(">i")


def main(folder: str, python: str, arguments: list[str]) -> None:
    connection = socket.socket(socket.AF_UNIX)
    try:
        handle = os.open(folder, os.O_RDONLY)
        connection.connect(f"/proc/self/fd/{handle}/{arguments[1]}")
    except (OSError, IndexError):
        os.execv(python, [python, *arguments])  # noqa: S606 - what Spark asked for
    told = json.dumps([arguments[2:], dict(os.environ), os.getcwd()]).encode()  # noqa: PTH109 - pathlib is slow to import
    socket.send_fds(connection, [LENGTH.pack(len(told))], [0, 1, 2])
    connection.sendall(told)
    said = connection.recv(LENGTH.size)
    if len(said) == LENGTH.size:
        (pid,) = LENGTH.unpack(said)
        signal.signal(signal.SIGTERM, lambda *_: os.kill(pid, signal.SIGTERM))
        connection.recv(1)  # nothing more is said: it ends when the other has


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
