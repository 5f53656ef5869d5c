import socket

import pytest


@pytest.fixture
def written(tmp_path):
    """Writes bytes to a named file and gives its path."""

    def write(data, name="capture.pcap"):
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return write


@pytest.fixture
def unused_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]
