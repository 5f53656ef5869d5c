"""Exchanges to claims: a step that runs for months keeps nothing of a batch that is over."""

import gc

from streaming.decode_udf import decode_row
from streaming.follow import Bucket
from streaming.judge.extract.batch import Batch
from streaming.pack import pack_files
from streaming.settings import AgentFiles, Settings
from streaming.tagged import CLAIMS


def test_nothing_of_a_batch_outlives_it(frames_files):
    settings = Settings(buckets=1, agents={"a": AgentFiles()})
    cells = [row.cell for rows in pack_files(map(str, frames_files), settings) for row in rows]
    routes = [decode_row(row, settings).route for row in Bucket("L", 0, settings).receive(cells)]
    gc.collect()
    assert CLAIMS in routes
    assert Batch not in map(type, gc.get_objects())  # isinstance would look through weak proxies of what is gone
