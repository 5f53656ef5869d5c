"""One capture of a real cluster as two agents would show it, each losing 5 % of its packets, by clocks that differ.

What the two show together misses what both lost, and nothing else; so it is judged as one capture without that.
"""

import struct

import numpy as np
import pytest

from bench.inside_tls import wrap
from tests.depth import some
from tests.scenarios.engines import Scenario, packets, plain
from tests.scenarios.test_engines import without_frames
from wirecheck.capture.agent.offline_agent import write_frames
from wirecheck.streaming.steps.frames_folder import agents_of
from wirecheck.streaming.steps.settings import Settings

STORIES = ("zk28-recreate", "zk39-inconsistent-id")
LOSS, SKEW_US = 0.05, 1_500_000
SEEN = ("connections", "unseen_bytes")
READ = ("messages", "decoded_messages", "undecoded_messages")


def later(packet: bytes, skew_us: int) -> bytes:
    seconds, fraction = struct.unpack_from("<II", packet)
    now_us = seconds * 1_000_000 + fraction + skew_us
    return struct.pack("<II", *divmod(now_us, 1_000_000)) + packet[8:]


def of_two_hosts(packet: bytes) -> bytes:
    """The packet with addresses that mean the same host everywhere; by loopback's, two agents never mean the same."""
    addresses = slice(16 + 14 + 12, 16 + 14 + 20)  # behind pcap's, Ethernet's and most of IPv4's header
    moved = b"".join(b"\x0a" + packet[at + 1 : at + 4] for at in range(addresses.start, addresses.stop, 4))
    return packet[: addresses.start] + moved + packet[addresses.stop :]


def shown(agent, head, kept, folder, *, trimmed):
    """Frames files of these packets, as an agent of this name writes them."""
    path = folder / f"{agent}.pcap"
    path.write_bytes(head + b"".join(kept))
    return write_frames([path], folder / agent, "default", agent, keep_records=not trimmed).files


def results(name, folder, *, trimmed):
    """What the two show together, and what one agent shows that lost what both lost."""
    head, *every = packets(Scenario(name))
    every = [of_two_hosts(packet) for packet in every]
    lost = np.random.default_rng(5).random((2, len(every))) < LOSS
    one, two = ([packet for packet, gone in zip(every, mine, strict=True) if not gone] for mine in lost)
    either = [packet for packet, gone in zip(every, lost.all(axis=0), strict=True) if not gone]
    two = [later(packet, SKEW_US) for packet in two]
    files = [*shown("one", head, one, folder, trimmed=trimmed), *shown("two", head, two, folder, trimmed=trimmed)]
    both = plain([files], Settings(agents=agents_of(files)))
    return both, plain([shown("both", head, either, folder, trimmed=trimmed)])


@pytest.mark.parametrize("name", some(STORIES[::-1]))
def test_two_agents_miss_only_what_both_lost(name, tmp_path):
    both, whole = results(name, tmp_path, trimmed=False)
    assert [both["coverage"][key] for key in SEEN + READ] == [whole["coverage"][key] for key in SEEN + READ]
    assert grave_findings(both) == grave_findings(whole)


def test_trimmed_they_find_the_same(tmp_path):
    """A message of which each lost another packet is vouched for by neither: it is seen, and not decoded."""
    both, whole = results(STORIES[1], tmp_path, trimmed=True)
    assert [both["coverage"][key] for key in SEEN] == [whole["coverage"][key] for key in SEEN]
    assert both["coverage"]["decoded_messages"] > 0.98 * whole["coverage"]["decoded_messages"]
    assert grave_findings(both) == grave_findings(whole) != []


def grave_findings(result):
    """What was found, less when and where exactly: the two clocks differ."""
    grave = [f for f in without_frames(result)["findings"] if f["kind"] in {"violation", "anomaly"}]
    return [(f["id"], f["code"], f["count"]) for f in grave]


def inside_tls(name, folder):
    """A story inside TLS 1.3, between hosts of their own; and its key log."""
    head, *every = packets(Scenario(name))
    bare, path, keys = (folder / name for name in ("bare.pcap", "tls.pcap", "keys.log"))
    bare.write_bytes(head + b"".join(map(of_two_hosts, every)))
    wrap(bare, path, keys)
    return path, keys


@pytest.mark.parametrize("order", some([("none", "keys"), ("keys", "none"), ("keys", "again")], each=2))
def test_a_connection_that_one_agent_decrypts_is_followed_by_its_frames_and_counts_once(order, tmp_path):
    """Beside an agent without keys, whichever file comes first; and beside another one with keys."""
    path, keys = inside_tls(STORIES[1], tmp_path)
    files = {
        agent: write_frames(
            [path], tmp_path / agent, "default", agent, key_logs=[keys] if agent != "none" else []
        ).files
        for agent in order
    }
    alone = plain([files["keys"]])
    both = plain(
        [[*files[order[0]], *files[order[1]]]], Settings(agents=agents_of([f for a in order for f in files[a]]))
    )
    assert alone["coverage"]["decrypted_connections"] > 0
    measures = (*SEEN, *READ, "decrypted_connections", "encrypted_connections")
    assert [both["coverage"][key] for key in measures] == [alone["coverage"][key] for key in measures]
    assert grave_findings(both) == grave_findings(alone) != []
