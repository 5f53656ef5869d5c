"""Rows of the exchanges table say of each exchange what its messages do, and null of what was not seen."""

from collections import Counter

import pytest

from tests.scenarios.engines import Scenario, frames
from wirecheck.decode.api_names import name_of
from wirecheck.decode.connection.exchanges import OUTCOMES, Connection, Exchanges, Gap
from wirecheck.decode.dialect import read
from wirecheck.decode.layouts.program import form
from wirecheck.decode.message import Messages, Status
from wirecheck.decode.peer import Peer
from wirecheck.streaming.steps.cells import from_cell
from wirecheck.streaming.steps.decode_step import exchange_rows
from wirecheck.streaming.steps.follow_step import Bucket
from wirecheck.streaming.steps.pack_step import pack_files
from wirecheck.streaming.steps.settings import Settings
from wirecheck.streaming.steps.tagged import EXCHANGES
from wirecheck.streaming.store.result_tables import schema

SETTINGS = Settings(buckets=1)


@pytest.fixture(scope="module", params=["zk28-lossy-network", "zk28-recreate"])
def cells(request, tmp_path_factory):
    """Exchanges of a capture with losses, and of one without, with what was decoded of them."""
    files = frames([Scenario(request.param).pcap], tmp_path_factory.mktemp("frames"))
    packed = [row.cell for rows in pack_files(map(str, files), SETTINGS) for row in rows]
    cells = [row.cell for row in Bucket("default", 0, SETTINGS).receive(packed) if row.route == EXCHANGES]
    found = [from_cell(cell, Exchanges, Messages, Connection, Gap, Peer) for cell in cells]
    return [(exchanges, read(exchanges.messages)) for exchanges in found]


def said(exchanges, decoded, number):
    """One row, as anybody would make it."""
    messages, request, response = exchanges.messages, exchanges.request[number], exchanges.response[number]
    one = request if request >= 0 else response
    latency_us = (int(exchanges.ts_ns[response]) - int(exchanges.ts_last_ns[request])) // 1000
    return {
        "label": "default",
        "connection": exchanges.connections[exchanges.connection[one]].name,
        "time": int(exchanges.ts_ns[one]) // 1000,
        "api": form(int(messages.key[one]), "request").api,
        "version": messages.version[one],
        "correlation_id": messages.correlation_id[one],
        "outcome": OUTCOMES[exchanges.outcome[number]],
        "request_bytes": messages.size[request] if request >= 0 else None,
        "response_bytes": messages.size[response] if response >= 0 else None,
        "latency_us": latency_us if request >= 0 and response >= 0 else None,
        "request_status": Status(decoded.status[request]).name.lower() if request >= 0 else None,
        "response_status": Status(decoded.status[response]).name.lower() if response >= 0 else None,
    }


def test_a_row_says_what_its_messages_do(cells):
    outcomes = Counter()
    for exchanges, decoded in cells:
        table = exchange_rows(exchanges, decoded)
        assert table.schema.equals(schema("exchanges"))
        rows = table.set_column(2, "time", table["time"].cast("int64")).to_pylist()
        assert rows == [said(exchanges, decoded, number) for number in range(len(exchanges))]
        outcomes.update(row["outcome"] for row in rows)
    assert outcomes["answered"] > 100
    assert len(outcomes) > 1


def test_no_exchanges_are_no_rows(cells):
    exchanges, _ = cells[0]
    nothing = exchanges.only(exchanges.request[:0])
    assert exchange_rows(nothing, read(nothing.messages)).num_rows == 0


def test_an_api_without_a_layout_goes_by_its_number():
    assert (name_of(3), name_of(30_000)) == ("Metadata", "30000")
