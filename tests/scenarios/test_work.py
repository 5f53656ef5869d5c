"""Who gets no work done, on captures of real clusters with the clients' own word beside them, whole and damaged.

Truths were written before the tool ran: `hurt_clients` by the clients' own counters and logs.
"""

import gzip
import json
import random
from pathlib import Path

import pytest

import wirecheck

FOLDER = Path(__file__).parent / "work"
NAMES = sorted(folder.parent.name for folder in FOLDER.glob("*/truth.json"))
HURT = {"stalled", "in part", "skipped"}
DOUBT = {"failing", "in doubt"}
HEAD_BYTES, RECORD_BYTES = 24, 16


def records(name):
    """A classic pcap's head, and its packets with their heads."""
    data = gzip.decompress((FOLDER / name / "capture.pcap.gz").read_bytes())
    at, found = HEAD_BYTES, []
    while at < len(data):
        size = int.from_bytes(data[at + 8 : at + 12], "little")
        found.append(data[at : at + RECORD_BYTES + size])
        at += RECORD_BYTES + size
    return data[:HEAD_BYTES], found


def states(path):
    json = wirecheck.replay(path).json
    return {one["client_id"]: one["state"] for one in json["clients"] if one["client_id"]}, json


def truth(name):
    return set(json.loads((FOLDER / name / "truth.json").read_text())["hurt_clients"])


def of_nodes(name):
    return {str(broker["id"]) for broker in json.loads((FOLDER / name / "truth.json").read_text())["brokers"]}


@pytest.mark.parametrize("name", NAMES)
def test_every_hurt_client_is_named_and_nobody_else(name):
    found, result = states(FOLDER / name / "capture.pcap.gz")
    wrong = {client for client, state in found.items() if state in HURT | DOUBT}
    assert wrong == truth(name)
    assert result["marks"]["work"]["mark"] == ("violation" if wrong else "clear")
    assert result["marks"]["ids_and_versions"]["mark"] == "clear"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore::UserWarning")  # what could not be read of a damaged capture
@pytest.mark.parametrize("damage", ["2 % lost", "from 40 % on", "responses only"])
def test_loss_accuses_nobody_else(name, damage, tmp_path):
    dice = random.Random(1)
    head, every = records(name)
    if damage == "2 % lost":
        every = [one for one in every if dice.random() >= 0.02]
    elif damage == "from 40 % on":
        every = every[len(every) * 2 // 5 :]
    else:
        every = [one for number, one in enumerate(every) if is_response(one) or number < 1]
    (tmp_path / "damaged.pcap").write_bytes(head + b"".join(every))
    found, _ = states(tmp_path / "damaged.pcap")
    doubt = DOUBT if damage == "2 % lost" else set()
    assert {client for client, state in found.items() if state in HURT | doubt} <= truth(name)


def is_response(record):
    """From a port below the ephemeral ones: a listener's."""
    for begin in (14, 16, 20):  # Ethernet, and Linux's two cooked forms
        ip = record[RECORD_BYTES + begin :]
        if len(ip) > 20 and ip[0] >> 4 == 4 and ip[9] == 6:
            return int.from_bytes(ip[(ip[0] & 15) * 4 :][:2], "big") < 32768
    return True
