"""Real captures as if a proxy stood before their brokers: the same verdict, and whom the proxy names is shown alone."""

import pyarrow as pa
import pytest

from tests import frame_files
from tests.proxy_headers import ACK, SYN, prefixed
from tests.scenarios.engines import Scenario, plain
from wirecheck.capture import frames, frames_file
from wirecheck.capture.agent.offline_agent import write_frames


def behind_a_proxy(table: pa.Table, header: bytes) -> pa.Table:
    return pa.Table.from_pylist(prefixed(table.to_pylist(), header), table.schema)


@pytest.mark.parametrize("name", ["kraft4-groups-recreate", "zk39-zombie-controller"])
def test_a_verdict_is_the_same_behind_a_proxy(name, tmp_path):
    """Also where it names a broker's host: nothing is believed for that."""
    files = write_frames([Scenario(name).pcap], tmp_path / "bare", "default").files
    rows = [row for row in frames_file.read(files[0]).to_pylist() if row["kind"] == frames.FRAME]
    host = next(row["dst_ip"] for row in rows if row["tcp_flags"] & (SYN | ACK) == SYN)
    header = f"PROXY TCP4 {host} 198.51.100.1 51234 9092\r\n".encode()
    (tmp_path / "proxied").mkdir()
    proxied = [
        frame_files.write(behind_a_proxy(frames_file.read(file), header), tmp_path / "proxied" / file.name)
        for file in files
    ]
    behind_header, expected = plain([proxied]), plain([files])
    shown = behind_header["coverage"]["details"].pop("proxied_messages")
    assert set(shown) == {host}
    assert 0 < shown[host] == behind_header["coverage"].pop("proxied_messages") <= behind_header["coverage"]["messages"]
    for result in (behind_header, expected):
        result["coverage"].pop("payload_bytes")
    assert behind_header == expected
